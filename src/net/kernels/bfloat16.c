/* bfloat16.c: see bfloat16.h. */
#include "net/kernels/bfloat16.h"
#include <string.h>

#define PIECE ((int64_t)1 << 14)

/* One float at a time as bits: the compiler makes vectors of it. */
static void round_row(int64_t count, const float *from, uint16_t *to)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t nan = bits >> 16 | 0x40;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
    }
}

static void restore_row(int64_t count, const uint16_t *from, float *to)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

void bfloat16_from_float(int64_t count, const float *from, uint16_t *to, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && count > PIECE)
    for (int64_t begin = 0; begin < count; begin += PIECE)
        round_row(count - begin < PIECE ? count - begin : PIECE, from + begin, to + begin);
}

void bfloat16_to_float(int64_t count, const uint16_t *from, float *to, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && count > PIECE)
    for (int64_t begin = 0; begin < count; begin += PIECE)
        restore_row(count - begin < PIECE ? count - begin : PIECE, from + begin, to + begin);
}
