/* normalize.h: group and layer normalisation, plain layout: rows of floats are normalised to mean 0
 * and variance 1, then scaled and shifted. Sums are in double. */
#ifndef NET_KERNELS_NORMALIZE_H
#define NET_KERNELS_NORMALIZE_H
#include <stdint.h>

/* A row is `parts` x `run` floats. group norm: one (weight, bias) for each part, those of row r
 * begin at (r % cycle) * parts. layer norm: run 1, parts floats, cycle 1. */
struct normalize {
    int64_t rows, parts, run, cycle;
    float epsilon;
    int threads;
};

/* stats [rows, 2]: mean and 1 / standard deviation, for the backward pass. */
void normalize_run(const struct normalize *n, const float *x, const float *weight,
                   const float *bias, float *y, float *stats);
/* dweight and dbias [cycle * parts] are added to; dx may be NULL. */
void normalize_back(const struct normalize *n, const float *x, const float *weight,
                    const float *stats, const float *dy, float *dx, float *dweight, float *dbias);
#endif
