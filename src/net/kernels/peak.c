/* peak.c: a loop of independent multiply-adds, as wide as the processor's registers. */
#include "net/kernels/peak.h"
#include "net/kernels/simd.h"
#include "base/clock.h"

#define CHAINS 12 /* > latency (4 cycles) x 2 per cycle; registers for more are there */
#define ROUNDS 40000
#define RUNS 6

typedef float (*peak_fn)(float seed);

/* lanes floats in a register; the sum is returned so that nothing can be optimised away */
#define LOOP(name, target, lanes)                                                                  \
    static target float name(float seed)                                                           \
    {                                                                                              \
        typedef float vec __attribute__((vector_size(4 * (lanes))));                               \
        vec sum[CHAINS], a = { 0 }, b = { 0 };                                                     \
        a += 0.999f + seed, b += seed;                                                             \
        for (int c = 0; c < CHAINS; c++)                                                           \
            sum[c] = b + (float)c;                                                                 \
        for (int i = 0; i < ROUNDS; i++)                                                           \
            for (int c = 0; c < CHAINS; c++)                                                       \
                sum[c] = sum[c] * a + b;                                                           \
        for (int c = 1; c < CHAINS; c++)                                                           \
            sum[0] += sum[c];                                                                      \
        return sum[0][0] + sum[0][(lanes)-1];                                                      \
    }

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast", "unroll-loops")
#else
#pragma STDC FP_CONTRACT ON
#endif
LOOP(peak_portable, , 4)
#ifdef SIMD_X86
LOOP(peak_avx2, SIMD_TARGET_AVX2, 8)
LOOP(peak_avx512, SIMD_TARGET_AVX512, 16)
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

static peak_fn choose(int *lanes)
{
    enum simd level = simd_best();
    *lanes = level == SIMD_AVX512 ? 16 : level == SIMD_AVX2 ? 8 : 4;
    return SIMD_PICK(level, peak, peak_portable);
}

double peak_gflops(int threads)
{
    int lanes;
    peak_fn loop = choose(&lanes);
    double best_s = 0;
    float kept = 0;
    for (int run = 0; run < RUNS; run++) {
        double began_s = clock_monotonic_s();
#pragma omp parallel num_threads(threads) reduction(+ : kept)
        kept += loop(1e-9f * (float)(run + 1));
        double took_s = clock_monotonic_s() - began_s;
        if (run == 0 || took_s < best_s)
            best_s = took_s;
    }
    double operations = 2.0 * CHAINS * ROUNDS * lanes * threads;
    return kept >= 0 && best_s > 0 ? operations / best_s / 1e9 : 0;
}
