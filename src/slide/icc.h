/* icc.h: the ICC profile of a slide, and tiles converted by it to sRGB right after they are
 * decoded. Profiles are read from TIFF (tag 34675 of the first image), PNG (iCCP), JPEG (APP2) and,
 * with OpenSlide 4, from whatever it gives for other formats. */
#ifndef SLIDE_ICC_H
#define SLIDE_ICC_H
#include "slide/driver.h"

/* The bytes of the profile in a TIFF, PNG or JPEG file, owned by the caller; NULL and true if there
 * is none. A damaged chunk or marker is an error that names the file. */
bool icc_read_file(const char *path, uint8_t **bytes, size_t *n, struct err *err);

/* A conversion to sRGB with the intent that the profile asks for, which is what OpenSlide's
 * documentation recommends. */
struct icc;
/* The caller owns *out; free with icc_free. name is used in errors. */
bool icc_new(const uint8_t *bytes, size_t n, const char *name, struct icc **out, struct err *err);
void icc_free(struct icc *icc); /* NULL-safe */
/* Converts n pixels of RGB in place. Thread-safe. */
void icc_convert(const struct icc *icc, uint8_t *rgb, int64_t n);

/* The description in a profile, "" if it has none; false if the profile is damaged. */
bool icc_describe(const uint8_t *bytes, size_t n, char *out, size_t room);

/* `of`, which is not reduced and must outlive it, with every tile converted by its slide's
 * conversion. */
struct tile_source icc_source(const struct tile_source *of);
#endif
