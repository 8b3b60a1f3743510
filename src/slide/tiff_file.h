/* tiff_file.h: the directories of a tiled TIFF, and single tiles decoded to RGB. libtiff reads the
 * directories once; tiles are then read by pread and decoded by their codec (codec.h). */
#ifndef SLIDE_TIFF_FILE_H
#define SLIDE_TIFF_FILE_H
#include "slide/tiff_directory.h"

struct tiff_file {
    char *path;
    int fd;
    int64_t size;
    int n_directories; /* the pages in their order, then the SubIFDs in their order */
    struct tiff_directory *directories;
    int n_pages;
    /* Of page 0: */
    char *description, *software; /* "" if absent */
    bool iscan;                   /* has XMP with Ventana's element iScan */
    double mpp_x, mpp_y;          /* by its resolution tags; 0: none */
};

/* Silences libtiff's warnings for files opened without their own handler, as OpenSlide opens them:
 * anything that matters is also an error. For the whole process; thread-safe. */
void tiff_file_silence(void);

/* By the first n bytes of a file: is it a TIFF or BigTIFF, in either byte order? */
bool tiff_file_begins(const void *head, size_t n);

/* libtiff's handle of a file, opened without mmap and with bounded allocations; NULL if it is not a
 * TIFF. Prints nothing; the last error goes to `text`, unless that is NULL, and so does a warning
 * of libjpeg, which means that pixels were made up: the call succeeds then. */
#define TIFF_FILE_TEXT 256
struct tiff *tiff_file_handle(const char *path, char text[TIFF_FILE_TEXT]);

/* The caller owns *out; close with tiff_file_close. Immutable once open, hence thread-safe. */
bool tiff_file_open(const char *path, struct tiff_file **out, struct err *err);
void tiff_file_close(struct tiff_file *file); /* NULL-safe */

/* Per-thread state for decoding tiles of one directory, at 1/2^reduce of their size. */
struct tile_decoder;
bool tile_decoder_new(const struct tiff_file *file, const struct tiff_directory *directory,
                      int reduce, struct tile_decoder **out, struct err *err);
void tile_decoder_free(struct tile_decoder *decoder); /* NULL-safe */

/* The most that tiles of a fit directory can be reduced while they are decoded, judged by the first
 * one: 0 for most codecs. */
int tile_decoder_max_reduce(const struct tiff_file *file, const struct tiff_directory *directory);

/* Decodes a tile of a fit directory to dst [tile_height, tile_width, 3]; a tile that is not in the
 * file is white. As in OpenSlide, a libjpeg warning is an error. The error does not give the
 * position: the caller knows it. */
bool tile_decode(struct tile_decoder *decoder, int64_t column, int64_t row, uint8_t *dst,
                 int64_t stride_bytes, struct err *err);
#endif
