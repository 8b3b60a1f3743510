/* roc_bootstrap.c: see roc_bootstrap.h. The scores are sorted once; a replicate only counts how
 * often every rank was drawn. */
#include "verdict/roc_bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/rng.h"

struct bootstrap {
    const int32_t *groups[2]; /* [counts[k]]: the group of equal scores of every slide of a kind */
    int64_t counts[2];
    int64_t n_groups;
    uint64_t seed;
    int32_t *drawn; /* [workers, 2, n_groups] */
    double *areas;  /* [replicates] */
};

static bool draw_replicate(void *arg, int64_t index, int worker, struct err *err)
{
    (void)err;
    struct bootstrap *b = arg;
    int32_t *drawn = b->drawn + (size_t)worker * 2 * (size_t)b->n_groups;
    struct rng rng = rng_new(b->seed, rng_hash("roc bootstrap"), (uint64_t)index);
    memset(drawn, 0, 2 * (size_t)b->n_groups * sizeof *drawn);
    for (int kind = 0; kind < 2; kind++)
        for (int64_t i = 0; i < b->counts[kind]; i++)
            drawn[kind * b->n_groups +
                  b->groups[kind][rng_below(&rng, (uint64_t)b->counts[kind])]]++;
    double twice_won = 0;
    int64_t below = 0;
    for (int64_t g = 0; g < b->n_groups; g++) {
        twice_won += (double)drawn[b->n_groups + g] * (double)(2 * below + drawn[g]);
        below += drawn[g];
    }
    b->areas[index] = twice_won / 2 / ((double)b->counts[0] * (double)b->counts[1]);
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int64_t n, double share)
{
    double place = share * (double)(n - 1);
    int64_t at = (int64_t)place;
    double next = sorted[at + 1 < n ? at + 1 : at];
    return sorted[at] + (place - (double)at) * (next - sorted[at]);
}

bool roc_bootstrap(const struct ranked *ranked, int64_t n, int64_t replicates, uint64_t seed,
                   const struct ctx *ctx, double *low, double *high, struct err *err)
{
    struct bootstrap b = { .seed = seed };
    int32_t *groups = calloc(2 * (size_t)n, sizeof *groups);
    b.areas = calloc((size_t)replicates, sizeof *b.areas);
    bool ok = false;
    if (n > INT32_MAX) {
        err_set(err, ERR_USAGE, "too many scores for a bootstrap; pass --bootstrap 0");
        goto done;
    }
    if (!groups || !b.areas) {
        err_memory(err, "the bootstrap");
        goto done;
    }
    for (int64_t i = 0; i < n; i++) {
        b.n_groups += i > 0 && ranked[i].score != ranked[i - 1].score;
        int kind = ranked[i].positive;
        groups[kind * n + b.counts[kind]++] = (int32_t)b.n_groups;
    }
    b.n_groups++;
    b.groups[0] = groups, b.groups[1] = groups + n;
    b.drawn = calloc((size_t)pool_workers(ctx->pool) * 2 * (size_t)b.n_groups, sizeof *b.drawn);
    if (!b.drawn) {
        err_memory(err, "the bootstrap");
        goto done;
    }
    ok = pool_for(ctx->pool, replicates, draw_replicate, &b, ctx->stop, err);
    if (ok) {
        qsort(b.areas, (size_t)replicates, sizeof *b.areas, by_value);
        *low = quantile(b.areas, replicates, 0.025);
        *high = quantile(b.areas, replicates, 0.975);
    }
done:
    free(groups), free(b.areas), free(b.drawn);
    return ok;
}
