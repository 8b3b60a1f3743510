/* tiff_out.h: a TIFF being written, level by level, from encoded tiles. A TIFF directory must be
 * finished before the next one starts, so the tiles of the smaller levels wait in an unnamed
 * temporary file beside the output and are copied when their directory is written. */
#ifndef SLIDE_TIFF_OUT_H
#define SLIDE_TIFF_OUT_H
#include <stdbool.h>
#include <stdint.h>
#include <tiffio.h>
#include "base/err.h"

struct tiff_out {
    const char *path; /* the final name, for messages */
    TIFF *tiff;
    int waiting; /* file descriptor, or -1 */
    int64_t waiting_size;
    char complaint[256]; /* libtiff's last message */
};

/* A waiting tile. */
struct tiff_waiting {
    int64_t offset, size;
};

/* part is the file to open, with libtiff's mode. out must not move until it is closed with
 * tiff_out_close. */
bool tiff_out_open(struct tiff_out *out, const char *path, const char *part, const char *mode,
                   struct err *err);
void tiff_out_close(struct tiff_out *out); /* also safe if opening failed */

/* Call after a libtiff call failed; errno must have been 0 before it. Returns false. A full disk
 * shows in errno; libtiff itself only says "write error". */
bool tiff_out_failed(const struct tiff_out *out, struct err *err);

/* The next tile of the directory that is open. */
bool tiff_out_tile(struct tiff_out *out, int64_t index, const void *bytes, int64_t size,
                   struct err *err);
/* A tile of a later directory. */
bool tiff_out_wait(struct tiff_out *out, const void *bytes, int64_t size, struct tiff_waiting *tile,
                   struct err *err);
/* Copies tiles that waited into the directory that is open. */
bool tiff_out_copy(struct tiff_out *out, const struct tiff_waiting *tiles, int64_t n,
                   struct err *err);
/* No tile is waiting any more: reuses their space. */
bool tiff_out_clear(struct tiff_out *out, struct err *err);
/* Ends the directory that is open. */
bool tiff_out_directory(struct tiff_out *out, struct err *err);
#endif
