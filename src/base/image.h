/* image.h: 8-bit pixels in memory, rows one after another, and PNG files of them. */
#ifndef BASE_IMAGE_H
#define BASE_IMAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* px [height, width, channels]; channels is 1 (grey, mask) or 3 (RGB). */
struct image {
    uint8_t *px;
    int64_t width, height;
    int channels;
};

/* Zeroed pixels, owned by the caller; free with image_free. Sizes are checked against overflow. */
bool image_new(struct image *image, int64_t width, int64_t height, int channels, struct err *err);
void image_free(struct image *image); /* also safe on a zeroed struct */
size_t image_bytes(const struct image *image);

static inline uint8_t *image_at(const struct image *image, int64_t x, int64_t y)
{
    return image->px + (size_t)(y * image->width + x) * (size_t)image->channels;
}

/* Reads any PNG as RGB (palette, grey and 16 bit converted, alpha blended with white) or, with
 * channels = 1, as grey. */
bool image_read_png(const char *path, int channels, struct image *out, struct err *err);
/* Reads a PNG or a JPEG as RGB, recognised by its first bytes. */
bool image_read(const char *path, struct image *out, struct err *err);
/* The same from a file's bytes in memory; name is used in messages only. */
bool image_decode(const uint8_t *bytes, size_t size, const char *name, struct image *out,
                  struct err *err);
/* Written to a temporary file and renamed. Slow: 0.1 s for 1024 x 1024 px of RGB; reading takes a
 * quarter of that. */
bool image_write_png(const char *path, const struct image *image, struct err *err);
/* The same for a one-channel image whose bytes are indices of colours. */
struct image_colour {
    uint8_t red, green, blue, alpha;
};
bool image_write_png_palette(const char *path, const struct image *image,
                             const struct image_colour colours[256], struct err *err);
/* The same with an embedded text (its Comment), such as how the image was made. */
bool image_write_png_noted(const char *path, const struct image *image, const char *note,
                           struct err *err);
/* That text, owned by the caller; "" if there is none. Pixels are not read. */
bool image_read_png_note(const char *path, char **out, struct err *err);

/* For images meant for viewing; quality 1 to 100. Written to a temporary file and renamed. */
bool image_write_jpeg(const char *path, const struct image *image, int quality, struct err *err);

/* Area-averages to the given size (both at most the source's); the exact mean of the source area
 * under every target pixel. */
bool image_shrink(const struct image *source, int64_t width, int64_t height, struct image *out,
                  struct err *err);

/* Resizes by the triangle filter, widened when shrinking, each of the two passes rounded to bytes:
 * PIL's BILINEAR, which torchvision's Resize applies to a PIL image. */
bool image_resize(const struct image *source, int64_t width, int64_t height, struct image *out,
                  struct err *err);
#endif
