/* roc_bootstrap.h: ranked scores -> an interval of the area by resampling. */
#ifndef VERDICT_ROC_BOOTSTRAP_H
#define VERDICT_ROC_BOOTSTRAP_H
#include <stdbool.h>
#include <stdint.h>
#include "base/ctx.h"
#include "base/err.h"

struct ranked {
    double score;
    int64_t index; /* of the slide */
    bool positive;
};

/* ranked [n] from the lowest score to the highest, both classes present. The 2.5 and 97.5 %
 * quantiles (between two values: linear) of the area over replicates, in which positives and
 * negatives are each drawn again as many times as there are. A replicate depends on (seed, its
 * number) alone. */
bool roc_bootstrap(const struct ranked *ranked, int64_t n, int64_t replicates, uint64_t seed,
                   const struct ctx *ctx, double *low, double *high, struct err *err);
#endif
