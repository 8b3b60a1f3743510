/* direct_conv.h: convolutions by direct sums with our own register kernel, for AVX2 and AVX-512:
 * 1 x 1 ones, and those that no Winograd kernel takes (strides). Images are blocked by as many
 * channels as a register has floats. The result does not depend on the number of threads or on the
 * batch: every output is summed in the same order. See docs/kernels.md. */
#ifndef NET_KERNELS_DIRECT_CONV_H
#define NET_KERNELS_DIRECT_CONV_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

/* One convolution; the first part is given, the rest filled by direct_conv_plan. */
struct direct_conv {
    enum simd level; /* SIMD_AVX2: blocks of 8 channels, SIMD_AVX512: of 16 */
    int64_t batch, in_channels, out_channels;
    int64_t height, width, out_height, out_width;
    int64_t kernel[2], stride[2], dilation[2], pad[2]; /* h, w; pad: top, left */
    bool relu;
    int threads;

    int lanes; /* floats of a register */
    int64_t in_blocks, out_blocks,
        panels;           /* a panel: two blocks of outputs, the last may be 3 or 1 */
    int64_t depth;        /* blocks of input channels x taps */
    bool packed;          /* inputs are copied into the order of the sums, a block at a time */
    int64_t pixel_blocks; /* of an image, worked on one after another */
    int64_t panel_parts;  /* few pixels: threads part the panels too */
    size_t weight_floats, scratch_floats;
};

/* Whether the kernels know this processor. */
bool direct_conv_available(enum simd level);
void direct_conv_plan(struct direct_conv *c);

/* from [O, I, kh, kw] plain, bias [O] or NULL -> to [c->weight_floats]. */
void direct_conv_weights(const struct direct_conv *c, const float *from, const float *bias,
                         float *to);

/* y = act(x * weights + bias + residual); x, residual and y blocked. residual may be NULL, and may
 * be y. scratch [c->scratch_floats], 64-byte aligned. */
void direct_conv_run(const struct direct_conv *c, const float *weights, const float *x,
                     const float *residual, float *y, float *scratch);
#endif
