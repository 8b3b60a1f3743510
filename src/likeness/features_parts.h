/* features_parts.h: private to features*.c: a patch as planes, and the parts that measure them.
 * Every part writes its features to out and returns where the next one begins. */
#ifndef LIKENESS_FEATURES_PARTS_H
#define LIKENESS_FEATURES_PARTS_H
#include "likeness/features.h"

#define FEATURE_FLAT 1e-6 /* a plane with a smaller standard deviation has no structure */

/* Each plane [height, width]. */
struct feature_planes {
    int64_t width, height, n;
    double *rgb[3];    /* 0 to 1 */
    double *stains[3]; /* haematoxylin, eosin and what neither explains; density -ln(v / 255) */
    double *grey;      /* 0 to 1 */
    double *smooth;    /* haematoxylin, smoothed */
    double *room;      /* for anything */
};

/* log10 of a power, with a floor that 8-bit pixels do not reach. */
double feature_log_power(double power);

double *features_of_colour(const struct feature_planes *planes, double *out);
double *features_of_gradient(const struct feature_planes *planes, double *out);
double *features_of_texture(const struct feature_planes *planes, double *out, struct err *err);
double *features_of_power(const struct feature_planes *planes, double *out, struct err *err);
double *features_of_dark(const struct feature_planes *planes, double *out, struct err *err);
#endif
