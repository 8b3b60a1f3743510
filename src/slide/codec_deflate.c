/* codec_deflate.c: deflate tiles (zlib streams, the checksum verified), by libdeflate. */
#include "slide/codec.h"

#include <libdeflate.h>
#include <tiff.h>
#include "slide/tiff_file.h"

static bool deflate_begin(const struct tiff_directory *directory, void **state, struct err *err)
{
    (void)directory;
    *state = libdeflate_alloc_decompressor();
    return *state || err_memory(err, "a deflate decoder");
}

static void deflate_end(void *state)
{
    libdeflate_free_decompressor(state);
}

static bool deflate_decode(void *state, const struct tiff_directory *directory,
                           const uint8_t *bytes, size_t size, uint8_t *dst, int64_t stride_bytes,
                           struct err *err)
{
    (void)stride_bytes;
    size_t room = (size_t)directory->tile_bytes, done = 0;
    enum libdeflate_result result =
        libdeflate_zlib_decompress(state, bytes, size, dst, room, &done);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
        return err_set(err, ERR_FORMAT,
                       "damaged deflate tile: it has more than the tile's %zu bytes", room);
    if (result != LIBDEFLATE_SUCCESS)
        return err_set(err, ERR_FORMAT,
                       "damaged deflate tile: the stream is invalid, truncated or its checksum is "
                       "wrong");
    return done == room ||
           err_set(err, ERR_FORMAT, "damaged deflate tile: truncated after %zu of %zu bytes", done,
                   room);
}

const struct tile_codec codec_deflate = {
    .name = "deflate",
    .compressions = { COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE },
    .gives = CODEC_SAMPLES,
    .begin = deflate_begin,
    .end = deflate_end,
    .decode = deflate_decode,
};
