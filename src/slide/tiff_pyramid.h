/* tiff_pyramid.h: pixels supplied tile by tile -> a pyramidal tiled JPEG TIFF as written by slide
 * scanners and converters. Levels (pyramid.h) are exact 2x2 averages of the uncompressed pixels. */
#ifndef SLIDE_TIFF_PYRAMID_H
#define SLIDE_TIFF_PYRAMID_H
#include <stdbool.h>
#include <stdint.h>
#include "base/ctx.h"
#include "base/err.h"

struct tiff_pyramid_options {
    int64_t width, height;
    double mpp;              /* um per level-0 pixel, written to the resolution tags; 0: no tags */
    const char *description; /* ImageDescription of level 0; NULL: none */
    int tile_px;             /* multiple of 16; 0: 256 */
    int quality;             /* JPEG, 1 to 100; 0: 80 */
    int chroma_x, chroma_y;  /* pixels per chroma sample, 1 or 2; 0: 2. YCbCr only */
    bool rgb;                /* RGB components in the JPEG, photometric RGB; else YCbCr */
    bool classic;            /* classic TIFF (below 4 GB); else BigTIFF */
    bool big_endian;
    bool full_jpeg; /* each tile a whole JPEG; else abbreviated, with the JPEGTables tag */
};

/* Supplies the level-0 pixels of a rectangle inside the slide: px [height, width, 3], rows
 * stride_bytes apart. Called once per tile, from any thread, in no particular order. */
typedef bool (*tiff_pyramid_draw)(void *arg, int64_t x, int64_t y, int64_t width, int64_t height,
                                  uint8_t *px, int64_t stride_bytes, int worker, struct err *err);

/* Writes to a temporary file and renames it. Advances ctx->console by one per level-0 tile; the
 * caller begins and ends the console. */
bool tiff_pyramid_write(const char *path, const struct tiff_pyramid_options *options,
                        tiff_pyramid_draw draw, void *arg, const struct ctx *ctx, struct err *err);

/* Number of level-0 tiles in such a file: the total by which the console advances. */
int64_t tiff_pyramid_tiles(const struct tiff_pyramid_options *options);

/* The ImageDescription of a TIFF, owned by the caller; "" if it has none. */
bool tiff_pyramid_description(const char *path, char **out, struct err *err);
#endif
