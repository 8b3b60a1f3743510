/* tiff_rgba.c: see tiff_rgba.h. */
#include "slide/tiff_rgba.h"

#include <stdlib.h>
#include <tiffio.h>

struct rgba_decoder {
    const struct tiff_directory *directory;
    TIFF *tiff;
    uint32_t *raster; /* [tile_height, tile_width], the lowest row first */
    char text[TIFF_FILE_TEXT];
};

bool rgba_decoder_new(const struct tiff_file *file, const struct tiff_directory *directory,
                      struct rgba_decoder **out, struct err *err)
{
    struct rgba_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return err_memory(err, "a tile decoder");
    size_t px = (size_t)(directory->tile_width * directory->tile_height);
    decoder->directory = directory;
    decoder->raster = malloc(px * sizeof *decoder->raster);
    decoder->tiff = tiff_file_handle(file->path, decoder->text);
    bool ok = decoder->raster || err_memory(err, "a tile decoder");
    if (ok && (!decoder->tiff || !TIFFSetSubDirectory(decoder->tiff, directory->offset)))
        ok = err_set(err, ERR_FORMAT, "%s: libtiff cannot open it again: %s", file->path,
                     decoder->text);
    /* libtiff would flip each tile by itself; pixels are used as stored, as in other tiles. */
    if (ok) {
        TIFFSetField(decoder->tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
        *out = decoder;
    } else {
        rgba_decoder_free(decoder);
    }
    return ok;
}

void rgba_decoder_free(struct rgba_decoder *decoder)
{
    if (!decoder)
        return;
    if (decoder->tiff)
        TIFFClose(decoder->tiff);
    free(decoder->raster);
    free(decoder);
}

/* libtiff's colours are multiplied by alpha already. */
static void lay_row_on_white(const uint32_t *from, uint8_t *rgb, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t under = 255 - TIFFGetA(from[i]);
        rgb[3 * i + 0] = (uint8_t)(TIFFGetR(from[i]) + under);
        rgb[3 * i + 1] = (uint8_t)(TIFFGetG(from[i]) + under);
        rgb[3 * i + 2] = (uint8_t)(TIFFGetB(from[i]) + under);
    }
}

bool rgba_decode(struct rgba_decoder *decoder, int64_t column, int64_t row, uint8_t *dst,
                 int64_t stride_bytes, struct err *err)
{
    const struct tiff_directory *d = decoder->directory;
    int64_t x = column * d->tile_width, y = row * d->tile_height;
    decoder->text[0] = 0;
    if (tiff_directory_absent(d, column, row)) {
        tiff_directory_blank(d, dst, stride_bytes);
        return true;
    }
    if (!TIFFReadRGBATileExt(decoder->tiff, (uint32_t)x, (uint32_t)y, decoder->raster, 1) ||
        decoder->text[0]) /* a warning of libjpeg */
        return err_set(err, ERR_FORMAT, "damaged tile: %s",
                       decoder->text[0] ? decoder->text : "libtiff cannot decode it");
    for (int64_t i = 0; i < d->tile_height; i++)
        lay_row_on_white(decoder->raster + (d->tile_height - 1 - i) * d->tile_width,
                         dst + i * stride_bytes, d->tile_width);
    return true;
}
