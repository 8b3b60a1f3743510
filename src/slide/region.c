/* region.c: see region.h. A region of a raster that is resampled is made cell by cell, from a small
 * ring of the tiles under the cell. */
#include "slide/region.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "slide/resample.h"
#include "slide/ring.h"
#include "slide/source.h"

#define CELL_PX 256         /* of the raster, at most */
#define CELL_LEVEL_PX 1536  /* of the level under a cell, about */
#define MAX_TILES (1 << 16) /* so that finding one stays quick */

struct kept_tile {
    uint8_t *px;         /* allocated when it is needed first */
    int64_t column, row; /* -1: none */
    uint64_t used;       /* when */
};

struct region_reader {
    struct raster raster;
    struct tile_source source;
    void *decoder;
    size_t tile_bytes;
    struct kept_tile *tiles;
    int n_tiles;
    uint64_t clock;
    int64_t decoded;
    bool resampled;
    int64_t cell_width, cell_height;
    struct ring ring; /* the tiles under a cell */
    size_t ring_bytes;
    struct resampler *resampler;
};

static int64_t cell_px(double ratio)
{
    int64_t px = (int64_t)(CELL_LEVEL_PX / ratio);
    return px < 16 ? 16 : px > CELL_PX ? CELL_PX : px;
}

/* Tiles that a cell's pixels are on, at most. */
static int64_t tiles_under(int64_t cell, double ratio, int64_t level_px, int64_t tile_px)
{
    int64_t tiles = ring_tiles_under((int64_t)ceil((double)cell * ratio) + 2, tile_px);
    int64_t all = ceil_div(level_px, tile_px);
    return tiles < all ? tiles : all;
}

static bool prepare_resampling(struct region_reader *r, struct err *err)
{
    const struct tile_source *source = &r->source;
    r->cell_width = cell_px(r->raster.ratio);
    r->cell_height = cell_px(r->raster.ratio_y);
    int64_t columns =
        tiles_under(r->cell_width, r->raster.ratio, source->width, source->tile_width);
    int64_t rows =
        tiles_under(r->cell_height, r->raster.ratio_y, source->height, source->tile_height);
    r->ring_bytes = (size_t)(columns * rows) * r->tile_bytes;
    r->ring = (struct ring){ .tile_width = source->tile_width,
                             .tile_height = source->tile_height,
                             .width = source->width,
                             .height = source->height };
    r->ring.px = malloc(r->ring_bytes);
    r->resampler = resampler_new(r->cell_width, r->raster.ratio, r->raster.ratio_y);
    return (r->ring.px && r->resampler) || err_memory(err, "a region");
}

bool region_reader_open(const struct raster *raster, size_t cache_bytes, struct region_reader **out,
                        struct err *err)
{
    struct region_reader *r = calloc(1, sizeof *r);
    if (!r)
        return err_memory(err, "a region");
    r->raster = *raster;
    r->source = slide_source(raster->slide, raster->level);
    r->tile_bytes = (size_t)(3 * r->source.tile_width * r->source.tile_height);
    r->resampled = raster->ratio != 1 || raster->ratio_y != 1;
    size_t n = cache_bytes / r->tile_bytes;
    r->n_tiles = n < 1 ? 1 : n > MAX_TILES ? MAX_TILES : (int)n;
    r->tiles = calloc((size_t)r->n_tiles, sizeof *r->tiles);
    bool ok = r->tiles || err_memory(err, "a region");
    for (int i = 0; ok && i < r->n_tiles; i++)
        r->tiles[i].column = r->tiles[i].row = -1;
    ok = ok && (!r->resampled || prepare_resampling(r, err)) &&
         r->source.ops->decoder_new(&r->source, &r->decoder, err);
    if (ok)
        *out = r;
    else
        region_reader_close(r);
    return ok;
}

void region_reader_close(struct region_reader *r)
{
    if (!r)
        return;
    if (r->decoder)
        r->source.ops->decoder_free(r->decoder);
    for (int i = 0; r->tiles && i < r->n_tiles; i++)
        free(r->tiles[i].px);
    free(r->tiles);
    free(r->ring.px);
    resampler_free(r->resampler);
    free(r);
}

/* The tile if it is kept; else the one to replace: the one that was not used for the longest. */
static struct kept_tile *find(struct region_reader *r, int64_t column, int64_t row)
{
    struct kept_tile *oldest = &r->tiles[0];
    for (int i = 0; i < r->n_tiles; i++) {
        struct kept_tile *tile = &r->tiles[i];
        if (tile->column == column && tile->row == row)
            return tile;
        if (tile->used < oldest->used)
            oldest = tile;
    }
    return oldest;
}

/* Pixels of a tile, rows 3 tile_width bytes apart; valid until the next call. */
static const uint8_t *tile_px(struct region_reader *r, int64_t column, int64_t row, struct err *err)
{
    struct kept_tile *tile = find(r, column, row);
    tile->used = ++r->clock;
    if (tile->column == column && tile->row == row)
        return tile->px;
    tile->column = tile->row = -1;
    if (!tile->px && !(tile->px = malloc(r->tile_bytes))) {
        err_memory(err, "a tile");
        return NULL;
    }
    if (!r->source.ops->decode(&r->source, r->decoder, column, row, tile->px,
                               3 * r->source.tile_width, err))
        return NULL;
    r->decoded++;
    tile->column = column;
    tile->row = row;
    return tile->px;
}

static bool read_level(struct region_reader *r, int64_t x, int64_t y, int64_t width, int64_t height,
                       uint8_t *dst, int64_t stride, struct err *err)
{
    const int64_t tw = r->source.tile_width, th = r->source.tile_height;
    for (int64_t row = y / th; row * th < y + height; row++)
        for (int64_t column = x / tw; column * tw < x + width; column++) {
            const uint8_t *px = tile_px(r, column, row, err);
            if (!px)
                return false;
            int64_t x0 = column * tw > x ? column * tw : x, y0 = row * th > y ? row * th : y;
            int64_t x1 = column * tw + tw, y1 = row * th + th;
            x1 = x1 < x + width ? x1 : x + width;
            y1 = y1 < y + height ? y1 : y + height;
            for (int64_t line = y0; line < y1; line++)
                memcpy(dst + (line - y) * stride + 3 * (x0 - x),
                       px + 3 * ((line - row * th) * tw + x0 - column * tw),
                       (size_t)(3 * (x1 - x0)));
        }
    return true;
}

/* Copies the tiles under level pixels [x0, x1) x [y0, y1) to the ring. */
static bool fill_ring(struct region_reader *r, int64_t x0, int64_t x1, int64_t y0, int64_t y1,
                      struct err *err)
{
    struct ring *ring = &r->ring;
    const int64_t tw = ring->tile_width, th = ring->tile_height;
    int64_t last_column = (x1 - 1) / tw, last_row = (y1 - 1) / th;
    ring->first_column = x0 / tw;
    ring->columns = last_column - ring->first_column + 1;
    ring->slots = last_row - y0 / th + 1;
    ring->stride = 3 * ring->columns * tw;
    for (int64_t row = y0 / th; row <= last_row; row++)
        for (int64_t column = ring->first_column; column <= last_column; column++) {
            const uint8_t *px = tile_px(r, column, row, err);
            if (!px)
                return false;
            uint8_t *to = ring_tile_px(ring, (struct ring_tile){ column, row });
            int64_t first = y0 > row * th ? y0 - row * th : 0;
            int64_t end = y1 < (row + 1) * th ? y1 - row * th : th;
            for (int64_t line = first; line < end; line++)
                memcpy(to + line * ring->stride, px + 3 * line * tw, (size_t)(3 * tw));
        }
    return true;
}

static bool read_cell(struct region_reader *r, int64_t x, int64_t y, int64_t width, int64_t height,
                      uint8_t *dst, int64_t stride, struct err *err)
{
    int64_t x0 = 0, x1 = 0, y0 = 0, y1 = 0;
    resample_span(x, x + width, r->raster.ratio, r->source.width, &x0, &x1);
    resample_span(y, y + height, r->raster.ratio_y, r->source.height, &y0, &y1);
    if (!fill_ring(r, x0, x1, y0, y1, err))
        return false;
    resample_cell(r->resampler, &r->ring, x, y, width, height, dst, stride);
    return true;
}

bool region_read(struct region_reader *r, int64_t x, int64_t y, int64_t width, int64_t height,
                 uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    if (x < 0 || y < 0 || width < 1 || height < 1 || x + width > r->raster.width ||
        y + height > r->raster.height)
        return err_set(err, ERR_USAGE,
                       "the region at %lld, %lld (%lld x %lld px) is not within the slide",
                       (long long)x, (long long)y, (long long)width, (long long)height);
    if (!r->resampled)
        return read_level(r, x, y, width, height, dst, stride_bytes, err);
    for (int64_t top = 0; top < height; top += r->cell_height)
        for (int64_t left = 0; left < width; left += r->cell_width) {
            int64_t w = width - left < r->cell_width ? width - left : r->cell_width;
            int64_t h = height - top < r->cell_height ? height - top : r->cell_height;
            if (!read_cell(r, x + left, y + top, w, h, dst + top * stride_bytes + 3 * left,
                           stride_bytes, err))
                return false;
        }
    return true;
}

size_t region_reader_bytes(const struct region_reader *r)
{
    return sizeof *r + (size_t)r->n_tiles * (r->tile_bytes + sizeof *r->tiles) + r->ring_bytes;
}

int64_t region_reader_decoded(const struct region_reader *r)
{
    return r->decoded;
}
