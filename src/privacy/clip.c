/* clip.c: see clip.h. */
#include "privacy/clip.h"

#include <math.h>
#include <string.h>

#define PIECE 4096 /* floats that stay in the caches */

typedef float floats __attribute__((vector_size(16), aligned(4), may_alias));
typedef double fours __attribute__((vector_size(32)));
#define ROWS 4 /* of four sums */
#define EACH_ROW _Pragma("GCC unroll 4") for (int k = 0; k < ROWS; k++)

double clip_squares(const float *x, int64_t n)
{
    fours sums[ROWS] = { { 0 } };
    double sum = 0;
    int64_t i = 0;
    for (; i + 4 * ROWS <= n; i += 4 * ROWS)
        EACH_ROW
        {
            fours part = __builtin_convertvector(*(const floats *)(x + i + 4 * k), fours);
            sums[k] += part * part;
        }
    for (; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (int k = 0; k < 4 * ROWS; k++)
        sum += sums[k / 4][k % 4];
    return sum;
}

double clip_factor(double norm, double clip)
{
    return isfinite(norm) ? fmin(1, clip / (norm + 1e-6)) : 0;
}

void clip_sum(float *const *gradients, const double *factors, int n, int64_t count, int threads,
              float *sum)
{
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t begin = 0; begin < count; begin += PIECE) {
        int64_t end = begin + PIECE < count ? begin + PIECE : count;
        for (int i = 0; i < n; i++) {
            const float factor = (float)factors[i], *from = gradients[i];
#pragma omp simd
            for (int64_t k = begin; k < (factor > 0 ? end : begin); k++)
                sum[k] += factor * from[k];
            memset(gradients[i] + begin, 0, (size_t)(end - begin) * sizeof(float)); /* in a cache */
        }
    }
}
