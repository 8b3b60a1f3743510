/* low_level.c: see low_level.h. */
#include "slide/low_level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/pool.h"
#include "slide/driver.h"
#include "slide/tile_cache.h"

#define UNDER_TILE_PX 1024 /* of the level; more if its tiles are larger */

struct low_level {
    struct tile_source of;    /* the level, reduced as far as its codec can */
    int64_t factor;           /* of its pixels, in x and y, per pixel of the low level */
    struct tile_cache *cache; /* NULL: computed */
};

struct low_decoder {
    const struct tile_source *of;
    int64_t factor;
    void *decoder;  /* of the level; NULL until it is needed */
    uint8_t *tile;  /* one tile of the level */
    uint32_t *sums; /* [tile_height, tile_width, 3] of the low level */
};

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool low_level_serves(const struct slide *slide, int level, double downsample)
{
    const struct slide_level *facts = &slide->levels[level];
    return facts->width > LOW_LEVEL_MIN_PX / facts->height &&
           downsample >= LOW_LEVEL_FACTOR * facts->downsample;
}

/* Whole tiles of the level lie under a tile, if their size allows it: each is decoded once. */
static int64_t tile_px(int64_t of_tile_px, int64_t factor)
{
    int64_t under_px = UNDER_TILE_PX / (LOW_LEVEL_FACTOR / factor);
    if (of_tile_px % factor != 0)
        return under_px / factor;
    int64_t n = under_px / of_tile_px;
    return (n > 1 ? n : 1) * of_tile_px / factor;
}

static void low_decoder_free(void *decoder)
{
    struct low_decoder *d = decoder;
    if (!d)
        return;
    d->of->ops->decoder_free(d->decoder);
    free(d->tile);
    free(d->sums);
    free(d);
}

static bool low_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    const struct low_level *low = source->of;
    *out = NULL;
    if (low->cache)
        return true;
    struct low_decoder *d = calloc(1, sizeof *d);
    if (!d)
        return err_memory(err, "a low level");
    d->of = &low->of;
    d->factor = low->factor;
    d->tile = malloc((size_t)(3 * low->of.tile_width * low->of.tile_height));
    d->sums = malloc((size_t)(3 * source->tile_width * source->tile_height) * sizeof *d->sums);
    if (!d->tile || !d->sums) {
        low_decoder_free(d);
        return err_memory(err, "a low level");
    }
    if (!low->of.ops->decoder_new(&low->of, &d->decoder, err)) {
        low_decoder_free(d);
        return false;
    }
    *out = d;
    return true;
}

/* The level's pixels under one tile of the low level. */
struct area {
    int64_t x0, y0, x1, y1;
};

/* Adds the pixels of the decoded tile that are inside the area to the sums. */
static void add_tile(const struct low_decoder *d, const struct area *area, int64_t column,
                     int64_t row, int64_t sums_width)
{
    const struct tile_source *of = d->of;
    int64_t left = column * of->tile_width, top = row * of->tile_height;
    int64_t x0 = left > area->x0 ? left : area->x0, y0 = top > area->y0 ? top : area->y0;
    int64_t x1 = at_most(left + of->tile_width, area->x1);
    int64_t y1 = at_most(top + of->tile_height, area->y1);
    for (int64_t y = y0; y < y1; y++) {
        const uint8_t *px = d->tile + 3 * ((y - top) * of->tile_width + x0 - left);
        uint32_t *sums = d->sums + 3 * ((y - area->y0) / d->factor * sums_width);
        for (int64_t x = x0; x < x1; x++, px += 3) {
            uint32_t *sum = sums + 3 * ((x - area->x0) / d->factor);
            sum[0] += px[0], sum[1] += px[1], sum[2] += px[2];
        }
    }
}

static void to_means(const struct low_decoder *d, const struct area *area,
                     const struct tile_source *source, uint8_t *dst, int64_t stride_bytes)
{
    int64_t factor = d->factor;
    int64_t columns = ceil_div(area->x1 - area->x0, factor);
    int64_t rows = ceil_div(area->y1 - area->y0, factor);
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++) {
            uint32_t width = (uint32_t)at_most(area->x1 - area->x0 - x * factor, factor);
            uint32_t height = (uint32_t)at_most(area->y1 - area->y0 - y * factor, factor);
            const uint32_t *sum = d->sums + 3 * (y * source->tile_width + x);
            for (int c = 0; c < 3; c++)
                dst[y * stride_bytes + 3 * x + c] =
                    (uint8_t)((sum[c] + width * height / 2) / (width * height));
        }
}

static bool low_tile(const struct tile_source *source, void *decoder, int64_t column, int64_t row,
                     uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    const struct low_level *low = source->of;
    struct low_decoder *d = decoder;
    if (low->cache)
        return tile_cache_get(low->cache, column, row, dst, stride_bytes, err);
    const struct tile_source *of = &low->of;
    struct area area = { .x0 = column * source->tile_width * low->factor,
                         .y0 = row * source->tile_height * low->factor };
    area.x1 = at_most(area.x0 + source->tile_width * low->factor, of->width);
    area.y1 = at_most(area.y0 + source->tile_height * low->factor, of->height);
    memset(d->sums, 0, (size_t)(3 * source->tile_width * source->tile_height) * sizeof *d->sums);
    for (int64_t r = area.y0 / of->tile_height; r * of->tile_height < area.y1; r++)
        for (int64_t c = area.x0 / of->tile_width; c * of->tile_width < area.x1; c++) {
            if (!of->ops->decode(of, d->decoder, c, r, d->tile, 3 * of->tile_width, err))
                return false;
            add_tile(d, &area, c, r, source->tile_width);
        }
    to_means(d, &area, source, dst, stride_bytes);
    return true;
}

static const struct tile_source_ops low_source_ops = {
    .decoder_new = low_decoder_new,
    .decoder_free = low_decoder_free,
    .decode = low_tile,
};

struct filling {
    const struct tile_source *source;
    const struct ctx *ctx;
    struct tile_cache *cache;
    void **decoders; /* [workers] */
    uint8_t **tiles; /* [workers]: one tile each */
};

static bool fill_tile(void *arg, int64_t index, int worker, struct err *err)
{
    const struct filling *filling = arg;
    const struct tile_source *source = filling->source;
    int64_t columns = ceil_div(source->width, source->tile_width), stride = 3 * source->tile_width;
    uint8_t **px = &filling->tiles[worker];
    if (!*px && (!(*px = calloc((size_t)(stride * source->tile_height), 1)) ||
                 !low_decoder_new(source, &filling->decoders[worker], err)))
        return *px ? false : err_memory(err, "a low level");
    return low_tile(source, filling->decoders[worker], index % columns, index / columns, *px,
                    stride, err) &&
           tile_cache_put(filling->cache, index % columns, index / columns, *px, stride, err);
}

static bool fill(void *arg, struct tile_cache *cache, struct err *err)
{
    struct filling *filling = arg;
    const struct tile_source *source = filling->source;
    const struct ctx *ctx = filling->ctx;
    int workers = pool_workers(ctx->pool);
    int64_t columns = ceil_div(source->width, source->tile_width);
    int64_t rows = ceil_div(source->height, source->tile_height);
    filling->cache = cache;
    filling->decoders = calloc((size_t)workers, sizeof *filling->decoders);
    filling->tiles = calloc((size_t)workers, sizeof *filling->tiles);
    bool ok = (filling->decoders && filling->tiles) || err_memory(err, "a low level");
    ok = ok && pool_for(ctx->pool, columns * rows, fill_tile, filling, ctx->stop, err) &&
         !ctx_stopped(ctx);
    for (int i = 0; i < workers; i++) {
        if (filling->decoders)
            low_decoder_free(filling->decoders[i]);
        if (filling->tiles)
            free(filling->tiles[i]);
    }
    free(filling->decoders);
    free(filling->tiles);
    return ok;
}

static void use_cache(struct low_level *low, struct tile_source *source, const char *folder,
                      const struct ctx *ctx)
{
    struct filling filling = { .source = source, .ctx = ctx };
    char what[64];
    struct tile_cache *cache = NULL;
    snprintf(what, sizeof what, "means of %d x %d px of level %d", LOW_LEVEL_FACTOR,
             LOW_LEVEL_FACTOR, low->of.level);
    if (low->of.reduce > 0) /* other pixels than exact means */
        snprintf(what + strlen(what), sizeof what - strlen(what), " at 1/%d", 1 << low->of.reduce);
    struct tile_cache_key key = { .slide = source->slide->path,
                                  .what = what,
                                  .width = source->width,
                                  .height = source->height,
                                  .tile_width = source->tile_width,
                                  .tile_height = source->tile_height };
    if (tile_cache_open(folder, &key, fill, &filling, &cache, NULL))
        low->cache = cache; /* else a damaged tile is reported when it is read again */
}

bool low_level_open(const struct tile_source *of, const char *folder, const struct ctx *ctx,
                    struct low_level **low, struct tile_source *out, struct err *err)
{
    struct low_level *made = calloc(1, sizeof *made);
    if (!made)
        return err_memory(err, "a low level");
    int reduce = 0;
    while (reduce < of->max_reduce && 1 << reduce < LOW_LEVEL_FACTOR)
        reduce++;
    made->of = source_reduced(of, reduce);
    made->factor = LOW_LEVEL_FACTOR >> reduce;
    *out = (struct tile_source){ .ops = &low_source_ops,
                                 .slide = of->slide,
                                 .level = of->level,
                                 .width = ceil_div(of->width, LOW_LEVEL_FACTOR),
                                 .height = ceil_div(of->height, LOW_LEVEL_FACTOR),
                                 .tile_width = tile_px(made->of.tile_width, made->factor),
                                 .tile_height = tile_px(made->of.tile_height, made->factor),
                                 .of = made };
    if (folder)
        use_cache(made, out, folder, ctx);
    if (ctx_stopped(ctx)) {
        low_level_free(made);
        return err_stopped(err);
    }
    *low = made;
    return true;
}

void low_level_free(struct low_level *low)
{
    if (!low)
        return;
    tile_cache_close(low->cache);
    free(low);
}
