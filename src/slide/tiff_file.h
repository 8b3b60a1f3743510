/* tiff_file.h: the directories of a tiled TIFF, and single tiles decoded to RGB. libtiff reads the
 * directories once; tiles are then read by pread and decoded by their codec (codec.h). */
#ifndef SLIDE_TIFF_FILE_H
#define SLIDE_TIFF_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct tiff_directory {
    int number; /* in the file, from 0 */
    int64_t width, height;
    int64_t tile_width, tile_height; /* 0: not tiled */
    int64_t columns, rows;           /* tiles */
    int64_t row_bytes, tile_bytes;   /* decompressed: a row of a tile, a tile; planar: of a plane */
    const char *unfit;               /* why its tiles cannot be decoded here; NULL: they can */
    bool reduced;                    /* by its tag: a smaller version of another directory */
    bool mask;                       /* by its tag: transparency mask of another directory */
    int channels;                    /* without alpha */
    int shown;                       /* how many of these are decoded to RGB */
    int samples, bits;               /* a pixel; a sample */
    int depth;                       /* planes of a volume: 1 */
    bool planar;                     /* the samples in planes, one after another */
    uint16_t compression, photometric; /* values of TIFF's tags */
    uint16_t predictor;                /* likewise; 1: none */
    int reduce; /* the tiles are decoded at 1/2^reduce of their stored size; all sizes are those
                   then */
    const struct tile_codec *codec; /* NULL: unknown compression */
    bool scrambled;                 /* OpenSlide reads it wrong: see tiff_rgba.h */
    /* The rest only if fit. [rows, columns]: */
    uint64_t *offsets;
    uint32_t *sizes;  /* bytes; 0: the tile is not in the file */
    int64_t n_absent; /* how many tiles are not in the file */
    int64_t beyond;   /* the first tile that extends beyond the end of the file, or -1 */
    uint8_t *tables;  /* JPEGTables; NULL if each tile carries its own */
    uint32_t tables_size;
};

struct tiff_file {
    char *path;
    int fd;
    int64_t size;
    int n_directories;
    struct tiff_directory *directories;
};

/* Silences libtiff's warnings for files opened without their own handler, as OpenSlide opens them:
 * anything that matters is also an error. For the whole process; thread-safe. */
void tiff_file_silence(void);

/* libtiff's handle of a file, opened without mmap and with bounded allocations; NULL if it is not a
 * TIFF. Prints nothing; the last error goes to `text`, unless that is NULL. */
struct tiff;
#define TIFF_FILE_TEXT 256
struct tiff *tiff_file_handle(const char *path, char text[TIFF_FILE_TEXT]);

/* The caller owns *out; close with tiff_file_close. Immutable once open, hence thread-safe. */
bool tiff_file_open(const char *path, struct tiff_file **out, struct err *err);
void tiff_file_close(struct tiff_file *file); /* NULL-safe */

/* Per-thread state for decoding tiles of one directory. */
struct tile_decoder;
bool tile_decoder_new(const struct tiff_file *file, const struct tiff_directory *directory,
                      struct tile_decoder **out, struct err *err);
void tile_decoder_free(struct tile_decoder *decoder); /* NULL-safe */

/* NULL if what the directory's codec gives can be turned into RGB, else the reason. */
const char *tile_decoder_why_unfit(const struct tiff_directory *directory);

/* Decodes a tile of a fit directory to dst [tile_height, tile_width, 3]; a tile that is not in the
 * file is white. As in OpenSlide, a libjpeg warning is an error. The error does not give the
 * position: the caller knows it. */
bool tile_decode(struct tile_decoder *decoder, int64_t column, int64_t row, uint8_t *dst,
                 int64_t stride_bytes, struct err *err);
#endif
