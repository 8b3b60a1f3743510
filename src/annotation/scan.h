/* scan.h: a shape -> an index of its edges by height, and point and pixel tests over it. */
#ifndef ANNOTATION_SCAN_H
#define ANNOTATION_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "annotation/geometry.h"

/* The edges by y0, each the root of a tree over a range of the array: `highest` is the greatest y1
 * of that range, so the edges that cross some rows are found in logarithmic time. */
struct scan {
    const struct edge *edges; /* the shape's, sorted */
    double *highest;          /* [n] */
    size_t n;
};

/* Pixel centres: x_l0 + (column + i + 0.5) * step_l0 for i in [0, width), y likewise with row and
 * height: parts of a window have the same centres as the whole. */
struct window {
    double x_l0, y_l0, step_l0;
    int64_t width, height;
    int64_t column, row; /* of the first pixel */
};

/* Sorts the shape's edges in place and keeps a pointer to them. Free with scan_free. */
bool scan_new(struct scan *scan, struct merged_region *shape, struct err *err);
void scan_free(struct scan *scan);

/* All three are exact, agree with each other, and are thread-safe. */
bool scan_contains(const struct scan *scan, double x_l0, double y_l0);
int64_t scan_count(const struct scan *scan, const struct window *window);
void scan_fill(const struct scan *scan, const struct window *window,
               uint8_t *mask /* [height, width], zeroed -> 0 or 255 */);
#endif
