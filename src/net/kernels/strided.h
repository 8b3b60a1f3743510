/* strided.h: tensors of up to STRIDED_AXES axes with any strides: broadcasting arithmetic, sums
 * over axes, copies of parts, repeated and reordered axes. */
#ifndef NET_KERNELS_STRIDED_H
#define NET_KERNELS_STRIDED_H
#include <stdbool.h>
#include <stdint.h>
#include "net/kernels/elementwise.h"

#define STRIDED_AXES 6

/* Strides in floats; 0 repeats. Axes of extent 1 have any stride. */
struct strided {
    int rank;
    int64_t extent[STRIDED_AXES];
    int64_t a[STRIDED_AXES], b[STRIDED_AXES], out[STRIDED_AXES];
    int threads;
};

/* Merges axes that are contiguous in all three; call once before running. */
void strided_simplify(struct strided *s);

/* out = a (kind) b; EW_ADD, EW_SUB, EW_MUL, EW_DIV. */
void strided_binary(const struct strided *s, enum elementwise kind, const float *a, const float *b,
                    float *out);
/* out = a, or out += a (then no two elements may share an out). */
void strided_copy(const struct strided *s, const float *a, float *out, bool add);
/* out = factor * sum of a over the axes where stride out is 0; summed in double in a fixed order.
 * The other axes of out must not repeat. */
void strided_sum(const struct strided *s, const float *a, float factor, float *out);
/* The same for the largest of a; NaN is larger than all. */
void strided_max(const struct strided *s, const float *a, float *out);
/* da, laid out as a: d of every maximum, shared by all of a that are equal to it. */
void strided_max_back(const struct strided *s, const float *a, const float *max, const float *d,
                      float *da);
#endif
