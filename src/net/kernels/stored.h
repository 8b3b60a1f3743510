/* stored.h: numbers in fewer bits than a float: bfloat16, the upper 16 of its 32 bits, and int8,
 * which stands for scale (stored - zero_point). Rows of floats become stored numbers and floats
 * again; relu, whose result is one of the stored numbers, also works on them as they are. */
#ifndef NET_KERNELS_STORED_H
#define NET_KERNELS_STORED_H
#include <stdint.h>
#include "net/kernels/simd.h"

enum stored {
    STORED_TO_BFLOAT16,   /* to nearest, ties to even; NaN stays NaN */
    STORED_FROM_BFLOAT16, /* exact */
    /* x / scale to nearest, ties to even, + zero_point, the nearest of -128..127; NaN: -128. As
     * ONNX's QuantizeLinear. */
    STORED_TO_INT8,
    STORED_FROM_INT8,     /* (stored - zero_point) scale, as ONNX's DequantizeLinear */
    STORED_RELU_BFLOAT16, /* max(x, 0); NaN stays */
    STORED_RELU_INT8,
    STORED_WITHIN_INT8, /* a byte for every float: 1 where STORED_TO_INT8 does not saturate */
    STORED_KINDS
};

/* Of int8. The scale is between STORED_SCALE_MIN and STORED_SCALE_MAX, the zero point is one of
 * -128..127: then a stored number that becomes a float is the same number when it is stored. */
struct stored_scale {
    float scale;
    int32_t zero_point;
};
#define STORED_SCALE_MIN 0x1p-100f
#define STORED_SCALE_MAX 0x1p100f

/* One row on one thread. `to` may be `from` where both have the same size, else they do not
 * overlap. */
typedef void (*stored_fn)(int64_t count, const void *from, void *to, struct stored_scale scale);
stored_fn stored_get(enum stored kind, enum simd level);

/* Long rows on several threads. */
void stored_run(enum stored kind, int64_t count, const void *from, void *to,
                struct stored_scale scale, int threads);

/* out[i] = a[i] where within[i] is 1, else 0; out may be a. One row on one thread; long rows on
 * several. */
typedef void (*within_fn)(int64_t count, const float *a, const uint8_t *within, float *out);
within_fn stored_within_get(enum simd level);
void stored_within(int64_t count, const float *a, const uint8_t *within, float *out, int threads);
#endif
