/* winograd_gradient.h: the gradient of the weights and bias of a 3 x 3 convolution of stride 1, by
 * Winograd's method with tiles of 4 x 4 outputs: 4 times fewer multiplications than the direct
 * method. The result does not depend on the number of threads. docs/kernels.md derives it. */
#ifndef NET_KERNELS_WINOGRAD_GRADIENT_H
#define NET_KERNELS_WINOGRAD_GRADIENT_H
#include "net/kernels/winograd_conv.h"

struct winograd_gradient {
    struct winograd_conv conv; /* set by the caller, as for the forward pass */

    int64_t blocks;                     /* of tiles; processed one after another */
    int64_t chunk_inputs, chunk_panels; /* blocks of inputs and panels of a chunk of the weights */
    int64_t chunks_in, chunks_out;      /* chunks are distributed across the threads */
    int64_t u_step;                     /* floats from one point of a chunk to the next */
    size_t chunk_floats, scratch_floats;
};

/* Chooses the blocking. Returns its cost in cycles on one thread, by a model; to compare with
 * winograd_gradient_direct_cost. */
double winograd_gradient_plan(struct winograd_gradient *g);
/* The same for a direct convolution. */
double winograd_gradient_direct_cost(const struct winograd_gradient *g);

/* Adds to weights [O, I, 3, 3] plain and bias [O] (may be NULL). x, dy: blocked. scratch
 * [g->scratch_floats], 64-byte aligned. */
void winograd_gradient_run(const struct winograd_gradient *g, const float *x, const float *dy,
                           float *weights, float *bias, float *scratch);
#endif
