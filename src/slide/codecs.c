/* codecs.c: the table of tile codecs. */
#include "slide/codec.h"

static const struct tile_codec *const codecs[] = {
    &codec_jpeg,    &codec_jp2k, &codec_webp,     &codec_lzw,
    &codec_deflate, &codec_zstd, &codec_packbits, &codec_none,
};

const struct tile_codec *codec_at(size_t index)
{
    return index < sizeof codecs / sizeof *codecs ? codecs[index] : NULL;
}

const struct tile_codec *codec_find(uint16_t compression)
{
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        for (const uint16_t *value = codecs[i]->compressions; *value; value++)
            if (*value == compression)
                return codecs[i];
    return NULL;
}
