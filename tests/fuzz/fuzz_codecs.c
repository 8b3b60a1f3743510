/* fuzz_codecs.c: any bytes as a tile of any codec, in a directory of any shape. The first six bytes
 * choose codec, width and height in steps of 16, samples, bits and reduction; the rest is the tile.
 * What a codec takes it fills completely; what it refuses it names. With libFuzzer,
 * -malloc_limit_mb=64 checks that no header makes it allocate more than such a tile can need. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <tiff.h>
#include "base/divide.h"
#include "slide/codec.h"
#include "slide/tiff_file.h"

#define HEAD 6
#define MOST_STEPS 8

static size_t count_codecs(void)
{
    size_t n = 0;
    while (codec_at(n))
        n++;
    return n;
}

static struct tiff_directory directory_of(const uint8_t head[HEAD])
{
    const struct tile_codec *codec = codec_at(head[0] % count_codecs());
    int n_values = 0;
    while (codec->compressions[n_values])
        n_values++;
    struct tiff_directory d = { .codec = codec,
                                .compression = codec->compressions[head[0] / 16 % n_values],
                                .tile_width = 16 * (1 + head[1] % MOST_STEPS),
                                .tile_height = 16 * (1 + head[2] % MOST_STEPS),
                                .columns = 1,
                                .rows = 1,
                                .samples = 1 + head[3] % 4,
                                .planar = head[3] & 128,
                                .photometric = head[3] % 4 < 2 ? PHOTOMETRIC_MINISBLACK
                                               : head[3] & 64  ? PHOTOMETRIC_YCBCR
                                                               : PHOTOMETRIC_RGB,
                                .bits = head[4] % 2 ? 16 : 8,
                                .depth = 1,
                                .predictor = PREDICTOR_NONE,
                                .reduce = codec == &codec_jp2k ? head[5] % 4 : 0 };
    d.width = d.tile_width;
    d.height = d.tile_height;
    d.row_bytes = ceil_div(d.tile_width * d.bits * (d.planar ? 1 : d.samples), 8);
    d.tile_bytes = d.row_bytes * d.tile_height;
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return 0;
    struct tiff_directory d = directory_of(data);
    struct err err = { .kind = ERR_NONE };
    void *state = NULL;
    if (d.codec->why_unfit && d.codec->why_unfit(&d))
        return 0;
    if (d.codec->begin && !d.codec->begin(&d, &state, &err))
        return 0;
    int64_t stride = d.codec->gives == CODEC_RGB ? 3 * d.tile_width : d.row_bytes;
    uint8_t *px = malloc((size_t)(stride * d.tile_height));
    uint8_t *bytes = malloc(size - HEAD + 1); /* exactly the tile, for the sanitizers */
    if (!px || !bytes)
        abort();
    memcpy(bytes, data + HEAD, size - HEAD);
    for (int again = 0; again < 2; again++) { /* the state survives what it was given */
        bool ok = d.codec->decode(state, &d, bytes, size - HEAD, px, stride, &err);
        fuzz_taken += ok;
        if (!ok && (err.kind == ERR_NONE || !err.text[0]))
            abort(); /* refused without a word */
    }
    if (d.codec->end)
        d.codec->end(state);
    free(bytes);
    free(px);
    return 0;
}
