/* tiff_pyramid.c: see tiff_pyramid.h. */
#include "slide/tiff_pyramid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/console.h"
#include "base/file.h"
#include "slide/pyramid.h"
#include "slide/tiff_jpeg.h"

struct rgb_image {
    struct tiff_pyramid_options options; /* with defaults filled in */
    struct tiff_jpeg_style style;
    tiff_pyramid_draw draw;
    void *arg;
    struct console *console;
};

static bool check_options(const struct tiff_pyramid_options *o, const char *path, struct err *err)
{
    bool sampled = o->chroma_x >= 1 && o->chroma_x <= 2 && o->chroma_y >= 1 && o->chroma_y <= 2;
    if (o->width < 1 || o->height < 1 || o->width > 1 << 24 || o->height > 1 << 24)
        return err_set(err, ERR_USAGE, "%s: a side must have 1 to 2^24 px", path);
    if (o->tile_px < 16 || o->tile_px > 4096 || o->tile_px % 16)
        return err_set(err, ERR_USAGE, "%s: tiles must have a multiple of 16 px, not %d", path,
                       o->tile_px);
    if (o->quality < 1 || o->quality > 100 || !sampled)
        return err_set(err, ERR_USAGE, "%s: no such JPEG quality or chroma sampling", path);
    return true;
}

static struct tiff_pyramid_options with_defaults(const struct tiff_pyramid_options *given)
{
    struct tiff_pyramid_options o = *given;
    o.tile_px = o.tile_px ? o.tile_px : 256;
    o.quality = o.quality ? o.quality : 80;
    o.chroma_x = o.chroma_x ? o.chroma_x : 2;
    o.chroma_y = o.chroma_y ? o.chroma_y : 2;
    return o;
}

int64_t tiff_pyramid_tiles(const struct tiff_pyramid_options *options)
{
    struct tiff_pyramid_options o = with_defaults(options);
    return ceil_div(o.width, o.tile_px) * ceil_div(o.height, o.tile_px);
}

/* Fills the area to the right of and below the valid pixels with the last of them, so that the edge
 * of the slide has no ringing and halving stays exact. */
static void pad_tile(void *pixels, int64_t tile, int64_t width, int64_t height)
{
    uint8_t *px = pixels;
    for (int64_t y = 0; y < height && width < tile; y++)
        for (int64_t x = width; x < tile; x++)
            memcpy(px + (y * tile + x) * 3, px + (y * tile + width - 1) * 3, 3);
    for (int64_t y = height; y < tile; y++)
        memcpy(px + y * tile * 3, px + (height - 1) * tile * 3, (size_t)tile * 3);
}

/* Means of 2x2 pixels, rounded to nearest. */
static void halve_tile(const void *px, int64_t tile, void *dst, int64_t stride_px)
{
    for (int64_t y = 0; y < tile / 2; y++) {
        const uint8_t *upper = (const uint8_t *)px + 2 * y * tile * 3, *lower = upper + tile * 3;
        uint8_t *to = (uint8_t *)dst + y * stride_px * 3;
        for (int64_t x = 0; x < tile / 2; x++, upper += 6, lower += 6, to += 3)
            for (int c = 0; c < 3; c++)
                to[c] = (uint8_t)((upper[c] + upper[c + 3] + lower[c] + lower[c + 3] + 2) >> 2);
    }
}

static bool encode_tile(const void *arg, const void *px, int64_t tile, struct pyramid_tile *out,
                        struct err *err)
{
    (void)tile;
    const struct rgb_image *image = arg;
    struct tiff_jpeg_bytes jpeg;
    bool ok = tiff_jpeg_encode(&image->style, px, &jpeg, err);
    free(out->bytes);
    *out = (struct pyramid_tile){ jpeg.bytes, jpeg.size, jpeg.size };
    return ok;
}

static bool set_tags(const void *arg, struct tiff_out *out, struct err *err)
{
    const struct rgb_image *image = arg;
    const struct tiff_pyramid_options *o = &image->options;
    TIFF *t = out->tiff;
    errno = 0;
    bool ok = TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8) &&
              TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 3) &&
              TIFFSetField(t, TIFFTAG_COMPRESSION, COMPRESSION_JPEG) &&
              TIFFSetField(t, TIFFTAG_PHOTOMETRIC, o->rgb ? PHOTOMETRIC_RGB : PHOTOMETRIC_YCBCR);
    if (ok && !o->rgb) {
        static const float full_range[6] = { 0, 255, 128, 255, 128, 255 };
        ok = TIFFSetField(t, TIFFTAG_YCBCRSUBSAMPLING, o->chroma_x, o->chroma_y) &&
             TIFFSetField(t, TIFFTAG_REFERENCEBLACKWHITE, full_range);
    }
    if (ok && !o->full_jpeg) {
        struct tiff_jpeg_bytes tables;
        if (!tiff_jpeg_tables(&image->style, &tables, err))
            return false;
        ok = TIFFSetField(t, TIFFTAG_JPEGTABLES, (uint32_t)tables.size, tables.bytes);
        free(tables.bytes);
    }
    return ok || tiff_out_failed(out, err);
}

static const struct pyramid_kind rgb_jpeg = {
    .px_bytes = 3, .pad = pad_tile, .halve = halve_tile, .encode = encode_tile, .set_tags = set_tags
};

static bool draw_tile(void *arg, int64_t x, int64_t y, int64_t width, int64_t height, uint8_t *px,
                      int64_t stride_bytes, int worker, struct err *err)
{
    const struct rgb_image *image = arg;
    bool ok = image->draw(image->arg, x, y, width, height, px, stride_bytes, worker, err);
    console_advance(image->console, ok);
    return ok;
}

bool tiff_pyramid_write(const char *path, const struct tiff_pyramid_options *options,
                        tiff_pyramid_draw draw, void *arg, const struct ctx *ctx, struct err *err)
{
    struct tiff_pyramid_options o = with_defaults(options);
    struct rgb_image image = { .options = o,
                               .style = { .tile_px = o.tile_px,
                                          .quality = o.quality,
                                          .chroma_x = o.chroma_x,
                                          .chroma_y = o.chroma_y,
                                          .rgb = o.rgb,
                                          .full_jpeg = o.full_jpeg },
                               .draw = draw,
                               .arg = arg,
                               .console = ctx->console };
    struct pyramid pyramid = { .width = o.width,
                               .height = o.height,
                               .tile_px = o.tile_px,
                               .px_um = o.mpp,
                               .description = o.description,
                               .kind = &rgb_jpeg,
                               .style = &image,
                               .draw = draw_tile,
                               .arg = &image };
    char mode[] = { 'w', o.classic ? '4' : '8', o.big_endian ? 'b' : 'l', 0 };
    struct file_out out;
    struct tiff_out tiff;
    if (!check_options(&o, path, err) || !file_out_reserve(&out, path, err))
        return false;
    bool ok = tiff_out_open(&tiff, path, out.handle, mode, err) &&
              pyramid_write(&tiff, &pyramid, ctx, err);
    tiff_out_close(&tiff);
    if (ok)
        return file_out_commit(&out, err);
    file_out_discard(&out);
    return false;
}

bool tiff_pyramid_description(const char *path, char **out, struct err *err)
{
    struct tiff_out in;
    if (!tiff_out_open(&in, path, path, "r", NULL))
        return err_set(err, ERR_FORMAT, "%s: not a TIFF: %s", path, in.complaint);
    char *text = NULL;
    *out = strdup(TIFFGetField(in.tiff, TIFFTAG_IMAGEDESCRIPTION, &text) && text ? text : "");
    tiff_out_close(&in);
    return *out || err_memory(err, path);
}
