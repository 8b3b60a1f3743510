/* winograd_conv.h: 3 x 3 convolutions of stride 1 by Winograd's method with our own kernels, for
 * AVX2 and AVX-512: F(2x2) needs 2.25 times fewer multiplications than the direct method, F(4x4) 4
 * times and F(6x6) 5 times fewer. Images are blocked by as many channels as a register has floats.
 * The result does not depend on the number of threads or on the batch: every output is summed in
 * the same order. docs/kernels.md derives the transforms. */
#ifndef NET_KERNELS_WINOGRAD_CONV_H
#define NET_KERNELS_WINOGRAD_CONV_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

/* One convolution; the caller sets the first part, winograd_conv_plan the rest. */
struct winograd_conv {
    enum simd level; /* SIMD_AVX2: blocks of 8 channels, SIMD_AVX512: of 16 */
    int64_t batch, in_channels, out_channels;
    int64_t height, width, out_height, out_width;
    int64_t pad_top, pad_left, dilation;
    bool relu;
    bool learning; /* weights are transformed in every run, which affects the choice */
    bool fast;     /* tiles of 6 x 6 may be chosen: less exact */
    int threads;

    int tile;                              /* outputs along a side of a tile: 2, 4 or 6 */
    int lanes;                             /* floats of a register */
    int64_t in_blocks, out_blocks, panels; /* a panel: two blocks of output channels */
    int64_t tiles_y, tiles_x, tiles;       /* tiles_y, tiles_x: of one phase of the dilation */
    int end_rows, end_columns;             /* outputs computed by the last tile along a side */
    int64_t block_tiles, block_panels;     /* processed at a time */
    int64_t v_step, m_step;                /* floats from one point to the next in scratch */
    bool shared; /* few tiles: threads share transformed inputs, and panels are split across them */
    size_t weight_floats, scratch_floats;
};

/* Whether the kernels support this processor. */
bool winograd_conv_available(enum simd level);
/* Chooses tile (2, 4 or 6; 0: the cheapest by a model) and blocking. Returns its cost in the model,
 * in cycles on one thread, to compare with winograd_conv_direct_cost. */
double winograd_conv_plan(struct winograd_conv *w, int tile);
/* The same for a direct convolution. */
double winograd_conv_direct_cost(const struct winograd_conv *w);

/* from [O, I, 3, 3] plain -> to [w->weight_floats], 64-byte aligned. turned: from is [I, O, 3, 3],
 * rotated by 180 degrees, as needed for the gradient of the input. */
void winograd_conv_weights(const struct winograd_conv *w, const float *from, bool turned,
                           float *to);

/* y = act(x * weights + bias + residual); x, residual and y blocked. bias [out_channels] and
 * residual may be NULL; residual may be y. scratch [w->scratch_floats], 64-byte aligned. */
void winograd_conv_run(const struct winograd_conv *w, const float *weights, const float *x,
                       const float *bias, const float *residual, float *y, float *scratch);
#endif
