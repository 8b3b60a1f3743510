/* pool.h: max and mean over windows of images: sliding (any stride, padding, dilation), adaptive
 * and global. An image is planes [H, W, inner]: inner is 1 (plain) or the block of channels. */
#ifndef NET_KERNELS_POOL_H
#define NET_KERNELS_POOL_H
#include <stdbool.h>
#include <stdint.h>
#include "net/kernels/simd.h"

/* Taps of the windows along one axis: output i sees begin[i], begin[i] + step, .. (count[i] of
 * them, all inside the image); divisor[i] is the divisor of a mean (with or without the padding).
 */
struct pool_axis {
    int64_t in, out, step;
    int32_t *begin, *count, *divisor;
    int32_t *tap; /* the index of the first tap in the whole window, for gradients of max */
    int64_t taps; /* of the whole window */
};

struct pool_window {
    struct pool_axis axis[2]; /* h, w */
    int64_t planes, inner;
    int threads;
};

/* One row of outputs of one plane. index may be NULL (inference). */
struct pool_rows {
    void (*max)(const struct pool_window *w, int64_t y, const float *x, float *out,
                uint16_t *index);
    void (*max_back)(const struct pool_window *w, int64_t y, const float *dy, const uint16_t *index,
                     float *dx);
    void (*mean)(const struct pool_window *w, int64_t y, const float *x, float *out);
    void (*mean_back)(const struct pool_window *w, int64_t y, const float *dy, float *dx);
};
const struct pool_rows *pool_rows_get(enum simd level, int64_t inner);

/* x [planes, H, W, inner] -> y [planes, H', W', inner]; index [as y]: which tap of the window. */
void pool_max(const struct pool_window *w, enum simd level, const float *x, float *y,
              uint16_t *index);
void pool_max_back(const struct pool_window *w, enum simd level, const float *dy,
                   const uint16_t *index, float *dx);
void pool_mean(const struct pool_window *w, enum simd level, const float *x, float *y);
void pool_mean_back(const struct pool_window *w, enum simd level, const float *dy, float *dx);
#endif
