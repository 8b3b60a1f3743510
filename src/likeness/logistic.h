/* logistic.h: logistic regression with a penalty on the squares of its weights, as scikit-learn's
 * LogisticRegression: minimises |w|^2 / 2 + c sum_i log(1 + exp(-+(w . x_i + b))), b not penalised.
 * Deterministic, thread-safe. */
#ifndef LIKENESS_LOGISTIC_H
#define LIKENESS_LOGISTIC_H
#include "likeness/rows.h"

#define LOGISTIC_C 1.0 /* scikit-learn's default */

/* The score of a row is intercept + sum_j weights[j] (x[j] - mean[j]) / std[j]. */
struct logistic {
    double *weights, *mean, *std; /* [d] */
    double intercept;
    int64_t d;
};

/* positive [n]. standardise: columns get mean 0 and variance 1 first (a constant one: 0). *out is
 * the caller's; free with logistic_free. Fails if all rows are of one kind. */
bool logistic_fit(const struct rows *rows, const bool *positive, double c, bool standardise,
                  struct logistic *out, struct err *err);
double logistic_score(const struct logistic *logistic, const double *row); /* above 0: positive */
void logistic_free(struct logistic *logistic); /* also fine on a zeroed struct */
#endif
