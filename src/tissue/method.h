/* method.h: the published ways to tell tissue from glass on an overview, and to find what is
 * neither. */
#ifndef TISSUE_METHOD_H
#define TISSUE_METHOD_H
#include "tissue/tissue.h"

/* Writes 0 or 255 to every pixel of mask. rgb [height, width, 3]; skip [height, width] (may be
 * NULL) marks pixels that thresholds ignore; the caller clears them afterwards. */
bool method_apply(const struct image *rgb, const uint8_t *skip,
                  const struct tissue_options *options, struct image *mask, struct err *err);

/* Marks pen strokes and black areas (outside the scanned area, dark dirt) with 255 in mask, which
 * must be all 0. */
bool method_find_pen(const struct image *rgb, struct image *mask, struct err *err);
#endif
