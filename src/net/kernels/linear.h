/* linear.h: y = f(x B + bias + residual) on rows, with B packed once (gemm.h): linear layers, and
 * the gradients of their inputs. Every sum has the order of its terms, in blocks of a length that
 * depends on the instruction set alone, so neither threads nor other rows change any bits. */
#ifndef NET_KERNELS_LINEAR_H
#define NET_KERNELS_LINEAR_H
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

enum linear_function { LINEAR_SAME, LINEAR_RELU, LINEAR_SILU, LINEAR_GELU };

struct linear {
    enum simd level; /* one that this processor has */
    int threads;
    int64_t rows, inputs, outputs; /* x [rows, inputs], y [rows, outputs] */
    enum linear_function function;
};

/* Floats of the packed weights. */
size_t linear_packed_floats(const struct linear *l);
/* Packs B [inputs, outputs], float (i, o) at weight[i * input_step + o * output_step]. */
void linear_pack(const struct linear *l, const float *weight, int64_t input_step,
                 int64_t output_step, float *packed);
/* bias [outputs] and residual [rows, outputs], which may be y, may be NULL. */
void linear_run(const struct linear *l, const float *x, const float *packed, const float *bias,
                const float *residual, float *y);
#endif
