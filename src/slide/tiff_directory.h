/* tiff_directory.h: one directory of a TIFF: its size, its pixels, the positions of its tiles. */
#ifndef SLIDE_TIFF_DIRECTORY_H
#define SLIDE_TIFF_DIRECTORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct tiff;

enum tiff_alpha { ALPHA_NONE, ALPHA_ASSOCIATED, ALPHA_UNASSOCIATED };

struct tiff_directory {
    int page;        /* in the file, from 0; a SubIFD has that of the page it belongs to */
    bool sub;        /* a SubIFD */
    uint64_t offset; /* of the directory in the file */
    int64_t width, height;
    int64_t tile_width, tile_height; /* 0: not tiled */
    int64_t columns, rows;           /* tiles */
    int64_t row_bytes, tile_bytes;   /* decompressed: a row of a tile, a tile; planar: of a plane */
    const char *unfit;               /* why its tiles cannot be decoded here; NULL: they can */
    bool by_libtiff;                 /* unfit, but libtiff decodes its tiles to RGB */
    bool reduced;                    /* by its tag: a smaller version of another directory */
    bool mask;                       /* by its tag: transparency mask of another directory */
    int channels;                    /* without alpha */
    int shown;                       /* how many of these are decoded to RGB */
    int samples, bits;               /* a pixel; a sample */
    int depth;                       /* planes of a volume: 1 */
    bool planar;                     /* the samples in planes, one after another */
    bool swapped;                    /* what the codec gives is 16 bit in the other byte order */
    enum tiff_alpha alpha;           /* the last sample */
    uint16_t compression, photometric, predictor, sample_format, fill_order; /* TIFF's tags */
    int reduce; /* the tiles are decoded at 1/2^reduce of their stored size; all sizes are those
                   then */
    const struct tile_codec *codec; /* NULL: unknown compression */
    uint8_t *palette;               /* [256, 3]; NULL: none */
    uint8_t *tables;                /* JPEGTables; NULL if each tile carries its own */
    uint32_t tables_size;
    /* Only if tiled and the table is whole. [planes, rows, columns]: */
    int64_t n_tiles;
    uint64_t *offsets;
    uint32_t *sizes;  /* bytes; 0: the tile is not in the file */
    int64_t n_absent; /* how many tiles are not in the file */
    int64_t beyond;   /* the first tile that extends beyond the end of the file, or -1 */
};

/* The current directory of libtiff's handle. Free with tiff_directory_free, also if it fails. */
bool tiff_directory_read(struct tiff *tiff, int64_t file_bytes, bool swapped,
                         struct tiff_directory *out, struct err *err);
void tiff_directory_free(struct tiff_directory *directory);

/* Whether a tile, or a plane of it, is not in the file. */
bool tiff_directory_absent(const struct tiff_directory *directory, int64_t column, int64_t row);
/* What is shown in its place: white, dst [tile_height, tile_width, 3]. */
void tiff_directory_blank(const struct tiff_directory *directory, uint8_t *dst,
                          int64_t stride_bytes);
#endif
