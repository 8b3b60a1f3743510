/* morphology.h: shapes in a mask of 0 and 255. Pixels outside the image have no effect: they
 * neither grow in nor erode (the convention of skimage). */
#ifndef TISSUE_MORPHOLOGY_H
#define TISSUE_MORPHOLOGY_H
#include <stdbool.h>
#include <stdint.h>
#include "base/image.h"

/* With a disc of all offsets with dx^2 + dy^2 <= radius^2; a radius below 1 changes nothing. The
 * time taken does not depend on the radius. */
bool morphology_dilate(struct image *mask, double radius_px, struct err *err);
bool morphology_erode(struct image *mask, double radius_px, struct err *err);
bool morphology_close(struct image *mask, double radius_px, struct err *err);
bool morphology_open(struct image *mask, double radius_px, struct err *err);

/* Opening with a square of 2 half + 1 pixels. */
bool morphology_open_square(struct image *mask, int64_t half, struct err *err);

void morphology_invert(struct image *mask);

/* Connected pieces of the pixels that are 255 (edges connect; corners do too if `corners`),
 * numbered from 1 in the order of their first pixel, row by row; 0 elsewhere. The caller owns
 * *labels [height, width]; free(). */
bool morphology_label(const struct image *mask, bool corners, int32_t **labels, int32_t *n,
                      struct err *err);

/* Clears pieces (connected by edges or corners) of fewer than min_px pixels. */
bool morphology_remove_small(struct image *mask, double min_px, struct err *err);
/* Fills holes of fewer than min_px pixels. A hole is connected by edges and corners and does not
 * reach the border. */
bool morphology_fill_holes(struct image *mask, double min_px, struct err *err);
#endif
