/* roc_bootstrap.c: see roc_bootstrap.h. The scores are sorted once; a replicate only counts how
 * often every rank was drawn. */
#include "verdict/roc_bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/rng.h"

struct bootstrap {
    int32_t *ends[2]; /* [n_groups]: slides of a kind with scores up to those of a group */
    int64_t counts[2];
    int64_t n_groups; /* distinct scores */
    uint64_t seed;
    uint16_t *drawn; /* [workers, n]: how often a slide was drawn; 65,536 times cannot happen */
    double *areas;   /* [replicates] */
};

/* [0, bound), unbiased (Lemire 2019); half the random bits of rng_below and no division, which
 * would take most of the time of a bootstrap. too_low is 2^32 modulo bound. */
uint32_t roc_bootstrap_below(struct rng *rng, uint32_t bound, uint32_t too_low)
{
    uint64_t product;
    do
        product = (uint64_t)rng_u32(rng) * bound;
    while ((uint32_t)product < too_low);
    return (uint32_t)(product >> 32);
}

static int64_t sum(const uint16_t *values, int64_t begin, int64_t end)
{
    int64_t total = 0;
    for (int64_t i = begin; i < end; i++)
        total += values[i];
    return total;
}

static bool draw_replicate(void *arg, int64_t index, int worker, struct err *err)
{
    (void)err;
    struct bootstrap *b = arg;
    const int64_t n = b->counts[0] + b->counts[1];
    uint16_t *kinds[2] = { b->drawn + worker * n, b->drawn + worker * n + b->counts[0] };
    struct rng rng = rng_new(b->seed, rng_hash("roc bootstrap"), (uint64_t)index);
    memset(kinds[0], 0, (size_t)n * sizeof *kinds[0]);
    for (int kind = 0; kind < 2; kind++) {
        const uint32_t count = (uint32_t)b->counts[kind], too_low = (0 - count) % count;
        for (uint32_t i = 0; i < count; i++)
            kinds[kind][roc_bootstrap_below(&rng, count, too_low)]++;
    }
    double twice_won = 0;
    int64_t below = 0, at[2] = { 0 };
    for (int64_t g = 0; g < b->n_groups; g++) {
        int64_t negatives = sum(kinds[0], at[0], b->ends[0][g]);
        int64_t positives = sum(kinds[1], at[1], b->ends[1][g]);
        twice_won += (double)positives * (double)(2 * below + negatives);
        below += negatives;
        at[0] = b->ends[0][g], at[1] = b->ends[1][g];
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

void roc_bootstrap_interval(double *values, int64_t n, double *low, double *high)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    *low = quantile(values, n, 0.025);
    *high = quantile(values, n, 0.975);
}

bool roc_bootstrap_run(bool (*draw)(void *arg, int64_t index, int worker, struct err *err),
                       void *arg, double *areas, int64_t replicates, const struct ctx *ctx,
                       double *low, double *high, struct err *err)
{
    if (!pool_for(ctx->pool, replicates, draw, arg, ctx->stop, err))
        return false;
    roc_bootstrap_interval(areas, replicates, low, high);
    return true;
}

bool roc_bootstrap(const struct ranked *ranked, int64_t n, const struct roc_options *options,
                   const struct ctx *ctx, double *low, double *high, struct err *err)
{
    struct bootstrap b = { .seed = options->seed };
    const int64_t replicates = options->replicates;
    if (n > INT32_MAX)
        return err_set(err, ERR_USAGE, "too many scores for a bootstrap; pass --bootstrap 0");
    b.areas = calloc((size_t)replicates, sizeof *b.areas);
    b.drawn = calloc((size_t)(pool_workers(ctx->pool) * n), sizeof *b.drawn);
    b.ends[0] = calloc((size_t)n, sizeof *b.ends[0]);
    b.ends[1] = calloc((size_t)n, sizeof *b.ends[1]);
    bool ok = (b.areas && b.drawn && b.ends[0] && b.ends[1]) || err_memory(err, "the bootstrap");
    for (int64_t i = 0; ok && i < n; i++) {
        b.n_groups += i == 0 || ranked[i].score != ranked[i - 1].score;
        b.counts[ranked[i].positive]++;
        for (int kind = 0; kind < 2; kind++)
            b.ends[kind][b.n_groups - 1] = (int32_t)b.counts[kind];
    }
    ok = ok && roc_bootstrap_run(draw_replicate, &b, b.areas, replicates, ctx, low, high, err);
    free(b.areas), free(b.drawn), free(b.ends[0]), free(b.ends[1]);
    return ok;
}
