/* roc.c: the area by ranks; its variance as DeLong, DeLong and Clarke-Pearson (1988) define it,
 * computed from mid-ranks (Sun and Xu 2014), in n log n. */
#include "verdict/roc.h"

#include <math.h>
#include <stdlib.h>
#include "verdict/roc_bootstrap.h"

#define Z95 1.959963984540054

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

bool roc_rank(const double *scores, const bool *positive, int64_t n, struct ranked **out,
              struct err *err)
{
    struct ranked *ranked = calloc((size_t)n + 1, sizeof *ranked);
    if (!ranked)
        return err_memory(err, "the ranks of the scores");
    for (int64_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){ scores[i], i, positive[i] };
    qsort(ranked, (size_t)n, sizeof *ranked, by_score);
    *out = ranked;
    return true;
}

/* parts [n]: for a positive the share of negatives below it, for a negative the share of positives
 * above it; ties count half. The mean over either class is the area. */
static void placements(const struct ranked *ranked, int64_t n, const int64_t counts[2],
                       double *parts)
{
    int64_t below[2] = { 0 };
    for (int64_t begin = 0, end; begin < n; begin = end) {
        int64_t tied[2] = { 0 };
        for (end = begin; end < n && ranked[end].score == ranked[begin].score; end++)
            tied[ranked[end].positive]++;
        double won = ((double)below[0] + (double)tied[0] / 2) / (double)counts[0];
        double lost = ((double)below[1] + (double)tied[1] / 2) / (double)counts[1];
        for (int64_t i = begin; i < end; i++)
            parts[ranked[i].index] = ranked[i].positive ? won : 1 - lost;
        below[0] += tied[0], below[1] += tied[1];
    }
}

static double mean_of(const double *parts, const bool *positive, int64_t n, bool kind)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (positive[i] == kind)
            sum += parts[i], count++;
    return sum / (double)count;
}

/* The covariance of two areas: the covariance of their placements, each class over its count. */
static double covariance(const double *a, const double *b, const bool *positive, int64_t n)
{
    double sum = 0;
    for (int kind = 0; kind < 2; kind++) {
        double mean_a = mean_of(a, positive, n, kind), mean_b = mean_of(b, positive, n, kind);
        double products = 0;
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++)
            if (positive[i] == (bool)kind)
                products += (a[i] - mean_a) * (b[i] - mean_b), count++;
        if (count > 1)
            sum += products / (double)(count - 1) / (double)count;
    }
    return sum;
}

static bool count_classes(const bool *positive, int64_t n, int64_t counts[2], struct err *err)
{
    counts[0] = counts[1] = 0;
    for (int64_t i = 0; i < n; i++)
        counts[positive[i]]++;
    if (counts[0] == 0 || counts[1] == 0)
        return err_set(err, ERR_FORMAT,
                       "all %lld slides are %s: an ROC curve needs both classes; add slides of the "
                       "other class, or check the label column and --positive",
                       (long long)n, counts[1] ? "positive" : "negative");
    return true;
}

/* Walks down from the highest score; a point is kept where the curve turns. */
static bool trace(const struct ranked *ranked, int64_t n, struct roc *roc, struct err *err)
{
    int64_t seen[2] = { 0 };
    double steepest = -1;
    roc->points = calloc((size_t)n + 2, sizeof *roc->points);
    if (!roc->points)
        return err_memory(err, "the ROC curve");
    roc->points[roc->n_points++] = (struct roc_point){ 0, 0, INFINITY };
    for (int64_t end = n, begin, last[2] = { 0 }; end > 0; end = begin) {
        int64_t step[2] = { 0 };
        for (begin = end; begin > 0 && ranked[begin - 1].score == ranked[end - 1].score; begin--)
            step[ranked[begin - 1].positive]++;
        bool straight = roc->n_points > 1 && step[0] * last[1] == step[1] * last[0];
        seen[0] += step[0], seen[1] += step[1];
        last[0] = step[0], last[1] = step[1];
        struct roc_point point = { (double)seen[0] / (double)roc->negatives,
                                   (double)seen[1] / (double)roc->positives, ranked[begin].score };
        if (point.tpr - point.fpr > steepest)
            steepest = point.tpr - point.fpr, roc->best = point;
        roc->points[straight ? roc->n_points - 1 : roc->n_points++] = point;
    }
    return true;
}

static void set_interval(struct roc *roc)
{
    roc->delong_low = roc->delong_high = roc->auc;
    if (roc->auc <= 0 || roc->auc >= 1)
        return;
    double logit = log(roc->auc / (1 - roc->auc));
    double half = Z95 * roc->se / (roc->auc * (1 - roc->auc));
    roc->delong_low = 1 / (1 + exp(-(logit - half)));
    roc->delong_high = 1 / (1 + exp(-(logit + half)));
}

bool roc_compute(const double *scores, const bool *positive, int64_t n,
                 const struct roc_options *options, const struct ctx *ctx, struct roc *out,
                 struct err *err)
{
    struct ranked *ranked = NULL;
    double *parts = NULL;
    int64_t counts[2];
    bool ok = false;
    *out = (struct roc){ .replicates = options->replicates };
    if (!count_classes(positive, n, counts, err) || !roc_rank(scores, positive, n, &ranked, err))
        return false;
    out->negatives = counts[0], out->positives = counts[1];
    if (ranked[0].score == ranked[n - 1].score) {
        err_set(err, ERR_FORMAT,
                "all %lld scores are %g and cannot separate the slides; check the score column",
                (long long)n, ranked[0].score);
        goto done;
    }
    parts = calloc((size_t)n, sizeof *parts);
    if (!parts) {
        err_memory(err, "the ROC curve");
        goto done;
    }
    placements(ranked, n, counts, parts);
    out->auc = mean_of(parts, positive, n, true);
    out->se = sqrt(covariance(parts, parts, positive, n));
    set_interval(out);
    ok = trace(ranked, n, out, err) &&
         (options->replicates == 0 ||
          (options->clusters ? roc_bootstrap_clusters : roc_bootstrap)(
              ranked, n, options, ctx, &out->bootstrap_low, &out->bootstrap_high, err));
done:
    free(parts), free(ranked);
    if (!ok)
        roc_free(out);
    return ok;
}

void roc_free(struct roc *roc)
{
    free(roc->points);
    *roc = (struct roc){ 0 };
}

bool roc_delong_test(const double *a, const double *b, const bool *positive, int64_t n,
                     struct roc_test *out, struct err *err)
{
    const double *const scores[2] = { a, b };
    double *parts[2] = { 0 };
    int64_t counts[2];
    bool ok = count_classes(positive, n, counts, err);
    for (int k = 0; ok && k < 2; k++) {
        struct ranked *ranked = NULL;
        parts[k] = calloc((size_t)n, sizeof *parts[k]);
        ok = (parts[k] || err_memory(err, "DeLong's test")) &&
             roc_rank(scores[k], positive, n, &ranked, err);
        if (ok)
            placements(ranked, n, counts, parts[k]);
        free(ranked);
    }
    if (ok) {
        double variance = covariance(parts[0], parts[0], positive, n) +
                          covariance(parts[1], parts[1], positive, n) -
                          2 * covariance(parts[0], parts[1], positive, n);
        out->difference =
            mean_of(parts[0], positive, n, true) - mean_of(parts[1], positive, n, true);
        out->se = sqrt(fmax(variance, 0));
        out->low = out->difference - Z95 * out->se;
        out->high = out->difference + Z95 * out->se;
        bool alike = out->se < 1e-12; /* rounding of the three terms */
        out->z = !alike                          ? out->difference / out->se
                 : fabs(out->difference) < 1e-12 ? 0
                                                 : copysign(INFINITY, out->difference);
        out->p = erfc(fabs(out->z) / sqrt(2));
    }
    free(parts[0]), free(parts[1]);
    return ok;
}
