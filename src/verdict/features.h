/* features.h: a heatmap -> numbers that describe the slide, in cells of the heatmap. Two published
 * sets, under the names of their authors:
 * - fda (30): for t = .5 to .9 the share of tissue above t and the sum of p - t above t over
 * tissue; of the two largest regions above a threshold area, eccentricity, extent, area of the box,
 * major axis, greatest, least and mean probability, height over width of the box, solidity.
 * - wang (31): regions from .9 on: count, share of tissue, pixels, mean of their mean
 *   probabilities, and the maximum, mean, variance, skewness and kurtosis of area, perimeter,
 *   eccentricity and solidity, and of the extent of regions from .5 on; area and major axis of the
 *   largest of these. All 0 if nothing reaches .9.
 * Regions touch by edges or corners. A region that is not there has measures 0. */
#ifndef VERDICT_FEATURES_H
#define VERDICT_FEATURES_H
#include "verdict/heat_field.h"

#define FEATURES_MOST 31

struct feature_set {
    const char *name; /* "fda" */
    int n;
    const char *const *names; /* [n] */
    /* values [n]. threshold: of the regions, where the set leaves it open. */
    bool (*compute)(const struct heat_field *field, double threshold, double *values,
                    struct err *err);
};

/* NULL-terminated; feature_set_names has their names in the same order. */
extern const struct feature_set *const feature_sets[];
extern const char *const feature_set_names[];
#endif
