/* correlation.c: see correlation.h. */
#include "base/correlation.h"

#include <math.h>
#include <stdlib.h>

static double mean_of(const double *values, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

double correlation_of(const double *a, const double *b, int64_t n)
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

bool correlation_ranks(const float *values, int64_t n, double *ranks, struct err *err)
{
    struct ranked *ranked = calloc((size_t)n + 1, sizeof *ranked);
    if (!ranked)
        return err_memory(err, "ranks");
    for (int64_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){ values[i], i };
    qsort(ranked, (size_t)n, sizeof *ranked, by_value);
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && ranked[end].value == ranked[first].value;)
            end++;
        for (int64_t i = first; i < end; i++)
            ranks[ranked[i].index] = 0.5 * (double)(first + end + 1);
    }
    free(ranked);
    return true;
}
