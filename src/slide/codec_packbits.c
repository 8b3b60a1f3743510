/* codec_packbits.c: PackBits tiles: runs of one byte, and bytes as they are. */
#include "slide/codec.h"

#include <string.h>
#include <tiff.h>
#include "slide/tiff_file.h"

static bool packbits_decode(void *state, const struct tiff_directory *directory,
                            const uint8_t *bytes, size_t size, uint8_t *dst, int64_t stride_bytes,
                            struct err *err)
{
    (void)state, (void)stride_bytes;
    size_t room = (size_t)directory->tile_bytes, done = 0, at = 0;
    while (done < room && at < size) {
        uint8_t head = bytes[at++];
        if (head == 128) /* means nothing */
            continue;
        bool run = head > 128;
        size_t n = run ? 257u - head : head + 1u;
        if ((run ? 1 : n) > size - at)
            break;
        if (n > room - done)
            return err_set(err, ERR_FORMAT,
                           "damaged PackBits tile: it has more than the tile's %zu bytes", room);
        if (run)
            memset(dst + done, bytes[at], n);
        else
            memcpy(dst + done, bytes + at, n);
        at += run ? 1 : n;
        done += n;
    }
    return done == room ||
           err_set(err, ERR_FORMAT, "damaged PackBits tile: truncated after %zu of %zu bytes", done,
                   room);
}

const struct tile_codec codec_packbits = {
    .name = "PackBits",
    .compressions = { COMPRESSION_PACKBITS },
    .gives = CODEC_SAMPLES,
    .decode = packbits_decode,
};
