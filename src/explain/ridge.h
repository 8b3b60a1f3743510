/* ridge.h: weighted linear regression with a penalty on the coefficients, in double. */
#ifndef EXPLAIN_RIDGE_H
#define EXPLAIN_RIDGE_H
#include <stdint.h>
#include "base/err.h"

/* Minimises sum_i weights[i] (y[i] - intercept - x[i] . coef)^2 + alpha |coef|^2; the intercept is
 * not penalised. x [n, p], y [n], weights [n], NULL: all 1, coef [p]. alpha is 0 or more. Where
 * p > n the dual form is solved, n x n instead of p x p, to the same answer. Errors: no rows or
 * columns, values that are not finite, weights below 0 or all 0, columns that depend on each other
 * with alpha 0. Thread-safe. As scikit-learn's Ridge. */
bool ridge_fit(const double *x, const double *y, const double *weights, int64_t n, int64_t p,
               double alpha, double *coef, double *intercept, struct err *err);

/* The same for several targets: y [n, targets], coef [targets, p], intercept [targets]. Costs
 * hardly more than one, as permuted targets need. */
bool ridge_fit_targets(const double *x, const double *y, const double *weights, int64_t n,
                       int64_t p, int64_t targets, double alpha, double *coef, double *intercept,
                       struct err *err);
#endif
