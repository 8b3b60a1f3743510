/* image_jpeg.c: JPEG files row by row, with libjpeg-turbo (image_rows.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/image_stream.h"
#include "base/jpeg_failure.h"
#include "slide/image_rows.h"

#define EXIF_MARKER (JPEG_APP0 + 1)
#define MOST_PX_A_BYTE 1024.0 /* a block of 8 x 8 px takes at least one bit; doubled */

struct jpeg_rows {
    struct jpeg_failure failure;
    struct jpeg_decompress_struct jpeg;
    FILE *stream;
    bool created;
};

static void jpeg_rows_close(void *reader)
{
    struct jpeg_rows *r = reader;
    if (!r)
        return;
    if (r->created)
        jpeg_destroy_decompress(&r->jpeg);
    if (r->stream)
        fclose(r->stream);
    free(r);
}

static int orientation_of(const struct jpeg_decompress_struct *jpeg)
{
    static const uint8_t name[6] = "Exif\0";
    for (const struct jpeg_marker_struct *m = jpeg->marker_list; m; m = m->next)
        if (m->marker == EXIF_MARKER && m->data_length > sizeof name &&
            memcmp(m->data, name, sizeof name) == 0)
            return image_exif_orientation(m->data + sizeof name, m->data_length - sizeof name);
    return 1;
}

static void read_resolution(const struct jpeg_decompress_struct *jpeg, struct image_facts *facts)
{
    double um = !jpeg->saw_JFIF_marker    ? 0
                : jpeg->density_unit == 1 ? 25400
                : jpeg->density_unit == 2 ? 10000
                                          : 0;
    if (um == 0 || jpeg->X_density == 0 || jpeg->Y_density == 0)
        return;
    facts->mpp_source = MPP_IMAGE;
    facts->mpp_x = image_plausible_mpp(um / jpeg->X_density);
    facts->mpp_y = image_plausible_mpp(um / jpeg->Y_density);
}

static bool check_header(struct jpeg_rows *r, const char *path, struct err *err)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    if (jpeg->num_components != 1 && jpeg->num_components != 3)
        return err_set(err, ERR_FORMAT,
                       "%s: has %d colour components%s; convert it to RGB, for example: vips "
                       "icc_import %s rgb.png",
                       path, jpeg->num_components,
                       jpeg->num_components == 4 ? " (CMYK, made for printing)" : "", path);
    if ((double)jpeg->image_width * jpeg->image_height >
        MOST_PX_A_BYTE * image_stream_bytes(r->stream))
        return err_set(err, ERR_FORMAT,
                       "%s: not a readable JPEG: it claims more pixels than its bytes can hold",
                       path);
    return image_check_orientation(path, orientation_of(jpeg), err) &&
           (!jpeg_has_multiple_scans(jpeg) ||
            image_check_whole(path, "a progressive JPEG", jpeg->image_width, jpeg->image_height,
                              err));
}

static bool jpeg_rows_open(const char *path, struct image_facts *facts, void **reader,
                           struct err *err)
{
    struct jpeg_rows *r = calloc(1, sizeof *r);
    *reader = r;
    if (!r)
        return err_memory(err, path);
    r->stream = fopen(path, "rb");
    if (!r->stream)
        return err_errno(err, path, "open");
    r->jpeg.err = jpeg_failure_begin(&r->failure);
    if (setjmp(r->failure.jump))
        return err_set(err, ERR_FORMAT, "%s: not a readable JPEG: %s", path, r->failure.text);
    jpeg_create_decompress(&r->jpeg);
    r->created = true;
    jpeg_stdio_src(&r->jpeg, r->stream);
    jpeg_save_markers(&r->jpeg, EXIF_MARKER, 0xFFFF);
    jpeg_read_header(&r->jpeg, TRUE);
    facts->width = r->jpeg.image_width;
    facts->height = r->jpeg.image_height;
    read_resolution(&r->jpeg, facts);
    r->jpeg.out_color_space = JCS_RGB;
    return check_header(r, path, err);
}

/* libjpeg's errors jump out of here. */
static void read_rows(struct jpeg_decompress_struct *jpeg, int64_t n, uint8_t *dst)
{
    if (jpeg->output_scanline == 0)
        jpeg_start_decompress(jpeg);
    for (int64_t i = 0; i < n; i++) {
        JSAMPROW row = dst + i * 3 * (int64_t)jpeg->output_width;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
}

static bool jpeg_rows_read(void *reader, int64_t n, uint8_t *dst, struct err *err)
{
    struct jpeg_rows *r = reader;
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    if (setjmp(r->failure.jump))
        return image_row_failed(jpeg->output_scanline, jpeg->image_height, r->failure.text, err);
    read_rows(jpeg, n, dst);
    return true;
}

const struct image_format image_jpeg = {
    .vendor = "jpeg", .open = jpeg_rows_open, .rows = jpeg_rows_read, .close = jpeg_rows_close
};
