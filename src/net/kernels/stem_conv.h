/* stem_conv.h: the first layer of many networks, 7 x 7 of stride 2 on images of three channels,
 * with our own kernel for AVX2 and AVX-512: by Winograd's method along rows, directly along
 * columns. Reads plain images, writes blocked ones. The result does not depend on the number of
 * threads or on the batch: every output is summed in the same order. docs/kernels.md derives it. */
#ifndef NET_KERNELS_STEM_CONV_H
#define NET_KERNELS_STEM_CONV_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/pool.h"
#include "net/kernels/simd.h"

enum { STEM_CHANNELS = 3, STEM_KERNEL = 7, STEM_STRIDE = 2 };

/* One convolution; the caller sets the first part, stem_conv_plan the rest. */
struct stem_conv {
    enum simd level; /* SIMD_AVX2: blocks of 8 channels, SIMD_AVX512: of 16 */
    int64_t batch, out_channels;
    int64_t height, width, out_height, out_width;
    int64_t pad_top, pad_left;
    bool relu;
    int threads;
    /* A max pooling of the outputs, whose rows then stay in the cache; NULL: none. Its planes are
     * the blocks of outputs of all images. */
    const struct pool_window *pool;

    int lanes;                       /* floats of a register */
    int64_t out_blocks, panels;      /* a panel: two blocks of output channels */
    int64_t tiles;                   /* of a row of outputs, three outputs each */
    int64_t segments, segment_tiles; /* of a row; the most tiles of one */
    int64_t parts; /* of the rows of an image (of the pooled rows), each processed by one thread */
    int64_t pool_rows, buffer_rows; /* computed at a time: pooled rows, and the rows they need */
    int64_t split_floats, point_floats; /* of scratch: an input row by pixels, and its points */
    int64_t thread_floats;
    size_t weight_floats, scratch_floats;
};

/* Whether the kernel supports this processor. */
bool stem_conv_available(enum simd level);
void stem_conv_plan(struct stem_conv *c);

/* from [O, 3, 7, 7] plain, bias [O] or NULL -> to [c->weight_floats]. */
void stem_conv_weights(const struct stem_conv *c, const float *from, const float *bias, float *to);

/* y = act(x * weights + bias), pooled if requested; x [N, 3, H, W] plain, y blocked. scratch
 * [c->scratch_floats], 64-byte aligned. */
void stem_conv_run(const struct stem_conv *c, const float *weights, const float *x, float *y,
                   float *scratch);
#endif
