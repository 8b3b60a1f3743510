/* image_rows.h: a plain image file -> rows of 8-bit RGB, from the top. One reader per format:
 * image_png.c, image_jpeg.c, image_strips.c. Samples of 16 bits are rounded to 8, grey and palettes
 * become RGB, transparency is blended with white. */
#ifndef SLIDE_IMAGE_ROWS_H
#define SLIDE_IMAGE_ROWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "slide/slide.h"

/* Interlaced PNG and progressive JPEG cannot be read in bands: at most this many pixels, which take
 * up to 6 bytes each. */
#define IMAGE_WHOLE_MAX_PX (INT64_C(64) << 20)

struct image_facts {
    int64_t width, height;
    double mpp_x, mpp_y; /* 0 if the file does not say */
    enum mpp_source mpp_source;
};

struct image_format {
    const char *vendor; /* "png": slide_info's */
    /* Reads the header and checks that every row can be decoded; the error names the path. *reader
     * is the caller's, also if it fails; end with close. */
    bool (*open)(const char *path, struct image_facts *facts, void **reader, struct err *err);
    /* The next n rows to dst [n, width, 3]. The error gives the row, not the path. Not
     * thread-safe. */
    bool (*rows)(void *reader, int64_t n, uint8_t *dst, struct err *err);
    void (*close)(void *reader); /* NULL-safe */
};

extern const struct image_format image_png, image_jpeg, image_strips;

/* The format of a file, by its first bytes; NULL: none of them. For a TIFF this only says that it
 * is one: image_strips_are_all decides. */
const struct image_format *image_format_of(const char *path);

/* Is every image of this TIFF stored in strips? */
bool image_strips_are_all(const char *path);

/* For readers: a row of n pixels of `channels` samples (1 grey, 2 grey and alpha, 3 RGB, 4 RGB and
 * alpha) -> RGB over white. premultiplied: the colours are multiplied by alpha already. */
void image_row_to_rgb(const uint8_t *from, int channels, bool premultiplied, int64_t n,
                      uint8_t *rgb);

/* For readers: an error in a row. Returns false. */
bool image_row_failed(int64_t row, int64_t height, const char *why, struct err *err);

/* For readers: fails if an image that must be in memory as a whole has too many pixels. */
bool image_check_whole(const char *path, const char *kind, int64_t width, int64_t height,
                       struct err *err);
/* For readers: fails if the orientation (EXIF's, TIFF's tag) is not the usual one. */
bool image_check_orientation(const char *path, int orientation, struct err *err);
/* For readers: the orientation in n bytes of EXIF (a TIFF of one directory); 1 if there is none. */
int image_exif_orientation(const uint8_t *exif, size_t n);
/* For readers: um per pixel if a microscope can have it, else 0: 72 or 300 dpi are for printers. */
double image_plausible_mpp(double mpp);
#endif
