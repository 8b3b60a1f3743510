/* two_sample.h: what a logistic regression on features can tell: synthetic from real (the
 * classifier two-sample test of Lopez-Paz and Oquab 2017), or, trained on some patches, the classes
 * of others. Deterministic. */
#ifndef LIKENESS_TWO_SAMPLE_H
#define LIKENESS_TWO_SAMPLE_H
#include "base/ctx.h"
#include "likeness/rows.h"

#define TWO_SAMPLE_FOLDS 5

struct two_sample {
    double accuracy, auc; /* of rows that the regression has not seen; the mean AUC of the folds */
    double p;  /* of so many right answers if the two were the same: binomial, one-sided */
    int64_t n; /* rows of each kind */
};

/* As many random rows of each, at most `most`; TWO_SAMPLE_FOLDS or more. */
bool two_sample_test(const struct rows *a, const struct rows *b, int64_t most, uint64_t seed,
                     const struct ctx *ctx, struct two_sample *out, struct err *err);

/* Chance of at least `right` right answers of n by tossing a coin. */
double two_sample_p(int64_t right, int64_t n);

/* Labels [n] from 0; below 0: none, such rows are ignored. A regression of every class against the
 * others (of two classes: one), trained on `train`: the mean AUC on `test`; NaN if a class is not
 * in both. */
bool transfer_auc(const struct rows *train, const int32_t *train_labels, const struct rows *test,
                  const int32_t *test_labels, int64_t n_classes, double *out, struct err *err);
#endif
