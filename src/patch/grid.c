/* grid.c: see grid.h. */
#include "patch/grid.h"

#include <math.h>

/* How many tiles begin on a side of `length` px. */
static int64_t grid_count(const struct grid *grid, int64_t length)
{
    return length > 0 ? (length + grid->stride - 1) / grid->stride : 0;
}

/* The tile at (column, row), without fractions and label. */
static struct patch grid_place(const struct grid *grid, const struct raster *raster, int64_t column,
                               int64_t row)
{
    struct patch patch = { .column = column, .row = row, .label = PATCH_UNLABELED };
    patch.x = column * grid->stride - grid->margin;
    patch.y = row * grid->stride - grid->margin;
    patch.x_l0 = raster_to_l0(raster, patch.x);
    patch.y_l0 = raster_to_l0(raster, patch.y);
    return patch;
}

double grid_tissue(const struct raster *raster, const struct tissue_sums *mask, int64_t x,
                   int64_t y, int64_t width, int64_t height)
{
    int64_t x0 = x > 0 ? x : 0, y0 = y > 0 ? y : 0;
    int64_t x1 = x + width < raster->width ? x + width : raster->width;
    int64_t y1 = y + height < raster->height ? y + height : raster->height;
    if (x1 <= x0 || y1 <= y0)
        return 0;
    double scale = raster->downsample;
    double fraction = tissue_fraction(mask, (double)x0 * scale, (double)y0 * scale,
                                      (double)(x1 - x0) * scale, (double)(y1 - y0) * scale);
    return fmin(fmax(fraction, 0), 1);
}

bool grid_list(const struct grid *grid, const struct raster *raster, const struct tissue_sums *mask,
               double min_tissue, struct patch_list *out, struct err *err)
{
    int64_t columns = grid_count(grid, raster->width), rows = grid_count(grid, raster->height);
    *out = (struct patch_list){ 0 };
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            struct patch patch = grid_place(grid, raster, column, row);
            patch.tissue = 1;
            if (mask)
                patch.tissue = (float)grid_tissue(raster, mask, column * grid->stride,
                                                  row * grid->stride, grid->tile, grid->tile);
            if (patch.tissue <= 0 || (double)patch.tissue < min_tissue)
                continue;
            if (!patch_list_add(out, &patch, err)) {
                patch_list_free(out);
                return false;
            }
        }
    return true;
}
