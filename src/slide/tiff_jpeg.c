/* tiff_jpeg.c: see tiff_jpeg.h. */
#include "slide/tiff_jpeg.h"

#include <stdlib.h>
#include "base/jpeg_failure.h"

static void set_style(struct jpeg_compress_struct *jpeg, const struct tiff_jpeg_style *style)
{
    jpeg->image_width = jpeg->image_height = (JDIMENSION)style->tile_px;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, style->quality, TRUE);
    jpeg_set_colorspace(jpeg, style->rgb ? JCS_RGB : JCS_YCbCr);
    jpeg->write_JFIF_header = FALSE; /* the TIFF tags contain this information */
    jpeg->write_Adobe_marker = FALSE;
    jpeg->dct_method = JDCT_ISLOW;
    if (!style->rgb) {
        jpeg->comp_info[0].h_samp_factor = style->chroma_x;
        jpeg->comp_info[0].v_samp_factor = style->chroma_y;
    }
}

/* px NULL: tables only. */
static bool compress(const struct tiff_jpeg_style *style, const uint8_t *px,
                     struct tiff_jpeg_bytes *out, struct err *err)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_failure failure;
    jpeg.err = jpeg_failure_begin(&failure);
    *out = (struct tiff_jpeg_bytes){ 0 };
    if (setjmp(failure.jump)) {
        jpeg_destroy_compress(&jpeg);
        free(out->bytes);
        out->bytes = NULL;
        return err_set(err, ERR_MEMORY, "JPEG: %s", failure.text);
    }
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &out->bytes, &out->size);
    set_style(&jpeg, style);
    if (!px) {
        jpeg_write_tables(&jpeg);
    } else {
        jpeg_suppress_tables(&jpeg, style->full_jpeg ? FALSE : TRUE);
        jpeg_start_compress(&jpeg, style->full_jpeg ? TRUE : FALSE);
        size_t stride = 3 * (size_t)style->tile_px;
        while (jpeg.next_scanline < jpeg.image_height) {
            JSAMPROW rows[16];
            for (unsigned i = 0; i < 16; i++) /* the side is a multiple of 16 */
                rows[i] = (JSAMPROW)(uintptr_t)(px + (jpeg.next_scanline + i) * stride);
            jpeg_write_scanlines(&jpeg, rows, 16);
        }
        jpeg_finish_compress(&jpeg);
    }
    jpeg_destroy_compress(&jpeg);
    return true;
}

bool tiff_jpeg_encode(const struct tiff_jpeg_style *style, const uint8_t *px,
                      struct tiff_jpeg_bytes *out, struct err *err)
{
    return compress(style, px, out, err);
}

bool tiff_jpeg_tables(const struct tiff_jpeg_style *style, struct tiff_jpeg_bytes *out,
                      struct err *err)
{
    return compress(style, NULL, out, err);
}
