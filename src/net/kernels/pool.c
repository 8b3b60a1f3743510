/* pool.c: pooling over all planes of an image; the rows are in pool_loops.h. */
#include "net/kernels/pool.h"
#include <string.h>
#ifdef SIMD_X86
#include <immintrin.h>
#endif

/* The loops over the parts of a px are short and must be unrolled to stay in registers. */
#ifndef __clang__
#pragma GCC optimize("O3")
#endif

#define TARGET
#define VARIANT(name) name##_portable_1
#define INNER 1
#define LANES 1
#include "net/kernels/pool_loops.h"
#define TARGET
#define VARIANT(name) name##_portable_8
#define INNER 8
#define LANES 4
#include "net/kernels/pool_loops.h"
#define TARGET
#define VARIANT(name) name##_portable_16
#define INNER 16
#define LANES 4
#include "net/kernels/pool_loops.h"
#ifdef SIMD_X86
#define TARGET SIMD_TARGET_AVX2
#define VARIANT(name) name##_avx2_8
#define INNER 8
#define LANES 8
#include "net/kernels/pool_loops.h"
#define TARGET SIMD_TARGET_AVX2
#define VARIANT(name) name##_avx2_16
#define INNER 16
#define LANES 8
#include "net/kernels/pool_loops.h"
#define TARGET SIMD_TARGET_AVX512
#define VARIANT(name) name##_avx512_16
#define INNER 16
#define LANES 16
#include "net/kernels/pool_loops.h"
#endif

const struct pool_rows *pool_rows_get(enum simd level, int64_t inner)
{
#ifdef SIMD_X86
    if (level == SIMD_AVX512 && inner == 16)
        return &rows_avx512_16;
    if (level >= SIMD_AVX2 && inner != 1)
        return inner == 16 ? &rows_avx2_16 : &rows_avx2_8;
#endif
    (void)level;
    return inner == 16 ? &rows_portable_16 : inner == 8 ? &rows_portable_8 : &rows_portable_1;
}

static int64_t plane_in(const struct pool_window *w)
{
    return w->axis[0].in * w->axis[1].in * w->inner;
}

void pool_max(const struct pool_window *w, enum simd level, const float *x, float *y,
              uint16_t *index)
{
    const struct pool_rows *rows = pool_rows_get(level, w->inner);
    int64_t height = w->axis[0].out, length = w->axis[1].out * w->inner, in = plane_in(w);
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int64_t i = 0; i < w->planes * height; i++)
        rows->max(w, i % height, x + i / height * in, y + i * length,
                  index ? index + i * length : NULL);
}

void pool_max_back(const struct pool_window *w, enum simd level, const float *dy,
                   const uint16_t *index, float *dx)
{
    const struct pool_rows *rows = pool_rows_get(level, w->inner);
    int64_t height = w->axis[0].out, length = w->axis[1].out * w->inner, in = plane_in(w);
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int64_t p = 0; p < w->planes; p++) {
        memset(dx + p * in, 0, (size_t)in * sizeof *dx);
        for (int64_t y = 0; y < height; y++) {
            int64_t at = (p * height + y) * length;
            rows->max_back(w, y, dy + at, index + at, dx + p * in);
        }
    }
}

void pool_mean(const struct pool_window *w, enum simd level, const float *x, float *y)
{
    const struct pool_rows *rows = pool_rows_get(level, w->inner);
    int64_t height = w->axis[0].out, length = w->axis[1].out * w->inner, in = plane_in(w);
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int64_t i = 0; i < w->planes * height; i++)
        rows->mean(w, i % height, x + i / height * in, y + i * length);
}

void pool_mean_back(const struct pool_window *w, enum simd level, const float *dy, float *dx)
{
    const struct pool_rows *rows = pool_rows_get(level, w->inner);
    int64_t height = w->axis[0].out, length = w->axis[1].out * w->inner, in = plane_in(w);
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int64_t p = 0; p < w->planes; p++) {
        memset(dx + p * in, 0, (size_t)in * sizeof *dx);
        for (int64_t y = 0; y < height; y++)
            rows->mean_back(w, y, dy + (p * height + y) * length, dx + p * in);
    }
}
