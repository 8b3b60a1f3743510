/* png_labels.h: a PNG whose pixels are numbers rather than colours, row by row. */
#ifndef BASE_PNG_LABELS_H
#define BASE_PNG_LABELS_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* Called with the size before the first row, then with each row [width]. False ends the reading,
 * with *err set. */
struct png_labels_taker {
    bool (*begin)(void *arg, int64_t width, int64_t height, struct err *err);
    bool (*row)(void *arg, int64_t y, const uint16_t *labels, struct err *err);
    void *arg;
};

bool png_labels_claims(const void *bytes, size_t size);

/* Grey of 1 to 16 bits as it is, or indices of a palette; colour images are rejected, and so are
 * interlaced ones above 256 MB of pixels, because they have to be kept as a whole. Otherwise the
 * memory is a few rows. path is used in messages. */
bool png_labels_read(const void *bytes, size_t size, const char *path,
                     const struct png_labels_taker *taker, struct err *err);
#endif
