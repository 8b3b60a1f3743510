/* elementwise.c: rows of floats, split across threads. */
#include "net/kernels/elementwise.h"
#include <string.h>
#include "base/divide.h"
#include "net/kernels/wide.h"

#define LOOPS "net/kernels/elementwise_loops.h"
#include "net/kernels/each_level.h"

#define PIECE ((int64_t)1 << 14)

elementwise_fn elementwise_get(enum elementwise kind, enum simd level)
{
    return SIMD_PICK(level, rows, rows_portable)[kind];
}

void elementwise_run(enum elementwise kind, int64_t count, const float *a, const float *b,
                     float *out, struct elementwise_args args, int threads)
{
    elementwise_fn row = elementwise_get(kind, simd_best());
    int64_t pieces = ceil_div(count, PIECE);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && pieces > 1)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t begin = p * PIECE, length = count - begin < PIECE ? count - begin : PIECE;
        row(length, a + begin, b ? b + begin : b, out + begin, args);
    }
}

void elementwise_add(int64_t count, const float *a, const float *b, float *out, int threads)
{
    elementwise_run(EW_ADD, count, a, b, out, (struct elementwise_args){ 0, 0 }, threads);
}
