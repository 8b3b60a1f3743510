/* codec_jp2k.c: JPEG 2000 tiles, codestreams or JP2 files, by OpenJPEG. Colours as in OpenSlide:
 * compression 33003 is YCbCr without a transform inside the codestream, 33005 is RGB. */
#include "slide/codec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openjpeg.h>
#include <tiff.h>
#include "base/divide.h"
#include "slide/jp2k_header.h"
#include "slide/tiff_file.h"

enum { JP2K_APERIO_YCBCR = 33003, JP2K_LOSSY = 33004, JP2K_APERIO_RGB = 33005, JP2K = 34712 };

struct memory {
    const uint8_t *bytes;
    size_t size, at;
};

static OPJ_SIZE_T memory_read(void *to, OPJ_SIZE_T n, void *arg)
{
    struct memory *memory = arg;
    size_t rest = memory->size - memory->at;
    if (rest == 0)
        return (OPJ_SIZE_T)-1; /* the end */
    n = n < rest ? n : rest;
    memcpy(to, memory->bytes + memory->at, n);
    memory->at += n;
    return n;
}

static OPJ_OFF_T memory_skip(OPJ_OFF_T n, void *arg)
{
    struct memory *memory = arg;
    size_t rest = memory->size - memory->at;
    if (n < 0 || (rest == 0 && n > 0))
        return -1;
    n = n < (OPJ_OFF_T)rest ? n : (OPJ_OFF_T)rest;
    memory->at += (size_t)n;
    return n;
}

static OPJ_BOOL memory_seek(OPJ_OFF_T at, void *arg)
{
    struct memory *memory = arg;
    if (at < 0 || at > (OPJ_OFF_T)memory->size)
        return OPJ_FALSE;
    memory->at = (size_t)at;
    return OPJ_TRUE;
}

#define MESSAGE 160

/* The first error is the cause. */
static void keep_message(const char *text, void *arg)
{
    char *message = arg;
    if (message[0])
        return;
    snprintf(message, MESSAGE, "%s", text);
    message[strcspn(message, "\r\n")] = 0;
}

static void ignore_message(const char *text, void *arg)
{
    (void)text, (void)arg;
}

static opj_stream_t *stream_new(struct memory *memory)
{
    opj_stream_t *stream = opj_stream_create(memory->size, OPJ_TRUE);
    if (!stream)
        return NULL;
    opj_stream_set_user_data(stream, memory, NULL);
    opj_stream_set_user_data_length(stream, memory->size);
    opj_stream_set_read_function(stream, memory_read);
    opj_stream_set_skip_function(stream, memory_skip);
    opj_stream_set_seek_function(stream, memory_seek);
    return stream;
}

/* The decoded image, or NULL with a message. Damaged data is an error, not grey. */
static opj_image_t *decode_image(const struct jp2k_header *header, int reduce,
                                 char message[MESSAGE])
{
    struct memory memory = { header->codestream, header->size, 0 };
    opj_image_t *image = NULL;
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    parameters.cp_reduce = (OPJ_UINT32)reduce;
    opj_codec_t *codec = opj_create_decompress(OPJ_CODEC_J2K);
    opj_stream_t *stream = stream_new(&memory);
    bool ok = codec && stream;
    if (codec) {
        opj_set_error_handler(codec, keep_message, message);
        opj_set_warning_handler(codec, ignore_message, NULL);
        opj_set_info_handler(codec, ignore_message, NULL);
    }
    ok =
        ok && opj_setup_decoder(codec, &parameters) && opj_decoder_set_strict_mode(codec, OPJ_TRUE);
    ok = ok && opj_read_header(stream, codec, &image) && opj_decode(codec, stream, image) &&
         opj_end_decompress(codec, stream);
    if (stream)
        opj_stream_destroy(stream);
    if (codec)
        opj_destroy_codec(codec);
    if (!ok) {
        opj_image_destroy(image);
        image = NULL;
    }
    return image;
}

/* 33004 is what libvips writes: it converts 8-bit RGB to YCbCr, and the tag still says RGB. */
static bool is_ycbcr(const struct tiff_directory *d, const struct jp2k_header *header)
{
    return header->n_components >= 3 &&
           (d->compression == JP2K_APERIO_YCBCR || header->sycc ||
            (d->compression == JP2K_LOSSY && header->n_components == 3 && d->bits == 8) ||
            (d->compression != JP2K_APERIO_RGB && d->photometric == PHOTOMETRIC_YCBCR));
}

/* What Cb and Cr add to red, green (in 1/65536) and blue: OpenSlide's numbers, rounded in the same
 * places. */
struct jp2k_state {
    int red_of_cr[256], green_of_cb[256], green_of_cr[256], blue_of_cb[256];
};

static bool jp2k_begin(const struct tiff_directory *directory, void **out, struct err *err)
{
    (void)directory;
    struct jp2k_state *state = malloc(sizeof *state);
    if (!state)
        return err_memory(err, "a JPEG 2000 decoder");
    for (int i = 0; i < 256; i++) {
        int chroma = i - 128;
        state->red_of_cr[i] = (91881 * chroma + 32768) >> 16; /* 1.40200 */
        state->green_of_cb[i] = (int)lround(-0.34414 * 65536 * chroma) + 32768;
        state->green_of_cr[i] = (int)lround(-0.71414 * 65536 * chroma);
        state->blue_of_cb[i] = (116130 * chroma + 32768) >> 16; /* 1.77200 */
    }
    *out = state;
    return true;
}

static uint8_t clamp(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One row, in place: 8 bit, `samples` a pixel. */
static void ycbcr_to_rgb(const struct jp2k_state *state, uint8_t *px, int64_t width, int samples)
{
    for (int64_t x = 0; x < width; x++, px += samples) {
        int y = px[0], cb = px[1], cr = px[2];
        px[0] = clamp(y + state->red_of_cr[cr]);
        px[1] = clamp(y + ((state->green_of_cb[cb] + state->green_of_cr[cr]) >> 16));
        px[2] = clamp(y + state->blue_of_cb[cb]);
    }
}

/* A component of the image to its place in each pixel of dst. */
static void spread(const opj_image_comp_t *component, int dx, int dy,
                   const struct tiff_directory *d, int sample, uint8_t *dst)
{
    for (int64_t y = 0; y < d->tile_height; y++) {
        const OPJ_INT32 *from = component->data + y / dy * component->w;
        uint8_t *row = dst + y * d->row_bytes;
        if (d->bits == 16) {
            for (int64_t x = 0; x < d->tile_width; x++)
                ((uint16_t *)(void *)row)[x * d->samples + sample] = (uint16_t)from[x / dx];
        } else if (dx == 1) {
            for (int64_t x = 0; x < d->tile_width; x++)
                row[x * d->samples + sample] = (uint8_t)from[x];
        } else {
            for (int64_t x = 0; x < d->tile_width; x++)
                row[x * d->samples + sample] = (uint8_t)from[x / dx];
        }
    }
}

/* Before OpenJPEG allocates anything. */
static bool check_header(const struct tiff_directory *d, const struct jp2k_header *header,
                         struct err *err)
{
    int64_t width = ceil_div(header->width, (int64_t)1 << d->reduce);
    int64_t height = ceil_div(header->height, (int64_t)1 << d->reduce);
    if (width != d->tile_width || height != d->tile_height)
        return err_set(err, ERR_FORMAT, "the image is %lld x %lld px, not the tile's %lld x %lld",
                       (long long)width, (long long)height, (long long)d->tile_width,
                       (long long)d->tile_height);
    if (header->n_components != d->samples)
        return err_set(err, ERR_FORMAT, "it has %d components, the directory says %d",
                       header->n_components, d->samples);
    if (d->reduce > header->n_halvings)
        return err_set(err, ERR_FORMAT, "it has %d reduced resolutions, other tiles have %d",
                       header->n_halvings, d->reduce);
    for (int i = 0; i < header->n_components; i++)
        if (header->bits[i] != d->bits)
            return err_set(err, ERR_FORMAT, "its samples have %d bits, the directory says %d",
                           header->bits[i], d->bits);
    if (is_ycbcr(d, header) && d->bits != 8)
        return err_set(err, ERR_FORMAT, "YCbCr of %d bits is not supported", d->bits);
    return true;
}

static bool check_image(const struct tiff_directory *d, const struct jp2k_header *header,
                        const opj_image_t *image, struct err *err)
{
    bool ok = image->numcomps == (OPJ_UINT32)d->samples;
    for (int i = 0; ok && i < d->samples; i++)
        ok = image->comps[i].data && image->comps[i].w == ceil_div(d->tile_width, header->dx[i]) &&
             image->comps[i].h == ceil_div(d->tile_height, header->dy[i]);
    return ok || err_set(err, ERR_FORMAT, "its components do not cover the tile");
}

static bool decode_tile(const struct jp2k_state *state, const struct tiff_directory *d,
                        const uint8_t *bytes, size_t size, uint8_t *dst, struct err *err)
{
    char message[MESSAGE] = "";
    struct jp2k_header header;
    if (!jp2k_header_read(bytes, size, &header, err) || !check_header(d, &header, err))
        return false;
    opj_image_t *image = decode_image(&header, d->reduce, message);
    if (!image)
        return err_set(err, ERR_FORMAT, "%s", message[0] ? message : "it cannot be decoded");
    bool ok = check_image(d, &header, image, err);
    for (int i = 0; ok && i < d->samples; i++)
        spread(&image->comps[i], header.dx[i], header.dy[i], d, i, dst);
    opj_image_destroy(image);
    for (int64_t y = 0; ok && is_ycbcr(d, &header) && y < d->tile_height; y++)
        ycbcr_to_rgb(state, dst + y * d->row_bytes, d->tile_width, d->samples);
    return ok;
}

static bool jp2k_decode(void *state, const struct tiff_directory *d, const uint8_t *bytes,
                        size_t size, uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    (void)stride_bytes;
    return decode_tile(state, d, bytes, size, dst, err) ||
           err_prefix(err, "damaged JPEG 2000 tile");
}

static int jp2k_halvings(const uint8_t *bytes, size_t size)
{
    struct jp2k_header header;
    return jp2k_header_read(bytes, size, &header, NULL) ? header.n_halvings : 0;
}

static const char *jp2k_unfit(const struct tiff_directory *d)
{
    if ((d->bits != 8 && d->bits != 16) || d->planar || d->depth != 1 ||
        d->samples > JP2K_MAX_COMPONENTS)
        return "its JPEG 2000 tiles are not 1 to 4 samples of 8 or 16 bit";
    return NULL;
}

const struct tile_codec codec_jp2k = {
    .name = "JPEG 2000",
    .compressions = { JP2K_APERIO_YCBCR, JP2K_LOSSY, JP2K_APERIO_RGB, JP2K },
    .gives = CODEC_COLOURS,
    .why_unfit = jp2k_unfit,
    .begin = jp2k_begin,
    .end = free,
    .decode = jp2k_decode,
    .halvings = jp2k_halvings,
};
