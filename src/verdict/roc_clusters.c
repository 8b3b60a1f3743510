/* roc_clusters.c: the bootstrap that draws patients (roc_bootstrap.h). Slides of one patient are
 * alike, so drawing them one by one makes an interval too narrow. */
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "verdict/roc_bootstrap.h"

#define MOST_TRIES 1000

struct clusters {
    const struct ranked *ranked;
    const int64_t *of; /* [n]: the patient of a slide, by its index */
    int64_t n, n_clusters;
    int64_t *members; /* [n_clusters]: first the patients without a positive slide */
    int64_t counts[2];
    uint64_t seed;
    uint16_t *drawn; /* [workers, n_clusters]: how often a patient was drawn */
    double *areas;   /* [replicates] */
};

double roc_weighted_area(const struct ranked *ranked, int64_t n, const int64_t *of,
                         const uint16_t *drawn, int64_t *positives)
{
    double twice_won = 0;
    int64_t below[2] = { 0 };
    for (int64_t begin = 0, end; begin < n; begin = end) {
        int64_t tied[2] = { 0 };
        for (end = begin; end < n && ranked[end].score == ranked[begin].score; end++)
            tied[ranked[end].positive] += drawn[of[ranked[end].index]];
        twice_won += (double)tied[1] * (double)(2 * below[0] + tied[0]);
        below[0] += tied[0], below[1] += tied[1];
    }
    if (positives)
        *positives = below[1];
    if (below[0] == 0 || below[1] == 0)
        return -1;
    return twice_won / 2 / ((double)below[0] * (double)below[1]);
}

static bool draw_replicate(void *arg, int64_t index, int worker, struct err *err)
{
    const struct clusters *c = arg;
    uint16_t *drawn = c->drawn + worker * c->n_clusters;
    struct rng rng = rng_new(c->seed, rng_hash("roc bootstrap of patients"), (uint64_t)index);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        const int64_t *members = c->members;
        memset(drawn, 0, (size_t)c->n_clusters * sizeof *drawn);
        for (int kind = 0; kind < 2; members += c->counts[kind], kind++) {
            const uint32_t count = (uint32_t)c->counts[kind];
            const uint32_t too_low = count ? (0 - count) % count : 0;
            for (uint32_t i = 0; i < count; i++)
                drawn[members[roc_bootstrap_below(&rng, count, too_low)]]++;
        }
        c->areas[index] = roc_weighted_area(c->ranked, c->n, c->of, drawn, NULL);
        if (c->areas[index] >= 0)
            return true;
    }
    return err_set(err, ERR_FORMAT,
                   "too few patients have slides of both classes for a bootstrap by patient; pass "
                   "--bootstrap 0");
}

/* First the patients without a positive slide, then those with one. */
static bool sort_out(struct clusters *c, struct err *err)
{
    for (int64_t i = 0; i < c->n; i++)
        c->n_clusters = c->of[i] >= c->n_clusters ? c->of[i] + 1 : c->n_clusters;
    bool *positive = calloc((size_t)c->n_clusters, sizeof *positive);
    c->members = calloc((size_t)c->n_clusters, sizeof *c->members);
    bool ok = (positive && c->members) || err_memory(err, "the bootstrap");
    for (int64_t i = 0; ok && i < c->n; i++)
        positive[c->of[c->ranked[i].index]] |= c->ranked[i].positive;
    int64_t at = 0;
    for (int kind = 0; ok && kind < 2; kind++)
        for (int64_t k = 0; k < c->n_clusters; k++)
            if (positive[k] == (bool)kind)
                c->members[at++] = k, c->counts[kind]++;
    free(positive);
    return ok;
}

bool roc_bootstrap_clusters(const struct ranked *ranked, int64_t n,
                            const struct roc_options *options, const struct ctx *ctx, double *low,
                            double *high, struct err *err)
{
    struct clusters c = { ranked, options->clusters, n, .seed = options->seed };
    if (n > INT32_MAX)
        return err_set(err, ERR_USAGE, "too many scores for a bootstrap; pass --bootstrap 0");
    bool ok = sort_out(&c, err);
    c.areas = calloc((size_t)options->replicates, sizeof *c.areas);
    c.drawn = calloc((size_t)(pool_workers(ctx->pool) * c.n_clusters) + 1, sizeof *c.drawn);
    ok = ok && ((c.areas && c.drawn) || err_memory(err, "the bootstrap"));
    ok = ok &&
         roc_bootstrap_run(draw_replicate, &c, c.areas, options->replicates, ctx, low, high, err);
    free(c.areas), free(c.drawn), free(c.members);
    return ok;
}
