/* codec_lzw.c: LZW tiles, as TIFF 6.0 defines them: codes of 9 to 12 bits, the most significant bit
 * first, one code early. A string of the table is what was decoded before plus one byte, which
 * follows it in the output: so an entry is a place in the output and a length, and a code is
 * decoded by one copy. */
#include "slide/codec.h"

#include <stdlib.h>
#include <string.h>
#include <tiff.h>
#include "slide/tiff_file.h"

enum {
    CODE_CLEAR = 256,
    CODE_END = 257,
    CODE_FIRST = 258,
    BITS_MIN = 9,
    BITS_MAX = 12,
    N_CODES = 1 << BITS_MAX,
    STEP = 16, /* bytes that are copied at a time */
};

struct lzw_state {
    const uint8_t *from[N_CODES + 1]; /* the last one is never used */
    uint16_t lengths[N_CODES + 1];
    uint8_t bytes[256 + STEP]; /* the strings of codes below 256 */
};

/* The next bits of the tile, the first of them the most significant. */
struct bits {
    uint64_t held;
    int n; /* valid bits in held */
    const uint8_t *at, *end;
};

static inline void refill(struct bits *bits)
{
    if (bits->end - bits->at >= 8) { /* at once: 56 bits or more */
        uint64_t word;
        memcpy(&word, bits->at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        bits->held |= word >> bits->n;
        int bytes = (63 - bits->n) >> 3;
        bits->at += bytes;
        bits->n += 8 * bytes;
        return;
    }
    for (; bits->n <= 56 && bits->at < bits->end; bits->n += 8)
        bits->held |= (uint64_t)*bits->at++ << (56 - bits->n);
}

static inline unsigned take(struct bits *bits, int width)
{
    unsigned code = (unsigned)(bits->held >> (64 - width));
    bits->held <<= width;
    bits->n -= width;
    return code;
}

/* Copies a string to dst, which has `room` bytes. Whole steps are copied where there is room for
 * them: what is written too much is overwritten later. */
static inline void copy_string(uint8_t *dst, const uint8_t *from, size_t length, size_t room)
{
    if (room < length + STEP) {
        for (size_t i = 0; i < length; i++) /* forwards: it may reach into what it writes */
            dst[i] = from[i];
        return;
    }
    uint8_t step[STEP]; /* a register: what is read too much may overlap dst */
    size_t i = 0;
    do {
        memcpy(step, from + i, STEP);
        memcpy(dst + i, step, STEP);
        i += STEP;
    } while (i < length);
}

static bool lzw_damaged(struct err *err, const char *what, size_t done, size_t room)
{
    return err_set(err, ERR_FORMAT, "damaged LZW tile: %s after %zu of %zu bytes", what, done,
                   room);
}

static bool lzw_decode(void *arg, const struct tiff_directory *directory, const uint8_t *bytes,
                       size_t size, uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    (void)stride_bytes;
    struct lzw_state *state = arg;
    struct bits bits = { .at = bytes, .end = bytes + size };
    size_t room = (size_t)directory->tile_bytes, done = 0;
    unsigned next = CODE_FIRST - 1; /* the entry that the next code completes */
    int width = BITS_MIN;
    if (size >= 2 && bytes[0] == 0 && (bytes[1] & 1))
        return err_set(err, ERR_FORMAT,
                       "the tile is LZW in the form of before TIFF 6.0 (least significant bit "
                       "first): convert the slide");
    while (done < room) {
        if (bits.n < width) {
            refill(&bits);
            if (bits.n < width)
                return lzw_damaged(err, "truncated", done, room);
        }
        unsigned code = take(&bits, width);
        if (code == CODE_CLEAR) {
            next = CODE_FIRST - 1;
            width = BITS_MIN;
            continue;
        }
        if (code == CODE_END)
            return lzw_damaged(err, "the stream ends", done, room);
        if (code > next)
            return lzw_damaged(err, "invalid code", done, room);
        size_t length = state->lengths[code];
        if (length > room - done)
            return lzw_damaged(err, "the stream has more than the tile", done, room);
        copy_string(dst + done, state->from[code], length, room - done);
        if (code == next) /* its last byte is its own first one */
            dst[done + length - 1] = dst[done];
        next += next < N_CODES;
        state->from[next] = dst + done;
        state->lengths[next] = (uint16_t)(length + 1);
        done += length;
        if (next == (1u << width) - 1 && width < BITS_MAX)
            width++;
    }
    return true;
}

static bool lzw_begin(const struct tiff_directory *directory, void **out, struct err *err)
{
    (void)directory;
    struct lzw_state *state = malloc(sizeof *state);
    if (!state)
        return err_memory(err, "an LZW decoder");
    for (int i = 0; i < 256; i++) {
        state->bytes[i] = (uint8_t)i;
        state->from[i] = state->bytes + i;
        state->lengths[i] = 1;
    }
    memset(state->bytes + 256, 0, STEP);
    *out = state;
    return true;
}

const struct tile_codec codec_lzw = {
    .name = "LZW",
    .compressions = { COMPRESSION_LZW },
    .gives = CODEC_SAMPLES,
    .begin = lzw_begin,
    .end = free,
    .decode = lzw_decode,
};
