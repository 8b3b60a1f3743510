/* calibration.h: scores that are probabilities, and labels -> the Brier score and the calibration
 * curve: how often slides of about the same score are positive. */
#ifndef VERDICT_CALIBRATION_H
#define VERDICT_CALIBRATION_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct calibration_bin {
    double low, high; /* scores above low and up to high; the first bin includes 0 */
    int64_t n, positives;
    double score; /* the mean; NaN: the bin is empty */
    double share; /* of positives; NaN: the bin is empty */
};

struct calibration {
    bool probabilities; /* all scores are between 0 and 1; otherwise the rest is empty */
    double brier;       /* mean of (score - label) squared; NaN without probabilities */
    struct calibration_bin *bins;
    int64_t n_bins;
};

/* scores [n], finite, n > 0; n_bins of equal width; may be 0. *out is the caller's; free with
 * calibration_free. */
bool calibration_compute(const double *scores, const bool *positive, int64_t n, int64_t n_bins,
                         struct calibration *out, struct err *err);
void calibration_free(struct calibration *calibration); /* also fine on a zeroed struct */
#endif
