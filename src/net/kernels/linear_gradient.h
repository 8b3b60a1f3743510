/* linear_gradient.h: the gradients of the weight and bias of a linear layer on many rows, as a
 * product of packed blocks (gemm.h). Each is summed by one thread, row after row in blocks whose
 * length depends on the instruction set and the number of rows alone: threads change no bits. */
#ifndef NET_KERNELS_LINEAR_GRADIENT_H
#define NET_KERNELS_LINEAR_GRADIENT_H
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

struct linear_gradient {
    enum simd level; /* one that this processor has */
    int threads;
    int64_t rows, inputs, outputs; /* x [rows, inputs], dy [rows, outputs] */
};

size_t linear_gradient_scratch_floats(const struct linear_gradient *g);
/* Adds to weight [outputs, inputs] and bias [outputs], of which either may be NULL. scratch
 * [linear_gradient_scratch_floats], 64-byte aligned. */
void linear_gradient_run(const struct linear_gradient *g, const float *x, const float *dy,
                         float *weight, float *bias, float *scratch);
#endif
