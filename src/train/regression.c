/* regression.c: see regression.h. */
#include "train/regression.h"

#include <math.h>
#include <stdlib.h>
#include "base/correlation.h"

static double mean_of(const double *values, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
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
    double *a = calloc((size_t)n + 1, sizeof *a), *b = calloc((size_t)n + 1, sizeof *b);
    bool ok = (a && b) || err_memory(err, "the metrics");
    for (int64_t i = 0; ok && i < n; i++)
        a[i] = (double)predicted[i], b[i] = (double)truth[i];
    if (ok) {
        errors(a, b, n, out);
        out->pearson = correlation_of(a, b, n);
        ok = correlation_ranks(predicted, n, a, err) && correlation_ranks(truth, n, b, err);
        out->spearman = ok ? correlation_of(a, b, n) : NAN;
    }
    free(a);
    free(b);
    return ok;
}
