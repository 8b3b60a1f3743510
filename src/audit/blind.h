/* blind.h: the attack that must fail: members told from others by the images alone, without the
 * model. If it succeeds, the two were not drawn at random from the same patients, and every other
 * attack may only have found that. */
#ifndef AUDIT_BLIND_H
#define AUDIT_BLIND_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/image.h"

#define BLIND_FEATURES 28

/* Colour, contrast, edges and a coarse view of an image. */
void blind_features(const struct image *image, double out[BLIND_FEATURES]);

/* Logistic regression with a ridge of 1 on standardised features [n, p], p <= 64, in `folds` folds
 * that have the same share of members: scores [n] of every sample by the regression of the other
 * folds. */
bool blind_scores(const double *features, int64_t n, int p, const bool *member, int folds,
                  double *scores, struct err *err);

/* One such regression: weights [p + 1], the intercept, which has no ridge, last. features are
 * standardised already; use [n] says which rows count, NULL: all. */
bool blind_fit(const double *features, int64_t n, int p, const bool *member, const bool *use,
               double *weights, struct err *err);
#endif
