/* tile_decoder.c: one tile of a TIFF -> RGB: its bytes are read, and its codec decodes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "slide/codec.h"
#include "slide/tiff_file.h"

struct tile_decoder {
    const struct tiff_file *file;
    const struct tiff_directory *directory;
    void *state; /* the codec's */
    uint8_t *bytes;
    size_t room;
};

static bool read_bytes(struct tile_decoder *decoder, uint64_t offset, size_t size, struct err *err)
{
    if (size > decoder->room) {
        free(decoder->bytes);
        decoder->room = 0;
        decoder->bytes = malloc(size + size / 4);
        if (!decoder->bytes)
            return err_memory(err, "a tile");
        decoder->room = size + size / 4;
    }
    for (size_t done = 0; done < size;) {
        ssize_t n =
            pread(decoder->file->fd, decoder->bytes + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_IO, "cannot read a tile: %s", strerror(errno));
        if (n == 0)
            return err_set(err, ERR_FORMAT, "the file ends inside a tile (truncated?)");
        done += (size_t)n;
    }
    return true;
}

bool tile_decode(struct tile_decoder *decoder, int64_t column, int64_t row, uint8_t *dst,
                 int64_t stride_bytes, struct err *err)
{
    const struct tiff_directory *d = decoder->directory;
    int64_t i = row * d->columns + column;
    if (d->sizes[i] == 0) {
        for (int64_t y = 0; y < d->tile_height; y++)
            memset(dst + y * stride_bytes, 255, (size_t)d->tile_width * 3);
        return true;
    }
    if (!read_bytes(decoder, d->offsets[i], d->sizes[i], err))
        return false;
    return d->codec->decode(decoder->state, d, decoder->bytes, d->sizes[i], dst, stride_bytes, err);
}

bool tile_decoder_new(const struct tiff_file *file, const struct tiff_directory *directory,
                      struct tile_decoder **out, struct err *err)
{
    struct tile_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return err_memory(err, "a tile decoder");
    decoder->file = file;
    decoder->directory = directory;
    if (directory->codec->begin && !directory->codec->begin(directory, &decoder->state, err)) {
        free(decoder);
        return false;
    }
    *out = decoder;
    return true;
}

void tile_decoder_free(struct tile_decoder *decoder)
{
    if (!decoder)
        return;
    if (decoder->directory->codec->end)
        decoder->directory->codec->end(decoder->state);
    free(decoder->bytes);
    free(decoder);
}
