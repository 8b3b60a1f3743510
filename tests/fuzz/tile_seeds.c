/* tile_seeds.c: see tile_seeds.h. */
#include "tests/fuzz/tile_seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiff.h>
#include "slide/codec.h"
#include "tests/unit/support/tile_encoder.h"

static const struct tile_kind kinds[] = {
    { COMPRESSION_NONE, 16, 16, 1, 8, .lossless = true },
    { COMPRESSION_LZW, 32, 16, 3, 8, .lossless = true },
    { COMPRESSION_PACKBITS, 16, 16, 3, 8, .lossless = true },
    { COMPRESSION_ADOBE_DEFLATE, 16, 32, 3, 16, .lossless = true },
    { COMPRESSION_ZSTD, 16, 16, 4, 8, .lossless = true },
    { COMPRESSION_WEBP, 16, 16, 4, 8, .lossless = true },
    { COMPRESSION_WEBP, 32, 16, 3, 8, .lossless = false },
    { COMPRESSION_JPEG, 16, 16, 3, 8, .lossless = false },
    { COMPRESSION_JPEG, 16, 16, 1, 8, .lossless = false },
    { TILE_JP2K_YCBCR, 32, 32, 3, 8, .lossless = true },
    { TILE_JP2K_LOSSY, 16, 16, 1, 16, .lossless = true },
    { TILE_JP2K_RGB, 16, 16, 3, 8, .lossless = true, .chroma_x = 2 },
    { TILE_JP2K, 16, 16, 4, 8, .boxes = true },
};

/* The first byte: the codec's index, and which of its compressions. */
static uint8_t choice(uint16_t compression)
{
    for (size_t i = 0; codec_at(i); i++)
        for (size_t j = 0; codec_at(i)->compressions[j]; j++)
            for (unsigned byte = 0; byte < 256; byte++) {
                size_t n = 0, n_values = 0;
                while (codec_at(n))
                    n++;
                while (codec_at(i)->compressions[n_values])
                    n_values++;
                if (codec_at(i)->compressions[j] == compression && byte % n == i &&
                    byte / 16 % n_values == j)
                    return (uint8_t)byte;
            }
    abort();
}

void tile_seeds_make(void (*write)(const char *target, const char *name, const void *bytes,
                                   size_t size))
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const struct tile_kind *kind = &kinds[k];
        uint16_t px[32 * 32 * 4]; /* of 8 or 16 bit */
        char name[32];
        size_t n = 0;
        for (size_t i = 0; i < sizeof px; i++)
            ((uint8_t *)px)[i] = (uint8_t)(i / 7 + i % 5);
        uint8_t *bytes = tile_encode(kind, px, &n);
        uint8_t head[6] = { choice(kind->compression),
                            (uint8_t)(kind->width / 16 - 1),
                            (uint8_t)(kind->height / 16 - 1),
                            (uint8_t)(kind->samples - 1),
                            kind->bits == 16,
                            0 };
        uint8_t *seed = malloc(sizeof head + n);
        if (!seed)
            abort();
        memcpy(seed, head, sizeof head);
        memcpy(seed + sizeof head, bytes, n);
        snprintf(name, sizeof name, "%u_%zu", kind->compression, k);
        write("fuzz_codecs", name, seed, sizeof head + n);
        free(seed);
        free(bytes);
    }
}
