/* tile_encoder.h: one tile as a TIFF of any compression stores it, for tests of the codecs. */
#ifndef TESTS_UNIT_SUPPORT_TILE_ENCODER_H
#define TESTS_UNIT_SUPPORT_TILE_ENCODER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "slide/tiff_file.h"

enum { TILE_JP2K_YCBCR = 33003, TILE_JP2K_LOSSY = 33004, TILE_JP2K_RGB = 33005, TILE_JP2K = 34712 };

struct tile_kind {
    uint16_t compression;
    int width, height; /* multiples of 16 */
    int samples, bits; /* 1, 3 or 4; 8 or 16 */
    bool lossless;     /* WebP, JPEG 2000 */
    bool boxes;        /* JPEG 2000: a JP2 file instead of a codestream */
    bool no_transform; /* JPEG 2000: the components as they are */
    int chroma_x;      /* JPEG 2000: components 2 and 3 are this many times narrower; 0 is 1 */
    int n_resolutions; /* JPEG 2000; 0 is 3 */
};

/* Encodes px [height, width, samples]; the bytes are the caller's. Aborts if it cannot. */
uint8_t *tile_encode(const struct tile_kind *kind, const void *px, size_t *size);

/* The directory such a tile would be in. */
struct tiff_directory tile_directory(const struct tile_kind *kind);
#endif
