/* grid.h: the dense grid. Tiles of `tile` px are placed every `stride` px from the raster's
 * top-left; each is stored with `margin` px around it, so that every pixel of the tile can be the
 * centre of a window. Tiles are never shifted: pixels outside the slide are white. */
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

/* All tiles whose part inside the slide has a tissue fraction of at least `min_tissue` (0: any
 * tissue at all), row by row. A NULL mask keeps every tile. *out is the caller's. */
bool grid_list(const struct grid *grid, const struct raster *raster, const struct tissue_sums *mask,
               double min_tissue, struct patch_list *out, struct err *err);

/* Tissue fraction of a w x h rectangle of raster pixels, of the part inside the slide. */
double grid_tissue(const struct raster *raster, const struct tissue_sums *mask, int64_t x,
                   int64_t y, int64_t width, int64_t height);
#endif
