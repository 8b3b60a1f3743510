/* auc.c: see auc.h. */
#include "base/auc.h"

#include <math.h>
#include <stdlib.h>

static int by_score(const void *a, const void *b)
{
    double x = ((const struct auc_item *)a)->score, y = ((const struct auc_item *)b)->score;
    return (x > y) - (x < y);
}

/* Twice the pairs in the right order, ties counted once, is a whole number, so the area is exact to
 * the last division. */
double auc_of_items(struct auc_item *items, int64_t n)
{
    if (n > 1)
        qsort(items, (size_t)n, sizeof *items, by_score);
    double twice_won = 0;
    int64_t negatives = 0, positives = 0;
    for (int64_t begin = 0, end; begin < n; begin = end) {
        int64_t tied[2] = { 0 };
        for (end = begin; end < n && items[end].score == items[begin].score; end++)
            tied[items[end].positive]++;
        twice_won += (double)tied[1] * (double)(2 * negatives + tied[0]);
        negatives += tied[0];
        positives += tied[1];
    }
    if (negatives == 0 || positives == 0)
        return NAN;
    return twice_won / 2 / ((double)negatives * (double)positives);
}

bool auc_area(const double *scores, const bool *positive, int64_t n, double *auc, struct err *err)
{
    struct auc_item *items = calloc((size_t)n + 1, sizeof *items);
    if (!items)
        return err_memory(err, "the ranks of the scores");
    for (int64_t i = 0; i < n; i++)
        items[i] = (struct auc_item){ scores[i], positive[i] };
    *auc = auc_of_items(items, n);
    free(items);
    return true;
}
