/* roc.h: scores and labels -> the area under the ROC curve with two 95 % intervals, the curve, and
 * DeLong's test of two scores of the same slides. */
#ifndef VERDICT_ROC_H
#define VERDICT_ROC_H
#include <stdbool.h>
#include <stdint.h>
#include "base/ctx.h"
#include "base/err.h"

struct roc_point {
    double fpr, tpr;
    double threshold; /* called positive: score >= threshold; infinite at (0, 0) */
};

struct roc {
    int64_t positives, negatives;
    double auc;
    double se;                      /* standard error by DeLong */
    double delong_low, delong_high; /* on the logit scale, so within [0, 1]; if the area is 0 or 1
                                       the interval has no width */
    int64_t replicates;             /* of the bootstrap; 0: none */
    double bootstrap_low, bootstrap_high;
    struct roc_point best;    /* where tpr - fpr is highest (Youden) */
    struct roc_point *points; /* from (0, 0) to (1, 1); points on a straight line are dropped */
    int64_t n_points;
};

struct roc_options {
    int64_t replicates; /* bootstrap, each class resampled separately; 0: none */
    uint64_t seed;
    const int64_t *clusters; /* [n]: number of the patient a slide belongs to, from 0; the bootstrap
                              * then draws patients, with all their slides; NULL: slides */
};

/* scores [n], finite; positive [n]. A single class and scores that are all equal are errors. The
 * result does not depend on the number of threads. 2,000 replicates of 10,000 scores take 0.2 s.
 * *out is the caller's; free with roc_free. */
bool roc_compute(const double *scores, const bool *positive, int64_t n,
                 const struct roc_options *options, const struct ctx *ctx, struct roc *out,
                 struct err *err);
void roc_free(struct roc *roc);

struct roc_test {
    double difference; /* area of a minus area of b */
    double se;
    double low, high; /* 95 % of the difference */
    double z, p;      /* two-sided; p = 1 if the two never differ */
};

/* a [n] and b [n] are two scores of the same n slides. */
bool roc_delong_test(const double *a, const double *b, const bool *positive, int64_t n,
                     struct roc_test *out, struct err *err);
#endif
