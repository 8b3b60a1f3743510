/* metrics.h: scores and labels -> how good a classifier is. */
#ifndef TRAIN_METRICS_H
#define TRAIN_METRICS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* NaN where undefined (a class that does not occur). */
struct metrics {
    int64_t n;
    double accuracy;          /* of the highest score; a tie goes to the lower class */
    double balanced_accuracy; /* mean of the recalls of the classes that occur */
    double auc; /* two classes: of class 1; more: mean over classes that occur, each against all
                 * others, unweighted */
    double f1;  /* two classes: of class 1; more: mean over classes that occur */
};

/* scores [n, classes]: probabilities (or any scores where higher means more likely). labels [n] in
 * [0, classes). confusion [classes, classes], rows are the truth, columns the highest score; may be
 * NULL. classes >= 2; a label out of range or a score that is not a number is an error that names
 * its index. */
bool metrics_compute(const float *scores, const int32_t *labels, int64_t n, int64_t classes,
                     struct metrics *out, int64_t *confusion, struct err *err);
#endif
