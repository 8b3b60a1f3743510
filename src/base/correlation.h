/* correlation.h: correlations of numbers and of their ranks. */
#ifndef BASE_CORRELATION_H
#define BASE_CORRELATION_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* Pearson's correlation; NaN if one of them is constant. */
double correlation_of(const double *a, const double *b, int64_t n);

/* The ranks 1 .. n of values [n], which must not be NaN; equal values share the mean of their
 * ranks, so that correlation_of ranks is Spearman's. Sorts. False only if out of memory. */
bool correlation_ranks(const float *values, int64_t n, double *ranks, struct err *err);
#endif
