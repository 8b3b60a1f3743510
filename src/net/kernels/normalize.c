/* normalize.c: rows normalised to mean 0 and variance 1, forward and backward. */
#include "net/kernels/normalize.h"
#include <math.h>
#include <stddef.h>
#include "base/divide.h"

#define LANES 8
#define COLUMNS 64

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

static void scale_row(int64_t n, const float *x, float mean, float scale, const float *weight,
                      const float *bias, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * scale * weight[i] + (bias ? bias[i] : 0);
}

void normalize_run(const struct normalize *n, const float *x, const float *weight,
                   const float *bias, float *y, float *stats)
{
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int64_t r = 0; r < n->rows; r++) {
        const float *from = x + r * n->length;
        double mean = n->rms ? 0 : row_moments(n->length, from, 0).a / (double)n->length;
        double variance = row_moments(n->length, from, mean).b / (double)n->length;
        double scale = 1 / sqrt(variance + (double)n->epsilon);
        scale_row(n->length, from, (float)mean, (float)scale, weight, bias, y + r * n->length);
        if (stats)
            stats[2 * r] = (float)mean, stats[2 * r + 1] = (float)scale;
    }
}

/* sum of w dy and of w dy xhat over one row. */
static struct moments weighted_products(int64_t n, const float *x, const float *dy,
                                        const float *weight, float mean, float scale)
{
    double a[LANES] = { 0 }, b[LANES] = { 0 };
    for (int64_t i = 0; i < n; i += LANES)
        for (int64_t k = 0; k < LANES && i + k < n; k++) {
            float g = dy[i + k] * weight[i + k], hat = (x[i + k] - mean) * scale;
            a[k] += (double)g, b[k] += (double)(g * hat);
        }
    struct moments m = { 0, 0 };
    for (int k = 0; k < LANES; k++)
        m.a += a[k], m.b += b[k];
    return m;
}

static void row_back(const struct normalize *n, int64_t r, const float *x, const float *weight,
                     const float *stats, const float *dy, float *dx)
{
    float mean = stats[2 * r], scale = stats[2 * r + 1];
    struct moments m = weighted_products(n->length, x, dy, weight, mean, scale);
    float mean_sum = n->rms ? 0 : (float)(m.a / (double)n->length),
          mean_product = (float)(m.b / (double)n->length);
#pragma omp simd
    for (int64_t i = 0; i < n->length; i++)
        dx[i] = scale * (weight[i] * dy[i] - mean_sum - (x[i] - mean) * scale * mean_product);
}

/* Gradients by weight and bias of `width` neighbouring columns over all rows. */
static void columns_back(const struct normalize *n, int64_t first, int64_t width, const float *x,
                         const float *stats, const float *dy, float *dweight, float *dbias)
{
    double sum[COLUMNS] = { 0 }, product[COLUMNS] = { 0 };
    for (int64_t r = 0; r < n->rows; r++) {
        const float *xr = x + r * n->length + first, *dr = dy + r * n->length + first;
        float mean = stats[2 * r], scale = stats[2 * r + 1];
        for (int64_t k = 0; k < width; k++) {
            float hat = (xr[k] - mean) * scale;
            sum[k] += (double)dr[k], product[k] += (double)(dr[k] * hat);
        }
    }
    for (int64_t k = 0; k < width; k++) {
        if (dweight)
            dweight[first + k] += (float)product[k];
        if (dbias)
            dbias[first + k] += (float)sum[k];
    }
}

void normalize_back(const struct normalize *n, const float *x, const float *weight,
                    const float *stats, const float *dy, float *dx, float *dweight, float *dbias)
{
    int64_t pieces = dweight || dbias ? ceil_div(n->length, COLUMNS) : 0;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t first = p * COLUMNS, left = n->length - first;
        columns_back(n, first, left < COLUMNS ? left : COLUMNS, x, stats, dy, dweight, dbias);
    }
    if (!dx)
        return;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int64_t r = 0; r < n->rows; r++)
        row_back(n, r, x + r * n->length, weight, stats, dy + r * n->length, dx + r * n->length);
}
