/* band.c: see band.h. Tiles are decoded straight into a ring of tile rows. If the raster is
 * resampled there are two rings: tiles of the level, and cells of the raster computed from them
 * slice by slice, so that the level's ring stays small even if much of the level goes into one
 * raster row. */
#include "slide/band.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "slide/resample.h"
#include "slide/ring.h"
#include "slide/source.h"

#define SLICE_BYTES ((int64_t)32 << 20) /* a slice's level pixels should fit in this */

struct band {
    struct raster raster;
    struct ctx ctx;
    struct tile_source source;
    int64_t x0, x1, max_rows;
    bool resampled;
    struct ring tiles;              /* of the level */
    struct ring cells;              /* of the raster; only if resampled */
    int64_t slice_rows;             /* rows of cells that are made at a time */
    int64_t slice_begin, slice_end; /* in the queue of cells */
    int n_workers;
    void **decoders;               /* [n_workers], made when a worker needs one */
    struct resampler **resamplers; /* [n_workers], likewise */
    struct pool_job job;
    bool loading;
    int64_t tiles_decoded;
};

/* Cells are small if many level pixels go into them. */
static int64_t cell_px(double ratio, int64_t level_px, int64_t low, int64_t high)
{
    int64_t px = (int64_t)((double)level_px / ratio);
    return px < low ? low : px > high ? high : px;
}

static int64_t level_rows_under(const struct band *band, int64_t cell_rows)
{
    return (int64_t)ceil((double)(cell_rows * band->cells.tile_height) * band->raster.ratio_y) + 2;
}

static int64_t level_columns_under(const struct band *band, int64_t strip_width)
{
    int64_t columns = strip_width + 2 * band->cells.tile_width;
    return (int64_t)ceil((double)columns * band->raster.ratio) + 2;
}

/* Everything about a band except its position and memory. */
static void plan(struct band *band, const struct raster *raster, int64_t strip_width,
                 int64_t max_rows)
{
    band->raster = *raster;
    band->source = slide_source(raster->slide, raster->level);
    if (raster->reduce > 0)
        band->source = source_reduced(&band->source, raster->reduce);
    band->resampled = raster->ratio != 1 || raster->ratio_y != 1;
    band->max_rows = max_rows;
    band->tiles = (struct ring){ .tile_width = band->source.tile_width,
                                 .tile_height = band->source.tile_height,
                                 .width = band->source.width,
                                 .height = band->source.height };
    if (!band->resampled)
        return;
    band->cells = (struct ring){ .tile_width = cell_px(raster->ratio, 2048, 16, 128),
                                 .tile_height = cell_px(raster->ratio_y, 256, 4, 32),
                                 .width = raster->width,
                                 .height = raster->height };
    band->slice_rows = ring_tiles_under(max_rows, band->cells.tile_height);
    int64_t columns = level_columns_under(band, strip_width);
    while (band->slice_rows > 1 &&
           ring_bytes(&band->tiles, columns, level_rows_under(band, band->slice_rows)) >
               SLICE_BYTES)
        band->slice_rows = (band->slice_rows + 1) / 2;
}

int64_t band_bytes(const struct raster *raster, int64_t strip_width, int64_t max_rows)
{
    struct band band = { 0 };
    plan(&band, raster, strip_width, max_rows);
    if (!band.resampled)
        return ring_bytes(&band.tiles, strip_width, max_rows);
    return ring_bytes(&band.cells, strip_width, max_rows) +
           ring_bytes(&band.tiles, level_columns_under(&band, strip_width),
                      level_rows_under(&band, band.slice_rows));
}

static bool init_rings(struct band *band, struct err *err)
{
    if (!band->resampled)
        return ring_init(&band->tiles, band->x0, band->x1, band->max_rows, err);
    struct ring *cells = &band->cells;
    if (!ring_init(cells, band->x0, band->x1, band->max_rows, err))
        return false;
    int64_t begin = cells->first_column * cells->tile_width;
    int64_t stop = begin + cells->columns * cells->tile_width;
    int64_t first = 0, end = 0;
    stop = stop < cells->width ? stop : cells->width;
    resample_span(begin, stop, band->raster.ratio, band->source.width, &first, &end);
    return ring_init(&band->tiles, first, end, level_rows_under(band, band->slice_rows), err);
}

bool band_open(const struct raster *raster, int64_t x0, int64_t x1, int64_t max_rows,
               const struct ctx *ctx, struct band **out, struct err *err)
{
    if (x1 <= x0 || max_rows < 1)
        return err_set(err, ERR_USAGE, "a band needs columns and rows");
    struct band *band = calloc(1, sizeof *band);
    if (!band)
        return err_memory(err, "a band");
    plan(band, raster, x1 - x0, max_rows);
    band->ctx = *ctx;
    band->x0 = x0;
    band->x1 = x1;
    band->n_workers = pool_workers(ctx->pool);
    band->decoders = calloc((size_t)band->n_workers, sizeof *band->decoders);
    band->resamplers = calloc((size_t)band->n_workers, sizeof(struct resampler *));
    bool ok = (band->decoders && band->resamplers) || err_memory(err, "a band");
    if (!ok || !init_rings(band, err)) {
        band_close(band);
        return false;
    }
    *out = band;
    return true;
}

void band_close(struct band *band)
{
    if (!band)
        return;
    if (band->loading)
        pool_join(band->ctx.pool, &band->job, NULL);
    for (int i = 0; i < band->n_workers; i++) {
        if (band->decoders)
            band->source.ops->decoder_free(band->decoders[i]);
        if (band->resamplers)
            resampler_free(band->resamplers[i]);
    }
    free(band->decoders);
    free(band->resamplers);
    ring_free(&band->tiles);
    ring_free(&band->cells);
    free(band);
}

static bool decode_piece(void *arg, int64_t index, int worker, struct err *err)
{
    struct band *band = arg;
    struct ring_tile tile = band->tiles.queue[index];
    const struct tile_source_ops *ops = band->source.ops;
    if (!band->decoders[worker] && !ops->decoder_new(&band->source, &band->decoders[worker], err))
        return false;
    return ops->decode(&band->source, band->decoders[worker], tile.column, tile.row,
                       ring_tile_px(&band->tiles, tile), band->tiles.stride, err);
}

static bool resample_piece(void *arg, int64_t index, int worker, struct err *err)
{
    struct band *band = arg;
    const struct ring *cells = &band->cells;
    struct ring_tile cell = cells->queue[band->slice_begin + index];
    struct resampler **mine = &band->resamplers[worker];
    if (!*mine)
        *mine = resampler_new(cells->tile_width, band->raster.ratio, band->raster.ratio_y);
    if (!*mine)
        return err_memory(err, "resampling");
    int64_t x = cell.column * cells->tile_width, y = cell.row * cells->tile_height;
    int64_t width = cells->width - x, height = cells->height - y;
    resample_cell(*mine, &band->tiles, x, y, width < cells->tile_width ? width : cells->tile_width,
                  height < cells->tile_height ? height : cells->tile_height,
                  ring_tile_px(cells, cell), cells->stride);
    return true;
}

/* Queues the tiles of the level under one cell. */
static void queue_under_cell(struct band *band, struct ring_tile cell)
{
    const struct ring *cells = &band->cells;
    int64_t x = cell.column * cells->tile_width, y = cell.row * cells->tile_height;
    int64_t right = x + cells->tile_width, bottom = y + cells->tile_height;
    int64_t x0 = 0, x1 = 0, y0 = 0, y1 = 0;
    right = right < cells->width ? right : cells->width;
    bottom = bottom < cells->height ? bottom : cells->height;
    resample_span(x, right, band->raster.ratio, band->source.width, &x0, &x1);
    resample_span(y, bottom, band->raster.ratio_y, band->source.height, &y0, &y1);
    int64_t last = (y1 - 1) / band->tiles.tile_height;
    for (int64_t row = y0 / band->tiles.tile_height; row <= last; row++)
        ring_queue(&band->tiles, row, x0, x1);
}

static void start_decoding(struct band *band)
{
    pool_start(band->ctx.pool, &band->job, band->tiles.n_queued, decode_piece, band,
               band->ctx.stop);
    band->loading = true;
}

/* Takes the next rows of cells from the queue and starts decoding the tiles they need. */
static void start_slice(struct band *band)
{
    const struct ring *cells = &band->cells;
    int64_t end = band->slice_begin;
    int64_t row_end = end < cells->n_queued ? cells->queue[end].row + band->slice_rows : 0;
    band->tiles.n_queued = 0;
    for (; end < cells->n_queued && cells->queue[end].row < row_end; end++)
        queue_under_cell(band, cells->queue[end]);
    band->slice_end = end;
    start_decoding(band);
}

/* Queues, row by row, everything under the rectangles. */
static void queue_rects(struct ring *ring, const struct band_rect *rects, int64_t n)
{
    int64_t top = ring->height, bottom = 0;
    for (int64_t i = 0; i < n; i++) {
        top = rects[i].y < top ? rects[i].y : top;
        int64_t end = rects[i].y + rects[i].height;
        bottom = end > bottom ? end : bottom;
    }
    top = top > 0 ? top : 0;
    bottom = bottom < ring->height ? bottom : ring->height;
    ring->n_queued = 0;
    for (int64_t row = top / ring->tile_height; row * ring->tile_height < bottom; row++) {
        int64_t y0 = row * ring->tile_height, y1 = y0 + ring->tile_height;
        for (int64_t i = 0; i < n; i++) {
            int64_t x0 = rects[i].x > 0 ? rects[i].x : 0, x1 = rects[i].x + rects[i].width;
            x1 = x1 < ring->width ? x1 : ring->width;
            if (rects[i].y < y1 && rects[i].y + rects[i].height > y0 && x0 < x1)
                ring_queue(ring, row, x0, x1);
        }
    }
}

bool band_load_start(struct band *band, const struct band_rect *rects, int64_t n, int64_t keep_from,
                     struct err *err)
{
    for (int64_t i = 0; i < n; i++) {
        const struct band_rect *r = &rects[i];
        if (r->x < band->x0 || r->x + r->width > band->x1 || r->y < keep_from ||
            r->y + r->height > keep_from + band->max_rows)
            return err_set(
                err, ERR_USAGE, "the region at %lld, %lld (%lld x %lld px) is not within the band",
                (long long)r->x, (long long)r->y, (long long)r->width, (long long)r->height);
    }
    if (band->resampled) {
        queue_rects(&band->cells, rects, n);
        band->slice_begin = 0;
        start_slice(band);
    } else {
        queue_rects(&band->tiles, rects, n);
        start_decoding(band);
    }
    return true;
}

static bool join_decoding(struct band *band, struct err *err)
{
    band->loading = false;
    if (!pool_join(band->ctx.pool, &band->job, err))
        return false;
    band->tiles_decoded += band->tiles.n_queued;
    return true;
}

static bool finish_slices(struct band *band, struct err *err)
{
    for (;;) {
        if (!pool_for(band->ctx.pool, band->slice_end - band->slice_begin, resample_piece, band,
                      band->ctx.stop, err))
            return false;
        band->slice_begin = band->slice_end;
        if (band->slice_begin == band->cells.n_queued)
            return true;
        start_slice(band);
        if (!join_decoding(band, err))
            return false;
    }
}

bool band_load_join(struct band *band, struct err *err)
{
    bool ok = join_decoding(band, err) && (!band->resampled || finish_slices(band, err));
    if (!ok) {
        ring_forget_queued(&band->tiles);
        ring_forget_queued(&band->cells);
    }
    return ok;
}

void band_copy(const struct band *band, struct band_rect rect, uint8_t *dst, int64_t dst_stride)
{
    const struct ring *ring = band->resampled ? &band->cells : &band->tiles;
    int64_t left = rect.x < 0 ? -rect.x : 0;
    int64_t right = rect.x + rect.width < ring->width ? rect.width : ring->width - rect.x;
    left = left < rect.width ? left : rect.width;
    right = right > left ? right : left;
    for (int64_t y = 0; y < rect.height; y++, dst += dst_stride) {
        if (rect.y + y < 0 || rect.y + y >= ring->height || left == right) {
            memset(dst, 255, (size_t)(3 * rect.width));
            continue;
        }
        memset(dst, 255, (size_t)(3 * left));
        memcpy(dst + 3 * left, ring_at(ring, rect.x + left, rect.y + y),
               (size_t)(3 * (right - left)));
        memset(dst + 3 * right, 255, (size_t)(3 * (rect.width - right)));
    }
}

int64_t band_tiles_decoded(const struct band *band)
{
    return band->tiles_decoded;
}
