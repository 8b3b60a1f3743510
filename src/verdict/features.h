/* features.h: a heatmap -> numbers that describe the slide, in cells of the heatmap. Two published
 * sets, under the names of their authors:
 * - fda (30): for t = .5 to .9 the share of tissue above t and the sum of p - t above t over
 *   tissue; for the two largest regions above a threshold: area, eccentricity, extent, area of the
 *   box, major axis, highest, lowest and mean probability, height over width of the box, solidity.
 * - wang (31): for regions at or above .9: count, share of tissue, pixels, mean of their mean
 *   probabilities, and the maximum, mean, variance, skewness and kurtosis of area, perimeter,
 *   eccentricity and solidity; the same five of the extent of regions at or above .5, and area and
 *   major axis of the largest of these. All 0 if nothing reaches .9.
 *
 * Regions touch by edges or corners. The measures of a missing region are 0. */
#ifndef VERDICT_FEATURES_H
#define VERDICT_FEATURES_H
#include "verdict/heat_field.h"

#define FEATURES_MOST 31

struct feature_set {
    const char *name; /* "fda" */
    int n;
    const char *const *names; /* [n] */
    /* values [n]. threshold: of the regions, if the set does not fix it. */
    bool (*compute)(const struct heat_field *field, double threshold, double *values,
                    struct err *err);
};

/* NULL-terminated; feature_set_names has their names in the same order. */
extern const struct feature_set *const feature_sets[];
extern const char *const feature_set_names[];
#endif
