/* auc.h: the area under the ROC curve, used by both training and evaluation. */
#ifndef BASE_AUC_H
#define BASE_AUC_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct auc_item {
    double score; /* not NaN */
    bool positive;
};

/* The chance that a positive scores above a negative, ties count half (Mann-Whitney). NaN if one
 * kind is absent. Sorts items [n] by score. */
double auc_of_items(struct auc_item *items, int64_t n);

/* The same; positive [n] marks the positives. False only if out of memory. */
bool auc_area(const double *scores, const bool *positive, int64_t n, double *auc, struct err *err);
#endif
