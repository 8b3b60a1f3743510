/* tiff_jpeg.h: one tile of pixels -> the JPEG stream of a TIFF tile. Thread-safe. */
#ifndef SLIDE_TIFF_JPEG_H
#define SLIDE_TIFF_JPEG_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct tiff_jpeg_style {
    int tile_px, quality;
    int chroma_x, chroma_y;
    bool rgb, full_jpeg;
};

struct tiff_jpeg_bytes {
    uint8_t *bytes; /* owned by the caller; free() */
    unsigned long size;
};

/* px [tile_px, tile_px, 3], rows next to each other. */
bool tiff_jpeg_encode(const struct tiff_jpeg_style *style, const uint8_t *px,
                      struct tiff_jpeg_bytes *out, struct err *err);

/* The tables-only stream for the JPEGTables tag. */
bool tiff_jpeg_tables(const struct tiff_jpeg_style *style, struct tiff_jpeg_bytes *out,
                      struct err *err);
#endif
