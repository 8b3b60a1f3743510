/* gemm.c: see gemm.h. */
#include "net/kernels/gemm.h"
#include <string.h>
#include "base/divide.h"

#define SIMD_BITS 128
#include "net/kernels/vectors.h"

#include "net/kernels/squares.h"

static inline VEC part_load(const float *at, int64_t n)
{
    float lanes[LANES] = { 0 };
    memcpy(lanes, at, (size_t)n * sizeof *at);
    return VEC_LOAD(lanes);
}

static inline void part_store(float *at, int64_t n, VEC v)
{
    float lanes[LANES];
    VEC_STORE(lanes, v);
    memcpy(at, lanes, (size_t)n * sizeof *at);
}

#define GEMM_ROWS 6
#define GEMM_VECTORS 2
#define PART int64_t
#define PART_OF(n) (n)
#define PART_LOAD(at, part) part_load(at, part)
#define PART_STORE(at, part, v) part_store(at, part, v)
#include "net/kernels/gemm_loops.h"
#ifdef SIMD_X86
#include <immintrin.h>
#undef GEMM_ROWS
#undef GEMM_VECTORS
#undef PART
#undef PART_OF
#undef PART_LOAD
#undef PART_STORE
#define SIMD_BITS 256
#include "net/kernels/vectors.h"

#define GEMM_ROWS 6
#define GEMM_VECTORS 2
#define PART __m256i
#define PART_OF(n)                                                                                 \
    _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define PART_LOAD(at, part) _mm256_maskload_ps(at, part)
#define PART_STORE(at, part, v) _mm256_maskstore_ps(at, part, v)
#include "net/kernels/gemm_loops.h"
#undef GEMM_ROWS
#undef GEMM_VECTORS
#undef PART
#undef PART_OF
#undef PART_LOAD
#undef PART_STORE
#define SIMD_BITS 512
#include "net/kernels/vectors.h"

#define GEMM_ROWS 8
#define GEMM_VECTORS 3
#define PART __mmask16
#define PART_OF(n) ((__mmask16)((1u << (n)) - 1))
#define PART_LOAD(at, part) _mm512_maskz_loadu_ps(part, at)
#define PART_STORE(at, part, v) _mm512_mask_storeu_ps(at, part, v)
#include "net/kernels/gemm_loops.h"
#endif

gemm_function *gemm_of(enum simd level)
{
    return SIMD_PICK(level, gemm_run, gemm_run_portable);
}

int64_t gemm_panel(enum simd level)
{
    return SIMD_PICK(level, gemm_columns_of, gemm_columns_of_portable);
}

int64_t gemm_packed_floats(enum simd level, int64_t n, int64_t k)
{
    return ceil_div(n, gemm_panel(level)) * gemm_panel(level) * k;
}

/* to [4, 4] = from [4, 4] transposed; rows `step` and `panel` floats apart. */
static inline void turn_square(const float *from, int64_t step, float *to, int64_t panel)
{
    vector128 row[4];
    for (int i = 0; i < 4; i++)
        row[i] = *(const vector128_at *)(from + i * step);
    square_turn(row);
    for (int i = 0; i < 4; i++)
        *(vector128_at *)(to + i * panel) = row[i];
}

/* One panel of columns that are `column` floats apart and lie in one piece each. */
static void turn_panel(int64_t panel, int64_t columns, int64_t k, const float *from, int64_t column,
                       float *to)
{
    const int64_t wide = columns / 4 * 4, whole = k / 4 * 4;
    for (int64_t i = 0; i < whole; i += 4)
        for (int64_t j = 0; j < wide; j += 4)
            turn_square(from + j * column + i, column, to + i * panel + j, panel);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i < whole ? wide : 0; j < columns; j++)
            to[i * panel + j] = from[j * column + i];
}

/* One panel of rows that are `row` floats apart. */
static void copy_panel(int64_t panel, int64_t columns, int64_t k, const float *from, int64_t row,
                       float *to)
{
    const int64_t wide = columns / 4 * 4;
    for (int64_t i = 0; i < k; i++, from += row, to += panel) {
        for (int64_t j = 0; j < wide; j += 4)
            *(vector128_at *)(to + j) = *(const vector128_at *)(from + j);
        for (int64_t j = wide; j < columns; j++)
            to[j] = from[j];
    }
}

void gemm_pack(enum simd level, int64_t n, int64_t k, const float *b, int64_t row, int64_t column,
               int64_t first, int64_t end, float *packed)
{
    const int64_t panel = gemm_panel(level);
    for (int64_t p = first; p < end; p++) {
        int64_t columns = n - p * panel < panel ? n - p * panel : panel;
        const float *from = b + p * panel * column;
        if (column == 1)
            copy_panel(panel, columns, k, from, row, packed + p * panel * k);
        else
            turn_panel(panel, columns, k, from, column, packed + p * panel * k);
    }
}

int64_t gemm_rows(enum simd level)
{
    return SIMD_PICK(level, gemm_rows_of, gemm_rows_of_portable);
}

/* A size that the compiler knows is a few instructions. */
static inline void copy_rows(int64_t rows, const float *from, float *to)
{
    if (rows == 8)
        memcpy(to, from, 8 * sizeof *to);
    else
        memcpy(to, from, 6 * sizeof *to);
}

#define AHEAD 8 /* columns that are fetched before they are packed */

void gemm_pack_rows(enum simd level, int64_t m, int64_t k, const float *a, int64_t column,
                    float *packed)
{
    const int64_t rows = gemm_rows(level), whole = m / rows * rows;
    for (int64_t j = 0; j < k; j++, a += column) {
        float *to = packed + j * rows;
        for (int64_t i = 0; j + AHEAD < k && i < m; i += 16)
            __builtin_prefetch(a + AHEAD * column + i);
        for (int64_t i = 0; i < whole; i += rows, to += k * rows)
            copy_rows(rows, a + i, to);
        for (int64_t i = whole; i < m; i++)
            to[i - whole] = a[i];
    }
}
