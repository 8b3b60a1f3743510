/* normalize.c: rows brought to mean 0 and variance 1, forward and backward. */
#include "net/kernels/normalize.h"
#include <math.h>
#include <stddef.h>

#define LANES 8

struct moments {
    double a, b;
};

/* sum of x and of (x - shift)^2, in LANES partial sums: the order is fixed. */
static struct moments row_moments(int64_t n, const float *x, double shift)
{
    double sum[LANES] = { 0 }, square[LANES] = { 0 };
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            double d = (double)x[i + k] - shift;
            sum[k] += d, square[k] += d * d;
        }
    for (; i < n; i++) {
        double d = (double)x[i] - shift;
        sum[0] += d, square[0] += d * d;
    }
    struct moments m = { 0, 0 };
    for (int k = 0; k < LANES; k++)
        m.a += sum[k], m.b += square[k];
    return m;
}

void normalize_run(const struct normalize *n, const float *x, const float *weight,
                   const float *bias, float *y, float *stats)
{
    int64_t length = n->parts * n->run;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int64_t r = 0; r < n->rows; r++) {
        const float *from = x + r * length;
        float *to = y + r * length;
        double mean = row_moments(length, from, 0).a / (double)length;
        double variance = row_moments(length, from, mean).b / (double)length;
        double scale = 1 / sqrt(variance + (double)n->epsilon);
        int64_t first = r % n->cycle * n->parts;
        for (int64_t p = 0; p < n->parts; p++) {
            float factor = (float)(scale * (double)weight[first + p]);
            float offset = bias[first + p] - (float)mean * factor;
            for (int64_t i = p * n->run; i < (p + 1) * n->run; i++)
                to[i] = from[i] * factor + offset;
        }
        if (stats)
            stats[2 * r] = (float)mean, stats[2 * r + 1] = (float)scale;
    }
}

/* sum of dy and of dy * xhat over one run. */
static struct moments run_products(int64_t n, const float *x, const float *dy, float mean,
                                   float scale)
{
    double a[LANES] = { 0 }, b[LANES] = { 0 };
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            float hat = (x[i + k] - mean) * scale;
            a[k] += (double)dy[i + k], b[k] += (double)(dy[i + k] * hat);
        }
    for (; i < n; i++) {
        float hat = (x[i] - mean) * scale;
        a[0] += (double)dy[i], b[0] += (double)(dy[i] * hat);
    }
    struct moments m = { 0, 0 };
    for (int k = 0; k < LANES; k++)
        m.a += a[k], m.b += b[k];
    return m;
}

static void row_back(const struct normalize *n, int64_t r, const float *x, const float *weight,
                     const float *stats, const float *dy, float *dx)
{
    int64_t length = n->parts * n->run, first = r % n->cycle * n->parts;
    float mean = stats[2 * r], scale = stats[2 * r + 1];
    double sum = 0, product = 0;
    for (int64_t p = 0; p < n->parts; p++) {
        struct moments m = run_products(n->run, x + p * n->run, dy + p * n->run, mean, scale);
        sum += m.a * (double)weight[first + p];
        product += m.b * (double)weight[first + p];
    }
    float mean_sum = (float)(sum / (double)length),
          mean_product = (float)(product / (double)length);
    for (int64_t p = 0; p < n->parts; p++)
        for (int64_t i = p * n->run; i < (p + 1) * n->run; i++) {
            float hat = (x[i] - mean) * scale;
            dx[i] = scale * (weight[first + p] * dy[i] - mean_sum - hat * mean_product);
        }
}

void normalize_back(const struct normalize *n, const float *x, const float *weight,
                    const float *stats, const float *dy, float *dx, float *dweight, float *dbias)
{
    int64_t length = n->parts * n->run;
    if (dweight || dbias) {
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
        for (int64_t c = 0; c < n->cycle * n->parts; c++) {
            double sum = 0, product = 0;
            for (int64_t r = c / n->parts; r < n->rows; r += n->cycle) {
                int64_t at = r * length + c % n->parts * n->run;
                struct moments m =
                    run_products(n->run, x + at, dy + at, stats[2 * r], stats[2 * r + 1]);
                sum += m.a, product += m.b;
            }
            if (dweight)
                dweight[c] += (float)product;
            if (dbias)
                dbias[c] += (float)sum;
        }
    }
    if (!dx)
        return;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int64_t r = 0; r < n->rows; r++)
        row_back(n, r, x + r * length, weight, stats, dy + r * length, dx + r * length);
}
