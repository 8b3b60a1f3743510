/* clip.c: see clip.h. */
#include "privacy/clip.h"

#include <math.h>
#include <string.h>

#define PIECE 4096 /* floats that stay in the caches */
#define LANES 8

double clip_squares(const float *x, int64_t n)
{
    double lanes[LANES] = { 0 }, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int k = 0; k < LANES; k++)
            lanes[k] += (double)x[i + k] * (double)x[i + k];
    for (; i < n; i++)
        lanes[0] += (double)x[i] * (double)x[i];
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
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
            const float factor = (float)factors[i];
            for (int64_t k = begin; factor > 0 && k < end; k++)
                sum[k] += factor * gradients[i][k];
            memset(gradients[i] + begin, 0, (size_t)(end - begin) * sizeof(float)); /* in a cache */
        }
    }
}
