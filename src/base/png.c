/* png.c: PNG files to and from struct image (image.h), with libpng. */
#include "base/image.h"

#include <png.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/image_stream.h"

#define MAX_SIDE 100000    /* pixels; nothing larger is an overview, a mask or a patch */
#define MOST_GROWTH 1032.0 /* most bytes deflate makes of one */
#define SIGNATURE 8        /* bytes before the first chunk */
#define CHUNK_SUM 4        /* and after each */
#define NOTE_KEY "Comment"

struct png_failure {
    jmp_buf jump;
    int cause; /* errno */
    char text[256];
};

static void on_error(png_structp png, png_const_charp text)
{
    struct png_failure *failure = png_get_error_ptr(png);
    failure->cause = errno;
    snprintf(failure->text, sizeof failure->text, "%s", text);
    longjmp(failure->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text; /* such as a colour profile that libpng dislikes: irrelevant here */
}

/* libpng allocates the length that the file claims for a chunk, so all chunks are checked first.
 * The stream is then back at its start. */
static void check_chunks(png_structp png, FILE *stream)
{
    double rest = image_stream_bytes(stream) - SIGNATURE;
    png_byte head[8];
    if (fseeko(stream, SIGNATURE, SEEK_SET) != 0)
        png_error(png, "cannot be read twice");
    while (fread(head, 1, sizeof head, stream) == sizeof head && memcmp(head + 4, "IEND", 4) != 0) {
        double length = png_get_uint_32(head), whole = sizeof head + length + CHUNK_SUM;
        if (whole > rest || fseeko(stream, (off_t)length + CHUNK_SUM, SEEK_CUR) != 0)
            png_error(
                png,
                "a chunk claims more bytes than the file has; the file is truncated or damaged");
        rest -= whole;
    }
    rewind(stream);
}

/* Asks libpng for 8-bit RGB or grey whatever the file contains; alpha is blended with white. */
static void ask_for_plain(png_structp png, png_infop info, int channels)
{
    png_color_16 white = { .red = 255, .green = 255, .blue = 255, .gray = 255 };
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_background(png, &white, PNG_BACKGROUND_GAMMA_SCREEN, 0, 1.0);
    bool has_colour = png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR;
    if (channels == 3 && !has_colour)
        png_set_gray_to_rgb(png);
    if (channels == 1 && has_colour)
        png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, -1, -1);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
}

bool image_png_of_stream(FILE *stream, const char *path, int channels, struct image *out,
                         struct err *err)
{
    struct png_failure failure = { .text = "" };
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    volatile bool ok = false;
    png_bytep *volatile rows = NULL;
    if (!info) {
        err_memory(err, path);
        goto done;
    }
    if (setjmp(failure.jump)) {
        ok = false;
        err_set(err, ERR_FORMAT, "%s: not a readable PNG: %s", path, failure.text);
        goto done;
    }
    png_set_user_limits(png, MAX_SIDE, MAX_SIDE);
    check_chunks(png, stream);
    png_init_io(png, stream);
    png_read_info(png, info);
    if ((double)png_get_rowbytes(png, info) * png_get_image_height(png, info) >
        MOST_GROWTH * image_stream_bytes(stream))
        png_error(png, "it claims more pixels than its bytes can hold");
    ask_for_plain(png, info, channels);
    png_uint_32 width = png_get_image_width(png, info), height = png_get_image_height(png, info);
    if (png_get_rowbytes(png, info) != (size_t)width * (size_t)channels)
        png_error(png, "an unexpected pixel layout");
    if (!image_new(out, width, height, channels, err))
        goto done;
    rows = malloc(height * sizeof *rows);
    if (!rows) {
        err_memory(err, path);
        goto done;
    }
    for (png_uint_32 y = 0; y < height; y++)
        rows[y] = image_at(out, 0, y);
    png_read_image(png, rows);
    ok = true;
done:
    if (!ok)
        image_free(out);
    free(rows);
    png_destroy_read_struct(&png, &info, NULL);
    return ok;
}

bool image_read_png(const char *path, int channels, struct image *out, struct err *err)
{
    *out = (struct image){ 0 };
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return err_errno(err, path, "open");
    bool ok = image_png_of_stream(stream, path, channels, out, err);
    fclose(stream);
    return ok;
}

/* The text of a PNG whose pixels come next in the stream. */
static char *note_of(png_structp png, png_infop info)
{
    png_textp texts = NULL;
    int n = png_get_text(png, info, &texts, NULL);
    for (int i = 0; i < n; i++)
        if (strcmp(texts[i].key, NOTE_KEY) == 0)
            return strdup(texts[i].text);
    return strdup("");
}

bool image_read_png_note(const char *path, char **out, struct err *err)
{
    struct png_failure failure = { .text = "" };
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return err_errno(err, path, "open");
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    bool ok = false;
    if (!info) {
        err_memory(err, path);
    } else if (setjmp(failure.jump)) {
        err_set(err, ERR_FORMAT, "%s: not a readable PNG: %s", path, failure.text);
    } else {
        check_chunks(png, stream);
        png_init_io(png, stream);
        png_read_info(png, info);
        *out = note_of(png, info);
        ok = *out || err_memory(err, path);
    }
    png_destroy_read_struct(&png, &info, NULL);
    fclose(stream);
    return ok;
}

/* What a PNG may contain besides the pixels. */
struct extras {
    const char *note;                   /* NULL: none */
    const struct image_colour *colours; /* [256]; NULL: grey or RGB */
};

static void set_palette(png_structp png, png_infop info, const struct image_colour *from)
{
    png_color colours[256];
    png_byte alpha[256];
    for (int i = 0; i < 256; i++) {
        colours[i] = (png_color){ from[i].red, from[i].green, from[i].blue };
        alpha[i] = from[i].alpha;
    }
    png_set_PLTE(png, info, colours, 256);
    png_set_tRNS(png, info, alpha, 256, NULL);
}

static void set_extras(png_structp png, png_infop info, const struct extras *extras)
{
    if (extras->colours)
        set_palette(png, info, extras->colours);
    if (extras->note)
        png_set_text(png, info,
                     &(png_text){ .compression = PNG_TEXT_COMPRESSION_NONE,
                                  .key = NOTE_KEY,
                                  .text = (char *)extras->note },
                     1);
}

static bool write_open_png(FILE *stream, const char *path, const struct image *image,
                           const struct extras *extras, struct err *err)
{
    int kind = extras->colours        ? PNG_COLOR_TYPE_PALETTE
               : image->channels == 1 ? PNG_COLOR_TYPE_GRAY
                                      : PNG_COLOR_TYPE_RGB;
    struct png_failure failure = { .text = "" };
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return err_memory(err, path);
    }
    if (setjmp(failure.jump)) {
        png_destroy_write_struct(&png, &info);
        /* A full disk shows in errno; libpng only says "Write Error". */
        return ferror(stream) && failure.cause
                   ? (errno = failure.cause, err_errno(err, path, "write"))
                   : err_set(err, ERR_IO, "%s: cannot write: %s", path, failure.text);
    }
    png_init_io(png, stream);
    png_set_compression_level(png, 3);
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, 8, kind,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    set_extras(png, info, extras);
    png_write_info(png, info);
    for (int64_t y = 0; y < image->height; y++)
        png_write_row(png, image_at(image, 0, y));
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return true;
}

static bool write_png(const char *path, const struct image *image, const struct extras *extras,
                      struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    if (!write_open_png(out.stream, path, image, extras, err)) {
        file_out_discard(&out);
        return false;
    }
    return file_out_commit(&out, err);
}

bool image_write_png(const char *path, const struct image *image, struct err *err)
{
    return write_png(path, image, &(struct extras){ 0 }, err);
}

bool image_write_png_noted(const char *path, const struct image *image, const char *note,
                           struct err *err)
{
    return write_png(path, image, &(struct extras){ .note = note }, err);
}

bool image_write_png_palette(const char *path, const struct image *image,
                             const struct image_colour colours[256], struct err *err)
{
    return write_png(path, image, &(struct extras){ .colours = colours }, err);
}
