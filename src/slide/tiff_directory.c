/* tiff_directory.c: see tiff_directory.h. */
#include "slide/tiff_directory.h"

#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include "base/divide.h"
#include "slide/codec.h"
#include "slide/tiff_pixels.h"

#define MAX_TILE_PX 4096                   /* a ring holds whole rows of tiles */
#define MAX_TILE_BYTES ((uint64_t)1 << 27) /* compressed; an absurd count is not allocated */

static const char *why_unfit(const struct tiff_directory *d)
{
    if (d->tile_width == 0)
        return "stored in strips, not in tiles";
    if (d->width < 1 || d->height < 1 || d->width > INT32_MAX || d->height > INT32_MAX)
        return "its size is out of range";
    if (d->tile_width > MAX_TILE_PX || d->tile_height > MAX_TILE_PX || d->tile_height < 1)
        return "its tiles are empty or larger than 4096 px";
    if (d->depth != 1)
        return "it has several planes in depth";
    if (!d->codec)
        return "the compression of its tiles is unknown";
    if (d->fill_order != FILLORDER_MSB2LSB && d->codec->gives == CODEC_SAMPLES)
        return "the bits of its bytes are reversed";
    const char *why = d->codec->why_unfit ? d->codec->why_unfit(d) : NULL;
    return why || d->codec->gives == CODEC_RGB ? why : tiff_pixels_why_unfit(d);
}

/* If a directory has more channels than its colour space, the first ones are decoded. */
static void count_channels(TIFF *tiff, struct tiff_directory *d)
{
    uint16_t n = 0, *kinds = NULL;
    int alpha = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &n, &kinds);
    for (uint16_t i = 0; kinds && i < n; i++) {
        bool associated = kinds[i] == EXTRASAMPLE_ASSOCALPHA;
        if (!associated && kinds[i] != EXTRASAMPLE_UNASSALPHA)
            continue;
        d->alpha = associated ? ALPHA_ASSOCIATED : ALPHA_UNASSOCIATED;
        alpha++;
    }
    int most = d->photometric == PHOTOMETRIC_SEPARATED    ? 4
               : d->photometric == PHOTOMETRIC_MINISBLACK ? 1
               : d->photometric == PHOTOMETRIC_MINISWHITE ? 1
               : d->photometric == PHOTOMETRIC_PALETTE    ? 1
                                                          : 3;
    d->channels = d->samples - alpha;
    d->shown = d->channels < most ? d->channels : most;
}

static bool copy_tables(TIFF *tiff, struct tiff_directory *d)
{
    void *tables = NULL;
    uint32_t size = 0;
    if (!TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &size, &tables) || size == 0)
        return true;
    d->tables = malloc(size);
    if (!d->tables)
        return false;
    memcpy(d->tables, tables, size);
    d->tables_size = size;
    return true;
}

/* 16-bit colours; some writers fill only 8 of the bits, which libtiff recognises in this way. */
static bool copy_palette(TIFF *tiff, struct tiff_directory *d)
{
    uint16_t *colours[3] = { NULL };
    bool wide = false;
    if (d->photometric != PHOTOMETRIC_PALETTE || d->bits > 8 ||
        !TIFFGetField(tiff, TIFFTAG_COLORMAP, &colours[0], &colours[1], &colours[2]))
        return true;
    d->palette = calloc(256, 3);
    if (!d->palette)
        return false;
    int n = 1 << d->bits;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < n; i++)
            wide = wide || colours[c][i] > 255;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < n; i++)
            d->palette[3 * i + c] = (uint8_t)(wide ? colours[c][i] >> 8 : colours[c][i]);
    return true;
}

/* Copies the positions of the tiles. Sets d->unfit if the file does not give them. */
static bool copy_places(TIFF *tiff, int64_t file_bytes, struct tiff_directory *d, struct err *err)
{
    uint64_t *offsets = NULL, *counts = NULL;
    int64_t n = d->columns * d->rows; /* both below 2^31 */
    int planes = d->planar ? d->samples : 1;
    if (n > file_bytes || n * planes != (int64_t)TIFFNumberOfTiles(tiff) ||
        !TIFFGetField(tiff, TIFFTAG_TILEOFFSETS, &offsets) ||
        !TIFFGetField(tiff, TIFFTAG_TILEBYTECOUNTS, &counts) || !offsets || !counts) {
        d->unfit = "its table of tiles is damaged";
        return true;
    }
    n *= planes;
    d->offsets = malloc((size_t)n * sizeof *d->offsets);
    d->sizes = malloc((size_t)n * sizeof *d->sizes);
    if (!d->offsets || !d->sizes)
        return err_memory(err, "a table of tiles");
    d->n_tiles = n;
    for (int64_t i = 0; i < n; i++) {
        bool inside = counts[i] <= MAX_TILE_BYTES && counts[i] <= (uint64_t)file_bytes &&
                      offsets[i] <= (uint64_t)file_bytes - counts[i];
        d->offsets[i] = inside ? offsets[i] : 0;
        d->sizes[i] = inside ? (uint32_t)counts[i] : 0;
        if (!inside && d->beyond < 0)
            d->beyond = i;
        d->n_absent += counts[i] == 0;
    }
    return true;
}

static void read_size(TIFF *tiff, struct tiff_directory *d)
{
    uint32_t width = 0, height = 0, tile_width = 0, tile_height = 0, kind = 0, depth = 1;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    if (TIFFIsTiled(tiff)) {
        TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &tile_width);
        TIFFGetField(tiff, TIFFTAG_TILELENGTH, &tile_height);
    }
    TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind);
    TIFFGetField(tiff, TIFFTAG_IMAGEDEPTH, &depth);
    d->width = width;
    d->height = height;
    d->tile_width = tile_width;
    d->tile_height = tile_height;
    d->reduced = (kind & FILETYPE_REDUCEDIMAGE) != 0;
    d->mask = (kind & FILETYPE_MASK) != 0;
    d->depth = (int)depth;
}

static void read_pixels(TIFF *tiff, struct tiff_directory *d)
{
    uint16_t bits = 0, samples = 1, planar = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &d->compression);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &d->sample_format);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_FILLORDER, &d->fill_order);
    if (!TIFFGetField(tiff, TIFFTAG_PREDICTOR, &d->predictor)) /* the compression may have none */
        d->predictor = PREDICTOR_NONE;
    if (!TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &d->photometric)) /* libtiff's guess */
        d->photometric = samples < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB;
    d->bits = bits;
    d->samples = samples;
    d->planar = planar != PLANARCONFIG_CONTIG && samples > 1;
    d->codec = codec_find(d->compression);
    d->row_bytes = ceil_div(d->tile_width * d->bits * (d->planar ? 1 : d->samples), 8);
    d->tile_bytes = d->row_bytes * d->tile_height;
    count_channels(tiff, d);
}

bool tiff_directory_read(struct tiff *tiff, int64_t file_bytes, bool swapped,
                         struct tiff_directory *out, struct err *err)
{
    struct tiff_directory *d = out;
    char why[1024] = "";
    *d = (struct tiff_directory){ .offset = TIFFCurrentDirOffset(tiff), .beyond = -1 };
    read_size(tiff, d);
    read_pixels(tiff, d);
    bool raw = d->codec && d->codec->gives == CODEC_SAMPLES;
    d->swapped = raw && swapped && d->bits == 16;
    d->predictor = raw ? d->predictor : PREDICTOR_NONE;
    if (!copy_palette(tiff, d))
        return err_memory(err, "a palette");
    d->unfit = why_unfit(d);
    if (d->tile_width < 1 || d->tile_height < 1 || d->width < 1 || d->height < 1)
        return true;
    d->columns = ceil_div(d->width, d->tile_width);
    d->rows = ceil_div(d->height, d->tile_height);
    if (!copy_tables(tiff, d))
        return err_memory(err, "JPEG tables");
    if (!copy_places(tiff, file_bytes, d, err))
        return false;
    d->by_libtiff = d->unfit && d->offsets && d->depth == 1 &&
                    d->sample_format == SAMPLEFORMAT_UINT &&
                    TIFFIsCODECConfigured(d->compression) && TIFFRGBAImageOK(tiff, why);
    return true;
}

void tiff_directory_free(struct tiff_directory *directory)
{
    free(directory->offsets);
    free(directory->sizes);
    free(directory->tables);
    free(directory->palette);
}

bool tiff_directory_absent(const struct tiff_directory *directory, int64_t column, int64_t row)
{
    int64_t a_plane = directory->columns * directory->rows;
    for (int64_t i = row * directory->columns + column; i < directory->n_tiles; i += a_plane)
        if (directory->sizes[i] == 0)
            return true;
    return false;
}

void tiff_directory_blank(const struct tiff_directory *directory, uint8_t *dst,
                          int64_t stride_bytes)
{
    for (int64_t y = 0; y < directory->tile_height; y++)
        memset(dst + y * stride_bytes, 255, (size_t)directory->tile_width * 3);
}
