/* pair_norm.h: the norm of the gradient of a convolution's weights on one image, without that
 * gradient: its square is the sum over all pairs of places p, q of the outputs of (dy_p . dy_q)
 * times the sum over the taps of (x_p+tap . x_q+tap), where x . x are products over the channels.
 * Fewer operations than the gradient where maps are small and channels are many. Stride 1. */
#ifndef NET_KERNELS_PAIR_NORM_H
#define NET_KERNELS_PAIR_NORM_H
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

struct pair_norm {
    enum simd level; /* SIMD_AVX2 or SIMD_AVX512, which has blocks of 8 or 16 channels */
    int64_t in_channels, out_channels, height, width, out_height, out_width;
    int64_t kernel[2], dilation[2], pad[2]; /* pad: before the first row and column */
};

/* Multiply-adds, about; those of the gradient itself. */
double pair_norm_cost(const struct pair_norm *n);
double pair_norm_gradient_cost(const struct pair_norm *n);
size_t pair_norm_scratch_floats(const struct pair_norm *n);
/* The squared norm, never below that of the gradient that the given floats have in exact
 * arithmetic, however much of it cancels: products are summed in float, pairs in double, and what
 * both can be off by is added (the bound is in pair_norm.c). A gradient that is made in float is
 * rounded too, in its own way; that is not covered. NaN if x or dy, or a product, is not finite. x,
 * dy: blocked. scratch [pair_norm_scratch_floats], 64-byte aligned. */
double pair_norm_run(const struct pair_norm *n, const float *x, const float *dy, float *scratch);
#endif
