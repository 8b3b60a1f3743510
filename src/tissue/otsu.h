/* otsu.h: Otsu's threshold, in the convention of skimage.filters.threshold_otsu: 256 bins between
 * the smallest and the largest value for real numbers, one bin per value for bytes; the result is
 * the centre of the last bin of the lower class. */
#ifndef TISSUE_OTSU_H
#define TISSUE_OTSU_H
#include <stdbool.h>
#include <stdint.h>
#include "base/image.h"

typedef double (*otsu_value)(const uint8_t rgb[3]);

/* Threshold of a value of the pixels of an RGB image. skip (may be NULL) [height, width]: pixels to
 * ignore where not 0. If all pixels have one value, that value is the threshold; if there are no
 * pixels, infinity. */
double otsu_of_image(const struct image *rgb, otsu_value value, const uint8_t *skip);

/* Threshold from a histogram of bytes; -1 if it is empty. */
int otsu_of_counts(const int64_t counts[256]);
#endif
