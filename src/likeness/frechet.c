/* frechet.c: see frechet.h. */
#include "likeness/frechet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/rng.h"
#include "explain/products.h"
#include "explain/symmetric.h"

static double trace(const double *matrix, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += matrix[i * d + i];
    return sum;
}

/* With A = V' W V: (A B)^(1/2) has the trace of (W^1/2 V B V' W^1/2)^(1/2), which is symmetric.
 * room [3, d, d]. */
static bool root_trace(const double *cov_a, const double *cov_b, int64_t d, double *values,
                       double *room, double *out, struct err *err)
{
    double *matrix = room, *vectors = room + d * d, *turned = room + 2 * d * d;
    memcpy(matrix, cov_a, (size_t)(d * d) * sizeof *matrix);
    if (!symmetric_eigen(matrix, d, values, vectors, err))
        return false;
    product_matrix(vectors, cov_b, d, d, d, turned);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            matrix[i * d + j] = sqrt(fmax(values[i], 0) * fmax(values[j], 0)) *
                                product_dot(turned + i * d, vectors + j * d, d);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < i; j++)
            matrix[i * d + j] = matrix[j * d + i] = (matrix[i * d + j] + matrix[j * d + i]) / 2;
    if (!symmetric_eigen(matrix, d, values, vectors, err))
        return false;
    *out = 0;
    for (int64_t i = 0; i < d; i++)
        *out += sqrt(fmax(values[i], 0));
    return true;
}

bool frechet_of_moments(const double *mean_a, const double *cov_a, const double *mean_b,
                        const double *cov_b, int64_t d, double *out, struct err *err)
{
    double *room = malloc((size_t)(3 * d * d + d) * sizeof *room), root = 0, gap = 0;
    if (!room)
        return err_memory(err, "Frechet's distance");
    for (int64_t i = 0; i < d; i++)
        gap += (mean_a[i] - mean_b[i]) * (mean_a[i] - mean_b[i]);
    bool ok = root_trace(cov_a, cov_b, d, room + 3 * d * d, room, &root, err);
    *out = gap + trace(cov_a, d) + trace(cov_b, d) - 2 * root;
    free(room);
    return ok;
}

/* mean [d], cov [d, d] */
static bool moments(const struct rows *rows, double *mean, double *cov, struct err *err)
{
    int64_t n = rows->n, d = rows->d;
    double *centred = calloc((size_t)(2 * n * d), sizeof *centred), *turned = centred + n * d;
    if (!centred)
        return err_memory(err, "Frechet's distance");
    for (int64_t j = 0; j < d; j++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += rows->values[i * d + j];
        mean[j] = sum / (double)n;
        for (int64_t i = 0; i < n; i++)
            turned[j * n + i] = centred[i * d + j] = rows->values[i * d + j] - mean[j];
    }
    product_matrix(turned, centred, d, n, d, cov);
    for (int64_t i = 0; i < d * d; i++)
        cov[i] /= (double)(n - 1);
    free(centred);
    return true;
}

bool frechet_distance(const struct rows *a, const struct rows *b, double *out, struct err *err)
{
    int64_t d = a->d;
    if (a->n < 2 || b->n < 2)
        return err_set(err, ERR_MISSING, "Frechet's distance needs two patches of each at least");
    double *room = malloc((size_t)(2 * d * d + 2 * d) * sizeof *room);
    if (!room)
        return err_memory(err, "Frechet's distance");
    double *mean_a = room, *mean_b = room + d, *cov_a = room + 2 * d, *cov_b = cov_a + d * d;
    bool ok = moments(a, mean_a, cov_a, err) && moments(b, mean_b, cov_b, err) &&
              frechet_of_moments(mean_a, cov_a, mean_b, cov_b, d, out, err);
    free(room);
    return ok;
}

/* --- more and more rows --- */

#define N_SIZES 4
#define N_DRAWS 24 /* of each size */

struct growth {
    const struct rows *a, *b;
    uint64_t seed;
    int64_t sizes[N_SIZES];
    double distances[N_SIZES * N_DRAWS];
};

static bool measure_draw(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    struct growth *growth = arg;
    struct rows a = { 0 }, b = { 0 };
    uint64_t stream = rng_hash("growth") + 2 * (uint64_t)index;
    int64_t m = growth->sizes[index / N_DRAWS];
    bool ok = rows_sample(growth->a, m, growth->seed, stream, &a, err) &&
              rows_sample(growth->b, m, growth->seed, stream + 1, &b, err) &&
              frechet_distance(&a, &b, &growth->distances[index], err);
    free((double *)a.values);
    free((double *)b.values);
    return ok;
}

/* Where the line of least squares through (1 / size, distance) meets 0. */
static double intercept(const struct growth *growth)
{
    const int n = N_SIZES * N_DRAWS;
    double x = 0, y = 0, xx = 0, xy = 0;
    for (int i = 0; i < n; i++) {
        double at = 1 / (double)growth->sizes[i / N_DRAWS];
        x += at / n;
        y += growth->distances[i] / n;
        xx += at * at / n;
        xy += at * growth->distances[i] / n;
    }
    return y - (xy - x * y) / (xx - x * x) * x;
}

bool frechet_infinity(const struct rows *a, const struct rows *b, uint64_t seed,
                      const struct ctx *ctx, double *out, struct err *err)
{
    static const double shares[N_SIZES] = { 0.5, 0.65, 0.8, 1 };
    int64_t m = a->n < b->n ? a->n : b->n;
    struct growth growth = { .a = a, .b = b, .seed = seed };
    *out = NAN;
    if (m < 2 * a->d || m < 4 || a->d > FRECHET_MOST_COLUMNS)
        return true;
    for (int i = 0; i < N_SIZES; i++)
        growth.sizes[i] = (int64_t)(shares[i] * (double)m);
    if (!pool_for(ctx->pool, N_SIZES * N_DRAWS, measure_draw, &growth, ctx->stop, err))
        return false;
    *out = intercept(&growth);
    return true;
}
