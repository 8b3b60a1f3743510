/* precision.c: see precision.h. */
#include "verdict/precision.h"

#include <math.h>
#include <stdlib.h>
#include "base/auc.h"

static int from_highest(const void *a, const void *b)
{
    double x = ((const struct auc_item *)a)->score, y = ((const struct auc_item *)b)->score;
    return (x < y) - (x > y);
}

static void trace(const struct auc_item *items, int64_t n, int64_t positives, struct precision *out)
{
    int64_t found = 0;
    out->points[out->n_points++] = (struct precision_point){ 0, 1, INFINITY };
    for (int64_t begin = 0, end; begin < n; begin = end) {
        int64_t before = found;
        for (end = begin; end < n && items[end].score == items[begin].score; end++)
            found += items[end].positive;
        struct precision_point point = { (double)found / (double)positives,
                                         (double)found / (double)end, items[begin].score };
        out->average += (double)(found - before) / (double)positives * point.precision;
        out->points[out->n_points++] = point;
    }
}

bool precision_compute(const double *scores, const bool *positive, int64_t n, struct precision *out,
                       struct err *err)
{
    *out = (struct precision){ 0 };
    struct auc_item *items = calloc((size_t)n + 1, sizeof *items);
    out->points = calloc((size_t)n + 1, sizeof *out->points);
    bool ok = (items && out->points) || err_memory(err, "the precision-recall curve");
    int64_t positives = 0;
    for (int64_t i = 0; ok && i < n; i++) {
        items[i] = (struct auc_item){ scores[i], positive[i] };
        positives += positive[i];
    }
    ok = ok &&
         (positives > 0 ||
          err_set(err, ERR_FORMAT, "no slide is positive: precision and recall need at least one"));
    if (ok) {
        qsort(items, (size_t)n, sizeof *items, from_highest);
        trace(items, n, positives, out);
    } else {
        precision_free(out);
    }
    free(items);
    return ok;
}

void precision_free(struct precision *precision)
{
    free(precision->points);
    *precision = (struct precision){ 0 };
}
