/* roc_classes.c: see roc_classes.h. Scores are ranked once; a replicate only counts how often every
 * row or patient was drawn. */
#include "verdict/roc_classes.h"

#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "verdict/roc_bootstrap.h"

#define MOST_TRIES 1000

struct draws {
    int n_classes;
    int64_t n, n_units;     /* rows; rows or patients that are drawn */
    struct ranked **ranked; /* [n_classes][n] */
    int64_t *of;            /* [n]: what is drawn with a row */
    int64_t *members;       /* [n_units], one stratum after the other */
    int64_t *strata;        /* [n_classes]: how many units each has */
    uint64_t seed;
    uint16_t *drawn;          /* [workers, n_units] */
    double *macro, *weighted; /* [replicates] */
};

/* The means if every unit counts as often as it was drawn; false if a class is missing. */
static bool weigh(const struct draws *d, const uint16_t *drawn, double *macro, double *weighted)
{
    double sum = 0, weighted_sum = 0, rows = 0;
    for (int k = 0; k < d->n_classes; k++) {
        int64_t positives = 0;
        double area = roc_weighted_area(d->ranked[k], d->n, d->of, drawn, &positives);
        if (area < 0)
            return false;
        sum += area;
        weighted_sum += area * (double)positives;
        rows += (double)positives;
    }
    *macro = sum / d->n_classes;
    *weighted = weighted_sum / rows;
    return true;
}

static bool draw_replicate(void *arg, int64_t index, int worker, struct err *err)
{
    const struct draws *d = arg;
    uint16_t *drawn = d->drawn + worker * d->n_units;
    struct rng rng = rng_new(d->seed, rng_hash("roc bootstrap of classes"), (uint64_t)index);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        const int64_t *members = d->members;
        memset(drawn, 0, (size_t)d->n_units * sizeof *drawn);
        for (int k = 0; k < d->n_classes; members += d->strata[k], k++) {
            const uint32_t count = (uint32_t)d->strata[k];
            const uint32_t too_low = count ? (0 - count) % count : 0;
            for (uint32_t i = 0; i < count; i++)
                drawn[members[roc_bootstrap_below(&rng, count, too_low)]]++;
        }
        if (weigh(d, drawn, &d->macro[index], &d->weighted[index]))
            return true;
    }
    return err_set(err, ERR_FORMAT,
                   "too few patients have slides of every class for a bootstrap by patient; pass "
                   "--bootstrap 0");
}

/* A unit belongs to the stratum of its rarest class, so that this class is always drawn. */
static bool stratify(const struct roc_class *classes, struct draws *d, struct err *err)
{
    int64_t *counts = calloc((size_t)d->n_classes, sizeof *counts);
    int *stratum = malloc(((size_t)d->n_units + 1) * sizeof *stratum);
    bool ok = (counts && stratum) || err_memory(err, "the bootstrap");
    for (int k = 0; ok && k < d->n_classes; k++)
        for (int64_t i = 0; i < d->n; i++)
            counts[k] += classes[k].positive[i];
    for (int64_t u = 0; ok && u < d->n_units; u++)
        stratum[u] = -1;
    for (int k = 0; ok && k < d->n_classes; k++)
        for (int64_t i = 0; i < d->n; i++) {
            int *own = &stratum[d->of[i]];
            if (classes[k].positive[i] && (*own < 0 || counts[k] < counts[*own]))
                *own = k;
        }
    int64_t at = 0;
    for (int k = 0; ok && k < d->n_classes; k++)
        for (int64_t u = 0; u < d->n_units; u++)
            if (stratum[u] == k)
                d->members[at++] = u, d->strata[k]++;
    free(counts), free(stratum);
    return ok;
}

static bool prepare(const struct roc_class *classes, const struct roc_options *options,
                    int64_t replicates, int workers, struct draws *d, struct err *err)
{
    d->ranked = calloc((size_t)d->n_classes, sizeof *d->ranked);
    d->of = calloc((size_t)d->n + 1, sizeof *d->of);
    bool ok = (d->ranked && d->of) || err_memory(err, "the areas");
    for (int64_t i = 0; ok && i < d->n; i++) {
        d->of[i] = options->clusters ? options->clusters[i] : i;
        d->n_units = d->of[i] >= d->n_units ? d->of[i] + 1 : d->n_units;
    }
    for (int k = 0; ok && k < d->n_classes; k++)
        ok = roc_rank(classes[k].values, classes[k].positive, d->n, &d->ranked[k], err);
    if (!ok)
        return false;
    d->members = calloc((size_t)d->n_units + 1, sizeof *d->members);
    d->strata = calloc((size_t)d->n_classes, sizeof *d->strata);
    d->drawn = calloc((size_t)(workers * d->n_units) + 1, sizeof *d->drawn);
    d->macro = calloc((size_t)replicates + 1, sizeof *d->macro);
    d->weighted = calloc((size_t)replicates + 1, sizeof *d->weighted);
    return ((d->members && d->strata && d->drawn && d->macro && d->weighted) ||
            err_memory(err, "the bootstrap")) &&
           stratify(classes, d, err);
}

static void free_draws(struct draws *d)
{
    for (int k = 0; d->ranked && k < d->n_classes; k++)
        free(d->ranked[k]);
    free(d->ranked), free(d->of), free(d->members), free(d->strata), free(d->drawn);
    free(d->macro), free(d->weighted);
}

bool roc_classes_compute(const struct roc_class *classes, int n_classes, int64_t n,
                         const struct roc_options *options, const struct ctx *ctx,
                         struct roc_classes *out, struct err *err)
{
    struct draws d = { .n_classes = n_classes, .n = n, .seed = options->seed };
    const int64_t replicates = options->replicates;
    *out = (struct roc_classes){ .n_classes = n_classes, .replicates = replicates };
    bool ok = (n <= INT32_MAX || replicates == 0 ||
               err_set(err, ERR_USAGE, "too many scores for a bootstrap; pass --bootstrap 0")) &&
              prepare(classes, options, replicates, pool_workers(ctx->pool), &d, err);
    if (ok) {
        for (int64_t u = 0; u < d.n_units; u++)
            d.drawn[u] = 1;
        ok = weigh(&d, d.drawn, &out->macro.area, &out->weighted.area) ||
             err_set(err, ERR_FORMAT,
                     "a class has no slides, or all are of one class: an ROC curve needs both");
    }
    if (ok && replicates > 0) {
        ok = roc_bootstrap_run(draw_replicate, &d, d.macro, replicates, ctx, &out->macro.low,
                               &out->macro.high, err);
        if (ok)
            roc_bootstrap_interval(d.weighted, replicates, &out->weighted.low, &out->weighted.high);
    }
    free_draws(&d);
    return ok;
}
