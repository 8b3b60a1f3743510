/* direct_gradient.h: the gradient of the weights and bias of a convolution by direct sums over all
 * pixels. Each weight is summed by one thread, over the pixels of one image after another, so that
 * the result does not depend on the number of threads. docs/kernels.md. */
#ifndef NET_KERNELS_DIRECT_GRADIENT_H
#define NET_KERNELS_DIRECT_GRADIENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

enum direct_source {
    DIRECT_BLOCKED, /* x and dy are blocked images */
    DIRECT_PLAIN,   /* x is a plain image (of few channels), dy a blocked one */
};

struct direct_gradient {
    /* set by the caller */
    enum simd level; /* SIMD_AVX2 or SIMD_AVX512 */
    enum direct_source source;
    int threads;
    int64_t batch, in_channels, out_channels, height, width, out_height, out_width;
    int64_t kernel[2], stride[2], dilation[2], pad[2]; /* pad: before the first row and column */

    /* by direct_gradient_plan */
    int64_t lanes, out_blocks;
    int64_t inputs, taps; /* blocks of inputs, and columns of each; of a plain x: columns, and 1 */
    int64_t panels;       /* of two blocks of outputs */
    int64_t chunk_inputs, chunk_panels, chunks_in, chunks_out; /* chunks are done by one thread */
    int64_t packed_floats, thread_floats;
    size_t scratch_floats;
};

/* Whether this processor has the kernels of a level. */
bool direct_gradient_available(enum simd level);
/* Chooses the blocking, which changes no bits. */
void direct_gradient_plan(struct direct_gradient *g);
/* Adds to weights [O, I, kh, kw] plain (NULL: none) and bias [O] (NULL: none). scratch
 * [g->scratch_floats], 64-byte aligned. */
void direct_gradient_run(const struct direct_gradient *g, const float *x, const float *dy,
                         float *weights, float *bias, float *scratch);
#endif
