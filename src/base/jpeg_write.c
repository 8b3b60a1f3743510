/* jpeg_write.c: struct image (image.h) to JPEG files, with libjpeg-turbo. */
#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "base/image.h"
#include "base/jpeg_failure.h"

static bool write_open_jpeg(FILE *stream, const char *path, const struct image *image, int quality,
                            struct err *err)
{
    struct jpeg_failure failure;
    struct jpeg_compress_struct jpeg = { .err = jpeg_failure_begin(&failure) };
    if (setjmp(failure.jump)) {
        jpeg_destroy_compress(&jpeg);
        return err_set(err, ERR_IO, "%s: cannot write: %s", path, failure.text);
    }
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, stream);
    jpeg.image_width = (JDIMENSION)image->width;
    jpeg.image_height = (JDIMENSION)image->height;
    jpeg.input_components = image->channels;
    jpeg.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg.optimize_coding = TRUE;
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = image_at(image, 0, jpeg.next_scanline);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return true;
}

bool image_write_jpeg(const char *path, const struct image *image, int quality, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    if (!write_open_jpeg(out.stream, path, image, quality, err)) {
        file_out_discard(&out);
        return false;
    }
    return file_out_commit(&out, err);
}
