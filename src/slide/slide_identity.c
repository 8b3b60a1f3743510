/* slide_identity.c: see slide_identity.h. A TIFF that was rewritten has different tiles: if even
 * one of them has another size, the tables of sizes show it; if pixels are not compressed, the
 * smallest levels do. */
#include "slide/slide_identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <tiffio.h>
#include "slide/slide_companions.h"
#include "slide/tiff_file.h"

#define MAX_DIRECTORIES 128
#define MAX_LEVEL_BYTES (UINT64_C(1) << 20) /* limit for a level whose pixels are read */
#define MAX_PIXEL_BYTES (UINT64_C(3) << 20) /* limit for all such levels */

/* The pieces (tiles or strips) of a directory that is small. */
static uint64_t hash_pixels(uint64_t hash, int fd, const uint64_t *offsets, const uint64_t *sizes,
                            uint32_t n)
{
    unsigned char *piece = malloc(MAX_LEVEL_BYTES);
    for (uint32_t i = 0; piece && i < n; i++) {
        ssize_t got = pread(fd, piece, (size_t)sizes[i], (off_t)offsets[i]);
        hash = identity_hash(hash, piece, got > 0 ? (size_t)got : 0);
    }
    free(piece);
    return hash;
}

/* *left: bytes of pixels that may still be read. */
static uint64_t hash_directory(uint64_t hash, TIFF *tiff, int fd, uint64_t *left)
{
    bool tiled = TIFFIsTiled(tiff);
    uint32_t n = tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
    uint64_t *offsets = NULL, *sizes = NULL, total = 0;
    if (n == 0 ||
        !TIFFGetField(tiff, tiled ? TIFFTAG_TILEBYTECOUNTS : TIFFTAG_STRIPBYTECOUNTS, &sizes) ||
        !sizes)
        return hash;
    hash = identity_hash(hash, sizes, n * sizeof *sizes);
    for (uint32_t i = 0; i < n && total <= MAX_LEVEL_BYTES; i++)
        total = sizes[i] > MAX_LEVEL_BYTES ? sizes[i] : total + sizes[i];
    if (total > MAX_LEVEL_BYTES || total > *left ||
        !TIFFGetField(tiff, tiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS, &offsets) ||
        !offsets)
        return hash;
    *left -= total;
    return hash_pixels(hash, fd, offsets, sizes, n);
}

/* For a file that is not a TIFF, or a damaged one, only the sample is used. */
static uint64_t hash_tiff(uint64_t hash, const char *path)
{
    uint64_t left = MAX_PIXEL_BYTES;
    TIFF *tiff = tiff_file_handle(path, NULL);
    for (int i = 0; tiff && i < MAX_DIRECTORIES; i++) {
        hash = hash_directory(hash, tiff, TIFFFileno(tiff), &left);
        if (!TIFFReadDirectory(tiff))
            break;
    }
    if (tiff)
        TIFFClose(tiff);
    return hash;
}

bool slide_identity(const char *path, struct identity *out, struct err *err)
{
    if (!identity_of_sample(path, out, err))
        return false;
    if (out->bytes > IDENTITY_SAMPLE_BYTES)
        out->hash = hash_tiff(out->hash, path);
    return slide_companions_add(path, out, err);
}
