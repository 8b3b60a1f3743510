/* slide.c: a file -> the driver that opens it. The table of drivers is here. */
#include "slide/slide.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "slide/raster.h"
#include "slide/driver.h"
#include "base/divide.h"
#include "slide/icc.h"
#include "slide/low_level.h"
#include "slide/tiff_file.h"
#include "slide/tile_cache.h"

/* In the order in which they are asked. */
static const struct slide_driver *const drivers[] = { &driver_tiff, &driver_image,
                                                      &driver_openslide };

const struct slide_info *slide_info(const struct slide *slide)
{
    return &slide->info;
}

const char *slide_mpp_source_name(enum mpp_source source)
{
    static const char *const names[] = { "unknown", "given", "vendor", "tiff tags",
                                         "image header" };
    return names[source];
}

const char *slide_reader_name(enum slide_reader reader)
{
    static const char *const names[] = { "OpenSlide", "fast path", "libtiff", "rows", "none" };
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

static bool plausible_mpp(double mpp)
{
    return mpp >= 0.01 && mpp <= 100; /* 72 dpi, which many programs write, would be 353 */
}

static void put_mpp(struct slide_info *info, double x, double y, enum mpp_source source)
{
    info->mpp_x = x;
    info->mpp_y = y;
    info->mpp = (x + y) / 2;
    info->mpp_source = source;
}

bool slide_set_mpp(struct slide *slide, double x, double y, enum mpp_source source)
{
    if (!plausible_mpp(x) || !plausible_mpp(y))
        return false;
    put_mpp(&slide->info, x, y, source);
    return true;
}

bool slide_set_vendor(struct slide *slide, const char *vendor, struct err *err)
{
    slide->vendor = strdup(vendor);
    slide->info.vendor = slide->vendor;
    return slide->vendor || err_memory(err, slide->path);
}

bool slide_set_levels(struct slide *slide, int n, struct err *err)
{
    slide->levels = calloc((size_t)n, sizeof *slide->levels);
    slide->sources = calloc((size_t)n, sizeof *slide->sources);
    slide->lows = calloc((size_t)n, sizeof(struct low_level *));
    slide->low_sources = calloc((size_t)n, sizeof *slide->low_sources);
    slide->info.n_levels = n;
    slide->info.levels = slide->levels;
    return (slide->levels && slide->sources && slide->lows && slide->low_sources) ||
           err_memory(err, slide->path);
}

static bool new_slide(const char *path, struct slide **out, struct err *err)
{
    if (!check_file(path, err))
        return false;
    tiff_file_silence();
    struct slide *slide = calloc(1, sizeof *slide);
    if (!slide)
        return err_memory(err, path);
    slide->image_bytes = SLIDE_IMAGE_BYTES;
    pthread_mutex_init(&slide->low_mutex, NULL);
    slide->info.path = slide->path = strdup(path);
    slide->info.name = slide->name = file_stem(path);
    if (!slide->path || !slide->name) {
        slide_close(slide);
        return err_memory(err, path);
    }
    *out = slide;
    return true;
}

static enum driver_answer ask_drivers(const struct slide_driver *const *asked, size_t n,
                                      struct slide *slide, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        enum driver_answer answer = asked[i]->open(slide, err);
        slide->driver = asked[i];
        if (answer != DRIVER_OTHER)
            return answer;
    }
    slide->driver = NULL;
    return DRIVER_OTHER;
}

static bool open_by(const struct slide_driver *const *asked, size_t n, const char *path,
                    double given_mpp, struct slide **out, struct err *err)
{
    struct slide *slide = NULL;
    if (!new_slide(path, &slide, err))
        return false;
    enum driver_answer answer = ask_drivers(asked, n, slide, err);
    if (answer != DRIVER_OPENED) {
        slide_close(slide);
        return answer == DRIVER_OTHER
                   ? err_set(err, ERR_FORMAT, "%s: not a slide in a supported format", path)
                   : false;
    }
    slide->info.mpp_file = slide->info.mpp;
    if (given_mpp > 0)
        put_mpp(&slide->info, given_mpp, given_mpp, MPP_GIVEN);
    *out = slide;
    return true;
}

bool slide_open(const char *path, double given_mpp, struct slide **out, struct err *err)
{
    return open_by(drivers, sizeof drivers / sizeof *drivers, path, given_mpp, out, err);
}

bool slide_open_by(const struct slide_driver *driver, const char *path, double given_mpp,
                   struct slide **out, struct err *err)
{
    return open_by(&driver, 1, path, given_mpp, out, err);
}

void slide_close(struct slide *slide)
{
    if (!slide)
        return;
    for (int i = 0; slide->lows && i < slide->info.n_levels; i++)
        low_level_free(slide->lows[i]);
    if (slide->driver)
        slide->driver->close(slide);
    pthread_mutex_destroy(&slide->low_mutex);
    icc_free(slide->icc);
    free(slide->lows);
    free(slide->low_sources);
    free(slide->levels);
    free(slide->sources);
    free(slide->vendor);
    free(slide->cache);
    free(slide->path);
    free(slide->name);
    free(slide);
}

bool slide_set_cache(struct slide *slide, const char *folder, struct err *err)
{
    free(slide->cache);
    slide->cache = folder ? strdup(folder) : NULL;
    return slide->cache || !folder || err_memory(err, slide->path);
}

void slide_set_image_bytes(struct slide *slide, int64_t bytes)
{
    slide->image_bytes = bytes < SLIDE_IMAGE_BYTES ? bytes : SLIDE_IMAGE_BYTES;
}

char *slide_cache_folder(const struct slide *slide)
{
    return slide->cache ? strdup(slide->cache) : tile_cache_home();
}

struct tile_source slide_source(struct slide *slide, int level)
{
    const struct tile_source *source =
        level < 0 ? &slide->low_sources[-1 - level] : &slide->sources[level];
    return slide->icc ? icc_source(source) : *source;
}

struct tile_source source_reduced(const struct tile_source *source, int reduce)
{
    struct tile_source out = *source;
    int64_t factor = (int64_t)1 << reduce;
    out.reduce = reduce;
    out.width = ceil_div(source->width, factor);
    out.height = ceil_div(source->height, factor);
    out.tile_width = source->tile_width / factor;
    out.tile_height = source->tile_height / factor;
    return out;
}

bool slide_make_low(struct slide *slide, int level, const struct ctx *ctx, struct err *err)
{
    bool ok = true;
    pthread_mutex_lock(&slide->low_mutex);
    if (!slide->lows[level]) {
        char *folder = slide_cache_folder(slide);
        ok = low_level_open(&slide->sources[level], folder, ctx, &slide->lows[level],
                            &slide->low_sources[level], err);
        free(folder);
    }
    pthread_mutex_unlock(&slide->low_mutex);
    return ok;
}

bool source_name_place(const struct tile_source *source, int64_t column, int64_t row,
                       struct err *err)
{
    char place[128];
    snprintf(place, sizeof place, "level %d, tile column %lld, row %lld", source->level,
             (long long)column, (long long)row);
    err_prefix(err, place);
    return err_prefix(err, source->slide->path);
}

bool slide_read(struct slide *slide, int level, int64_t x, int64_t y, int64_t width, int64_t height,
                struct image *out, struct err *err)
{
    struct raster raster;
    return raster_open(slide, &(struct raster_request){ .level = level }, &raster, err) &&
           raster_read(&raster, x, y, width, height, out, err);
}
