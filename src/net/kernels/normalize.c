/* normalize.c: rows normalised to mean 0 and variance 1, forward and backward. */
#include "net/kernels/normalize.h"
#include <math.h>
#include <stddef.h>
#include "base/divide.h"
#include "net/kernels/simd.h"

#define LANES 8
#define COLUMNS 64

typedef double four __attribute__((vector_size(32)));
typedef float four_floats __attribute__((vector_size(16)));
typedef float four_floats_at __attribute__((vector_size(16), aligned(4), may_alias));
#define FLOATS_AT(p) (*(const four_floats_at *)(p))
#define DOUBLES(p) __builtin_convertvector(FLOATS_AT(p), four)

struct moments {
    double a, b;
};

struct row_facts {
    float mean, scale;            /* of x */
    float mean_sum, mean_product; /* of w dy, and of w dy xhat */
};

struct normalize_loops {
    double (*row_sum)(int64_t n, const float *x);
    double (*row_squares)(int64_t n, const float *x, double shift);
    void (*scale_row)(int64_t n, const float *x, float mean, float scale, const float *weight,
                      const float *bias, float *y);
    struct moments (*weighted_products)(int64_t n, const float *x, const float *dy,
                                        const float *weight, float mean, float scale);
    void (*row_gradient)(int64_t n, const float *x, const float *dy, const float *weight,
                         const struct row_facts *row, float *dx);
    void (*add_columns)(int64_t n, const float *x, const float *dy, float mean, float scale,
                        double *sum, double *product);
};

#define LOOPS "net/kernels/normalize_loops.h"
#include "net/kernels/each_level.h"

static const struct normalize_loops *loops_of(enum simd level)
{
    return SIMD_PICK(level, &normalize_loops, &normalize_loops_portable);
}

void normalize_run(const struct normalize *n, const float *x, const float *weight,
                   const float *bias, float *y, float *stats)
{
    const struct normalize_loops *loops = loops_of(simd_best());
#pragma omp parallel for num_threads(n->threads) schedule(static) if (n->threads > 1)
    for (int64_t r = 0; r < n->rows; r++) {
        const float *from = x + r * n->length;
        double mean = n->rms ? 0 : loops->row_sum(n->length, from) / (double)n->length;
        double variance = loops->row_squares(n->length, from, mean) / (double)n->length;
        double scale = 1 / sqrt(variance + (double)n->epsilon);
        loops->scale_row(n->length, from, (float)mean, (float)scale, weight, bias,
                         y + r * n->length);
        if (stats)
            stats[2 * r] = (float)mean, stats[2 * r + 1] = (float)scale;
    }
}

static void row_back(const struct normalize *n, int64_t r, const float *x, const float *weight,
                     const float *stats, const float *dy, float *dx)
{
    const struct normalize_loops *loops = loops_of(simd_best());
    struct row_facts row = { .mean = stats[2 * r], .scale = stats[2 * r + 1] };
    struct moments m = loops->weighted_products(n->length, x, dy, weight, row.mean, row.scale);
    row.mean_sum = n->rms ? 0 : (float)(m.a / (double)n->length);
    row.mean_product = (float)(m.b / (double)n->length);
    loops->row_gradient(n->length, x, dy, weight, &row, dx);
}

/* Gradients by weight and bias of `width` neighbouring columns over all rows. */
static void columns_back(const struct normalize *n, int64_t first, int64_t width, const float *x,
                         const float *stats, const float *dy, float *dweight, float *dbias)
{
    const struct normalize_loops *loops = loops_of(simd_best());
    double sum[COLUMNS] = { 0 }, product[COLUMNS] = { 0 };
    for (int64_t r = 0; r < n->rows; r++)
        loops->add_columns(width, x + r * n->length + first, dy + r * n->length + first,
                           stats[2 * r], stats[2 * r + 1], sum, product);
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
