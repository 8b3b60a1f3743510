/* float_pyramid.c: see float_pyramid.h. */
#include "heatmap/float_pyramid.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "base/divide.h"
#include "slide/pyramid.h"

/* Scores hardly shrink further with more effort; the empty part does at once. */
#define DEFLATE_LEVEL 1

/* The rows of the plane that are drawn now. */
struct plane_rows {
    const struct float_pyramid *plane;
    float_pyramid_row read;
    void *arg;
    float *px; /* [tile, width] */
    int64_t y; /* of the first */
};

int64_t float_pyramid_bytes(int64_t width, int64_t tile_px)
{
    int64_t row = ceil_div(width, tile_px) * tile_px * tile_px * (int64_t)sizeof(float);
    return 2 * row + row + row / 8; /* all levels' rows, and the row of tiles deflated */
}

/* What is outside of the plane is as if there were no tissue. */
static void pad_tile(void *pixels, int64_t tile, int64_t width, int64_t height)
{
    float *px = pixels;
    for (int64_t y = 0; y < tile; y++)
        for (int64_t x = y < height ? width : 0; x < tile; x++)
            px[y * tile + x] = NAN;
}

static float mean_of_four(float a, float b, float c, float d)
{
    const float all[4] = { a, b, c, d };
    double sum = 0;
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (!isnan(all[i]))
            sum += (double)all[i], n++;
    return n ? (float)(sum / n) : NAN;
}

static void halve_tile(const void *px, int64_t tile, void *half, int64_t stride_px)
{
    const float *from = px;
    float *to = half;
    for (int64_t y = 0; y < tile / 2; y++, from += 2 * tile, to += stride_px)
        for (int64_t x = 0; x < tile / 2; x++)
            to[x] = mean_of_four(from[2 * x], from[2 * x + 1], from[tile + 2 * x],
                                 from[tile + 2 * x + 1]);
}

static bool encode_tile(const void *style, const void *px, int64_t tile, struct pyramid_tile *out,
                        struct err *err)
{
    (void)style;
    uLong size = (uLong)(tile * tile) * sizeof(float);
    if (!out->bytes) {
        out->room = compressBound(size);
        out->bytes = malloc(out->room);
    }
    uLongf used = out->room;
    if (!out->bytes || compress2(out->bytes, &used, px, size, DEFLATE_LEVEL) != Z_OK)
        return err_memory(err, "a tile of a heatmap");
    out->size = used;
    return true;
}

static bool set_tags(const void *style, struct tiff_out *out, struct err *err)
{
    (void)style;
    TIFF *t = out->tiff;
    errno = 0;
    return (TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 32) &&
            TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP) &&
            TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 1) &&
            TIFFSetField(t, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE) &&
            TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK)) ||
           tiff_out_failed(out, err);
}

static const struct pyramid_kind deflated_floats = { .px_bytes = sizeof(float),
                                                     .pad = pad_tile,
                                                     .halve = halve_tile,
                                                     .encode = encode_tile,
                                                     .set_tags = set_tags };

static bool begin_rows(void *arg, int64_t y, int64_t n, struct err *err)
{
    struct plane_rows *rows = arg;
    rows->y = y;
    for (int64_t i = 0; i < n; i++)
        if (!rows->read(rows->arg, y + i, rows->px + i * rows->plane->width, err))
            return false;
    return true;
}

static bool draw_tile(void *arg, int64_t x, int64_t y, int64_t width, int64_t height, uint8_t *px,
                      int64_t stride_bytes, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct plane_rows *rows = arg;
    for (int64_t i = 0; i < height; i++)
        memcpy(px + i * stride_bytes, rows->px + (y - rows->y + i) * rows->plane->width + x,
               (size_t)width * sizeof(float));
    return true;
}

bool float_pyramid_write(struct tiff_out *out, const struct float_pyramid *plane,
                         float_pyramid_row read, void *arg, const struct ctx *ctx, struct err *err)
{
    if (plane->width > INT32_MAX || plane->height > INT32_MAX)
        return err_set(err, ERR_FORMAT, "%s: a TIFF can be at most 2^31 px wide or high",
                       out->path);
    struct plane_rows rows = { .plane = plane, .read = read, .arg = arg };
    struct pyramid pyramid = { .width = plane->width,
                               .height = plane->height,
                               .tile_px = plane->tile_px,
                               .px_um = plane->px_um,
                               .description = plane->description,
                               .sub_levels = true,
                               .kind = &deflated_floats,
                               .begin_rows = begin_rows,
                               .draw = draw_tile,
                               .arg = &rows };
    rows.px = malloc((size_t)(plane->tile_px * plane->width) * sizeof *rows.px);
    bool ok = rows.px ? pyramid_write(out, &pyramid, ctx, err) : err_memory(err, out->path);
    free(rows.px);
    return ok;
}
