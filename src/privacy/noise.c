/* noise.c: see noise.h. */
#include "privacy/noise.h"

#include <math.h>

#define BLOCKS 64 /* of the cipher, at a time */
#define ROOM (BLOCKS * CIPHER_WORDS)

/* Logarithm, sine and cosine of four numbers at a time, as plain sums and products, so that noise
 * is the same whatever the processor and the C library. */
typedef double four __attribute__((vector_size(32)));
typedef uint64_t four_words __attribute__((vector_size(32)));
/* They are inlined: how they would be passed does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16") /* so that factors are constants */

#define ONE_BITS 0x3ff0000000000000     /* of 1 */
#define INTEGER_BITS 0x4330000000000000 /* of 2^52, whose last bit is 1 */

/* Exact for words below 2^53. */
INLINE four double_of(four_words w)
{
    four_words low = (w & 0xffffffff) | INTEGER_BITS, high = w >> 32 | 0x4530000000000000;
    return ((four)high - (0x1p84 + 0x1p52)) + (four)low;
}

/* Of u in [2^-53, 1], to 2e-16 of it: u = 2^e m with m around 1, and log m is twice the artanh of s
 * = (m - 1) / (m + 1), |s| < 0.172. */
INLINE four log_of(four u)
{
    four_words bits = (four_words)u, mantissa = (bits & 0xfffffffffffff) | ONE_BITS;
    four_words above = (four_words)((four)mantissa > M_SQRT2);
    four m = (four)(mantissa - (above & 0x0010000000000000));
    four e = (four)(bits >> 52 | INTEGER_BITS) - (0x1p52 + 1023) + (four)(above & ONE_BITS);
    four s = (m - 1) / (m + 1), z = s * s, sum = (four){ 0 } + 1.0 / 23;
    UNROLL for (int k = 21; k > 1; k -= 2) sum = sum * z + 1.0 / k;
    return e * 0x1.62e42fefa38p-1 + (e * 0x1.ef35793c7673p-45 + (2 * s + 2 * s * (z * sum)));
}

/* Of 2 pi v, v in [0, 1), to 3e-16: the nearest quarter of a turn is taken away, and the series of
 * Taylor are summed for what is left, within +-pi / 4. */
INLINE void turn(four v, four *sine, four *cosine)
{
    four shifted = v * 4 + 0x1.8p52;
    four_words quarter = (four_words)shifted & 3;
    four x = (v - (shifted - 0x1.8p52) * 0.25) * (2 * M_PI), z = x * x;
    four s = (four){ 0 } + 1, c = s;
    UNROLL for (int k = 16; k > 1; k -= 2)
    {
        s = 1 - s * z * (1.0 / (k * (k + 1)));
        c = 1 - c * z * (1.0 / (k * (k - 1)));
    }
    s *= x;
    four_words odd = -(quarter & 1), least = (four_words)s, most = (four_words)c;
    *sine = (four)(((least & ~odd) | (most & odd)) ^ (quarter & 2) << 62);
    *cosine = (four)(((most & ~odd) | (least & odd)) ^ ((quarter + 1) & 2) << 62);
}

/* Words -> as many normal values. */
static void box_muller(const uint64_t *words, double *out)
{
    for (int i = 0; i < ROOM; i += 8, words += 8, out += 8) {
        four_words first = { words[0], words[2], words[4], words[6] };
        four_words second = { words[1], words[3], words[5], words[7] };
        four u = double_of((first >> 11) + 1) * 0x1p-53; /* (0, 1] */
        four v = double_of(second >> 11) * 0x1p-53;      /* [0, 1) */
        four square = -2 * log_of(u), radius, sine, cosine;
        UNROLL for (int k = 0; k < 4; k++) radius[k] = sqrt(square[k]);
        turn(v, &sine, &cosine);
        sine *= radius, cosine *= radius;
        UNROLL for (int k = 0; k < 4; k++) out[2 * k] = cosine[k], out[2 * k + 1] = sine[k];
    }
}

/* The values of a piece of ROOM. */
static void make_piece(const struct secret *secret, uint64_t step, int64_t piece, double *out)
{
    uint64_t words[ROOM];
    cipher_words(secret, CIPHER_NOISE, step, (uint32_t)(piece * BLOCKS), BLOCKS, words);
    box_muller(words, out);
}

void noise_normals(const struct secret *secret, uint64_t step, int64_t first, int64_t n,
                   double *out)
{
    double values[ROOM];
    for (int64_t i = first; i < first + n;) {
        make_piece(secret, step, i / ROOM, values);
        for (int64_t end = (i / ROOM + 1) * ROOM; i < end && i < first + n; i++)
            out[i - first] = values[i % ROOM];
    }
}

void noise_add(const struct secret *secret, uint64_t step, int64_t first, int64_t n, double scale,
               double factor, float *to)
{
    double values[ROOM];
    for (int64_t i = first; i < first + n;) {
        make_piece(secret, step, i / ROOM, values);
        for (int64_t end = (i / ROOM + 1) * ROOM; i < end && i < first + n; i++)
            to[i - first] = (float)(((double)to[i - first] + scale * values[i % ROOM]) * factor);
    }
}
