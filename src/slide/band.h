/* band.h: decode once. A pass over a raster from top to bottom within a strip of columns; every
 * tile needed is decoded once, by all threads, into a ring of rows from which overlapping patches
 * are cut. Memory: strip width x rows in the ring, regardless of slide size. Why: neighbouring
 * patches share tiles, and decoding is most of what reading costs. */
#ifndef SLIDE_BAND_H
#define SLIDE_BAND_H
#include "base/ctx.h"
#include "slide/raster.h"

struct band;

struct band_rect {
    int64_t x, y, width, height; /* raster pixels; may extend outside the slide */
};

/* A strip of columns [x0, x1), of which at most max_rows rows are used at a time. The caller owns
 * *out; close with band_close. The raster must outlive it. */
bool band_open(const struct raster *raster, int64_t x0, int64_t x1, int64_t max_rows,
               const struct ctx *ctx, struct band **out, struct err *err);
void band_close(struct band *band);

/* Starts decoding, in the background, all tiles under the rectangles that are not in memory yet.
 * Rectangles must be within the strip; rows above `keep_from` are released first (they may be
 * overwritten); there are at most max_rows rows from keep_from to the lowest rectangle. */
bool band_load_start(struct band *band, const struct band_rect *rects, int64_t n, int64_t keep_from,
                     struct err *err);
/* Waits for the tiles (and helps). For a corrupt tile the error gives its position. */
bool band_load_join(struct band *band, struct err *err);

/* Copies a loaded rectangle to dst [height, width, 3]; dst_stride in bytes. Pixels outside the
 * slide are white. Thread-safe, even during a load that keeps its rows. */
void band_copy(const struct band *band, struct band_rect rect, uint8_t *dst, int64_t dst_stride);

/* How many tiles of the file have been decoded so far: each only once, unless its rows were
 * released and requested again. */
int64_t band_tiles_decoded(const struct band *band);

/* Memory used by a band of this size in bytes, for planning strips under a memory limit. */
int64_t band_bytes(const struct raster *raster, int64_t strip_width, int64_t max_rows);
#endif
