/* two_sample.c: see two_sample.h. */
#include "likeness/two_sample.h"

#include <math.h>
#include <stdlib.h>
#include "base/auc.h"
#include "base/pool.h"
#include "base/rng.h"
#include "likeness/logistic.h"

double two_sample_p(int64_t right, int64_t n)
{
    double p = 0;
    for (int64_t k = n; k >= right; k--) /* small terms first */
        p += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) -
                 (double)n * log(2));
    return p < 1 ? p : 1;
}

/* --- synthetic or real --- */

struct test {
    struct rows sets[2]; /* as many rows of each, in a random order: row i is in fold i % folds */
    double auc[TWO_SAMPLE_FOLDS];
    int64_t right[TWO_SAMPLE_FOLDS];
};

/* All rows that are, or are not, in the fold, and which are of the second set. */
static bool part_of(const struct test *test, int64_t fold, bool inside, struct rows *out,
                    bool **second, struct err *err)
{
    int64_t n = test->sets[0].n, d = test->sets[0].d, m = 0;
    double *values = malloc((size_t)(2 * n * d) * sizeof *values);
    *second = malloc((size_t)(2 * n) * sizeof **second);
    if (!values || !*second) {
        free(values);
        return err_memory(err, "the two-sample test");
    }
    for (int64_t i = 0; i < 2 * n; i++) {
        const double *row = rows_at(&test->sets[i % 2], i / 2);
        if ((i / 2 % TWO_SAMPLE_FOLDS == fold) != inside)
            continue;
        for (int64_t j = 0; j < d; j++)
            values[m * d + j] = row[j];
        (*second)[m++] = i % 2;
    }
    *out = (struct rows){ values, m, d };
    return true;
}

static bool score_fold(const struct logistic *logistic, const struct rows *rows, const bool *second,
                       double *auc, int64_t *right, struct err *err)
{
    double *scores = malloc((size_t)(rows->n + 1) * sizeof *scores);
    if (!scores)
        return err_memory(err, "the two-sample test");
    for (int64_t i = 0; i < rows->n; i++) {
        scores[i] = logistic_score(logistic, rows_at(rows, i));
        *right += (scores[i] > 0) == second[i];
        if (!isfinite(scores[i])) {
            free(scores);
            return err_set(err, ERR_FORMAT, "features of patches are not finite");
        }
    }
    bool ok = auc_area(scores, second, rows->n, auc, err);
    free(scores);
    return ok;
}

static bool run_fold(void *arg, int64_t fold, int worker, struct err *err)
{
    (void)worker;
    struct test *test = arg;
    struct rows train = { 0 }, held = { 0 };
    bool *train_second = NULL, *held_second = NULL;
    struct logistic logistic = { 0 };
    bool ok = part_of(test, fold, false, &train, &train_second, err) &&
              part_of(test, fold, true, &held, &held_second, err) &&
              logistic_fit(&train, train_second, LOGISTIC_C, true, &logistic, err) &&
              score_fold(&logistic, &held, held_second, &test->auc[fold], &test->right[fold], err);
    free((double *)train.values);
    free((double *)held.values);
    free(train_second);
    free(held_second);
    logistic_free(&logistic);
    return ok;
}

bool two_sample_test(const struct rows *a, const struct rows *b, int64_t most, uint64_t seed,
                     const struct ctx *ctx, struct two_sample *out, struct err *err)
{
    int64_t n = a->n < b->n ? a->n : b->n, right = 0;
    n = n < most ? n : most;
    if (n < TWO_SAMPLE_FOLDS)
        return err_set(err, ERR_MISSING, "the two-sample test needs %d patches of each at least",
                       TWO_SAMPLE_FOLDS);
    struct test test = { 0 };
    uint64_t stream = rng_hash("two samples");
    bool ok = rows_sample(a, n, seed, stream, &test.sets[0], err) &&
              rows_sample(b, n, seed, stream + 1, &test.sets[1], err) &&
              pool_for(ctx->pool, TWO_SAMPLE_FOLDS, run_fold, &test, ctx->stop, err);
    *out = (struct two_sample){ .n = n };
    for (int fold = 0; ok && fold < TWO_SAMPLE_FOLDS; fold++) {
        out->auc += test.auc[fold] / TWO_SAMPLE_FOLDS;
        right += test.right[fold];
    }
    out->accuracy = (double)right / (double)(2 * n);
    out->p = two_sample_p(right, 2 * n);
    free((double *)test.sets[0].values);
    free((double *)test.sets[1].values);
    return ok;
}

/* --- classes --- */

struct labelled {
    struct rows rows; /* own memory */
    int32_t *labels;
};

static void labelled_free(struct labelled *labelled)
{
    free((double *)labelled->rows.values);
    free(labelled->labels);
}

/* The rows that have a label. */
static bool labelled_rows(const struct rows *rows, const int32_t *labels, struct labelled *out,
                          struct err *err)
{
    int64_t *which = malloc((size_t)(rows->n + 1) * sizeof *which), m = 0;
    out->labels = malloc((size_t)(rows->n + 1) * sizeof *out->labels);
    bool ok = (which && out->labels) || err_memory(err, "labels");
    for (int64_t i = 0; ok && i < rows->n; i++)
        if (labels[i] >= 0) {
            out->labels[m] = labels[i];
            which[m++] = i;
        }
    ok = ok && rows_pick(rows, which, m, &out->rows, err);
    free(which);
    return ok;
}

static bool *is_class(const struct labelled *labelled, int32_t class, int64_t *n)
{
    bool *is = malloc((size_t)(labelled->rows.n + 1) * sizeof *is);
    *n = 0;
    for (int64_t i = 0; is && i < labelled->rows.n; i++)
        *n += is[i] = labelled->labels[i] == class;
    return is;
}

/* NaN where a class is not, or alone, in one of the two. */
static bool class_auc(const struct labelled *train, const struct labelled *test, int32_t class,
                      double *out, struct err *err)
{
    int64_t n_train = 0, n_test = 0, right = 0;
    bool *train_is = is_class(train, class, &n_train), *test_is = is_class(test, class, &n_test);
    struct logistic logistic = { 0 };
    bool ok = (train_is && test_is) || err_memory(err, "labels");
    *out = NAN;
    if (ok && n_train > 0 && n_train < train->rows.n && n_test > 0 && n_test < test->rows.n)
        ok = logistic_fit(&train->rows, train_is, LOGISTIC_C, true, &logistic, err) &&
             score_fold(&logistic, &test->rows, test_is, out, &right, err);
    logistic_free(&logistic);
    free(train_is);
    free(test_is);
    return ok;
}

bool transfer_auc(const struct rows *train, const int32_t *train_labels, const struct rows *test,
                  const int32_t *test_labels, int64_t n_classes, double *out, struct err *err)
{
    struct labelled from = { 0 }, to = { 0 };
    int32_t first = n_classes == 2 ? 1 : 0;
    double sum = 0, auc = NAN;
    bool ok = labelled_rows(train, train_labels, &from, err) &&
              labelled_rows(test, test_labels, &to, err);
    for (int32_t class = first; ok && class < n_classes; class ++) {
        ok = class_auc(&from, &to, class, &auc, err);
        sum += auc;
    }
    *out = n_classes > first ? sum / (double)(n_classes - first) : NAN;
    labelled_free(&from);
    labelled_free(&to);
    return ok;
}
