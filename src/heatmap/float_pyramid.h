/* float_pyramid.h: rows of floats -> one plane of a tiled TIFF with its smaller levels as SubIFDs,
 * as in OME-TIFF. Values stay float32, deflated. A pixel of a smaller level (slide/pyramid.h) is
 * the mean of those of 2x2 that are not NaN. Memory: float_pyramid_bytes, whatever the height. */
#ifndef HEATMAP_FLOAT_PYRAMID_H
#define HEATMAP_FLOAT_PYRAMID_H
#include "base/ctx.h"
#include "slide/tiff_out.h"

struct float_pyramid {
    int64_t width, height;
    int64_t tile_px;         /* a multiple of 16 */
    double px_um;            /* um per pixel, for the resolution tags; 0: none */
    const char *description; /* of the plane; NULL: none */
};

/* Row `row` to out [width]. Called once per row, in order. */
typedef bool (*float_pyramid_row)(void *arg, int64_t row, float *out, struct err *err);

/* Adds the plane as the next directory. */
bool float_pyramid_write(struct tiff_out *out, const struct float_pyramid *plane,
                         float_pyramid_row read, void *arg, const struct ctx *ctx, struct err *err);

/* An upper bound of the memory that takes. */
int64_t float_pyramid_bytes(int64_t width, int64_t tile_px);
#endif
