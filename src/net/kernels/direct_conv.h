/* direct_conv.h: convolutions by direct sums with our own register kernel, for AVX2 and AVX-512:
 * 1 x 1 ones, and those that no Winograd kernel supports (strides). Images are blocked by as many
 * channels as a register has floats. The result does not depend on the number of threads or on the
 * batch: every output is summed in the same order. See docs/kernels.md. */
#ifndef NET_KERNELS_DIRECT_CONV_H
#define NET_KERNELS_DIRECT_CONV_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/pool.h"
#include "net/kernels/simd.h"

/* One convolution; the caller sets the first part, direct_conv_plan the rest. */
struct direct_conv {
    enum simd level; /* SIMD_AVX2: blocks of 8 channels, SIMD_AVX512: of 16 */
    int64_t batch, in_channels, out_channels;
    int64_t height, width, out_height, out_width;
    int64_t kernel[2], stride[2], dilation[2], pad[2]; /* h, w; pad: top, left */
    bool relu;
    int threads;
    /* 1 x 1: a max pooling computes the inputs (height, width) from an image x of the same size or
     * larger, whose planes are the blocks of inputs of all images; NULL: none. */
    const struct pool_window *pool;

    int lanes; /* floats of a register */
    int64_t in_blocks, out_blocks;
    int64_t panels; /* of 2 or 3 blocks of outputs (AVX2: 3 or 4), or of all if fewer */
    int64_t depth;  /* blocks of input channels x taps */
    bool packed;    /* inputs are copied (pooled) into the order of the sums, a block at a time */
    int64_t pixel_blocks; /* of an image, processed one after another */
    int64_t panel_parts;  /* more weights than pixels: panels are also split across threads */
    size_t weight_floats, scratch_floats;
};

/* Whether the kernels support this processor. */
bool direct_conv_available(enum simd level);
void direct_conv_plan(struct direct_conv *c);
/* For n planned convolutions that run together; see direct_conv_run. */
void direct_conv_join(struct direct_conv *convs, int n);

/* from [O, I, kh, kw] plain, bias [O] or NULL -> to [c->weight_floats]. */
void direct_conv_weights(const struct direct_conv *c, const float *from, const float *bias,
                         float *to);

/* A convolution and its operands: y = act(x * weights + bias + residual); residual and y blocked.
 * residual may be NULL, and may be y. */
struct direct_work {
    const struct direct_conv *conv;
    const float *weights, *residual;
    float *y;
};

/* n joined convolutions of the same blocked x: they differ only in their outputs, and n is 1 if
 * inputs are packed. A block of pixels goes through all of them while it is in the cache. scratch
 * [scratch_floats], 64-byte aligned. */
void direct_conv_run(const struct direct_work *works, int n, const float *x, float *scratch);
#endif
