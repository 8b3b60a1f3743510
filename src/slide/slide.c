/* slide.c: opens a slide with OpenSlide, collects its metadata and reads pixels through
 * OpenSlide. */
#include "slide/slide.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "slide/raster.h"
#include "slide/slide_private.h"

const struct slide_info *slide_info(const struct slide *slide)
{
    return &slide->info;
}

const char *slide_mpp_source_name(enum mpp_source source)
{
    static const char *const names[] = { "unknown", "given", "vendor", "tiff tags" };
    return names[source];
}

const char *slide_reader_name(enum slide_reader reader)
{
    static const char *const names[] = { "OpenSlide", "fast path", "libtiff", "none" };
    return names[reader];
}

/* Rejects what cannot be a slide with a specific message; OpenSlide's would say less. */
static bool check_file(const char *path, struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_errno(err, path, "open");
    bool ok = fstat(fd, &status) == 0;
    close(fd);
    if (!ok)
        return err_errno(err, path, "open");
    if (S_ISDIR(status.st_mode))
        return err_set(err, ERR_FORMAT, "%s: is a folder, not a slide", path);
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_FORMAT, "%s: is not a regular file", path);
    if (status.st_size == 0)
        return err_set(err, ERR_FORMAT, "%s: is empty (0 bytes)", path);
    return true;
}

/* The message for a file that OpenSlide does not open. */
static const char *why_unknown(const char *path)
{
    char head[4] = { 0 };
    FILE *stream = fopen(path, "rb");
    bool full = stream && fread(head, 1, sizeof head, stream) == sizeof head;
    if (stream)
        fclose(stream);
    if (full && memcmp(head, "MM\0*", 4) == 0)
        return "a big-endian TIFF, which OpenSlide reads only as BigTIFF: convert it to BigTIFF";
    if (full && (memcmp(head, "II*\0", 4) == 0 || memcmp(head, "II+\0", 4) == 0 ||
                 memcmp(head, "MM\0+", 4) == 0))
        return "a TIFF that OpenSlide cannot read: truncated, damaged or not tiled";
    return "not a slide in a format that OpenSlide supports";
}

static bool open_handle(struct slide *slide, struct err *err)
{
    slide->handle = openslide_open(slide->path);
    if (!slide->handle)
        return err_set(err, ERR_FORMAT, "%s: %s", slide->path, why_unknown(slide->path));
    const char *why = openslide_get_error(slide->handle);
    if (why)
        return err_set(err, ERR_FORMAT, "%s: %s", slide->path, why);
    return true;
}

/* A number among the properties, or 0. */
static double property_real(openslide_t *handle, const char *name)
{
    const char *text = openslide_get_property_value(handle, name);
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;
    return text && end != text && isfinite(value) ? value : 0;
}

static bool plausible_mpp(double mpp)
{
    return mpp >= 0.01 && mpp <= 100; /* 72 dpi, which many programs write, would be 353 */
}

static void set_mpp(struct slide_info *info, double x, double y, enum mpp_source source)
{
    info->mpp_x = x;
    info->mpp_y = y;
    info->mpp = (x + y) / 2;
    info->mpp_source = source;
}

/* What the file says. */
static void read_mpp(struct slide *slide)
{
    struct slide_info *info = &slide->info;
    double x = property_real(slide->handle, OPENSLIDE_PROPERTY_NAME_MPP_X);
    double y = property_real(slide->handle, OPENSLIDE_PROPERTY_NAME_MPP_Y);
    bool generic = strcmp(info->vendor, "generic-tiff") == 0; /* there OpenSlide reads the tags */
    if (plausible_mpp(x) && plausible_mpp(y)) {
        set_mpp(info, x, y, generic ? MPP_TIFF_TAGS : MPP_VENDOR);
        return;
    }
    const char *unit = openslide_get_property_value(slide->handle, "tiff.ResolutionUnit");
    double um = !unit                             ? 0
                : strcmp(unit, "centimeter") == 0 ? 10000
                : strcmp(unit, "inch") == 0       ? 25400
                                                  : 0;
    x = um / property_real(slide->handle, "tiff.XResolution");
    y = um / property_real(slide->handle, "tiff.YResolution");
    if (plausible_mpp(x) && plausible_mpp(y))
        set_mpp(info, x, y, MPP_TIFF_TAGS);
}

static bool read_levels(struct slide *slide, struct err *err)
{
    int n = openslide_get_level_count(slide->handle);
    if (n < 1)
        return err_set(err, ERR_FORMAT, "%s: has no levels", slide->path);
    slide->levels = calloc((size_t)n, sizeof *slide->levels);
    slide->directories = calloc((size_t)n, sizeof *slide->directories);
    if (!slide->levels || !slide->directories)
        return err_memory(err, slide->path);
    for (int i = 0; i < n; i++) {
        struct slide_level *level = &slide->levels[i];
        char name[64];
        openslide_get_level_dimensions(slide->handle, i, &level->width, &level->height);
        level->downsample = openslide_get_level_downsample(slide->handle, i);
        if (level->width < 1 || level->height < 1 || !(level->downsample >= 0.5))
            return err_set(err, ERR_FORMAT, "%s: level %d has no size", slide->path, i);
        snprintf(name, sizeof name, "openslide.level[%d].tile-width", i);
        level->tile_width = (int64_t)property_real(slide->handle, name);
        snprintf(name, sizeof name, "openslide.level[%d].tile-height", i);
        level->tile_height = (int64_t)property_real(slide->handle, name);
    }
    slide->info.n_levels = n;
    slide->info.levels = slide->levels;
    return true;
}

bool slide_open(const char *path, double given_mpp, struct slide **out, struct err *err)
{
    if (!check_file(path, err))
        return false;
    tiff_file_silence();
    bool ok = false;
    struct slide *slide = calloc(1, sizeof *slide);
    if (!slide)
        return err_memory(err, path);
    slide->path = strdup(path);
    slide->name = file_stem(path);
    if (!slide->path || !slide->name) {
        err_memory(err, path);
        goto done;
    }
    if (!open_handle(slide, err))
        goto done;
    const char *vendor =
        openslide_get_property_value(slide->handle, OPENSLIDE_PROPERTY_NAME_VENDOR);
    slide->info.path = slide->path;
    slide->info.name = slide->name;
    slide->info.vendor = vendor ? vendor : "unknown";
    slide->info.objective = property_real(slide->handle, OPENSLIDE_PROPERTY_NAME_OBJECTIVE_POWER);
    read_mpp(slide);
    slide->info.mpp_file = slide->info.mpp;
    if (given_mpp > 0)
        set_mpp(&slide->info, given_mpp, given_mpp, MPP_GIVEN);
    if (!read_levels(slide, err) || !slide_match_tiff(slide, err))
        goto done;
    *out = slide, slide = NULL, ok = true;
done:
    slide_close(slide);
    return ok;
}

void slide_close(struct slide *slide)
{
    if (!slide)
        return;
    if (slide->handle)
        openslide_close(slide->handle);
    tiff_file_close(slide->tiff);
    free(slide->levels);
    free(slide->directories);
    free(slide->path);
    free(slide->name);
    free(slide);
}

/* Premultiplied ARGB laid on white. */
static void lay_on_white(const uint32_t *argb, uint8_t *rgb, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t px = argb[i], under = 255 - (px >> 24);
        rgb[3 * i + 0] = (uint8_t)((px >> 16 & 255) + under);
        rgb[3 * i + 1] = (uint8_t)((px >> 8 & 255) + under);
        rgb[3 * i + 2] = (uint8_t)((px & 255) + under);
    }
}

bool slide_paint(struct slide *slide, int level, int64_t x, int64_t y, int64_t width,
                 int64_t height, uint32_t *argb, uint8_t *rgb, int64_t stride_bytes,
                 struct err *err)
{
    if (slide->levels[level].reader == READER_NONE)
        return err_set(
            err, ERR_FORMAT,
            "the level is smaller than its tiles and not JPEG, which OpenSlide reads wrongly; "
            "microtome cannot read it either, because two directories in the file may be this "
            "level or its tiles are larger than 4096 px: convert the slide with smaller tiles");
    double downsample = slide->levels[level].downsample;
    int64_t x_l0 = llround((double)x * downsample), y_l0 = llround((double)y * downsample);
    openslide_read_region(slide->handle, argb, x_l0, y_l0, level, width, height);
    bool ok = !openslide_get_error(slide->handle);
    if (!ok) { /* may be an earlier read's error: try again separately */
        openslide_t *own = openslide_open(slide->path);
        if (own)
            openslide_read_region(own, argb, x_l0, y_l0, level, width, height);
        const char *why = own ? openslide_get_error(own) : "the slide cannot be opened again";
        ok = !why || err_set(err, ERR_FORMAT, "%s", why);
        if (own)
            openslide_close(own);
    }
    for (int64_t row = 0; ok && row < height; row++)
        lay_on_white(argb + row * width, rgb + row * stride_bytes, width);
    return ok;
}

/* slide_read through OpenSlide, in pieces. */
static bool paint_region(struct slide *slide, int level, int64_t x, int64_t y, int64_t width,
                         int64_t height, struct image *out, struct err *err)
{
    const int64_t piece = 1024;
    if (!image_new(out, width, height, 3, err))
        return false;
    uint32_t *argb = malloc((size_t)(piece * piece) * sizeof *argb);
    bool ok = argb || err_memory(err, "a region");
    for (int64_t top = 0; ok && top < height; top += piece) {
        int64_t rows = height - top < piece ? height - top : piece;
        for (int64_t left = 0; ok && left < width; left += piece) {
            int64_t columns = width - left < piece ? width - left : piece;
            ok = slide_paint(slide, level, x + left, y + top, columns, rows, argb,
                             image_at(out, left, top), 3 * width, err);
        }
    }
    if (!ok && argb) {
        char place[128];
        snprintf(place, sizeof place, "level %d, region at %lld, %lld", level, (long long)x,
                 (long long)y);
        err_prefix(err, place);
        err_prefix(err, slide->path);
    }
    free(argb);
    if (!ok)
        image_free(out);
    return ok;
}

bool slide_read(struct slide *slide, int level, int64_t x, int64_t y, int64_t width, int64_t height,
                struct image *out, struct err *err)
{
    if (level < 0 || level >= slide->info.n_levels)
        return err_set(err, ERR_USAGE, "%s: no level %d; the slide has levels 0 to %d", slide->path,
                       level, slide->info.n_levels - 1);
    if (slide->levels[level].reader == READER_LIBTIFF) {
        const struct slide_level *facts = &slide->levels[level];
        struct raster raster = { .slide = slide,
                                 .level = level,
                                 .ratio = 1,
                                 .ratio_y = 1,
                                 .downsample = facts->downsample,
                                 .width = facts->width,
                                 .height = facts->height };
        return raster_read(&raster, x, y, width, height, out, err);
    }
    return paint_region(slide, level, x, y, width, height, out, err);
}