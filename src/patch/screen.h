/* screen.h: how much of a patch is white (glass, fat) or black (outside the scan, dirt), and
 * which patches are neither. The margin does not count. */
#ifndef PATCH_SCREEN_H
#define PATCH_SCREEN_H
#include "base/ctx.h"
#include "patch/patch.h"
#include "slide/raster.h"

#define SCREEN_WHITE_ABOVE 200 /* a pixel is white if R, G and B are all above */
#define SCREEN_BLACK_BELOW 30  /* and black if all are below */

struct screen {
    double max_white, max_black; /* a patch with a larger fraction is dropped; 1 keeps all */
    int64_t tile, margin;        /* raster pixels */
    int64_t band_bytes;
};

/* keep [n]: does patch i pass? The patches need not be sorted. */
bool screen_patches(const struct screen *screen, const struct raster *raster,
                    const struct patch *patches, int64_t n, bool *keep, const struct ctx *ctx,
                    struct err *err);
#endif
