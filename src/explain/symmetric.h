/* symmetric.h: eigenvalues and eigenvectors of a symmetric matrix of any size. */
#ifndef EXPLAIN_SYMMETRIC_H
#define EXPLAIN_SYMMETRIC_H
#include <stdint.h>
#include "base/err.h"

/* matrix [n, n], overwritten. values [n] descend; row i of vectors [n, n] is the unit vector of
 * values[i], its largest component positive. Fails on numbers that are not finite. Householder's
 * reduction and implicit QL: about 1 s for n = 700. Stateless, thread-safe. */
bool symmetric_eigen(double *matrix, int64_t n, double *values, double *vectors, struct err *err);
#endif
