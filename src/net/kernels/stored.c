/* stored.c: rows of stored numbers, split across threads. */
#include "net/kernels/stored.h"
#include <math.h>
#include <string.h>
#include "base/divide.h"

/* To nearest, ties to even, for |x| < 2^22: the sum has no room for a fraction. */
#define ROUND(x) (((x) + 0x1.8p23f) - 0x1.8p23f)

#define TARGET
#define VARIANT(name) name##_portable
#include "net/kernels/stored_loops.h"
#undef TARGET
#undef VARIANT
#ifdef SIMD_X86
#define TARGET SIMD_TARGET_AVX2
#define VARIANT(name) name##_avx2
#include "net/kernels/stored_loops.h"
#undef TARGET
#undef VARIANT
#define TARGET SIMD_TARGET_AVX512
#define VARIANT(name) name##_avx512
#include "net/kernels/stored_loops.h"
#undef TARGET
#undef VARIANT
#endif

#define PIECE ((int64_t)1 << 14)

/* Bytes of a number before and after. */
static const struct {
    int64_t from, to;
} sizes[STORED_KINDS] = {
    [STORED_TO_BFLOAT16] = { 4, 2 },   [STORED_FROM_BFLOAT16] = { 2, 4 },
    [STORED_TO_INT8] = { 4, 1 },       [STORED_FROM_INT8] = { 1, 4 },
    [STORED_RELU_BFLOAT16] = { 2, 2 }, [STORED_RELU_INT8] = { 1, 1 },
};

stored_fn stored_get(enum stored kind, enum simd level)
{
    return SIMD_PICK(level, rows, rows_portable)[kind];
}

void stored_run(enum stored kind, int64_t count, const void *from, void *to,
                struct stored_scale scale, int threads)
{
    stored_fn row = stored_get(kind, simd_best());
    int64_t pieces = ceil_div(count, PIECE);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && pieces > 1)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t begin = p * PIECE, length = count - begin < PIECE ? count - begin : PIECE;
        row(length, (const char *)from + begin * sizes[kind].from,
            (char *)to + begin * sizes[kind].to, scale);
    }
}

/* The last float in the direction of `outside` that still rounds to `stored`. */
static float last_of(float stored, float scale, float outside)
{
    float x = stored * scale;
    float beyond = (stored + (outside > 0 ? 1 : -1)) * scale;
    while (nextafterf(x, outside) != beyond) {
        float middle = x + (beyond - x) / 2;
        if (middle == x || middle == beyond)
            middle = nextafterf(x, outside);
        if (ROUND(middle / scale) == stored)
            x = middle;
        else
            beyond = middle;
    }
    return x;
}

void stored_range(struct stored_scale scale, float *least, float *greatest)
{
    *least = last_of((float)(INT8_MIN - scale.zero_point), scale.scale, -INFINITY);
    *greatest = last_of((float)(INT8_MAX - scale.zero_point), scale.scale, INFINITY);
}
