/* tile_encoder.c: see tile_encoder.h. libtiff writes a TIFF of one tile in memory and gives its
 * bytes; JPEG 2000, which it cannot write, is made by OpenJPEG. */
#include "tests/unit/support/tile_encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <openjpeg.h>
#include <tiffio.h>
#include "slide/codec.h"

#define MOST_BYTES ((size_t)1 << 24)

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "tile_encoder: %s\n", what);
    abort();
}

static bool is_jp2k(const struct tile_kind *kind)
{
    return kind->compression == TILE_JP2K_YCBCR || kind->compression == TILE_JP2K_RGB ||
           kind->compression == TILE_JP2K_LOSSY || kind->compression == TILE_JP2K;
}

struct tiff_directory tile_directory(const struct tile_kind *kind)
{
    struct tiff_directory d = { .width = kind->width,
                                .height = kind->height,
                                .tile_width = kind->width,
                                .tile_height = kind->height,
                                .columns = 1,
                                .rows = 1,
                                .samples = kind->samples,
                                .bits = kind->bits,
                                .depth = 1,
                                .compression = kind->compression,
                                .photometric =
                                    kind->samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK,
                                .predictor = PREDICTOR_NONE,
                                .codec = codec_find(kind->compression) };
    d.row_bytes = d.tile_width * d.samples * d.bits / 8;
    d.tile_bytes = d.row_bytes * d.tile_height;
    return d;
}

static uint8_t *encode_by_libtiff(const struct tile_kind *kind, const void *px, size_t *size)
{
    tiff_file_silence();
    int fd = memfd_create("tile", 0);
    TIFF *tiff = fd >= 0 ? TIFFFdOpen(fd, "tile", "w") : NULL;
    need(tiff, "no TIFF");
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, kind->width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, kind->height);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, kind->width);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, kind->height);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind->bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, kind->samples);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC,
                 kind->samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    if (kind->samples == 4) {
        uint16_t alpha = EXTRASAMPLE_UNASSALPHA;
        TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &alpha);
    }
    need(TIFFSetField(tiff, TIFFTAG_COMPRESSION, kind->compression), "compression not supported");
    if (kind->compression == COMPRESSION_JPEG)
        TIFFSetField(tiff, TIFFTAG_JPEGTABLESMODE, 0); /* all in the tile */
    if (kind->compression == COMPRESSION_WEBP)
        TIFFSetField(tiff, TIFFTAG_WEBP_LOSSLESS, kind->lossless);
    tmsize_t bytes = (tmsize_t)kind->width * kind->height * kind->samples * kind->bits / 8;
    void *copy = malloc((size_t)bytes); /* libtiff may change what it writes */
    need(copy, "memory");
    memcpy(copy, px, (size_t)bytes);
    int kept = dup(fd); /* for what TIFFClose closes */
    need(TIFFWriteEncodedTile(tiff, 0, copy, bytes) == bytes, "not written");
    free(copy);
    TIFFClose(tiff);
    lseek(kept, 0, SEEK_SET);
    tiff = TIFFFdOpen(kept, "tile", "r");
    need(tiff, "not written");
    *size = TIFFGetStrileByteCount(tiff, 0);
    uint8_t *out = malloc(*size); /* exactly: a sanitizer sees reads beyond it */
    need(out && TIFFReadRawTile(tiff, 0, out, (tmsize_t)*size) == (tmsize_t)*size, "not read back");
    TIFFClose(tiff);
    return out;
}

struct sink {
    uint8_t *bytes; /* [MOST_BYTES] */
    size_t size, at;
};

static OPJ_SIZE_T sink_write(void *from, OPJ_SIZE_T n, void *arg)
{
    struct sink *sink = arg;
    need(n <= MOST_BYTES - sink->at, "tile too large");
    memcpy(sink->bytes + sink->at, from, n);
    sink->at += n;
    sink->size = sink->at > sink->size ? sink->at : sink->size;
    return n;
}

static OPJ_BOOL sink_seek(OPJ_OFF_T at, void *arg)
{
    struct sink *sink = arg;
    need(at >= 0 && (size_t)at <= MOST_BYTES, "seek");
    sink->at = (size_t)at;
    return OPJ_TRUE;
}

static OPJ_OFF_T sink_skip(OPJ_OFF_T n, void *arg)
{
    return sink_seek((OPJ_OFF_T)((struct sink *)arg)->at + n, arg) ? n : -1;
}

static opj_image_t *jp2k_image(const struct tile_kind *kind, const void *px)
{
    opj_image_cmptparm_t parts[4];
    memset(parts, 0, sizeof parts);
    for (int c = 0; c < kind->samples; c++) {
        OPJ_UINT32 dx = (OPJ_UINT32)(kind->chroma_x && (c == 1 || c == 2) ? kind->chroma_x : 1);
        parts[c] = (opj_image_cmptparm_t){ .dx = dx,
                                           .dy = 1,
                                           .w = ((OPJ_UINT32)kind->width + dx - 1) / dx,
                                           .h = (OPJ_UINT32)kind->height,
                                           .prec = (OPJ_UINT32)kind->bits };
    }
    opj_image_t *image = opj_image_create((OPJ_UINT32)kind->samples, parts,
                                          kind->samples >= 3 ? OPJ_CLRSPC_SRGB : OPJ_CLRSPC_GRAY);
    need(image, "no image");
    image->x1 = (OPJ_UINT32)kind->width;
    image->y1 = (OPJ_UINT32)kind->height;
    for (int c = 0; c < kind->samples; c++)
        for (size_t i = 0, w = parts[c].w; i < w * parts[c].h; i++) {
            size_t at =
                (i / w * (size_t)kind->width + i % w * parts[c].dx) * (size_t)kind->samples +
                (size_t)c;
            image->comps[c].data[i] =
                kind->bits == 16 ? ((const uint16_t *)px)[at] : ((const uint8_t *)px)[at];
        }
    return image;
}

static uint8_t *encode_by_openjpeg(const struct tile_kind *kind, const void *px, size_t *size)
{
    opj_cparameters_t parameters;
    struct sink sink = { .bytes = malloc(MOST_BYTES) };
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    parameters.tcp_rates[0] = kind->lossless ? 0 : 8;
    parameters.cp_disto_alloc = 1;
    parameters.irreversible = !kind->lossless;
    parameters.tcp_mct = kind->samples >= 3 && !kind->no_transform && !kind->chroma_x;
    parameters.numresolution = kind->n_resolutions ? kind->n_resolutions : 3;
    opj_image_t *image = jp2k_image(kind, px);
    opj_codec_t *codec = opj_create_compress(kind->boxes ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    opj_stream_t *stream = opj_stream_create(1 << 16, OPJ_FALSE);
    need(sink.bytes && codec && stream, "memory");
    opj_stream_set_user_data(stream, &sink, NULL);
    opj_stream_set_write_function(stream, sink_write);
    opj_stream_set_seek_function(stream, sink_seek);
    opj_stream_set_skip_function(stream, sink_skip);
    need(opj_setup_encoder(codec, &parameters, image) && opj_start_compress(codec, image, stream) &&
             opj_encode(codec, stream) && opj_end_compress(codec, stream),
         "OpenJPEG failed");
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
    *size = sink.size;
    uint8_t *out = malloc(sink.size);
    need(out, "memory");
    memcpy(out, sink.bytes, sink.size);
    free(sink.bytes);
    return out;
}

uint8_t *tile_encode(const struct tile_kind *kind, const void *px, size_t *size)
{
    return is_jp2k(kind) ? encode_by_openjpeg(kind, px, size) : encode_by_libtiff(kind, px, size);
}
