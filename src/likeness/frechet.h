/* frechet.h: Frechet's distance of two sets of features, taken as normal distributions (Heusel et
 * al. 2017: FID): |mean_a - mean_b|^2 + trace(A + B - 2 (A B)^(1/2)). Deterministic. */
#ifndef LIKENESS_FRECHET_H
#define LIKENESS_FRECHET_H
#include "base/ctx.h"
#include "likeness/rows.h"

/* Of means [d] and covariances [d, d], which may be singular; both are kept. */
bool frechet_of_moments(const double *mean_a, const double *cov_a, const double *mean_b,
                        const double *cov_b, int64_t d, double *out, struct err *err);

/* Of all rows, at least 2 of each; covariances are divided by n - 1. Too large for few rows: a set
 * of n rows against another of the same distribution is about d (d + 1) / (4 n) away for each of
 * the two, if features are independent and of variance 1. */
bool frechet_distance(const struct rows *a, const struct rows *b, double *out, struct err *err);

/* The distance that is approached with ever more rows (Chong and Forsyth 2020): a line through the
 * distances of equally many random rows of each, from half of them to all, over 1 / rows; can be
 * slightly below 0. NaN where it would not be one: fewer than 2 d rows, or more than
 * FRECHET_MOST_COLUMNS columns, which would take too long. */
#define FRECHET_MOST_COLUMNS 512
bool frechet_infinity(const struct rows *a, const struct rows *b, uint64_t seed,
                      const struct ctx *ctx, double *out, struct err *err);
#endif
