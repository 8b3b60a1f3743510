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

/* Without the first point repeated; only corners where the ring turns; begins at its topmost and
 * there leftmost corner. */
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

/* The same row by row, for masks that do not fit into memory: a piece is handed over as soon as
 * the row below its last was seen. Kept are two rows and the outlines of the pieces that the
 * present row cuts through. */
struct outline_tracer;

struct outline_piece {
    struct outline_point first_px; /* its first pixel, row by row */
    const struct outline_point *points;
    const struct outline_ring *rings; /* the outer ring first; .piece is 0 */
    int64_t n_points, n_rings;
    int64_t n_px;
    double value_sum; /* over its pixels; 0 without values */
    float value_max;
};

/* The piece is the tracer's and gone after the call. */
typedef bool (*outline_take)(void *arg, const struct outline_piece *piece, struct err *err);

/* max_points: corners that may be kept at a time, about 24 bytes each; 0: as many as memory holds.
 * *out is the caller's; free with outline_tracer_free. */
bool outline_tracer_new(int32_t width, int64_t max_points, outline_take take, void *arg,
                        struct outline_tracer **out, struct err *err);
/* mask [width]: not 0 is set; values [width], or NULL in every row. */
bool outline_tracer_row(struct outline_tracer *tracer, const uint8_t *mask, const float *values,
                        struct err *err);
/* After the last row: hands over the pieces that reach it. */
bool outline_tracer_end(struct outline_tracer *tracer, struct err *err);
/* Whether a row failed because max_points was passed. */
bool outline_tracer_full(const struct outline_tracer *tracer);
void outline_tracer_free(struct outline_tracer *tracer); /* NULL-safe */
#endif
