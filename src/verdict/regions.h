/* regions.h: labelled pixels -> the measures of every region, as skimage's regionprops defines
 * them. */
#ifndef VERDICT_REGIONS_H
#define VERDICT_REGIONS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct region_measure {
    int64_t area;              /* pixels */
    int64_t x0, y0, x1, y1;    /* bounding box; x1 and y1 are one beyond */
    double centre_x, centre_y; /* mean of the pixels' coordinates */
    double major_axis;   /* of the ellipse with the same second moments, 4 standard deviations */
    double eccentricity; /* of that ellipse; 0: a circle or a pixel */
    double extent;       /* area over area of the box */
    double solidity;     /* area over area of the convex hull */
    double perimeter;    /* along border pixels, diagonal steps longer */
    double least, mean, most; /* of the values */
};

/* An image of regions: labels [height, width], 0 is none, 1..n are regions. values [height, width]
 * may be NULL (measured as 0). */
struct regions_input {
    const int32_t *labels;
    const float *values;
    int64_t width, height;
    int32_t n;
};

/* *out [n] is the caller's; free(). Region k has label k + 1. All measures of a label in 1..n
 * without pixels are 0. */
bool regions_measure(const struct regions_input *input, struct region_measure **out,
                     struct err *err);
#endif
