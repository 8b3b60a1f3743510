/* winograd_loops.c: the vector code of winograd_conv_loops.h for AVX2 and AVX-512. */
#include "net/kernels/winograd_loops.h"
#include <string.h>
#ifdef SIMD_X86
#include <immintrin.h>
#endif

#ifdef SIMD_X86
#define TARGET SIMD_TARGET_AVX2
#define VARIANT(name) name##_avx2
#define LANES 8
#define ROWS 6
#define VEC __m256
#define VEC_LOAD(at) _mm256_loadu_ps(at)
#define VEC_STORE(at, v) _mm256_storeu_ps(at, v)
#define VEC_SET(f) _mm256_set1_ps(f)
#define VEC_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define VEC_MAX(a, b) _mm256_max_ps(a, b)
#include "net/kernels/winograd_conv_loops.h"
#undef TARGET
#undef VARIANT
#undef LANES
#undef ROWS
#undef VEC
#undef VEC_LOAD
#undef VEC_STORE
#undef VEC_SET
#undef VEC_FMA
#undef VEC_MAX
#define TARGET SIMD_TARGET_AVX512
#define VARIANT(name) name##_avx512
#define LANES 16
#define ROWS 14
#define VEC __m512
#define VEC_LOAD(at) _mm512_loadu_ps(at)
#define VEC_STORE(at, v) _mm512_storeu_ps(at, v)
#define VEC_SET(f) _mm512_set1_ps(f)
#define VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define VEC_MAX(a, b) _mm512_max_ps(a, b)
#include "net/kernels/winograd_conv_loops.h"
#endif

const struct winograd_loops *winograd_loops_of(enum simd level)
{
#ifdef SIMD_X86
    if (level == SIMD_AVX512)
        return &loops_avx512;
    if (level == SIMD_AVX2)
        return &loops_avx2;
#endif
    (void)level;
    return NULL;
}
