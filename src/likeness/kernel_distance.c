/* kernel_distance.c: see kernel_distance.h. */
#include "likeness/kernel_distance.h"

#include <math.h>
#include <stdlib.h>
#include "base/pool.h"
#include "base/rng.h"
#include "explain/products.h"

static double kernel(const double *x, const double *y, int64_t d)
{
    double base = product_dot(x, y, d) / (double)d + 1;
    return base * base * base;
}

/* Mean over all pairs of different rows. */
static double within(const struct rows *rows)
{
    double sum = 0;
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t j = 0; j < i; j++)
            sum += kernel(rows_at(rows, i), rows_at(rows, j), rows->d);
    return 2 * sum / ((double)rows->n * (double)(rows->n - 1));
}

double kernel_distance(const struct rows *a, const struct rows *b)
{
    double sum = 0;
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < b->n; j++)
            sum += kernel(rows_at(a, i), rows_at(b, j), a->d);
    return within(a) + within(b) - 2 * sum / ((double)a->n * (double)b->n);
}

struct subsets {
    const struct rows *a, *b;
    uint64_t seed;
    int64_t size;
    double *distances; /* [subsets] */
};

static bool measure_subset(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    const struct subsets *subsets = arg;
    struct rows a = { 0 }, b = { 0 };
    uint64_t stream = rng_hash("kernel") + 2 * (uint64_t)index;
    bool ok = rows_sample(subsets->a, subsets->size, subsets->seed, stream, &a, err) &&
              rows_sample(subsets->b, subsets->size, subsets->seed, stream + 1, &b, err);
    if (ok)
        subsets->distances[index] = kernel_distance(&a, &b);
    free((double *)a.values);
    free((double *)b.values);
    return ok;
}

bool kernel_distance_subsets(const struct rows *a, const struct rows *b, int64_t subsets,
                             int64_t most, uint64_t seed, const struct ctx *ctx,
                             struct kernel_estimate *out, struct err *err)
{
    int64_t size = a->n < b->n ? a->n : b->n;
    size = size < most ? size : most;
    if (size < 2)
        return err_set(err, ERR_MISSING, "the kernel distance needs two patches of each at least");
    struct subsets work = { a, b, seed, size, calloc((size_t)subsets, sizeof *work.distances) };
    bool ok = work.distances ? pool_for(ctx->pool, subsets, measure_subset, &work, ctx->stop, err)
                             : err_memory(err, "the kernel distance");
    double mean = 0, variance = 0;
    for (int64_t i = 0; ok && i < subsets; i++)
        mean += work.distances[i] / (double)subsets;
    for (int64_t i = 0; ok && i < subsets; i++)
        variance += (work.distances[i] - mean) * (work.distances[i] - mean);
    *out = (struct kernel_estimate){ mean, NAN, subsets, size };
    if (subsets > 1)
        out->std_error = sqrt(variance / (double)(subsets - 1) / (double)subsets);
    free(work.distances);
    return ok;
}
