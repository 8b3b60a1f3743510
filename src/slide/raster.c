/* raster.c: see raster.h. */
#include "slide/raster.h"

#include <math.h>
#include "base/pool.h"
#include "slide/band.h"

#define EXACT 1e-9
#define MAX_SHRINK 64

static void take_level(const struct slide_info *info, int level, struct raster *out)
{
    const struct slide_level *facts = &info->levels[level];
    out->level = level;
    out->ratio = out->ratio_y = 1;
    out->downsample = facts->downsample;
    out->mpp = info->mpp * facts->downsample;
    out->width = facts->width;
    out->height = facts->height;
}

static int64_t size_at(int64_t level_px, double ratio)
{
    int64_t px = llround((double)level_px / ratio);
    return px > 1 ? px : 1;
}

/* The coarsest level that is still at least as fine as requested, or the finest. */
static int best_level(const struct slide_info *info, double downsample)
{
    int best = 0;
    for (int i = 1; i < info->n_levels; i++)
        if (info->levels[i].downsample <= downsample * (1 + RASTER_TOLERANCE) &&
            info->levels[i].downsample > info->levels[best].downsample &&
            info->levels[i].reader != READER_NONE)
            best = i;
    return best;
}

/* Enlarged pixels would pass for a finer slide in all results. */
static bool check_finest(const struct slide_info *info, const struct raster_request *request,
                         struct err *err)
{
    double over = info->mpp / request->mpp - 1;
    if (over <= fmax(request->mpp_tolerance, RASTER_TOLERANCE))
        return true;
    return err_set(err, ERR_USAGE,
                   "%s: has %g um/px, coarser than the %g that --mpp requests or the model "
                   "expects; request %g, or allow enlarging with --mpp-tolerance %.2g",
                   info->path, info->mpp, request->mpp, info->mpp, ceil(100 * over) / 100);
}

/* A level whose scale differs by up to `tolerance` is taken as it is. */
static bool resample_level(const struct slide_info *info, double downsample, double tolerance,
                           struct raster *out, struct err *err)
{
    int level = best_level(info, downsample);
    take_level(info, level, out);
    double ratio = downsample / out->downsample;
    if (fabs(ratio - 1) <= tolerance)
        return true;
    if (ratio > MAX_SHRINK || ratio < 1.0 / RASTER_MAX_ENLARGE) {
        double unit = info->mpp > 0 ? info->mpp : 1;
        return err_set(
            err, ERR_USAGE, "%s: %g %s is too far from the resolution of its levels (%g to %g %s)",
            info->path, downsample * unit, info->mpp > 0 ? "um/px" : "pixels of level 0 per pixel",
            unit, unit * info->levels[info->n_levels - 1].downsample,
            info->mpp > 0 ? "um/px" : "pixels of level 0");
    }
    out->ratio = out->ratio_y = ratio;
    out->downsample = downsample;
    out->mpp = info->mpp * downsample;
    out->width = size_at(out->width, ratio);
    out->height = size_at(out->height, ratio);
    return true;
}

bool raster_open(struct slide *slide, const struct raster_request *request, struct raster *out,
                 struct err *err)
{
    const struct slide_info *info = slide_info(slide);
    *out = (struct raster){ .slide = slide };
    if (request->mpp > 0) {
        if (info->mpp <= 0)
            return err_set(err, ERR_MISSING, "%s: no um/px in the file; pass --slide-mpp",
                           info->path);
        if (!check_finest(info, request, err) ||
            !resample_level(info, request->mpp / info->mpp, RASTER_TOLERANCE, out, err))
            return false;
        if (out->ratio != 1)
            out->mpp = request->mpp;
        return true;
    }
    if (request->downsample > 0)
        return resample_level(info, request->downsample, EXACT, out, err);
    if (request->level < 0 || request->level >= info->n_levels)
        return err_set(err, ERR_USAGE, "%s: no level %d; the slide has levels 0 to %d", info->path,
                       request->level, info->n_levels - 1);
    take_level(info, request->level, out);
    return true;
}

int64_t raster_to_l0(const struct raster *raster, int64_t px)
{
    return llround((double)px * raster->downsample);
}

int64_t raster_from_l0(const struct raster *raster, int64_t px_l0)
{
    return llround((double)px_l0 / raster->downsample);
}

bool raster_read(const struct raster *raster, int64_t x, int64_t y, int64_t width, int64_t height,
                 struct image *out, struct err *err)
{
    struct band *band = NULL;
    struct pool *pool = pool_new(1); /* no threads */
    struct ctx ctx = { .pool = pool };
    struct band_rect rect = { x, y, width, height };
    if (!pool)
        return err_memory(err, "a region");
    bool ok = image_new(out, width, height, 3, err);
    if (ok && !(band_open(raster, x, x + width, height, &ctx, &band, err) &&
                band_load_start(band, &rect, 1, y, err) && band_load_join(band, err))) {
        image_free(out);
        ok = false;
    }
    if (ok)
        band_copy(band, rect, out->px, 3 * width);
    band_close(band);
    pool_free(pool);
    return ok;
}
