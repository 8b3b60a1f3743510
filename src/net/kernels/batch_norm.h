/* batch_norm.h: batch normalisation for training, with a relu that follows it, forward and
 * backward. Sums are formed image by image, each by one thread, and added in the order of the
 * images: the result does not depend on the number of threads. */
#ifndef NET_KERNELS_BATCH_NORM_H
#define NET_KERNELS_BATCH_NORM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

/* x [images, blocks, area, block]: block channels, of which the last ones may be padding (0). */
struct batch_norm {
    enum simd level;
    int threads;
    int64_t images, blocks, area, block; /* block: 16, 8 or 1 */
    int64_t channels;
    float epsilon;
    bool relu;
    bool given; /* mean and variance are not those of x, but given */
};

/* Bytes of scratch for either pass. */
size_t batch_norm_scratch(const struct batch_norm *b);
/* Bytes of `passed`: a bit for every float that the relu let through. It may be NULL; the backward
 * pass then finds the same bits from x, which must have the same floats. */
size_t batch_norm_passed_bytes(const struct batch_norm *b);
/* mean and variance [channels] are written, or read if given. y may be x. */
void batch_norm_run(const struct batch_norm *b, const float *x, const float *weight,
                    const float *bias, float *mean, float *variance, float *y, uint16_t *passed,
                    void *scratch);
/* The gradients; dx may be dy. If mean and variance are given they are constants for dx. */
void batch_norm_back(const struct batch_norm *b, const float *x, const float *mean,
                     const float *variance, const float *weight, const float *bias, const float *dy,
                     const uint16_t *passed, float *dx, float *dweight, float *dbias,
                     void *scratch);
#endif
