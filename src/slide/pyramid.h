/* pyramid.h: pixels of any kind, supplied tile by tile -> an image of a TIFF with its smaller
 * levels. Each level is half the size of the one before, down to at most 512 px a side. Memory: one
 * row of tiles of each level but the first, and one tile a thread, whatever the height. The bytes
 * do not depend on the number of threads. A kind of pixels is one file: tiff_pyramid.c is 8-bit RGB
 * as JPEG, heatmap/float_pyramid.c is float32, deflated. */
#ifndef SLIDE_PYRAMID_H
#define SLIDE_PYRAMID_H
#include <stddef.h>
#include "base/ctx.h"
#include "slide/tiff_out.h"

/* An encoded tile. encode may use the room again that it left there, or replace the bytes; they are
 * freed with free() at the end. */
struct pyramid_tile {
    uint8_t *bytes;
    size_t size, room;
};

/* What differs from one kind of pixels to another. Tiles are [tile_px, tile_px] pixels. All but
 * set_tags are called from any thread. */
struct pyramid_kind {
    int64_t px_bytes; /* of one pixel */
    /* Fills what is right of `width` and below `height`. */
    void (*pad)(void *px, int64_t tile_px, int64_t width, int64_t height);
    /* The tile at half its size; rows of `to` are `stride_px` pixels apart. */
    void (*halve)(const void *px, int64_t tile_px, void *to, int64_t stride_px);
    bool (*encode)(const void *style, const void *px, int64_t tile_px, struct pyramid_tile *out,
                   struct err *err);
    /* Pixels and compression of the directory that is open. */
    bool (*set_tags)(const void *style, struct tiff_out *out, struct err *err);
};

struct pyramid {
    int64_t width, height;
    int64_t tile_px;         /* a multiple of 16 */
    double px_um;            /* um per pixel, for the resolution tags; 0: none */
    const char *description; /* of the first level; NULL: none */
    bool sub_levels; /* smaller levels are SubIFDs of the first; else directories after it */
    const struct pyramid_kind *kind;
    const void *style; /* given to encode and set_tags */

    /* The first level. `begin_rows`, if not NULL, is called before pixel rows [y, y + n) are drawn,
     * from top to bottom; draw supplies a rectangle within these, rows of px stride_bytes apart:
     * once per tile, from any thread, in no particular order. */
    bool (*begin_rows)(void *arg, int64_t y, int64_t n, struct err *err);
    bool (*draw)(void *arg, int64_t x, int64_t y, int64_t width, int64_t height, uint8_t *px,
                 int64_t stride_bytes, int worker, struct err *err);
    void *arg;
};

/* Adds the image to the file, as its next directories. */
bool pyramid_write(struct tiff_out *out, const struct pyramid *pyramid, const struct ctx *ctx,
                   struct err *err);
#endif
