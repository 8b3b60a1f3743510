/* eigen.h: eigenvalues and eigenvectors of a symmetric 3 x 3 matrix. */
#ifndef STAIN_EIGEN_H
#define STAIN_EIGEN_H

/* matrix: the lower triangle is read. values ascend; vectors[k] is the unit vector of values[k]. */
void eigen_symmetric(const double matrix[3][3], double values[3], double vectors[3][3]);
#endif
