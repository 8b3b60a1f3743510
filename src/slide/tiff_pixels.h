/* tiff_pixels.h: the samples of a tile as stored in a TIFF -> 8-bit RGB. Undoes byte order and
 * predictor, then converts grey, palette, RGB and alpha. The rules are those of libtiff's RGBA
 * interface, hence of OpenSlide:
 *   16 bits  RGB: v / 257, rounded; grey: the upper byte
 *   alpha    the image is laid on white; colours that are not multiplied by alpha yet are */
#ifndef SLIDE_TIFF_PIXELS_H
#define SLIDE_TIFF_PIXELS_H
#include "slide/tiff_directory.h"

/* NULL if its samples can be converted, else the reason. */
const char *tiff_pixels_why_unfit(const struct tiff_directory *directory);

/* samples [planes, tile_height, row_bytes] are overwritten; scratch [tile_width * samples] bytes;
 * dst [tile_height, tile_width, 3], rows stride_bytes apart. */
void tiff_pixels_convert(const struct tiff_directory *directory, uint8_t *samples, uint8_t *scratch,
                         uint8_t *dst, int64_t stride_bytes);
#endif
