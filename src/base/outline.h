/* outline.h: a mask -> the polygons of its pieces, along the edges of pixels. A piece is connected
 * by edges of pixels; its polygon is valid: rings do not cross or touch themselves, and touch other
 * rings only at single corners. */
#ifndef BASE_OUTLINE_H
#define BASE_OUTLINE_H
#include "base/image.h"

/* Corners of pixels; pixel (x, y) is between corners (x, y) and (x + 1, y + 1). */
struct outline_point {
    int32_t x, y;
};

/* The first point is not repeated; contains only corners where the ring turns; starts at the
 * leftmost of its topmost corners. */
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

/* The caller owns *out; free with outline_free. */
bool outline_trace(const struct image *mask, struct outline *out, struct err *err);
void outline_free(struct outline *outline);

/* The same row by row, for masks that do not fit in memory: a piece is handed over as soon as the
 * row below its last has been seen. Memory: two rows and the outlines of the pieces that cross the
 * current row. */
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

/* The tracer owns the piece, which is valid only during the call. */
typedef bool (*outline_take)(void *arg, const struct outline_piece *piece, struct err *err);

/* max_points: corners that may be kept at a time, about 24 bytes each; 0: as many as fit in memory.
 * The caller owns *out; free with outline_tracer_free. */
bool outline_tracer_new(int32_t width, int64_t max_points, outline_take take, void *arg,
                        struct outline_tracer **out, struct err *err);
/* mask [width]: not 0 is set; values [width], or NULL in every row. */
bool outline_tracer_row(struct outline_tracer *tracer, const uint8_t *mask, const float *values,
                        struct err *err);
/* After the last row: hands over the pieces that reach it. */
bool outline_tracer_end(struct outline_tracer *tracer, struct err *err);
/* Whether a row failed because max_points was exceeded. */
bool outline_tracer_full(const struct outline_tracer *tracer);
void outline_tracer_free(struct outline_tracer *tracer); /* NULL-safe */
#endif
