/* tiff_rgba.h: single tiles of a TIFF directory, decoded to RGB by libtiff: for compressions and
 * colours that we do not decode, such as CMYK, Lab, PackBits or YCbCr outside of JPEG. */
#ifndef SLIDE_TIFF_RGBA_H
#define SLIDE_TIFF_RGBA_H
#include "slide/tiff_file.h"

/* Per-thread state for decoding tiles of one directory that has by_libtiff, at most
 * TIFF_RGBA_MAX_PX wide and high. */
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
