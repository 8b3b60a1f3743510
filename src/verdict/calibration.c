/* calibration.c: see calibration.h. */
#include "verdict/calibration.h"

#include <math.h>
#include <stdlib.h>

/* Edges as in scikit-learn: multiples of the rounded width. */
static double edge(int64_t k, int64_t n_bins)
{
    return k == n_bins ? 1 : (double)k * (1.0 / (double)n_bins);
}

static int64_t bin_of(double score, int64_t n_bins)
{
    int64_t at = (int64_t)(score * (double)n_bins);
    at = at >= n_bins ? n_bins - 1 : at;
    while (at > 0 && score <= edge(at, n_bins))
        at--;
    while (at + 1 < n_bins && score > edge(at + 1, n_bins))
        at++;
    return at;
}

static void fill_bins(const double *scores, const bool *positive, int64_t n,
                      struct calibration *out)
{
    for (int64_t k = 0; k < out->n_bins; k++)
        out->bins[k] = (struct calibration_bin){ .low = edge(k, out->n_bins),
                                                 .high = edge(k + 1, out->n_bins) };
    for (int64_t i = 0; i < n && out->n_bins > 0; i++) {
        struct calibration_bin *bin = &out->bins[bin_of(scores[i], out->n_bins)];
        bin->n++;
        bin->positives += positive[i];
        bin->score += scores[i];
    }
    for (int64_t k = 0; k < out->n_bins; k++) {
        struct calibration_bin *bin = &out->bins[k];
        bin->score = bin->n ? bin->score / (double)bin->n : NAN;
        bin->share = bin->n ? (double)bin->positives / (double)bin->n : NAN;
    }
}

bool calibration_compute(const double *scores, const bool *positive, int64_t n, int64_t n_bins,
                         struct calibration *out, struct err *err)
{
    *out = (struct calibration){ .probabilities = true, .brier = NAN };
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double away = scores[i] - (double)positive[i];
        out->probabilities = out->probabilities && scores[i] >= 0 && scores[i] <= 1;
        sum += away * away;
    }
    if (!out->probabilities)
        return true;
    out->brier = sum / (double)n;
    out->bins = calloc((size_t)n_bins + 1, sizeof *out->bins);
    if (!out->bins)
        return err_memory(err, "the calibration curve");
    out->n_bins = n_bins;
    fill_bins(scores, positive, n, out);
    return true;
}

void calibration_free(struct calibration *calibration)
{
    free(calibration->bins);
    *calibration = (struct calibration){ 0 };
}
