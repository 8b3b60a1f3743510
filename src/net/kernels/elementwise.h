/* elementwise.h: functions of one or two floats over long rows. The output may be an input. */
#ifndef NET_KERNELS_ELEMENTWISE_H
#define NET_KERNELS_ELEMENTWISE_H
#include <stdint.h>
#include "net/kernels/simd.h"

enum elementwise {
    EW_ADD,        /* a + b */
    EW_SUB,        /* a - b */
    EW_MUL,        /* a b */
    EW_DIV,        /* a / b */
    EW_RELU,       /* max(a, 0); NaN stays */
    EW_RELU_BACK,  /* a is the gradient, b the output: a where b > 0 */
    EW_LEAKY,      /* a, or alpha a below 0 */
    EW_LEAKY_BACK, /* a is the gradient, b the input */
    EW_SCALE,      /* alpha a + beta */
    EW_ADD_RELU,   /* max(a + b, 0) */
    EW_SILU,       /* a / (1 + e^-a) */
    EW_SILU_BACK,  /* a is the gradient, b the input */
    EW_KINDS
};

struct elementwise_args {
    float alpha, beta;
};

/* One row on one thread. */
typedef void (*elementwise_fn)(int64_t count, const float *a, const float *b, float *out,
                               struct elementwise_args args);
elementwise_fn elementwise_get(enum elementwise kind, enum simd level);

/* Long rows on several threads; b is not read by functions of one float. */
void elementwise_run(enum elementwise kind, int64_t count, const float *a, const float *b,
                     float *out, struct elementwise_args args, int threads);
void elementwise_add(int64_t count, const float *a, const float *b, float *out, int threads);
#endif
