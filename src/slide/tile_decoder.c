/* tile_decoder.c: one tile of a TIFF -> RGB: its bytes are read, its codec decodes them, and
 * samples become colours (tiff_pixels.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/divide.h"
#include "slide/codec.h"
#include "slide/tiff_file.h"
#include "slide/tiff_pixels.h"

struct tile_decoder {
    const struct tiff_file *file;
    const struct tiff_directory *directory; /* the file's, or the one below */
    struct tiff_directory reduced;
    void *state; /* the codec's */
    uint8_t *bytes;
    size_t room;
    uint8_t *samples; /* [planes, tile_height, row_bytes]; NULL if the codec gives RGB */
    uint8_t *scratch; /* a row, 8 bits a sample */
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

static bool decode_samples(struct tile_decoder *decoder, int64_t tile, struct err *err)
{
    const struct tiff_directory *d = decoder->directory;
    uint8_t *to = decoder->samples;
    for (int64_t i = tile; i < d->n_tiles; i += d->columns * d->rows, to += d->tile_bytes)
        if (!read_bytes(decoder, d->offsets[i], d->sizes[i], err) ||
            !d->codec->decode(decoder->state, d, decoder->bytes, d->sizes[i], to, d->row_bytes,
                              err))
            return false;
    return true;
}

bool tile_decode(struct tile_decoder *decoder, int64_t column, int64_t row, uint8_t *dst,
                 int64_t stride_bytes, struct err *err)
{
    const struct tiff_directory *d = decoder->directory;
    int64_t i = row * d->columns + column;
    if (tiff_directory_absent(d, column, row)) {
        tiff_directory_blank(d, dst, stride_bytes);
        return true;
    }
    if (d->codec->gives == CODEC_RGB)
        return read_bytes(decoder, d->offsets[i], d->sizes[i], err) &&
               d->codec->decode(decoder->state, d, decoder->bytes, d->sizes[i], dst, stride_bytes,
                                err);
    if (!decode_samples(decoder, i, err))
        return false;
    tiff_pixels_convert(d, decoder->samples, decoder->scratch, dst, stride_bytes);
    return true;
}

/* The same tiles, each side divided by 2^reduce. */
static struct tiff_directory reduce_directory(const struct tiff_directory *d, int reduce)
{
    struct tiff_directory out = *d;
    int64_t factor = (int64_t)1 << reduce;
    out.reduce = reduce;
    out.width = ceil_div(d->width, factor);
    out.height = ceil_div(d->height, factor);
    out.tile_width = d->tile_width / factor;
    out.tile_height = d->tile_height / factor;
    out.row_bytes = d->row_bytes / factor; /* of a codec with 8 or 16 bits a sample */
    out.tile_bytes = out.row_bytes * out.tile_height;
    return out;
}

int tile_decoder_max_reduce(const struct tiff_file *file, const struct tiff_directory *d)
{
    struct tile_decoder decoder = { .file = file };
    int most = 0;
    int64_t i = 0;
    if (!d->codec->halvings)
        return 0;
    while (i < d->n_tiles && d->sizes[i] == 0)
        i++;
    if (i < d->n_tiles && read_bytes(&decoder, d->offsets[i], d->sizes[i], NULL))
        most = d->codec->halvings(decoder.bytes, d->sizes[i]);
    free(decoder.bytes);
    while (most > 0 && (d->tile_width % (1 << most) || d->tile_height % (1 << most)))
        most--;
    return most;
}

bool tile_decoder_new(const struct tiff_file *file, const struct tiff_directory *directory,
                      int reduce, struct tile_decoder **out, struct err *err)
{
    const struct tile_codec *codec = directory->codec;
    struct tile_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return err_memory(err, "a tile decoder");
    decoder->file = file;
    decoder->directory = directory;
    if (reduce > 0) {
        decoder->reduced = reduce_directory(directory, reduce);
        decoder->directory = directory = &decoder->reduced;
    }
    bool ok = !codec->begin || codec->begin(directory, &decoder->state, err);
    if (ok && codec->gives != CODEC_RGB) {
        int planes = directory->planar ? directory->samples : 1;
        decoder->samples = malloc((size_t)(directory->tile_bytes * planes));
        decoder->scratch = malloc((size_t)(directory->tile_width * directory->samples));
        ok = (decoder->samples && decoder->scratch) || err_memory(err, "a tile decoder");
    }
    if (ok)
        *out = decoder;
    else
        tile_decoder_free(decoder);
    return ok;
}

void tile_decoder_free(struct tile_decoder *decoder)
{
    if (!decoder)
        return;
    if (decoder->directory->codec->end)
        decoder->directory->codec->end(decoder->state);
    free(decoder->bytes);
    free(decoder->samples);
    free(decoder->scratch);
    free(decoder);
}
