/* normalize.h: layer normalisation: rows of floats are normalised to mean 0 and variance 1 (or
 * divided by the root of their mean square), then scaled and shifted. Sums are in double. */
#ifndef NET_KERNELS_NORMALIZE_H
#define NET_KERNELS_NORMALIZE_H
#include <stdbool.h>
#include <stdint.h>

struct normalize {
    int64_t rows, length;
    float epsilon;
    bool rms; /* the mean is taken as 0 */
    int threads;
};

/* bias NULL: 0. stats [rows, 2]: mean and 1 / standard deviation, for the backward pass. */
void normalize_run(const struct normalize *n, const float *x, const float *weight,
                   const float *bias, float *y, float *stats);
/* dweight and dbias [length] are added to; dx may be NULL. */
void normalize_back(const struct normalize *n, const float *x, const float *weight,
                    const float *stats, const float *dy, float *dx, float *dweight, float *dbias);
#endif
