/* stored.c: rows of stored numbers, split across threads. */
#include "net/kernels/stored.h"
#include <string.h>
#include "base/divide.h"

/* To nearest, ties to even, for |x| < 2^22: the sum has no room for a fraction. */
#define ROUND(x) (((x) + 0x1.8p23f) - 0x1.8p23f)

#define LOOPS "net/kernels/stored_loops.h"
#include "net/kernels/each_level.h"

#define PIECE ((int64_t)1 << 14)

/* Bytes of a number before and after. */
static const struct {
    int64_t from, to;
} sizes[STORED_KINDS] = {
    [STORED_TO_BFLOAT16] = { 4, 2 },   [STORED_FROM_BFLOAT16] = { 2, 4 },
    [STORED_TO_INT8] = { 4, 1 },       [STORED_FROM_INT8] = { 1, 4 },
    [STORED_RELU_BFLOAT16] = { 2, 2 }, [STORED_RELU_INT8] = { 1, 1 },
    [STORED_WITHIN_INT8] = { 4, 1 },
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

within_fn stored_within_get(enum simd level)
{
    return SIMD_PICK(level, keep_within, keep_within_portable);
}

void stored_within(int64_t count, const float *a, const uint8_t *within, float *out, int threads)
{
    within_fn row = stored_within_get(simd_best());
    int64_t pieces = ceil_div(count, PIECE);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && pieces > 1)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t begin = p * PIECE, length = count - begin < PIECE ? count - begin : PIECE;
        row(length, a + begin, within + begin, out + begin);
    }
}
