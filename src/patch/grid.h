/* grid.h: the dense grid. Tiles of `tile` px stand every `stride` px from the raster's top-left;
 * each is stored with `margin` px around it, so that every pixel of the tile can be the centre of a
 * window. Places never shift: what lies outside of the slide is white. */
#ifndef PATCH_GRID_H
#define PATCH_GRID_H
#include "base/ctx.h"
#include "patch/patch.h"
#include "slide/raster.h"
#include "tissue/tissue.h"

struct grid {
    int64_t tile, margin, stride; /* raster pixels */
};

static inline int64_t grid_patch(const struct grid *grid)
{
    return grid->tile + 2 * grid->margin;
}

/* All tiles whose part inside of the slide is tissue by at least `min_tissue` (and has some: 0
 * keeps what has any), row by row. A NULL mask keeps every tile. *out is the caller's. */
bool grid_list(const struct grid *grid, const struct raster *raster, const struct tissue_sums *mask,
               double min_tissue, struct patch_list *out, struct err *err);

/* Tissue fraction of a w x h rectangle of raster pixels, of the part that lies in the slide. */
double grid_tissue(const struct raster *raster, const struct tissue_sums *mask, int64_t x,
                   int64_t y, int64_t width, int64_t height);
#endif
