/* regression.c: see regression.h. */
#include "train/regression.h"

#include <math.h>
#include <stdlib.h>

static double mean_of(const double *values, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

static double correlation(const double *a, const double *b, int64_t n)
{
    double mean_a = mean_of(a, n), mean_b = mean_of(b, n), ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = a[i] - mean_a, y = b[i] - mean_b;
        ab += x * y, aa += x * x, bb += y * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa) / sqrt(bb) : NAN;
}

struct ranked {
    float value;
    int64_t index;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* ranked [n] is room to work in. */
static void rank(const float *values, int64_t n, struct ranked *ranked, double *ranks)
{
    for (int64_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){ values[i], i };
    qsort(ranked, (size_t)n, sizeof *ranked, by_value);
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && ranked[end].value == ranked[first].value;)
            end++;
        for (int64_t i = first; i < end; i++)
            ranks[ranked[i].index] = 0.5 * (double)(first + end + 1);
    }
}

static void errors(const double *predicted, const double *truth, int64_t n, struct regression *out)
{
    double mean = mean_of(truth, n), absolute = 0, square = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        double error = predicted[i] - truth[i], apart = truth[i] - mean;
        absolute += fabs(error);
        square += error * error;
        total += apart * apart;
    }
    out->mae = absolute / (double)n;
    out->rmse = sqrt(square / (double)n);
    out->r2 = total > 0 ? 1 - square / total : NAN;
}

bool regression_compute(const float *predicted, const float *truth, int64_t n,
                        struct regression *out, struct err *err)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(predicted[i]) || !isfinite(truth[i]))
            return err_set(err, ERR_FORMAT, "sample %lld: the %s is not a number", (long long)i,
                           isfinite(truth[i]) ? "prediction" : "target");
    struct ranked *ranked = calloc((size_t)n + 1, sizeof *ranked);
    double *a = calloc((size_t)n + 1, sizeof *a), *b = calloc((size_t)n + 1, sizeof *b);
    bool ok = (ranked && a && b) || err_memory(err, "the metrics");
    for (int64_t i = 0; ok && i < n; i++)
        a[i] = (double)predicted[i], b[i] = (double)truth[i];
    if (ok) {
        errors(a, b, n, out);
        out->pearson = correlation(a, b, n);
        rank(predicted, n, ranked, a);
        rank(truth, n, ranked, b);
        out->spearman = correlation(a, b, n);
    }
    free(ranked);
    free(a);
    free(b);
    return ok;
}
