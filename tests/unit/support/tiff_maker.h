/* tiff_maker.h: small tiled TIFF slides in many flavours, for tests. */
#ifndef TESTS_UNIT_SUPPORT_TIFF_MAKER_H
#define TESTS_UNIT_SUPPORT_TIFF_MAKER_H
#include <stdbool.h>
#include <stdint.h>
#include "base/image.h"

#define TIFF_MAKER_LEVELS 4

struct tiff_flavour {
    const char *mode;      /* of TIFFOpen: "w", "w8" (BigTIFF), "wb" (big-endian), "w8b" */
    uint16_t compression;  /* COMPRESSION_JPEG, COMPRESSION_LZW */
    uint16_t photometric;  /* PHOTOMETRIC_YCBCR, PHOTOMETRIC_RGB */
    uint16_t sub_x, sub_y; /* of the colours: 2, 2 is 4:2:0 */
    uint16_t bits;         /* of a colour, not with JPEG: 16; 0 is 8 */
    bool alpha;            /* a fourth channel, opaque; not with JPEG */
    bool own_tables;       /* every tile carries its JPEG tables */
    uint32_t tile_px;      /* a multiple of 16 */
    int64_t width, height; /* of level 0 */
    double
        ratios[TIFF_MAKER_LEVELS]; /* level-0 pixels per pixel of levels 1, 2, ...; ends with 0 */
    const char *description;       /* of the first directory; NULL: none */
    const char *software;
    bool padded;              /* the sizes of levels 1, 2, ... are rounded up to whole tiles */
    uint32_t absent;          /* this tile of level 0, counted from 1, is not written; 0: all are */
    uint16_t resolution_unit; /* RESUNIT_CENTIMETER, RESUNIT_INCH; 0: no resolution tags */
    float resolution;         /* pixels per unit */
    float resolution_y;       /* 0: the same */
    int more_pages;           /* of the full size, after the levels */
    bool sub_directories;     /* levels 1, 2, ... are SubIFDs of the first page; no more_pages */
    bool unmarked;            /* levels 1, 2, ... are not marked as reduced images */
};

/* The pixels that are drawn: smooth colours with fine texture, different everywhere. */
void tiff_maker_draw(int64_t width, int64_t height, struct image *out);

/* Fails the test where it cannot write. */
void tiff_maker_write(const char *path, const struct tiff_flavour *flavour);

/* Where the bytes of a tile lie in a file that was written. */
void tiff_maker_find_tile(const char *path, int directory, uint32_t tile, uint64_t *offset,
                          uint64_t *size);
#endif
