/* jpeg.c: JPEG files, and images by their content, to struct image (image.h), with libjpeg-turbo.
 */
#include "base/image.h"

#include <stdio.h>
#include <string.h>
#include "base/image_stream.h"
#include "base/jpeg_failure.h"

/* A block of 8 x 8 px takes at least one bit: 512 px per byte; doubled for other codings. */
#define MOST_PX_A_BYTE 1024.0

static bool read_open_jpeg(FILE *stream, const char *path, struct image *out, struct err *err)
{
    struct jpeg_failure failure;
    struct jpeg_decompress_struct jpeg = { .err = jpeg_failure_begin(&failure) };
    if (setjmp(failure.jump)) {
        jpeg_destroy_decompress(&jpeg);
        image_free(out);
        return err_set(err, ERR_FORMAT, "%s: not a readable JPEG: %s", path, failure.text);
    }
    jpeg_create_decompress(&jpeg);
    jpeg_stdio_src(&jpeg, stream);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_RGB;
    /* before jpeg_start_decompress, which allocates what the header claims */
    bool ok =
        ((double)jpeg.image_width * jpeg.image_height <=
         MOST_PX_A_BYTE * image_stream_bytes(stream)) ||
        err_set(err, ERR_FORMAT,
                "%s: not a readable JPEG: it claims more pixels than its bytes can hold", path);
    ok = ok && jpeg_start_decompress(&jpeg) &&
         image_new(out, jpeg.output_width, jpeg.output_height, 3, err);
    while (ok && jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = image_at(out, 0, jpeg.output_scanline);
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    if (ok)
        jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return ok;
}

/* PNG or JPEG, by the first bytes; both readers start over at the beginning of the stream. */
static bool read_any(FILE *stream, const char *path, struct image *out, struct err *err)
{
    static const uint8_t png[4] = { 0x89, 'P', 'N', 'G' }, jpeg[2] = { 0xFF, 0xD8 };
    uint8_t begin[4] = { 0 };
    size_t n = fread(begin, 1, sizeof begin, stream);
    rewind(stream);
    if (n == sizeof begin && memcmp(begin, png, sizeof png) == 0)
        return image_png_of_stream(stream, path, 3, out, err);
    if (n == sizeof begin && memcmp(begin, jpeg, sizeof jpeg) == 0)
        return read_open_jpeg(stream, path, out, err);
    return err_set(err, ERR_FORMAT, "%s: neither a PNG nor a JPEG", path);
}

bool image_read(const char *path, struct image *out, struct err *err)
{
    *out = (struct image){ 0 };
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return err_errno(err, path, "open");
    bool ok = read_any(stream, path, out, err);
    fclose(stream);
    return ok;
}

bool image_decode(const uint8_t *bytes, size_t size, const char *name, struct image *out,
                  struct err *err)
{
    *out = (struct image){ 0 };
    if (size == 0)
        return err_set(err, ERR_FORMAT, "%s: is empty", name);
    FILE *stream = fmemopen((void *)bytes, size, "rb");
    if (!stream)
        return err_errno(err, name, "open");
    bool ok = read_any(stream, name, out, err);
    fclose(stream);
    return ok;
}
