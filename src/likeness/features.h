/* features.h: a patch -> 57 numbers that describe it without any network: colours, stains, edges,
 * texture, power spectrum, grid artefacts, dark blobs. Defined for every size from 32 px on,
 * exactly in docs/likeness.md. Stateless, thread-safe. */
#ifndef LIKENESS_FEATURES_H
#define LIKENESS_FEATURES_H
#include "base/image.h"

#define LIKENESS_FEATURES 57
#define LIKENESS_LEAST_PX 32   /* of width and height */
#define LIKENESS_MOST_SPREAD 8 /* a standardised feature is cut off at +- this */

struct feature_scale {
    const char *name; /* "hematoxylin.mean" */
    double mean, std; /* over real tissue */
};
extern const struct feature_scale likeness_features[LIKENESS_FEATURES];

/* rgb: at least LIKENESS_LEAST_PX wide and high. out [LIKENESS_FEATURES], in their own units; all
 * are finite. 3 ms for 64 x 64 px. */
bool features_measure(const struct image *rgb, double *out, struct err *err);
/* (value - mean) / std of the table, cut off; in place. */
void features_standardise(double *values);
#endif
