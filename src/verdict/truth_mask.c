/* truth_mask.c: see truth_mask.h. */
#include "verdict/truth_mask.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include "annotation/annotation.h"
#include "base/file.h"
#include "slide/slide.h"
#include "verdict/truth_list.h"

#define MOST_PX ((double)(1 << 28))
#define BAND_ROWS 256
#define LEVEL_TOLERANCE 0.02

static bool rasterise(const char *path, const char *slide, const struct class_map *class_map,
                      double downsample, int64_t margin_px, struct truth_mask *out, struct err *err)
{
    struct annotation *annotation = NULL;
    double x0, y0, x1, y1;
    if (!annotation_read(path, &(struct annotation_slide){ slide, 0, 0 }, class_map, &annotation,
                         err))
        return false;
    bool ok = true;
    if (!annotation_bounds(annotation, &x0, &y0, &x1, &y1)) {
        ok = image_new(&out->mask, 1, 1, 1, err);
    } else {
        double left = fmax(floor(x0 / downsample) - (double)margin_px, 0);
        double top = fmax(floor(y0 / downsample) - (double)margin_px, 0);
        double width = ceil(x1 / downsample) + (double)margin_px - left;
        double height = ceil(y1 / downsample) + (double)margin_px - top;
        if (!(width >= 1 && height >= 1))
            ok = err_set(
                err, ERR_FORMAT,
                "%s: everything is left of or above the slide; are the coordinates in level-0 px?",
                path);
        else if (width * height > MOST_PX)
            ok = err_set(err, ERR_FORMAT,
                         "%s: extends over %.0f x %.0f level-0 px, more than any slide; are the "
                         "coordinates in level-0 px?",
                         path, width * downsample, height * downsample);
        else
            ok = annotation_mask(annotation, left * downsample, top * downsample, downsample,
                                 (int64_t)width, (int64_t)height, &out->mask, err);
        out->origin_x = (int64_t)left, out->origin_y = (int64_t)top;
    }
    annotation_free(annotation);
    return ok;
}

static bool find_level(const struct slide_info *info, double downsample, int *level,
                       struct err *err)
{
    for (int i = 0; i < info->n_levels; i++)
        if (fabs(info->levels[i].downsample / downsample - 1) <= LEVEL_TOLERANCE) {
            *level = i;
            return true;
        }
    return err_set(err, ERR_FORMAT,
                   "%s: no level with downsample %g (its levels range from 1 to %g); pass "
                   "--downsample or use a mask with that level",
                   info->path, downsample, info->levels[info->n_levels - 1].downsample);
}

static bool read_level(struct slide *slide, int level, struct image *mask, struct err *err)
{
    const struct slide_level *facts = &slide_info(slide)->levels[level];
    if ((double)facts->width * (double)facts->height > MOST_PX)
        return err_set(
            err, ERR_FORMAT,
            "%s: level %d has %lld x %lld px, too many to read; pass a larger --downsample",
            slide_info(slide)->path, level, (long long)facts->width, (long long)facts->height);
    bool ok = image_new(mask, facts->width, facts->height, 1, err);
    for (int64_t y = 0; ok && y < facts->height; y += BAND_ROWS) {
        int64_t rows = facts->height - y < BAND_ROWS ? facts->height - y : BAND_ROWS;
        struct image band = { 0 };
        ok = slide_read(slide, level, 0, y, facts->width, rows, &band, err);
        for (int64_t i = 0; ok && i < facts->width * rows; i++)
            mask->px[y * facts->width + i] = band.px[3 * i];
        image_free(&band);
    }
    return ok;
}

static bool read_pyramid(const char *path, double downsample, struct image *mask, struct err *err)
{
    struct slide *slide = NULL;
    int level = 0;
    if (!slide_open(path, 0, &slide, err))
        return false;
    bool ok = find_level(slide_info(slide), downsample, &level, err) &&
              read_level(slide, level, mask, err);
    slide_close(slide);
    if (!ok)
        image_free(mask);
    return ok;
}

static void make_binary(struct image *mask)
{
    int64_t n = mask->width * mask->height;
    uint8_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = mask->px[i] > most ? mask->px[i] : most;
    const uint8_t least = most >= 128 ? 128 : 1;
    for (int64_t i = 0; i < n; i++)
        mask->px[i] = mask->px[i] >= least ? 255 : 0;
}

bool truth_mask_read(const char *path, const char *slide, const struct class_map *class_map,
                     double downsample, int64_t margin_px, struct truth_mask *out, struct err *err)
{
    *out = (struct truth_mask){ 0 };
    if (!truth_is_mask(path))
        return rasterise(path, slide, class_map, downsample, margin_px, out, err);
    bool ok = strcasecmp(file_extension(path), ".png") == 0
                  ? image_read_png(path, 1, &out->mask, err)
                  : read_pyramid(path, downsample, &out->mask, err);
    if (ok)
        make_binary(&out->mask);
    return ok;
}
