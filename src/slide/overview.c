/* overview.c: the whole slide, small: the best level, area-averaged strip by strip. If that level
 * is large, its low level (low_level.h) is averaged instead. JPEG 2000 is decoded at a reduced
 * resolution. */
#include <math.h>
#include "base/pool.h"
#include "slide/band.h"
#include "slide/low_level.h"
#include "slide/source.h"

#define BAND_BYTES ((int64_t)48 << 20)
#define ROWS 32

/* Rounded up, but a value barely above a whole number is that number, or 2967 / (2967 / 1024) might
 * be 1025. */
static int64_t pixels_over(int64_t px_l0, double downsample)
{
    return (int64_t)ceil((double)px_l0 / downsample - 1e-6);
}

/* As much of the shrinking as possible is left to the codec. */
static void reduce(struct slide *slide, struct raster *raster)
{
    int most = slide_source(slide, raster->level).max_reduce;
    while (raster->reduce < most && raster->ratio >= 2 && raster->ratio_y >= 2) {
        raster->reduce++;
        raster->ratio /= 2;
        raster->ratio_y /= 2;
    }
}

/* The overview as a raster: its size is a whole number of pixels that covers the whole slide. */
static struct raster overview_raster(struct slide *slide, double downsample)
{
    const struct slide_info *info = slide_info(slide);
    struct raster raster = { .slide = slide, .downsample = downsample };
    for (int i = 1; i < info->n_levels; i++)
        if (info->levels[i].downsample <= downsample * 1.01 &&
            info->levels[i].downsample > info->levels[raster.level].downsample &&
            info->levels[i].reader != READER_NONE)
            raster.level = i;
    const struct slide_level *level = &info->levels[raster.level];
    raster.width = pixels_over(info->levels[0].width, downsample);
    raster.height = pixels_over(info->levels[0].height, downsample);
    raster.ratio = (double)level->width / (double)raster.width;
    raster.ratio_y = (double)level->height / (double)raster.height;
    raster.mpp = info->mpp * downsample;
    if (low_level_serves(slide, raster.level, downsample)) {
        raster.ratio /= LOW_LEVEL_FACTOR;
        raster.ratio_y /= LOW_LEVEL_FACTOR;
        raster.level = -1 - raster.level;
    } else {
        reduce(slide, &raster);
    }
    return raster;
}

static bool read_strip(const struct raster *raster, int64_t x0, int64_t x1, const struct ctx *ctx,
                       struct image *out, struct err *err)
{
    struct band *band = NULL;
    bool ok = band_open(raster, x0, x1, ROWS, ctx, &band, err);
    for (int64_t y = 0; ok && y < raster->height; y += ROWS) {
        int64_t rows = raster->height - y < ROWS ? raster->height - y : ROWS;
        struct band_rect rect = { x0, y, x1 - x0, rows };
        ok = band_load_start(band, &rect, 1, y, err) && band_load_join(band, err);
        if (ok)
            band_copy(band, rect, image_at(out, x0, y), 3 * out->width);
    }
    band_close(band);
    return ok;
}

/* In strips of columns, each within the memory of one band. */
static bool read_strips(const struct raster *raster, const struct ctx *ctx, struct image *out,
                        struct err *err)
{
    bool ok = true;
    int64_t strip = raster->width;
    while (strip > 64 && band_bytes(raster, strip, ROWS) > BAND_BYTES)
        strip = (strip + 1) / 2;
    for (int64_t x = 0; ok && x < raster->width; x += strip) {
        int64_t end = x + strip < raster->width ? x + strip : raster->width;
        ok = read_strip(raster, x, end, ctx, out, err);
    }
    return ok;
}

static bool read_overview(struct slide *slide, double downsample, const struct ctx *ctx,
                          struct image *out, struct err *err)
{
    if (!(downsample >= 1))
        return err_set(err, ERR_USAGE, "an overview cannot be larger than its slide");
    struct raster raster = overview_raster(slide, downsample);
    if (raster.level < 0 && !slide_make_low(slide, -1 - raster.level, ctx, err))
        return false;
    if (!image_new(out, raster.width, raster.height, 3, err))
        return false;
    bool ok = read_strips(&raster, ctx, out, err);
    if (!ok)
        image_free(out);
    return ok;
}

bool slide_overview(struct slide *slide, double downsample, const struct ctx *ctx,
                    struct image *out, struct err *err)
{
    struct pool *alone = ctx ? NULL : pool_new(1); /* no threads */
    if (!ctx && !alone)
        return err_memory(err, "an overview");
    struct ctx own = { .pool = alone };
    bool ok = read_overview(slide, downsample, ctx ? ctx : &own, out, err);
    pool_free(alone);
    return ok;
}
