/* focus.c: see focus.h. The slide is read once, strip by strip, only where there is tissue. */
#include "tissue/focus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/divide.h"
#include "base/pool.h"
#include "slide/band.h"
#include "stain/colour.h"
#include "tissue/quality.h"

#define BAND_BYTES ((int64_t)64 << 20)
#define LEAST_TISSUE 0.25 /* of a cell that is measured */

enum { BORDERED_PX = FOCUS_CELL_PX + 2, STRIP_CELLS_MIN = 8 };

struct focus_room {
    uint8_t rgb[BORDERED_PX * BORDERED_PX * 3];
    uint8_t grey[BORDERED_PX * BORDERED_PX];
    uint8_t keep[FOCUS_CELL_PX * FOCUS_CELL_PX];
};

struct focus_work {
    const struct tissue_mask *tissue;
    struct raster raster;
    struct focus_map *map;
    struct focus_room *rooms; /* [workers] */
    struct band *band;        /* of the current strip */
    int64_t *columns;         /* [n_columns]: cells of the current row that have tissue */
    int64_t n_columns, row;
};

void focus_free(struct focus_map *map)
{
    free(map->variance);
    *map = (struct focus_map){ 0 };
}

double focus_variance(const uint8_t *grey, const uint8_t *keep, int64_t width, int64_t height,
                      int64_t *n)
{
    int64_t stride = width + 2, sum = 0, squares = 0, count = 0;
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *mid = grey + (y + 1) * stride + 1, *up = mid - stride, *down = mid + stride;
        const uint8_t *kept = keep + y * width;
        int32_t row_sum = 0, row_count = 0;
        int64_t row_squares = 0;
        for (int64_t x = 0; x < width; x++) {
            int32_t in = kept[x] ? 1 : 0;
            int32_t value = in * (up[x] + down[x] + mid[x - 1] + mid[x + 1] - 4 * mid[x]);
            row_sum += value;
            row_squares += value * value;
            row_count += in;
        }
        sum += row_sum, squares += row_squares, count += row_count;
    }
    *n = count;
    if (count == 0)
        return 0;
    double mean = (double)sum / (double)count;
    return (double)squares / (double)count - mean * mean;
}

/* A cell of pixels with a border; beyond the slide its outermost pixels are repeated. */
static void copy_cell(const struct focus_work *work, int64_t x, int64_t y, struct focus_room *room)
{
    const struct raster *raster = &work->raster;
    int64_t left = x > 0 ? x - 1 : 0, top = y > 0 ? y - 1 : 0;
    int64_t right = x + FOCUS_CELL_PX + 1, bottom = y + FOCUS_CELL_PX + 1;
    right = right < raster->width ? right : raster->width;
    bottom = bottom < raster->height ? bottom : raster->height;
    struct band_rect rect = { left, top, right - left, bottom - top };
    band_copy(work->band, rect, room->rgb, BORDERED_PX * 3);
    for (int64_t j = 0; j < BORDERED_PX; j++) {
        int64_t from_y = y - 1 + j;
        from_y = (from_y < top ? top : from_y >= bottom ? bottom - 1 : from_y) - top;
        for (int64_t i = 0; i < BORDERED_PX; i++) {
            int64_t from_x = x - 1 + i;
            from_x = (from_x < left ? left : from_x >= right ? right - 1 : from_x) - left;
            room->grey[j * BORDERED_PX + i] =
                colour_grey(room->rgb + (from_y * BORDERED_PX + from_x) * 3);
        }
    }
}

static int64_t mask_px(double l0, double l0_per_px, int64_t size)
{
    int64_t px = (int64_t)(l0 / l0_per_px);
    return px < size ? px : size - 1;
}

static void keep_tissue(const struct focus_work *work, int64_t x, int64_t y,
                        struct focus_room *room)
{
    const struct image *mask = &work->tissue->mask;
    double scale = work->raster.downsample;
    int64_t columns[FOCUS_CELL_PX];
    for (int64_t i = 0; i < FOCUS_CELL_PX; i++)
        columns[i] =
            mask_px(((double)(x + i) + 0.5) * scale, work->tissue->l0_per_px_x, mask->width);
    for (int64_t j = 0; j < FOCUS_CELL_PX; j++) {
        int64_t row =
            mask_px(((double)(y + j) + 0.5) * scale, work->tissue->l0_per_px_y, mask->height);
        for (int64_t i = 0; i < FOCUS_CELL_PX; i++) {
            bool inside = x + i < work->raster.width && y + j < work->raster.height;
            room->keep[j * FOCUS_CELL_PX + i] = inside && *image_at(mask, columns[i], row);
        }
    }
}

static bool measure_cell(void *arg, int64_t index, int worker, struct err *err)
{
    (void)err;
    struct focus_work *work = arg;
    struct focus_room *room = &work->rooms[worker];
    int64_t column = work->columns[index], n = 0;
    int64_t x = column * FOCUS_CELL_PX, y = work->row * FOCUS_CELL_PX;
    copy_cell(work, x, y, room);
    keep_tissue(work, x, y, room);
    double variance = focus_variance(room->grey, room->keep, FOCUS_CELL_PX, FOCUS_CELL_PX, &n);
    if (n > 0)
        work->map->variance[work->row * work->map->columns + column] = (float)variance;
    return true;
}

/* The cells [first, end) of the row with enough tissue, and the pixels they need as few rectangles
 * as possible. */
static int64_t list_cells(struct focus_work *work, const struct tissue_sums *sums, int64_t first,
                          int64_t end, struct band_rect *rects)
{
    const struct raster *raster = &work->raster;
    double side = work->map->cell_l0;
    int64_t n = 0, y = work->row * FOCUS_CELL_PX, top = y > 0 ? y - 1 : 0;
    int64_t bottom =
        y + FOCUS_CELL_PX + 1 < raster->height ? y + FOCUS_CELL_PX + 1 : raster->height;
    work->n_columns = 0;
    for (int64_t column = first; column < end; column++) {
        if (tissue_fraction(sums, (double)column * side, (double)work->row * side, side, side) <
            LEAST_TISSUE)
            continue;
        int64_t x = column * FOCUS_CELL_PX, left = x > 0 ? x - 1 : 0;
        int64_t right =
            x + FOCUS_CELL_PX + 1 < raster->width ? x + FOCUS_CELL_PX + 1 : raster->width;
        work->columns[work->n_columns++] = column;
        if (n > 0 && rects[n - 1].x + rects[n - 1].width >= left)
            rects[n - 1].width = right - rects[n - 1].x;
        else
            rects[n++] = (struct band_rect){ left, top, right - left, bottom - top };
    }
    return n;
}

static bool measure_strip(struct focus_work *work, const struct tissue_sums *sums, int64_t first,
                          int64_t end, struct band_rect *rects, const struct ctx *ctx,
                          struct err *err)
{
    const struct raster *raster = &work->raster;
    int64_t x0 = first * FOCUS_CELL_PX, x1 = end * FOCUS_CELL_PX + 1;
    x0 = x0 > 0 ? x0 - 1 : 0;
    x1 = x1 < raster->width ? x1 : raster->width;
    bool ok = band_open(raster, x0, x1, BORDERED_PX, ctx, &work->band, err);
    for (int64_t row = 0; ok && row < work->map->rows; row++) {
        work->row = row;
        int64_t n = list_cells(work, sums, first, end, rects);
        if (n > 0)
            ok = band_load_start(work->band, rects, n, rects[0].y, err) &&
                 band_load_join(work->band, err) &&
                 pool_for(ctx->pool, work->n_columns, measure_cell, work, ctx->stop, err);
        console_advance(ctx->console, 1);
    }
    band_close(work->band);
    return ok;
}

/* At 0.5 um/px; a slide without um/px counts as one of TISSUE_ASSUMED_MPP. */
static bool open_raster(struct slide *slide, struct raster *out, struct err *err)
{
    const struct slide_info *info = slide_info(slide);
    double mpp = info->mpp > 0 ? info->mpp : TISSUE_ASSUMED_MPP;
    if (mpp > QUALITY_FOCUS_MPP * (1 + QUALITY_FOCUS_TOLERANCE))
        return err_set(err, ERR_USAGE,
                       "%s: has %g um/px; focus is measured at %g um/px and needs a slide of at "
                       "most %g; look only for folds and pen there",
                       info->path, mpp, QUALITY_FOCUS_MPP,
                       QUALITY_FOCUS_MPP * (1 + QUALITY_FOCUS_TOLERANCE));
    if (info->mpp > 0) {
        struct raster_request request = { .mpp = QUALITY_FOCUS_MPP,
                                          .mpp_tolerance = QUALITY_FOCUS_TOLERANCE };
        return raster_open(slide, &request, out, err);
    }
    double downsample = QUALITY_FOCUS_MPP / TISSUE_ASSUMED_MPP;
    struct raster_request finest = { .level = 0 };
    if (!raster_open(slide, &finest, out, err))
        return false;
    out->ratio = out->ratio_y = out->downsample = downsample;
    out->width = (int64_t)fmax(1, (double)out->width / downsample);
    out->height = (int64_t)fmax(1, (double)out->height / downsample);
    return true;
}

static bool measure_all(struct focus_work *work, const struct ctx *ctx, struct err *err)
{
    struct focus_map *map = work->map;
    int64_t strip = map->columns;
    while (strip > STRIP_CELLS_MIN &&
           band_bytes(&work->raster, strip * FOCUS_CELL_PX, BORDERED_PX) > BAND_BYTES)
        strip = (strip + 1) / 2;
    struct tissue_sums *sums = NULL;
    struct band_rect *rects = malloc((size_t)map->columns * sizeof *rects);
    work->columns = malloc((size_t)map->columns * sizeof *work->columns);
    work->rooms = malloc((size_t)pool_workers(ctx->pool) * sizeof *work->rooms);
    bool ok = (rects && work->columns && work->rooms) || err_memory(err, "the focus of a slide");
    ok = ok && tissue_sums_new(work->tissue, &sums, err);
    console_begin(ctx->console, slide_info(work->raster.slide)->name,
                  map->rows * ceil_div(map->columns, strip), "rows");
    for (int64_t first = 0; ok && first < map->columns; first += strip) {
        int64_t end = first + strip < map->columns ? first + strip : map->columns;
        ok = measure_strip(work, sums, first, end, rects, ctx, err);
    }
    console_end(ctx->console);
    tissue_sums_free(sums);
    free(rects);
    free(work->columns);
    free(work->rooms);
    return ok;
}

bool focus_measure(struct slide *slide, const struct tissue_mask *tissue, const struct ctx *ctx,
                   struct focus_map *out, struct err *err)
{
    struct focus_work work = { .tissue = tissue, .map = out };
    *out = (struct focus_map){ 0 };
    if (!open_raster(slide, &work.raster, err))
        return false;
    out->columns = ceil_div(work.raster.width, FOCUS_CELL_PX);
    out->rows = ceil_div(work.raster.height, FOCUS_CELL_PX);
    out->cell_l0 = FOCUS_CELL_PX * work.raster.downsample;
    out->variance = malloc((size_t)(out->columns * out->rows) * sizeof *out->variance);
    bool ok = out->variance || err_memory(err, "the focus of a slide");
    for (int64_t i = 0; ok && i < out->columns * out->rows; i++)
        out->variance[i] = -1;
    ok = ok && measure_all(&work, ctx, err);
    if (!ok)
        focus_free(out);
    return ok;
}

bool focus_is_blurred(const struct focus_map *map, int64_t column, int64_t row)
{
    int measured = 0, blurred = 0;
    for (int64_t j = row - 1; j <= row + 1; j++)
        for (int64_t i = column - 1; i <= column + 1; i++) {
            if (i < 0 || j < 0 || i >= map->columns || j >= map->rows)
                continue;
            float variance = map->variance[j * map->columns + i];
            measured += variance >= 0;
            blurred += variance >= 0 && variance < FOCUS_LEAST_VARIANCE;
        }
    return 2 * blurred > measured;
}
