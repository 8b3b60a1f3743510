/* precision.h: scores and labels -> the precision-recall curve and its area as average precision:
 * the sum over thresholds of the gain in recall times the precision there (as in scikit-learn,
 * without interpolation). */
#ifndef VERDICT_PRECISION_H
#define VERDICT_PRECISION_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct precision_point {
    double recall, precision;
    double threshold; /* called positive: score >= threshold; infinite at recall 0 */
};

struct precision {
    double average;                 /* average precision */
    struct precision_point *points; /* one for each distinct score, from recall 0 to 1 */
    int64_t n_points;
};

/* scores [n], not NaN; at least one is positive. *out is the caller's; free with precision_free. */
bool precision_compute(const double *scores, const bool *positive, int64_t n, struct precision *out,
                       struct err *err);
void precision_free(struct precision *precision); /* also fine on a zeroed struct */
#endif
