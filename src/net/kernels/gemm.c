/* gemm.c: see gemm.h. */
#include "net/kernels/gemm.h"
#ifdef SIMD_X86
#include <immintrin.h>
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

static void gemm_run_portable(const struct gemm *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        float *c = g->c + i * g->c_row;
        for (int64_t j = 0; j < g->n && !g->add; j++)
            c[j] = 0;
        for (int64_t k = 0; k < g->k; k++) {
            const float a = g->a[i * g->a_row + k * g->a_column], *b = g->b + k * g->b_row;
#pragma omp simd
            for (int64_t j = 0; j < g->n; j++)
                c[j] += a * b[j];
        }
    }
}

gemm_function *gemm_of(enum simd level)
{
    return SIMD_PICK(level, gemm_run, gemm_run_portable);
}
