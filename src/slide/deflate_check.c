/* deflate_check.c: see deflate_check.h. */
#include "slide/deflate_check.h"

#include <unistd.h>
#include <zlib.h>

#define PIECE_BYTES 32768

/* Reads the next piece of the stream. False at its end. */
static bool refill(int fd, uint64_t *offset, uint64_t *size, uint8_t *piece, z_stream *stream)
{
    size_t wanted = *size < PIECE_BYTES ? (size_t)*size : PIECE_BYTES;
    ssize_t n = wanted > 0 ? pread(fd, piece, wanted, (off_t)*offset) : 0;
    if (n <= 0)
        return false;
    stream->next_in = piece;
    stream->avail_in = (uInt)n;
    *offset += (uint64_t)n;
    *size -= (uint64_t)n;
    return true;
}

const char *deflate_check(int fd, uint64_t offset, uint64_t size, int64_t expected, bool longer)
{
    uint8_t in[PIECE_BYTES], out[PIECE_BYTES];
    z_stream stream = { 0 };
    int64_t done = 0;
    int code = inflateInit(&stream);
    if (code != Z_OK)
        return "out of memory";
    while (
        code == Z_OK && done <= expected &&
        (stream.avail_in > 0 || refill(fd, &offset, &size, in, &stream) || stream.avail_out == 0)) {
        stream.next_out = out;
        stream.avail_out = sizeof out;
        code = inflate(&stream, Z_NO_FLUSH);
        done += (int64_t)(sizeof out - stream.avail_out);
    }
    inflateEnd(&stream);
    if (done > expected)
        return longer ? NULL : "damaged deflate data: it has more than the strip";
    if (code == Z_OK || code == Z_BUF_ERROR)
        return "damaged deflate data: truncated";
    if (code != Z_STREAM_END)
        return "damaged deflate data: the stream is invalid or its checksum is wrong";
    return done == expected ? NULL : "damaged deflate data: it has less than the strip";
}
