/* simd.h: our own kernels are written once as plain loops (NAME_loops.h) and compiled for several
 * instruction sets; the best one the processor supports is chosen at run time. Contraction to fused
 * multiply-adds is off and sums have a fixed order, so all versions produce the same floats. */
#ifndef NET_KERNELS_SIMD_H
#define NET_KERNELS_SIMD_H

enum simd { SIMD_PORTABLE, SIMD_AVX2, SIMD_AVX512, SIMD_LEVELS };

#if defined(__x86_64__) && defined(__GNUC__)
#define SIMD_X86 1
#define SIMD_TARGET_AVX2 __attribute__((target("avx2,fma,bmi2")))
#ifdef __clang__
#define SIMD_TARGET_AVX512                                                                         \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")))
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop that stays scalar is not an error */
#else
#define SIMD_TARGET_AVX512                                                                         \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,"                      \
                          "prefer-vector-width=512")))
#endif
/* The version for a level: name_avx512, name_avx2 or, for all others, `other`. */
#define SIMD_PICK(level, name, other)                                                              \
    ((level) == SIMD_AVX512 ? name##_avx512 : (level) == SIMD_AVX2 ? name##_avx2 : (other))
#else
#define SIMD_PICK(level, name, other) ((void)(level), (other))
#endif

/* The best level of this processor. */
static inline enum simd simd_best(void)
{
#ifdef SIMD_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return SIMD_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return SIMD_AVX2;
#endif
    return SIMD_PORTABLE;
}

/* Multiply-adds of a whole register that this processor starts per cycle: two, or one with AVX-512
 * on Zen 4 (family 19h; Zen 3, in the same family, has no AVX-512), whose units are half as wide.
 */
static inline int simd_multiply_adds(enum simd level)
{
#ifdef SIMD_X86
    if (level == SIMD_AVX512 && __builtin_cpu_is("amdfam19h"))
        return 1;
#endif
    (void)level;
    return 2;
}
#endif
