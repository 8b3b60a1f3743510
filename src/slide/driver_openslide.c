/* driver_openslide.c: every format that OpenSlide opens, through OpenSlide. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "slide/slide_private.h"
#include "slide/tiff_file.h"

#define OWN_TILE_PX 512 /* if the file's tiles are unknown or unsuitable */

const char *slide_openslide_version(void)
{
    return openslide_get_version();
}

/* DICOM and CZI are read from version 4 on. */
static bool openslide_is_4(void)
{
    return strtol(openslide_get_version(), NULL, 10) >= 4;
}

/* A format that OpenSlide reads only from version 4 on; NULL: none. */
static const char *format_of_4(const char *head, size_t size)
{
    if (size >= 132 && memcmp(head + 128, "DICM", 4) == 0)
        return "DICOM";
    if (size >= 10 && memcmp(head, "ZISRAWFILE", 10) == 0)
        return "Zeiss CZI";
    return NULL;
}

/* The error for a file that OpenSlide does not open. */
static bool refuse(const char *path, struct err *err)
{
    char head[132] = { 0 };
    FILE *stream = fopen(path, "rb");
    size_t size = stream ? fread(head, 1, sizeof head, stream) : 0;
    const char *name = format_of_4(head, size);
    if (stream)
        fclose(stream);
    if (name && !openslide_is_4())
        return err_set(err, ERR_FORMAT,
                       "%s: %s, which needs OpenSlide 4; this program uses OpenSlide %s: build it "
                       "with a newer one, or convert the slide to a tiled TIFF",
                       path, name, openslide_get_version());
    if (name)
        return err_set(err, ERR_FORMAT,
                       "%s: %s, but not a slide that OpenSlide %s can read: damaged, or not a "
                       "brightfield slide",
                       path, name, openslide_get_version());
    if (tiff_file_begins(head, size))
        return err_set(err, ERR_FORMAT,
                       "%s: a TIFF that OpenSlide cannot read: damaged, or its first page is not "
                       "tiled; store the page of the slide alone, for example: vips tiffsave "
                       "%s[page=1] slide.tif --tile --pyramid",
                       path, path);
    return err_set(
        err, ERR_FORMAT,
        "%s: neither a slide in a format that OpenSlide supports nor a PNG, JPEG or TIFF "
        "image; convert it to a tiled TIFF",
        path);
}

bool openslide_state_open(const char *path, struct openslide_state *state, struct err *err)
{
    state->handle = openslide_open(path);
    if (!state->handle)
        return refuse(path, err);
    const char *why = openslide_get_error(state->handle);
    if (why)
        return err_set(err, ERR_FORMAT, "%s: %s", path, why);
    return true;
}

void openslide_state_close(struct openslide_state *state)
{
    if (state && state->handle)
        openslide_close(state->handle);
}

/* A number among the properties, or 0. */
static double property_real(openslide_t *handle, const char *name)
{
    const char *text = openslide_get_property_value(handle, name);
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;
    return text && end != text && isfinite(value) ? value : 0;
}

/* What the file says. */
static void read_mpp(struct slide *slide, openslide_t *handle)
{
    bool generic = strcmp(slide->vendor, "generic-tiff") == 0; /* there OpenSlide reads the tags */
    double x = property_real(handle, OPENSLIDE_PROPERTY_NAME_MPP_X);
    double y = property_real(handle, OPENSLIDE_PROPERTY_NAME_MPP_Y);
    if (slide_set_mpp(slide, x, y, generic ? MPP_TIFF_TAGS : MPP_VENDOR))
        return;
    const char *unit = openslide_get_property_value(handle, "tiff.ResolutionUnit");
    double um = !unit                             ? 0
                : strcmp(unit, "centimeter") == 0 ? 10000
                : strcmp(unit, "inch") == 0       ? 25400
                                                  : 0;
    slide_set_mpp(slide, um / property_real(handle, "tiff.XResolution"),
                  um / property_real(handle, "tiff.YResolution"), MPP_TIFF_TAGS);
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
    const struct openslide_state *state = slide->sources[level].of;
    double downsample = slide->levels[level].downsample;
    int64_t x_l0 = llround((double)x * downsample), y_l0 = llround((double)y * downsample);
    openslide_read_region(state->handle, argb, x_l0, y_l0, level, width, height);
    bool ok = !openslide_get_error(state->handle);
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

static bool paint_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    *out = malloc((size_t)(source->tile_width * source->tile_height) * sizeof(uint32_t));
    return *out ? true : err_memory(err, "a tile");
}

static bool paint_tile(const struct tile_source *source, void *decoder, int64_t column, int64_t row,
                       uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    int64_t x = column * source->tile_width, y = row * source->tile_height;
    if (slide_paint(source->slide, source->level, x, y, source->tile_width, source->tile_height,
                    decoder, dst, stride_bytes, err))
        return true;
    return source_name_place(source, column, row, err);
}

static const struct tile_source_ops openslide_source_ops = {
    .decoder_new = paint_decoder_new,
    .decoder_free = free,
    .decode = paint_tile,
};

/* A multiple of the file's own tile near OWN_TILE_PX, so that OpenSlide decodes each once. */
static int64_t painted_tile_px(int64_t file_tile_px)
{
    if (file_tile_px < 16 || file_tile_px > 2 * OWN_TILE_PX)
        return OWN_TILE_PX;
    return file_tile_px < OWN_TILE_PX ? OWN_TILE_PX / file_tile_px * file_tile_px : file_tile_px;
}

struct tile_source openslide_source(struct slide *slide, int level,
                                    const struct openslide_state *state)
{
    const struct slide_level *facts = &slide->levels[level];
    return (struct tile_source){ .ops = &openslide_source_ops,
                                 .slide = slide,
                                 .level = level,
                                 .width = facts->width,
                                 .height = facts->height,
                                 .tile_width = painted_tile_px(facts->tile_width),
                                 .tile_height = painted_tile_px(facts->tile_height),
                                 .of = state };
}

static bool read_levels(struct slide *slide, openslide_t *handle, struct err *err)
{
    int n = openslide_get_level_count(handle);
    if (n < 1)
        return err_set(err, ERR_FORMAT, "%s: has no levels", slide->path);
    if (!slide_set_levels(slide, n, err))
        return false;
    for (int i = 0; i < n; i++) {
        struct slide_level *level = &slide->levels[i];
        char name[64];
        openslide_get_level_dimensions(handle, i, &level->width, &level->height);
        level->downsample = openslide_get_level_downsample(handle, i);
        if (level->width < 1 || level->height < 1 || !(level->downsample >= 0.5))
            return err_set(err, ERR_FORMAT, "%s: level %d has no size", slide->path, i);
        snprintf(name, sizeof name, "openslide.level[%d].tile-width", i);
        level->tile_width = (int64_t)property_real(handle, name);
        snprintf(name, sizeof name, "openslide.level[%d].tile-height", i);
        level->tile_height = (int64_t)property_real(handle, name);
        level->slow_reason = "not a plain tiled TIFF";
        slide->sources[i] = openslide_source(slide, i, slide->state);
    }
    return true;
}

static bool open_slide(struct slide *slide, struct err *err)
{
    struct openslide_state *state = calloc(1, sizeof *state);
    slide->state = state;
    if (!state)
        return err_memory(err, slide->path);
    if (!openslide_state_open(slide->path, state, err))
        return false;
    const char *vendor =
        openslide_get_property_value(state->handle, OPENSLIDE_PROPERTY_NAME_VENDOR);
    if (!slide_set_vendor(slide, vendor ? vendor : "unknown", err))
        return false;
    slide->info.objective = property_real(state->handle, OPENSLIDE_PROPERTY_NAME_OBJECTIVE_POWER);
    read_mpp(slide, state->handle);
    return read_levels(slide, state->handle, err);
}

static enum driver_answer openslide_driver_open(struct slide *slide, struct err *err)
{
    return open_slide(slide, err) ? DRIVER_OPENED : DRIVER_FAILED;
}

static void openslide_driver_close(struct slide *slide)
{
    openslide_state_close(slide->state);
    free(slide->state);
}

const struct slide_driver driver_openslide = { .name = "OpenSlide",
                                               .open = openslide_driver_open,
                                               .close = openslide_driver_close };
