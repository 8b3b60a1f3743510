/* power.c: see power.h. */
#include <math.h>
#include <stdlib.h>
#include "audit/power.h"

static const double wanted[POWER_POINTS] = { 0.01, 0.001 };

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* members [n_members] and others [n_others] descend. Called a member: a score above the threshold,
 * which is the first score of another that must not be called one. */
static struct power_point point_at(double rate, const double *members, int64_t n_members,
                                   const double *others, int64_t n_others, struct promise promise)
{
    int64_t allowed = (int64_t)floor(rate * (double)n_others + 1e-9), caught = 0, alarms = 0;
    double threshold = allowed < n_others ? others[allowed] : -INFINITY;
    while (caught < n_members && members[caught] > threshold)
        caught++;
    while (alarms < n_others && others[alarms] > threshold)
        alarms++;
    struct power_point point = { .wanted = rate,
                                 .fpr = share_of(alarms, n_others, POWER_CONFIDENCE),
                                 .tpr = share_of(caught, n_members, POWER_CONFIDENCE) };
    point.limit = fmin(1, exp(promise.epsilon) * point.fpr.high + promise.delta);
    point.above = point.tpr.low > point.limit;
    return point;
}

static void find_points(const double *scores, const bool *member, int64_t n, struct promise promise,
                        double *sorted, struct power *out)
{
    int64_t n_members = 0, n_others = 0;
    for (int64_t i = 0; i < n; i++)
        n_members += member[i];
    for (int64_t i = 0, m = 0; i < n; i++)
        sorted[member[i] ? m++ : n_members + n_others++] = scores[i];
    qsort(sorted, (size_t)n_members, sizeof *sorted, descending);
    qsort(sorted + n_members, (size_t)n_others, sizeof *sorted, descending);
    out->chance = out->roc.auc - POWER_SURE * out->roc.se <= 0.5;
    for (int i = 0; i < POWER_POINTS; i++) {
        out->at[i] = point_at(wanted[i], sorted, n_members, sorted + n_members, n_others, promise);
        out->chance = out->chance && out->at[i].tpr.low <= out->at[i].fpr.high;
    }
}

/* An attack that says the same of everybody: a coin. */
static bool all_equal(const double *scores, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (scores[i] != scores[0])
            return false;
    return true;
}

bool power_of(const double *scores, const bool *member, int64_t n, struct promise promise,
              bool coins, const struct ctx *ctx, struct power *out, struct err *err)
{
    *out = (struct power){ 0 };
    const struct roc_options options = { 0 };
    double *sorted = malloc((size_t)(n > 0 ? n : 1) * sizeof *sorted);
    bool ok = sorted || err_memory(err, "the scores");
    if (ok && all_equal(scores, n))
        out->roc = (struct roc){ .auc = 0.5, .delong_low = 0.5, .delong_high = 0.5 };
    else
        ok = ok && roc_compute(scores, member, n, &options, ctx, &out->roc, err);
    if (ok)
        find_points(scores, member, n, promise, sorted, out);
    ok = ok && (!coins || one_run_audit(scores, member, n, promise.delta, POWER_CONFIDENCE,
                                        &out->one_run, err));
    free(sorted);
    if (!ok)
        power_free(out);
    return ok;
}

void power_free(struct power *power)
{
    roc_free(&power->roc);
    *power = (struct power){ 0 };
}
