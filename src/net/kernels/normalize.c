/* normalize.c: rows normalised to mean 0 and variance 1, forward and backward. */
#include "net/kernels/normalize.h"
#include <math.h>
#include <stdbool.h>
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

/* One weight for each float: layer norm. */
static void scale_row(int64_t n, const float *x, float mean, float scale, const float *weight,
                      const float *bias, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
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
        if (n->run == 1)
            scale_row(length, from, (float)mean, (float)scale, weight + first, bias + first, to);
        for (int64_t p = 0; n->run > 1 && p < n->parts; p++) {
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

/* The same with every dy multiplied by its weight. */
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
    int64_t length = n->parts * n->run, first = r % n->cycle * n->parts;
    float mean = stats[2 * r], scale = stats[2 * r + 1];
    double sum = 0, product = 0;
    if (n->run == 1) {
        struct moments m = weighted_products(length, x, dy, weight + first, mean, scale);
        sum = m.a, product = m.b;
    }
    for (int64_t p = 0; n->run > 1 && p < n->parts; p++) {
        struct moments m = run_products(n->run, x + p * n->run, dy + p * n->run, mean, scale);
        sum += m.a * (double)weight[first + p];
        product += m.b * (double)weight[first + p];
    }
    float mean_sum = (float)(sum / (double)length),
          mean_product = (float)(product / (double)length);
    if (n->run == 1) {
        const float *w = weight + first;
#pragma omp simd
        for (int64_t i = 0; i < length; i++)
            dx[i] = scale * (w[i] * dy[i] - mean_sum - (x[i] - mean) * scale * mean_product);
        return;
    }
    for (int64_t p = 0; p < n->parts; p++)
        for (int64_t i = p * n->run; i < (p + 1) * n->run; i++) {
            float hat = (x[i] - mean) * scale;
            dx[i] = scale * (weight[first + p] * dy[i] - mean_sum - hat * mean_product);
        }
}

/* Gradients by weight and bias of `width` neighbouring columns over all rows: layer norm. */
static void columns_back(const struct normalize *n, int64_t first, int64_t width, const float *x,
                         const float *stats, const float *dy, float *dweight, float *dbias)
{
    double sum[COLUMNS] = { 0 }, product[COLUMNS] = { 0 };
    for (int64_t r = 0; r < n->rows; r++) {
        const float *xr = x + r * n->parts + first, *dr = dy + r * n->parts + first;
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

static void channel_back(const struct normalize *n, int64_t c, const float *x, const float *stats,
                         const float *dy, float *dweight, float *dbias)
{
    double sum = 0, product = 0;
    for (int64_t r = c / n->parts; r < n->rows; r += n->cycle) {
        int64_t at = r * n->parts * n->run + c % n->parts * n->run;
        struct moments m = run_products(n->run, x + at, dy + at, stats[2 * r], stats[2 * r + 1]);
        sum += m.a, product += m.b;
    }
    if (dweight)
        dweight[c] += (float)product;
    if (dbias)
        dbias[c] += (float)sum;
}

void normalize_back(const struct normalize *n, const float *x, const float *weight,
                    const float *stats, const float *dy, float *dx, float *dweight, float *dbias)
{
    int64_t length = n->parts * n->run;
    bool columns = n->run == 1 && n->cycle == 1;
    int64_t pieces = columns ? ceil_div(n->parts, COLUMNS) : n->cycle * n->parts;
    if (!dweight && !dbias)
        pieces = 0;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t first = p * COLUMNS, left = n->parts - first;
        if (columns)
            columns_back(n, first, left < COLUMNS ? left : COLUMNS, x, stats, dy, dweight, dbias);
        else
            channel_back(n, p, x, stats, dy, dweight, dbias);
    }
    if (!dx)
        return;
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int64_t r = 0; r < n->rows; r++)
        row_back(n, r, x + r * length, weight, stats, dy + r * length, dx + r * length);
}
