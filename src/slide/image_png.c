/* image_png.c: PNG files row by row, with libpng (image_rows.h). */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/image_stream.h"
#include "slide/image_rows.h"

#define MOST_CHUNK_BYTES (8 << 20) /* of anything but pixels */
#define MOST_GROWTH 1032.0         /* most bytes deflate makes of one */

struct png_rows {
    jmp_buf jump;
    char text[256];
    FILE *stream;
    png_structp png;
    png_infop info;
    int64_t width, height, next;
    int channels;
    uint8_t *row;   /* one, as libpng gives it */
    uint8_t *whole; /* all of them, if interlaced */
};

static void on_error(png_structp png, png_const_charp text)
{
    struct png_rows *r = png_get_error_ptr(png);
    snprintf(r->text, sizeof r->text, "%s", text);
    longjmp(r->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text; /* such as a colour profile that libpng dislikes */
}

static void png_rows_close(void *reader)
{
    struct png_rows *r = reader;
    if (!r)
        return;
    png_destroy_read_struct(&r->png, &r->info, NULL);
    if (r->stream)
        fclose(r->stream);
    free(r->row);
    free(r->whole);
    free(r);
}

static int orientation_of(const struct png_rows *r)
{
    png_uint_32 n = 0;
    png_bytep exif = NULL;
    if (!png_get_eXIf_1(r->png, r->info, &n, &exif))
        return 1;
    return image_exif_orientation(exif, n);
}

static void read_resolution(const struct png_rows *r, struct image_facts *facts)
{
    png_uint_32 x = 0, y = 0;
    int unit = PNG_RESOLUTION_UNKNOWN;
    if (!png_get_pHYs(r->png, r->info, &x, &y, &unit) || unit != PNG_RESOLUTION_METER)
        return;
    facts->mpp_source = MPP_IMAGE;
    facts->mpp_x = image_plausible_mpp(1e6 / (double)x);
    facts->mpp_y = image_plausible_mpp(1e6 / (double)y);
}

/* libpng's errors jump out of here. */
static bool read_header(struct png_rows *r, const char *path, struct image_facts *facts,
                        struct err *err)
{
    png_set_user_limits(r->png, INT32_MAX, INT32_MAX);
    png_set_chunk_malloc_max(r->png, MOST_CHUNK_BYTES);
    png_init_io(r->png, r->stream);
    png_read_info(r->png, r->info);
    facts->width = r->width = png_get_image_width(r->png, r->info);
    facts->height = r->height = png_get_image_height(r->png, r->info);
    if ((double)png_get_rowbytes(r->png, r->info) * (double)r->height >
        MOST_GROWTH * image_stream_bytes(r->stream))
        png_error(r->png, "it claims more pixels than its bytes can hold");
    read_resolution(r, facts);
    bool interlaced = png_get_interlace_type(r->png, r->info) != PNG_INTERLACE_NONE;
    if (!image_check_orientation(path, orientation_of(r), err) ||
        (interlaced && !image_check_whole(path, "an interlaced PNG", r->width, r->height, err)))
        return false;
    png_set_expand(r->png);
    png_set_scale_16(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    r->channels = png_get_channels(r->png, r->info);
    size_t row_bytes = (size_t)r->width * (size_t)r->channels;
    if (png_get_rowbytes(r->png, r->info) != row_bytes)
        png_error(r->png, "an unexpected pixel layout");
    r->row = malloc(row_bytes);
    r->whole = interlaced ? malloc(row_bytes * (size_t)r->height) : NULL;
    return (r->row && (r->whole || !interlaced)) || err_memory(err, path);
}

static bool png_rows_open(const char *path, struct image_facts *facts, void **reader,
                          struct err *err)
{
    struct png_rows *r = calloc(1, sizeof *r);
    *reader = r;
    if (!r)
        return err_memory(err, path);
    r->stream = fopen(path, "rb");
    if (!r->stream)
        return err_errno(err, path, "open");
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info)
        return err_memory(err, path);
    if (setjmp(r->jump))
        return err_set(err, ERR_FORMAT, "%s: not a readable PNG: %s", path, r->text);
    return read_header(r, path, facts, err);
}

/* Every pass over an interlaced image fills in more of its pixels. */
static void read_whole(struct png_rows *r)
{
    int64_t row_bytes = r->width * r->channels;
    memset(r->whole, 0, (size_t)(row_bytes * r->height));
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        for (int64_t y = 0; y < r->height; y++)
            png_read_row(r->png, r->whole + y * row_bytes, NULL);
}

/* libpng's errors jump out of here. */
static void read_rows(struct png_rows *r, int64_t n, uint8_t *dst)
{
    if (r->whole && r->next == 0)
        read_whole(r);
    for (int64_t i = 0; i < n; i++, r->next++, dst += 3 * r->width) {
        const uint8_t *row = r->row;
        if (r->whole)
            row = r->whole + r->next * r->width * r->channels;
        else
            png_read_row(r->png, r->row, NULL);
        image_row_to_rgb(row, r->channels, false, r->width, dst);
    }
}

static bool png_rows_read(void *reader, int64_t n, uint8_t *dst, struct err *err)
{
    struct png_rows *r = reader;
    if (setjmp(r->jump))
        return image_row_failed(r->next, r->height,
                                feof(r->stream) ? "the file is truncated" : r->text, err);
    read_rows(r, n, dst);
    return true;
}

const struct image_format image_png = {
    .vendor = "png", .open = png_rows_open, .rows = png_rows_read, .close = png_rows_close
};
