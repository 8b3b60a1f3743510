/* source.h: one level of a slide as a grid of tiles that are decoded one by one. The reader behind
 * it (our own TIFF reader, OpenSlide) is a table of functions, so band.c does not depend on
 * formats. */
#ifndef SLIDE_SOURCE_H
#define SLIDE_SOURCE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct slide;
struct tile_source;

struct tile_source_ops {
    /* Per-thread state for decoding tiles of this source; free with decoder_free. */
    bool (*decoder_new)(const struct tile_source *source, void **out, struct err *err);
    void (*decoder_free)(void *decoder); /* NULL-safe */
    /* Decodes one whole tile to dst [tile_height, tile_width, 3], rows stride_bytes apart. Pixels
     * beyond the slide's edge in the last column and row are undefined. The error gives the
     * position. Thread-safe with one decoder per thread. */
    bool (*decode)(const struct tile_source *source, void *decoder, int64_t column, int64_t row,
                   uint8_t *dst, int64_t stride_bytes, struct err *err);
};

struct tile_source {
    const struct tile_source_ops *ops;
    struct slide *slide; /* not owned */
    int level;
    int64_t width, height; /* of the level, pixels */
    int64_t tile_width, tile_height;
    const void *of; /* what the driver decodes from: a TIFF directory */
    int max_reduce; /* how many times tiles can be halved while they are decoded */
    int reduce;     /* how many times they are: width, height and tiles are as small then */
};

/* The source of a level, as its driver chose it; of level -1 - N, the low level of level N, after
 * slide_make_low (low_level.h). */
struct tile_source slide_source(struct slide *slide, int level);

/* The source with tiles decoded at 1/2^reduce of their size, at most source->max_reduce. The pixels
 * are those of the codec (JPEG 2000: its wavelets), not exact means: for overviews. */
struct tile_source source_reduced(const struct tile_source *source, int reduce);
bool slide_make_low(struct slide *slide, int level, const struct ctx *ctx, struct err *err);
#endif
