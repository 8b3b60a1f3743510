/* regression.h: predicted and true numbers -> how good the predictions are. */
#ifndef TRAIN_REGRESSION_H
#define TRAIN_REGRESSION_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* NaN where undefined: r2 and the correlations if all true numbers are the same, correlations also
 * if all predictions are. */
struct regression {
    double mae, rmse; /* mean absolute error; root of the mean square error */
    double r2;        /* 1 - squares of the errors / squares of the distances from the mean */
    double pearson;   /* correlation of the numbers */
    double spearman;  /* that of their ranks; equal numbers share the mean of their ranks */
};

/* predicted [n], truth [n]; a number that is not finite is an error that names its index. n > 0. */
bool regression_compute(const float *predicted, const float *truth, int64_t n,
                        struct regression *out, struct err *err);
#endif
