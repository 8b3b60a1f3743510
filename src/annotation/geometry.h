/* geometry.h: drawn regions -> one valid shape. */
#ifndef ANNOTATION_GEOMETRY_H
#define ANNOTATION_GEOMETRY_H
#include <stddef.h>
#include <stdint.h>
#include "annotation/drawing.h"

/* A piece of the outline that is not horizontal, from its lower y to its higher. On any row the
 * signs of the edges left of a point add up to 1 inside the shape and to 0 outside. */
struct edge {
    double x0, y0, x1, y1; /* y0 < y1 */
    int sign;              /* +1: the shape is on the right, -1: on the left */
};

struct merged_region {
    struct edge *edges; /* in no order */
    size_t n_edges;
    int64_t room_edges;
    int64_t polygons; /* they touch at single points at most */
    int64_t repaired;
    double area_px;
    double x0, y0, x1, y1; /* bounds; meaningless without polygons */
};

/* The union of the regions of a meaning (a class's place, or REGION_EXCLUSION) minus the union of
 * those of another; minus REGION_UNKNOWN: nothing. A region that crosses itself is repaired:
 * everything its outline encloses is inside. One with fewer than three distinct points or no area
 * is rejected; the error says where it is. The caller owns *out; free with merged_region_free. */
bool geometry_merge(const struct drawing *drawing, int meaning, int minus,
                    struct merged_region *out, struct err *err);
/* The same for a drawing whose regions are disjoint, without geometry: in linear time. */
bool geometry_collect(const struct drawing *drawing, int meaning, struct merged_region *out,
                      struct err *err);
void merged_region_free(struct merged_region *shape);
#endif
