/* outline.h: a mask -> the polygons of its pieces, along the edges of pixels. A piece is connected
 * by edges of pixels; its polygon is valid: rings neither cross nor touch themselves, and meet
 * other rings at single corners at most. */
#ifndef TISSUE_OUTLINE_H
#define TISSUE_OUTLINE_H
#include "base/image.h"

/* Corners of pixels; pixel (x, y) lies between corners (x, y) and (x + 1, y + 1). */
struct outline_point {
    int32_t x, y;
};

/* Without the first point repeated; only corners where the ring turns. */
struct outline_ring {
    int64_t first, n; /* in points */
    int32_t piece;    /* from 0, in the order of the pieces' first pixels */
    bool hole;
};

/* Rings are ordered by piece, the outer ring of a piece before its holes. */
struct outline {
    struct outline_point *points;
    struct outline_ring *rings;
    int64_t n_points, n_rings, points_room, rings_room;
    int32_t n_pieces;
};

/* *out is the caller's; free with outline_free. */
bool outline_trace(const struct image *mask, struct outline *out, struct err *err);
void outline_free(struct outline *outline);
#endif
