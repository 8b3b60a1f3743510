/* png_labels.c: see png_labels.h. */
#include "base/png_labels.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 1000000
#define MAX_INTERLACED_BYTES ((double)(256 << 20))
#define MOST_GROWTH 1032.0 /* most bytes deflate makes of one */
#define SIGNATURE 8

struct reading {
    jmp_buf jump;
    char text[256];
    const png_byte *at, *end;
    const struct png_labels_taker *taker;
    struct err *err;
    bool told; /* the taker has set the error */
    png_bytep pixels;
    uint16_t *labels; /* [width] */
};

static void on_error(png_structp png, png_const_charp text)
{
    struct reading *reading = png_get_error_ptr(png);
    snprintf(reading->text, sizeof reading->text, "%s", text);
    longjmp(reading->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void on_read(png_structp png, png_bytep out, size_t n)
{
    struct reading *reading = png_get_io_ptr(png);
    if ((size_t)(reading->end - reading->at) < n)
        png_error(png, "the file is truncated");
    memcpy(out, reading->at, n);
    reading->at += n;
}

bool png_labels_claims(const void *bytes, size_t size)
{
    return size >= SIGNATURE && png_sig_cmp(bytes, 0, SIGNATURE) == 0;
}

/* libpng allocates what a chunk claims. */
static void limit_chunks(png_structp png, size_t size)
{
    png_set_user_limits(png, MAX_SIDE, MAX_SIDE);
    png_set_chunk_malloc_max(png, size + 1024);
}

/* Whole numbers as they are in the file: 8 or 16 bits, one channel. */
static void ask_for_labels(png_structp png, png_infop info)
{
    int type = png_get_color_type(png, info);
    if (type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE &&
        type != PNG_COLOR_TYPE_GRAY_ALPHA)
        png_error(png, "a colour image; a label image has one number per pixel: save it as grey or "
                       "with a palette");
    png_set_packing(png);
    png_set_strip_alpha(png);
    if (png_get_bit_depth(png, info) == 16)
        png_set_swap(png); /* to little endian; see row_to_labels */
    if (png_get_interlace_type(png, info) != PNG_INTERLACE_NONE)
        png_set_interlace_handling(png);
    png_read_update_info(png, info);
}

static bool row_to_labels(struct reading *reading, png_const_bytep row, png_uint_32 width,
                          int64_t y, int depth)
{
    for (png_uint_32 x = 0; x < width; x++) {
        unsigned label = depth == 16 ? row[2 * x] | (unsigned)row[2 * x + 1] << 8 : row[x];
        reading->labels[x] = (uint16_t)label;
    }
    reading->told = !reading->taker->row(reading->taker->arg, y, reading->labels, reading->err);
    return !reading->told;
}

static void read_interlaced(png_structp png, struct reading *reading, size_t row_bytes,
                            png_uint_32 height)
{
    if ((double)row_bytes * height > MAX_INTERLACED_BYTES)
        png_error(png, "an interlaced image this large; save it without interlacing");
    reading->pixels = calloc(height, row_bytes);
    if (!reading->pixels)
        png_error(png, "not enough memory for an interlaced image");
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        for (png_uint_32 y = 0; y < height; y++)
            png_read_row(png, reading->pixels + y * row_bytes, NULL);
}

static bool read_rows(png_structp png, png_infop info, size_t size, struct reading *reading)
{
    png_uint_32 width = png_get_image_width(png, info), height = png_get_image_height(png, info);
    if ((double)png_get_rowbytes(png, info) * height > MOST_GROWTH * (double)size)
        png_error(png, "it claims more pixels than its bytes can hold");
    ask_for_labels(png, info);
    size_t row_bytes = png_get_rowbytes(png, info);
    int depth = png_get_bit_depth(png, info);
    bool interlaced = png_get_interlace_type(png, info) != PNG_INTERLACE_NONE;
    reading->told = !reading->taker->begin(reading->taker->arg, width, height, reading->err);
    if (reading->told)
        return false;
    reading->labels = calloc(width, sizeof *reading->labels);
    if (interlaced)
        read_interlaced(png, reading, row_bytes, height);
    else
        reading->pixels = calloc(1, row_bytes);
    if (!reading->labels || !reading->pixels)
        png_error(png, "not enough memory for a row");
    for (png_uint_32 y = 0; y < height; y++) {
        if (!interlaced)
            png_read_row(png, reading->pixels, NULL);
        if (!row_to_labels(reading, reading->pixels + (interlaced ? y * row_bytes : 0), width, y,
                           depth))
            return false;
    }
    return true;
}

bool png_labels_read(const void *bytes, size_t size, const char *path,
                     const struct png_labels_taker *taker, struct err *err)
{
    struct reading reading = {
        .at = bytes, .end = (const png_byte *)bytes + size, .taker = taker, .err = err
    };
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    volatile bool ok = false;
    if (!info) {
        err_memory(err, path);
    } else if (setjmp(reading.jump)) {
        ok = err_set(err, ERR_FORMAT, "%s: not a readable label image: %s", path, reading.text);
    } else {
        limit_chunks(png, size);
        png_set_read_fn(png, &reading, on_read);
        png_read_info(png, info);
        ok = read_rows(png, info, size, &reading);
    }
    png_destroy_read_struct(&png, &info, NULL);
    free(reading.pixels);
    free(reading.labels);
    return ok;
}
