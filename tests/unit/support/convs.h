/* convs.h: what the tests of our convolution kernels share: drawn tensors, the convolution as a sum
 * in double, and plans of one network against each other. */
#ifndef TESTS_UNIT_SUPPORT_CONVS_H
#define TESTS_UNIT_SUPPORT_CONVS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/rng.h"
#include "net/kernels/simd.h"
#include "net/plan/plan.h"

/* Filled with NaN, so that what is not written, or read before, shows. The caller's, free(). */
float *convs_floats(size_t count);
/* Mostly small, now and then large, as activations and weights are. The caller's, free(). */
float *convs_drawn(struct rng *rng, int64_t count);
/* [N, C / lanes, pixels, lanes]; the channels that only fill a block are 0. The caller's, free().
 */
float *convs_drawn_blocked(struct rng *rng, int64_t batch, int64_t channels, int64_t pixels,
                           int64_t lanes);

/* y = act(x * weight + bias + residual) as a kernel computed it. */
struct conv_result {
    int64_t batch, in_channels, out_channels;
    int64_t height, width, out_height, out_width;
    int64_t kernel[2], stride[2], dilation[2], pad[2]; /* h, w; pad: top, left */
    int64_t lanes;                                     /* of the blocks of channels */
    bool plain;                                        /* x is not blocked */
    bool turned; /* weight is [I, O, kh, kw] and rotated by half a turn */
    bool relu;
    const float *x, *weight, *y;
    const float *bias, *residual; /* NULL: none */
};

/* The largest error of any output against the sum in double, in units of the largest root of an
 * output's squared terms. Fails the test if a channel that only fills a block is not 0. */
double convs_error(const struct conv_result *result);

/* Calls check for each kind of registers that this processor has. */
void convs_each_level(bool (*available)(enum simd level), void (*check)(enum simd level));

/* Runs a network with one input on the same drawn numbers by n plans: the outputs of all but the
 * first must be the same bits, and within 2e-6 of the largest number of that output by the first.
 * steps [n] (may be NULL) gets how many steps each plan has. */
void convs_compare_plans(const struct graph *graph, const struct plan_options *options, int n,
                         int *steps);

/* Trains two steps, with other weights in the second, by the direct plan and by the default one:
 * outputs and gradients of all parameters agree but for the last digits. The graph has one input
 * and one output; its weights are changed. */
void convs_compare_gradients(struct graph *graph);
#endif
