/* attention.h: softmax(scale q kt + bias) v for every head of every sample, without the matrix of
 * all scores: blocks of queries meet blocks of keys, and sums are scaled when a larger score
 * appears. A sample and head belong to one thread, so the number of threads changes no bits. */
#ifndef NET_KERNELS_ATTENTION_H
#define NET_KERNELS_ATTENTION_H
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

struct attention {
    enum simd level; /* one that this processor has */
    int threads;
    int64_t samples, heads, queries, keys, width; /* width: of a head */
    float scale;
    /* floats from token to token: q, k and v may lie side by side; a head is `width` floats, heads
     * follow each other, samples too (queries, or keys, times the step) */
    int64_t q_step, k_step, v_step, y_step;
    int64_t bias_sample, bias_head; /* floats from sample to sample, head to head; 0: the same */
};

/* What a pass reads and writes. Gradients have the steps of their tensors and are overwritten; any
 * may be NULL. */
struct attention_arrays {
    const float *q, *k, *v;
    const float *bias; /* rows of `keys` floats for each query; NULL: none */
    const float *mask; /* [samples, keys]: keys with 0 are not seen; NULL: all are. A query that
                          sees none gives 0 */
    float *y;          /* backward: only read */
    float *sums;     /* [samples, heads, queries]: log of the sum of exponentials; NULL: not kept */
    const float *dy; /* as y */
    float *dq, *dk, *dv;
    float *dbias; /* as bias, summed over what shares it */
    float *scratch;
};

/* Floats of scratch memory for both passes. */
size_t attention_scratch_floats(const struct attention *a);
void attention_forward_pass(const struct attention *a, const struct attention_arrays *arrays);
void attention_backward_pass(const struct attention *a, const struct attention_arrays *arrays);
#endif
