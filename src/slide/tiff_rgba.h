/* tiff_rgba.h: single tiles of a TIFF directory of any compression and pixel type, decoded to RGB
 * by libtiff. For directories narrower or lower than a tile: OpenSlide asks libtiff
 * (TIFFRGBAImageGet) for a raster as large as the tile, but libtiff 4.5.0 as patched by Debian
 * fills one as large as the image, so rows end up in the wrong place, with uninitialised memory
 * between or after them. JPEG tiles, which OpenSlide decodes itself, are not affected, nor are
 * directories at least as large as a tile. */
#ifndef SLIDE_TIFF_RGBA_H
#define SLIDE_TIFF_RGBA_H
#include "slide/tiff_file.h"

/* Per-thread state for decoding tiles of one directory, whose tiles are at most TIFF_RGBA_MAX_PX
 * wide and high. */
#define TIFF_RGBA_MAX_PX 4096
struct rgba_decoder;
bool rgba_decoder_new(const struct tiff_file *file, const struct tiff_directory *directory,
                      struct rgba_decoder **out, struct err *err);
void rgba_decoder_free(struct rgba_decoder *decoder); /* NULL-safe */

/* Decodes a tile to dst [tile_height, tile_width, 3], over white where it is transparent; beyond
 * the directory's edge it is white. The error does not give the position. */
bool rgba_decode(struct rgba_decoder *decoder, int64_t column, int64_t row, uint8_t *dst,
                 int64_t stride_bytes, struct err *err);
#endif
