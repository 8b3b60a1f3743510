/* stain_fit.h: shared by the stain code: optical density, Lab, and the two ways to find stain
 * vectors. */
#ifndef STAIN_STAIN_FIT_H
#define STAIN_STAIN_FIT_H
#include "stain/stain.h"

/* Optical density of a byte: -ln(max(v, 1) / 255). */
void stain_density_table(double density[256]);
/* sRGB byte -> linear light in [0, 1]. */
void stain_linear_table(double linear[256]);

/* L of Lab: below the first is tissue; above the second is glass, which Reinhard leaves
 * unchanged. */
#define STAIN_TISSUE_LIGHTNESS 80.0
#define STAIN_GLASS_LIGHTNESS 90.0

/* CIE Lab, D65, 2 degrees, from sRGB primaries; the matrix is skimage's. */
extern const double stain_xyz_of_rgb[3][3];
extern const double stain_white_xyz[3];

/* The tissue among the pixels: lightness L below 0.8 of white. density [n_tissue, 3]. */
struct stain_tissue {
    double *density;
    int64_t n;
};

/* Stain vectors, unit length, haematoxylin (more red absorbed) first. */
bool stain_vectors_macenko(const struct stain_tissue *tissue, double matrix[2][3], struct err *err);
bool stain_vectors_vahadane(const struct stain_tissue *tissue, double matrix[2][3],
                            struct err *err);

/* Least squares: concentrations of a density are pseudo * density. False if the two stains are the
 * same. */
bool stain_pseudo_inverse(const double matrix[2][3], double pseudo[2][3]);

/* The quantile q (0 to 1) of the values, linearly interpolated as in numpy. Reorders them. */
double stain_quantile(double *values, int64_t n, double q);
#endif
