/* codec_none.c: tiles that are not compressed. */
#include "slide/codec.h"

#include <string.h>
#include <tiff.h>
#include "slide/tiff_file.h"

static bool none_decode(void *state, const struct tiff_directory *directory, const uint8_t *bytes,
                        size_t size, uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    (void)state, (void)stride_bytes;
    size_t needed = (size_t)directory->tile_bytes;
    if (size < needed)
        return err_set(err, ERR_FORMAT, "damaged uncompressed tile: %zu bytes instead of %zu", size,
                       needed);
    memcpy(dst, bytes, needed);
    return true;
}

const struct tile_codec codec_none = {
    .name = "uncompressed",
    .compressions = { COMPRESSION_NONE },
    .gives = CODEC_SAMPLES,
    .decode = none_decode,
};
