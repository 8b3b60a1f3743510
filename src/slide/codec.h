/* codec.h: the compressions of TIFF tiles. A codec turns the bytes of one tile into pixels or
 * samples; file positions, byte order, predictors and pixel types are left to tile_decoder.c. A new
 * compression is one file codec_<name>.c and one line in codecs.c (docs/add-a-codec.md). */
#ifndef SLIDE_CODEC_H
#define SLIDE_CODEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct tiff_directory;

enum codec_gives {
    CODEC_RGB,     /* 8-bit RGB [tile_height, tile_width, 3], the colours converted */
    CODEC_SAMPLES, /* the directory's samples as stored: byte order, predictor and colours are still
                      to be undone. Rows follow each other without gaps, the directory's tile_bytes
                      in all */
    CODEC_COLOURS, /* as CODEC_SAMPLES, but byte order, predictor and YCbCr are already undone: grey
                      or RGB in this machine's byte order, with alpha and further samples if the
                      directory has them */
};

struct tile_codec {
    const char *name;         /* "JPEG", for display */
    uint16_t compressions[6]; /* values of TIFF's tag that mean it; 0 ends the list */
    enum codec_gives gives;
    /* NULL if a directory of this compression can be decoded, else the reason. May be NULL. */
    const char *(*why_unfit)(const struct tiff_directory *directory);
    /* State of one thread for tiles of one directory; both NULL if there is none. */
    bool (*begin)(const struct tiff_directory *directory, void **state, struct err *err);
    void (*end)(void *state); /* NULL-safe */
    /* Decodes one tile to dst, rows stride_bytes apart (only CODEC_RGB; the others have no gaps). A
     * tile that is damaged, or does not fill dst exactly, is an error that names the codec and says
     * what is wrong; the caller adds the position. Nothing is written outside dst, and no more is
     * allocated than a few times the size of the tile, whatever the bytes claim. */
    bool (*decode)(void *state, const struct tiff_directory *directory, const uint8_t *bytes,
                   size_t size, uint8_t *dst, int64_t stride_bytes, struct err *err);
    /* How many times a tile can be halved in size while it is decoded, which saves most of the
     * work; decode does it as often as the directory's `reduce` says. NULL: never. */
    int (*halvings)(const uint8_t *bytes, size_t size);
};

extern const struct tile_codec codec_none, codec_lzw, codec_packbits, codec_deflate, codec_zstd,
    codec_jpeg, codec_jp2k, codec_webp;

/* The codec of a compression, or NULL. */
const struct tile_codec *codec_find(uint16_t compression);
/* The table, for tests: the codec with this index, or NULL behind the last one. */
const struct tile_codec *codec_at(size_t index);
#endif
