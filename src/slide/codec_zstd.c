/* codec_zstd.c: Zstandard tiles, one frame each, by libzstd. */
#include "slide/codec.h"

#include <tiff.h>
#include <zstd.h>
#include "slide/tiff_file.h"

static bool zstd_begin(const struct tiff_directory *directory, void **state, struct err *err)
{
    (void)directory;
    *state = ZSTD_createDCtx();
    return *state || err_memory(err, "a Zstandard decoder");
}

static void zstd_end(void *state)
{
    ZSTD_freeDCtx(state);
}

/* The whole frame goes straight to dst, so its window, however large it claims to be, is not
 * allocated. */
static bool zstd_decode(void *state, const struct tiff_directory *directory, const uint8_t *bytes,
                        size_t size, uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    (void)stride_bytes;
    size_t room = (size_t)directory->tile_bytes;
    size_t frame = ZSTD_findFrameCompressedSize(bytes, size); /* padding may follow it */
    size_t done = ZSTD_isError(frame) ? frame : ZSTD_decompressDCtx(state, dst, room, bytes, frame);
    if (ZSTD_isError(done))
        return err_set(err, ERR_FORMAT, "damaged Zstandard tile: %s", ZSTD_getErrorName(done));
    return done == room ||
           err_set(err, ERR_FORMAT, "damaged Zstandard tile: truncated after %zu of %zu bytes",
                   done, room);
}

const struct tile_codec codec_zstd = {
    .name = "Zstandard",
    .compressions = { COMPRESSION_ZSTD },
    .gives = CODEC_SAMPLES,
    .begin = zstd_begin,
    .end = zstd_end,
    .decode = zstd_decode,
};
