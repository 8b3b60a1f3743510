/* roc_bootstrap.h: ranked scores -> an interval of the area by resampling. */
#ifndef VERDICT_ROC_BOOTSTRAP_H
#define VERDICT_ROC_BOOTSTRAP_H
#include <stdbool.h>
#include <stdint.h>
#include "base/ctx.h"
#include "base/err.h"
#include "base/rng.h"
#include "verdict/roc.h"

struct ranked {
    double score;
    int64_t index; /* of the slide */
    bool positive;
};

/* ranked [n] from the lowest score to the highest, both classes present. The 2.5 and 97.5 %
 * quantiles (linear between two values) of the area over replicates. A replicate depends only on
 * (seed, its number). */
typedef bool roc_bootstrap_fn(const struct ranked *ranked, int64_t n,
                              const struct roc_options *options, const struct ctx *ctx, double *low,
                              double *high, struct err *err);

/* Positives and negatives are each resampled as many times as there are. */
roc_bootstrap_fn roc_bootstrap;
/* Whole patients (options->clusters) are drawn: those with a positive slide, and those without
 * one, each as many times as there are. A replicate without slides of both classes is drawn again.
 */
roc_bootstrap_fn roc_bootstrap_clusters;

/* ranked [n] of scores [n], from the lowest to the highest; the caller's to free. */
bool roc_rank(const double *scores, const bool *positive, int64_t n, struct ranked **out,
              struct err *err);

/* The area if row i counts drawn[of[i]] times; negative if a class is missing. *positives (may be
 * NULL): how many positive rows there are then. */
double roc_weighted_area(const struct ranked *ranked, int64_t n, const int64_t *of,
                         const uint16_t *drawn, int64_t *positives);

/* Sorts values [n] and takes the 2.5 and 97.5 % quantiles. */
void roc_bootstrap_interval(double *values, int64_t n, double *low, double *high);

/* Runs draw(arg, index, worker) for every replicate, which sets areas[index], then sorts areas
 * [replicates] and takes the quantiles. */
bool roc_bootstrap_run(bool (*draw)(void *arg, int64_t index, int worker, struct err *err),
                       void *arg, double *areas, int64_t replicates, const struct ctx *ctx,
                       double *low, double *high, struct err *err);
/* [0, bound), unbiased; too_low is 2^32 modulo bound. */
uint32_t roc_bootstrap_below(struct rng *rng, uint32_t bound, uint32_t too_low);
#endif
