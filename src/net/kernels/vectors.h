/* vectors.h: the macros that NAME_loops.h is written in, for one instruction set. Needs SIMD_BITS,
 * 256 (AVX2), 512 (AVX-512) or 128 (any processor; without STREAM and MAX), and is included again
 * for each: hence no guard. ROWS: rows of sums, of two registers each, that fit in the registers
 * beside inputs and weights. */
#undef TARGET
#undef VARIANT
#undef LANES
#undef ROWS
#undef VEC
#undef VEC_LOAD
#undef VEC_STORE
#undef VEC_STREAM
#undef VEC_SET
#undef VEC_FMA
#undef VEC_MAX
#if SIMD_BITS == 256
#define TARGET SIMD_TARGET_AVX2
#define VARIANT(name) name##_avx2
#define LANES 8
#define ROWS 6
#define VEC __m256
#define VEC_LOAD(at) _mm256_loadu_ps(at)
#define VEC_STORE(at, v) _mm256_storeu_ps(at, v)
#define VEC_STREAM(at, v) _mm256_stream_ps(at, v)
#define VEC_SET(f) _mm256_set1_ps(f)
#define VEC_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define VEC_MAX(a, b) _mm256_max_ps(a, b)
#elif SIMD_BITS == 128
#define TARGET
#define VARIANT(name) name##_portable
#define LANES 4
#define ROWS 6
typedef float __attribute__((vector_size(16))) vector128;
typedef float __attribute__((vector_size(16), aligned(4), may_alias)) vector128_at;
#define VEC vector128
#define VEC_LOAD(at) ((vector128) * (const vector128_at *)(at))
#define VEC_STORE(at, v) ((void)(*(vector128_at *)(at) = (v)))
#define VEC_SET(f) ((vector128){ 0 } + (f))
#define VEC_FMA(a, b, c) ((a) * (b) + (c))
#else
#define TARGET SIMD_TARGET_AVX512
#define VARIANT(name) name##_avx512
#define LANES 16
#define ROWS 14
#define VEC __m512
#define VEC_LOAD(at) _mm512_loadu_ps(at)
#define VEC_STORE(at, v) _mm512_storeu_ps(at, v)
#define VEC_STREAM(at, v) _mm512_stream_ps(at, v)
#define VEC_SET(f) _mm512_set1_ps(f)
#define VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define VEC_MAX(a, b) _mm512_max_ps(a, b)
#endif
#undef SIMD_BITS
