/* standardize.c: weight standardisation of rows, forward and backward. */
#include "net/kernels/standardize.h"
#include <math.h>
#include <stddef.h>

/* z = (w - mean) scale has mean 0 and, but for epsilon, variance 1. */
struct moments {
    double mean, scale;
};

#define LANES 8 /* partial sums, whose order is fixed */

static double added(const double lanes[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static struct moments moments_of(const struct standardize *s, const float *w)
{
    double sums[LANES] = { 0 }, squares[LANES] = { 0 };
    for (int64_t i = 0; i < s->length; i++)
        sums[i % LANES] += (double)w[i];
    double mean = added(sums) / (double)s->length;
    for (int64_t i = 0; i < s->length; i++) {
        double d = (double)w[i] - mean;
        squares[i % LANES] += d * d;
    }
    return (struct moments){ mean,
                             1 / sqrt(added(squares) / (double)s->length + (double)s->epsilon) };
}

void standardize_run(const struct standardize *s, const float *w, const float *gain, float *y)
{
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (int64_t r = 0; r < s->rows; r++) {
        const float *from = w + r * s->length;
        struct moments m = moments_of(s, from);
        double factor = (double)gain[r] * m.scale / sqrt((double)s->length);
        for (int64_t i = 0; i < s->length; i++)
            y[r * s->length + i] = (float)(((double)from[i] - m.mean) * factor);
    }
}

static void row_back(const struct standardize *s, const float *w, double gain, const float *dy,
                     float *dw, float *dgain)
{
    struct moments m = moments_of(s, w);
    double sums[LANES] = { 0 }, products[LANES] = { 0 };
    for (int64_t i = 0; i < s->length; i++) {
        sums[i % LANES] += (double)dy[i];
        products[i % LANES] += (double)dy[i] * ((double)w[i] - m.mean) * m.scale;
    }
    double n = (double)s->length, sum = added(sums), along = added(products);
    if (dgain)
        *dgain = (float)(along / sqrt(n));
    double factor = gain / sqrt(n) * m.scale;
    for (int64_t i = 0; dw && i < s->length; i++) {
        double z = ((double)w[i] - m.mean) * m.scale;
        dw[i] = (float)(factor * ((double)dy[i] - sum / n - z * along / n));
    }
}

void standardize_back(const struct standardize *s, const float *w, const float *gain,
                      const float *dy, float *dw, float *dgain)
{
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (int64_t r = 0; r < s->rows; r++) {
        int64_t at = r * s->length;
        row_back(s, w + at, (double)gain[r], dy + at, dw ? dw + at : NULL,
                 dgain ? dgain + r : NULL);
    }
}
