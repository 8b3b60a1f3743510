/* metrics.c: see metrics.h. */
#include "train/metrics.h"

#include <math.h>
#include <stdlib.h>
#include "base/auc.h"

static bool check(const float *scores, const int32_t *labels, int64_t n, int64_t classes,
                  struct err *err)
{
    if (classes < 2)
        return err_set(err, ERR_USAGE, "metrics need at least two classes, not %lld",
                       (long long)classes);
    for (int64_t i = 0; i < n; i++) {
        if (labels[i] < 0 || labels[i] >= classes)
            return err_set(err, ERR_FORMAT, "sample %lld: label %d is outside 0..%lld",
                           (long long)i, (int)labels[i], (long long)classes - 1);
        for (int64_t c = 0; c < classes; c++)
            if (isnan(scores[i * classes + c]))
                return err_set(err, ERR_FORMAT,
                               "sample %lld: the score of class %lld is not a number", (long long)i,
                               (long long)c);
    }
    return true;
}

static void count(const float *scores, const int32_t *labels, int64_t n, int64_t classes,
                  int64_t *confusion)
{
    for (int64_t i = 0; i < n; i++) {
        const float *row = scores + i * classes;
        int64_t highest = 0;
        for (int64_t c = 1; c < classes; c++)
            if (row[c] > row[highest])
                highest = c;
        confusion[labels[i] * classes + highest]++;
    }
}

/* Mean area over the classes that occur and are not all there is; of class 1 alone if there are
 * two. */
static double mean_area(const float *scores, const int32_t *labels, int64_t n, int64_t classes,
                        struct auc_item *ranked)
{
    double sum = 0;
    int64_t seen = 0;
    for (int64_t c = classes == 2 ? 1 : 0; c < classes; c++) {
        for (int64_t i = 0; i < n; i++)
            ranked[i] =
                (struct auc_item){ (double)scores[i * classes + c], labels[i] == (int32_t)c };
        double one = auc_of_items(ranked, n);
        if (!isnan(one))
            sum += one, seen++;
    }
    return seen ? sum / (double)seen : NAN;
}

/* The numbers that follow from the confusion matrix alone. */
static void summarise(const int64_t *confusion, int64_t classes, struct metrics *out)
{
    double recalls = 0, f1 = 0;
    int64_t right = 0, seen = 0, seen_f1 = 0;
    for (int64_t c = 0; c < classes; c++) {
        int64_t truth = 0, said = 0, hit = confusion[c * classes + c];
        for (int64_t k = 0; k < classes; k++) {
            truth += confusion[c * classes + k];
            said += confusion[k * classes + c];
        }
        right += hit;
        if (truth == 0)
            continue;
        recalls += (double)hit / (double)truth;
        seen++;
        if (classes > 2 || c == 1) {
            f1 += 2 * (double)hit / (double)(truth + said);
            seen_f1++;
        }
    }
    out->accuracy = out->n ? (double)right / (double)out->n : NAN;
    out->balanced_accuracy = seen ? recalls / (double)seen : NAN;
    out->f1 = seen_f1 ? f1 / (double)seen_f1 : NAN;
}

bool metrics_compute(const float *scores, const int32_t *labels, int64_t n, int64_t classes,
                     struct metrics *out, int64_t *confusion, struct err *err)
{
    if (!check(scores, labels, n, classes, err))
        return false;
    bool ok = false;
    struct auc_item *ranked = calloc((size_t)n + 1, sizeof *ranked);
    int64_t *counts = calloc((size_t)(classes * classes), sizeof *counts);
    if (!ranked || !counts) {
        err_memory(err, "the metrics");
        goto done;
    }
    count(scores, labels, n, classes, counts);
    out->n = n;
    out->auc = mean_area(scores, labels, n, classes, ranked);
    summarise(counts, classes, out);
    for (int64_t i = 0; confusion && i < classes * classes; i++)
        confusion[i] = counts[i];
    ok = true;
done:
    free(ranked), free(counts);
    return ok;
}
