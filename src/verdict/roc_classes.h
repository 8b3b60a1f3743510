/* roc_classes.h: a score per class -> the means over the classes of the areas under the ROC curve,
 * each class against all others, with intervals by bootstrap. */
#ifndef VERDICT_ROC_CLASSES_H
#define VERDICT_ROC_CLASSES_H
#include "verdict/roc.h"

/* One class against the rest. */
struct roc_class {
    const double *values; /* [n], finite */
    const bool *positive; /* [n]; every row is positive in exactly one class */
};

struct roc_mean {
    double area;
    double low, high; /* 2.5 and 97.5 % of the bootstrap */
};

struct roc_classes {
    int n_classes;
    struct roc_mean macro;    /* every class counts the same */
    struct roc_mean weighted; /* every class counts as often as it occurs */
    int64_t replicates;       /* of the bootstrap; 0: none */
};

/* classes [n_classes], of n rows; each class has a row. The bootstrap draws the rows of every class
 * as often as there are; with options->clusters it draws patients with all their rows, those that
 * share their rarest class as often as there are, and again if a class is missing. A replicate
 * depends only on (seed, its number). */
bool roc_classes_compute(const struct roc_class *classes, int n_classes, int64_t n,
                         const struct roc_options *options, const struct ctx *ctx,
                         struct roc_classes *out, struct err *err);
#endif
