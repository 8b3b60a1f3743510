/* tile_decoder.c: one tile of a TIFF -> RGB: its bytes are read, and its codec decodes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tiff.h>
#include "slide/codec.h"
#include "slide/tiff_file.h"

struct tile_decoder {
    const struct tiff_file *file;
    const struct tiff_directory *directory;
    void *state; /* the codec's */
    uint8_t *bytes;
    size_t room;
    uint8_t *samples; /* decoded, if the codec does not give RGB; else NULL */
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

const char *tile_decoder_why_unfit(const struct tiff_directory *d)
{
    if (d->codec->gives == CODEC_RGB)
        return NULL;
    if (d->bits != 8 || d->samples != 3 || d->planar || d->depth != 1)
        return "its pixels are not 3 x 8 bit";
    if (d->photometric != PHOTOMETRIC_RGB &&
        !(d->codec->gives == CODEC_COLOURS && d->photometric == PHOTOMETRIC_YCBCR))
        return "its colours are not RGB";
    if (d->predictor != PREDICTOR_NONE && d->predictor != PREDICTOR_HORIZONTAL)
        return "its predictor is unknown";
    return NULL;
}

/* Each sample of a row is stored as its difference to the same one of the pixel before. */
static void add_up_rgb(uint8_t *px, int64_t width)
{
    uint8_t red = 0, green = 0, blue = 0;
    for (int64_t x = 0; x < width; x++, px += 3) {
        px[0] = red = (uint8_t)(red + px[0]);
        px[1] = green = (uint8_t)(green + px[1]);
        px[2] = blue = (uint8_t)(blue + px[2]);
    }
}

static bool decode_samples(struct tile_decoder *decoder, size_t size, uint8_t *dst,
                           int64_t stride_bytes, struct err *err)
{
    const struct tiff_directory *d = decoder->directory;
    if (!d->codec->decode(decoder->state, d, decoder->bytes, size, decoder->samples, 0, err))
        return false;
    for (int64_t y = 0; y < d->tile_height; y++) {
        uint8_t *row = dst + y * stride_bytes;
        memcpy(row, decoder->samples + y * 3 * d->tile_width, (size_t)(3 * d->tile_width));
        if (d->codec->gives == CODEC_SAMPLES && d->predictor == PREDICTOR_HORIZONTAL)
            add_up_rgb(row, d->tile_width);
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
    if (decoder->samples)
        return decode_samples(decoder, d->sizes[i], dst, stride_bytes, err);
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
    if (directory->codec->gives != CODEC_RGB) {
        decoder->samples = malloc((size_t)directory->tile_bytes);
        if (!decoder->samples) {
            free(decoder);
            return err_memory(err, "a tile");
        }
    }
    if (directory->codec->begin && !directory->codec->begin(directory, &decoder->state, err)) {
        free(decoder->samples);
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
    free(decoder->samples);
    free(decoder);
}
