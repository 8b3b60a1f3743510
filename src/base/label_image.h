/* label_image.h: an image whose pixels are numbers: 0 outside, any other number names the object
 * that the pixel belongs to. Stateless, thread-safe. */
#ifndef BASE_LABEL_IMAGE_H
#define BASE_LABEL_IMAGE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct label_image {
    int32_t *px; /* [height, width] */
    int64_t width, height;
};
void label_image_free(struct label_image *image); /* also fine on a zeroed struct */

/* A PNG (grey of 1 to 16 bits or a palette: png_labels.h) or a .npy (whole numbers or bool, two
 * axes, C order), recognised by their first bytes. Negative numbers and those beyond int32 are an
 * error. *out is the caller's. */
bool label_image_read(const char *path, struct label_image *out, struct err *err);

/* A grey PNG of 16 bits, written to a temporary file and renamed. More than 65535 is an error. */
bool label_image_write_png(const char *path, const struct label_image *image, struct err *err);
/* A .npy of int32, likewise. */
bool label_image_write_npy(const char *path, const struct label_image *image, struct err *err);
#endif
