/* image_strips.c: TIFF files that are stored in strips, row by row, with libtiff (image_rows.h).
 * Samples in planes are read through one handle per plane, so that each is read from the top. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include "slide/deflate_check.h"
#include "slide/image_rows.h"
#include "slide/tiff_family.h"
#include "slide/tiff_file.h"

#define MOST_STRIP_BYTES (UINT64_C(256) << 20) /* compressed: libtiff reads one as a whole */
#define MOST_GROWTH 65536.0                    /* pixels of one byte, in any compression */
#define MOST_SAMPLES 4
#define MOST_PAGES 128

struct strip_rows {
    char text[TIFF_FILE_TEXT];
    TIFF *planes[MOST_SAMPLES]; /* one, unless the samples are in planes */
    int n_planes;
    int64_t width, height, next;
    int64_t row_bytes, rows_a_strip; /* of a plane, as stored */
    int samples, bits;               /* of a pixel; of a sample */
    uint16_t photometric, compression;
    bool premultiplied;
    uint8_t palette[256][3];
    uint8_t *raw; /* a row of one plane, as stored */
    uint8_t *row; /* [width, samples], 8 bits */
};

bool image_strips_are_all(const char *path)
{
    TIFF *tiff = tiff_file_handle(path, NULL);
    bool all = tiff != NULL;
    for (int i = 0; all && i < MOST_PAGES; i++) {
        all = !TIFFIsTiled(tiff);
        if (!all || !TIFFReadDirectory(tiff))
            break;
    }
    if (tiff)
        TIFFClose(tiff);
    return all;
}

static void strip_rows_close(void *reader)
{
    struct strip_rows *r = reader;
    if (!r)
        return;
    for (int i = 0; i < MOST_SAMPLES; i++)
        if (r->planes[i])
            TIFFClose(r->planes[i]);
    free(r->raw);
    free(r->row);
    free(r);
}

static uint16_t short_tag(TIFF *tiff, uint32_t tag)
{
    uint16_t value = 0;
    TIFFGetFieldDefaulted(tiff, tag, &value);
    return value;
}

/* Pages as large as the first that are not reduced images or masks, which only the first of would
 * be read; a channel or a focus plane each. */
static bool check_pages(TIFF *tiff, const struct strip_rows *r, const char *path, struct err *err)
{
    int pages = 1;
    for (int i = 1; i < MOST_PAGES && TIFFReadDirectory(tiff); i++) {
        uint32_t width = 0, height = 0, kind = 0;
        TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
        TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
        TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind);
        pages += width == r->width && height == r->height &&
                 !(kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK));
    }
    if (pages > 1)
        return err_set(err, ERR_FORMAT,
                       "%s: has %d full-size pages (a channel or a focus plane each), of which "
                       "only the first would be read; convert it to a single RGB page",
                       path, pages);
    return TIFFSetDirectory(tiff, 0) ||
           err_set(err, ERR_FORMAT, "%s: its first page cannot be read: %s", path, r->text);
}

/* What is not supported, or NULL. */
static const char *why_unfit(TIFF *tiff, const struct strip_rows *r)
{
    uint16_t format = short_tag(tiff, TIFFTAG_SAMPLEFORMAT);
    if (r->bits != 8 && r->bits != 16)
        return "does not have 8 or 16 bits per sample";
    if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID)
        return "has signed or floating-point samples";
    if (!TIFFIsCODECConfigured(r->compression) || r->compression == COMPRESSION_OJPEG)
        return "has a compression that libtiff cannot decode in strips";
    if (r->photometric == PHOTOMETRIC_PALETTE && r->bits != 8)
        return "has a palette of more than 256 colours";
    if (r->photometric == PHOTOMETRIC_YCBCR && r->compression != COMPRESSION_JPEG)
        return "has YCbCr colours without JPEG compression";
    if (r->photometric == PHOTOMETRIC_SEPARATED)
        return "has CMYK colours, made for printing";
    if (r->photometric > PHOTOMETRIC_PALETTE && r->photometric != PHOTOMETRIC_YCBCR)
        return "has colours that are neither grey, RGB, a palette nor YCbCr";
    return NULL;
}

/* Channels that would be ignored are an error; alpha is the last sample. */
static bool check_samples(TIFF *tiff, struct strip_rows *r, const char *path, struct err *err)
{
    uint16_t n_extra = 0, *kinds = NULL;
    bool colour = r->photometric == PHOTOMETRIC_RGB || r->photometric == PHOTOMETRIC_YCBCR;
    int shown = colour ? 3 : 1;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &n_extra, &kinds);
    bool alpha = n_extra == 1 && kinds && kinds[0] != EXTRASAMPLE_UNSPECIFIED &&
                 r->photometric != PHOTOMETRIC_PALETTE && r->photometric != PHOTOMETRIC_MINISWHITE;
    if (r->samples != shown + (alpha ? 1 : 0))
        return err_set(err, ERR_FORMAT,
                       "%s: has %d channels, of which only %d would be read; convert it to RGB",
                       path, r->samples - (alpha ? 1 : 0), shown);
    r->premultiplied = alpha && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
    return true;
}

static bool read_palette(TIFF *tiff, struct strip_rows *r, const char *path, struct err *err)
{
    uint16_t *colours[3] = { 0 };
    if (r->photometric != PHOTOMETRIC_PALETTE)
        return true;
    if (!TIFFGetField(tiff, TIFFTAG_COLORMAP, &colours[0], &colours[1], &colours[2]))
        return err_set(err, ERR_FORMAT, "%s: has a palette without colours", path);
    bool bytes = true; /* written by programs that store 8-bit values */
    for (int i = 0; i < 256; i++)
        bytes = bytes && colours[0][i] < 256 && colours[1][i] < 256 && colours[2][i] < 256;
    for (int i = 0; i < 256; i++)
        for (int c = 0; c < 3; c++)
            r->palette[i][c] = (uint8_t)(bytes ? colours[c][i] : colours[c][i] >> 8);
    return true;
}

/* ImageJ writes pixels per unit, and the unit in its description. */
static bool in_microns(const char *text)
{
    return strncmp(text, "ImageJ=", 7) == 0 &&
           (strstr(text, "\nunit=micron\n") || strstr(text, "\nunit=um\n") ||
            strstr(text, "\nunit=\\u00B5m\n") || strstr(text, "\nunit=\xc2\xb5m\n"));
}

static void read_resolution(TIFF *tiff, struct image_facts *facts)
{
    float x = 0, y = 0;
    char *text = NULL;
    uint16_t unit = short_tag(tiff, TIFFTAG_RESOLUTIONUNIT);
    if (!TIFFGetField(tiff, TIFFTAG_IMAGEDESCRIPTION, &text) || !text)
        text = "";
    facts->mpp_source = MPP_VENDOR;
    if (tiff_ome_mpp(text, &facts->mpp_x, &facts->mpp_y))
        return;
    facts->mpp_source = MPP_TIFF_TAGS;
    if (!TIFFGetField(tiff, TIFFTAG_XRESOLUTION, &x) ||
        !TIFFGetField(tiff, TIFFTAG_YRESOLUTION, &y) || !(x > 0) || !(y > 0))
        return;
    double um = in_microns(text)             ? 1
                : unit == RESUNIT_CENTIMETER ? 10000
                : unit == RESUNIT_INCH       ? 25400
                                             : 0;
    facts->mpp_x = image_plausible_mpp(um / (double)x);
    facts->mpp_y = image_plausible_mpp(um / (double)y);
}

static bool check_strips(TIFF *tiff, const struct strip_rows *r, const char *path, struct err *err)
{
    double bytes = 0;
    uint64_t *sizes = NULL;
    uint32_t n = TIFFNumberOfStrips(tiff);
    if (!TIFFGetField(tiff, TIFFTAG_STRIPBYTECOUNTS, &sizes) || !sizes)
        return err_set(err, ERR_FORMAT, "%s: its table of strips is damaged", path);
    for (uint32_t i = 0; i < n; i++)
        if (sizes[i] > MOST_STRIP_BYTES)
            return err_set(err, ERR_FORMAT,
                           "%s: strip %u has %.0f MB compressed (at most %.0f); convert it to "
                           "tiles: vips tiffsave %s slide.tif --tile --pyramid",
                           path, i, (double)sizes[i] / (1 << 20),
                           (double)MOST_STRIP_BYTES / (1 << 20), path);
    for (uint32_t i = 0; i < n; i++)
        bytes += (double)sizes[i];
    return (double)r->width * (double)r->height <= MOST_GROWTH * bytes ||
           err_set(err, ERR_FORMAT,
                   "%s: not a readable TIFF: it claims more pixels than its bytes can hold", path);
}

static bool read_header(TIFF *tiff, struct strip_rows *r, const char *path,
                        struct image_facts *facts, struct err *err)
{
    uint32_t width = 0, height = 0;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return err_set(err, ERR_FORMAT, "%s: its size is out of range", path);
    facts->width = r->width = width;
    facts->height = r->height = height;
    r->samples = short_tag(tiff, TIFFTAG_SAMPLESPERPIXEL);
    r->bits = short_tag(tiff, TIFFTAG_BITSPERSAMPLE);
    r->compression = short_tag(tiff, TIFFTAG_COMPRESSION);
    r->photometric = r->samples < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB;
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &r->photometric);
    r->n_planes = short_tag(tiff, TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE ? r->samples : 1;
    const char *unfit = why_unfit(tiff, r);
    if (unfit)
        return err_set(err, ERR_FORMAT, "%s: %s; convert it to 8-bit RGB", path, unfit);
    read_resolution(tiff, facts);
    return check_samples(tiff, r, path, err) && read_palette(tiff, r, path, err) &&
           check_strips(tiff, r, path, err) &&
           image_check_orientation(path, short_tag(tiff, TIFFTAG_ORIENTATION), err) &&
           check_pages(tiff, r, path, err);
}

static bool strip_rows_open(const char *path, struct image_facts *facts, void **reader,
                            struct err *err)
{
    struct strip_rows *r = calloc(1, sizeof *r);
    *reader = r;
    if (!r)
        return err_memory(err, path);
    r->planes[0] = tiff_file_handle(path, r->text);
    if (!r->planes[0])
        return err_set(err, ERR_FORMAT, "%s: not a readable TIFF: %s", path, r->text);
    if (!read_header(r->planes[0], r, path, facts, err))
        return false;
    for (int i = 1; i < r->n_planes; i++)
        if (!(r->planes[i] = tiff_file_handle(path, r->text)))
            return err_set(err, ERR_FORMAT, "%s: cannot be opened again: %s", path, r->text);
    for (int i = 0; i < r->n_planes; i++)
        if (r->photometric == PHOTOMETRIC_YCBCR)
            TIFFSetField(r->planes[i], TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    tmsize_t row_bytes = TIFFScanlineSize(r->planes[0]);
    int64_t expected = r->width * (r->n_planes > 1 ? 1 : r->samples) * (r->bits / 8);
    if (row_bytes != expected)
        return err_set(err, ERR_FORMAT, "%s: has an unexpected pixel layout", path);
    uint32_t rows = 0;
    TIFFGetFieldDefaulted(r->planes[0], TIFFTAG_ROWSPERSTRIP, &rows);
    r->rows_a_strip = rows > 0 && rows < r->height ? rows : r->height;
    r->row_bytes = row_bytes;
    r->raw = calloc((size_t)row_bytes, 1);
    r->row = malloc((size_t)(r->width * r->samples));
    return (r->raw && r->row) || err_memory(err, path);
}

/* A row of one plane -> 8-bit samples, `step` apart. */
static void to_bytes(const struct strip_rows *r, int64_t n, uint8_t *to, int step)
{
    bool inverted = r->photometric == PHOTOMETRIC_MINISWHITE;
    for (int64_t i = 0; i < n; i++) {
        unsigned value = r->raw[i];
        if (r->bits == 16) {
            uint16_t wide;
            memcpy(&wide, r->raw + 2 * i, sizeof wide);
            value = (wide + 128u) / 257;
        }
        to[i * step] = (uint8_t)(inverted ? 255 - value : value);
    }
}

/* What is wrong with the strip that the next row begins, if that can be known; else NULL. */
static const char *why_damaged(const struct strip_rows *r, int plane)
{
    TIFF *tiff = r->planes[plane];
    int64_t rows = r->height - r->next;
    if ((r->compression != COMPRESSION_ADOBE_DEFLATE && r->compression != COMPRESSION_DEFLATE) ||
        r->next % r->rows_a_strip != 0)
        return NULL;
    uint32_t strip = TIFFComputeStrip(tiff, (uint32_t)r->next, (uint16_t)plane);
    bool last = rows <= r->rows_a_strip; /* some programs fill it up with rows */
    return deflate_check(TIFFFileno(tiff), TIFFGetStrileOffset(tiff, strip),
                         TIFFGetStrileByteCount(tiff, strip),
                         (last ? rows : r->rows_a_strip) * r->row_bytes, last);
}

static bool read_row(struct strip_rows *r, struct err *err)
{
    for (int plane = 0; plane < r->n_planes; plane++) {
        const char *damage = why_damaged(r, plane);
        if (damage)
            return image_row_failed(r->next, r->height, damage, err);
        r->text[0] = 0;
        if (TIFFReadScanline(r->planes[plane], r->raw, (uint32_t)r->next, (uint16_t)plane) != 1 ||
            r->text[0]) /* a warning of libjpeg */
            return image_row_failed(r->next, r->height,
                                    r->text[0] ? r->text : "the strip cannot be decoded", err);
        if (r->n_planes > 1)
            to_bytes(r, r->width, r->row + plane, r->samples);
        else
            to_bytes(r, r->width * r->samples, r->row, 1);
    }
    return true;
}

static bool strip_rows_read(void *reader, int64_t n, uint8_t *dst, struct err *err)
{
    struct strip_rows *r = reader;
    for (int64_t i = 0; i < n; i++, r->next++, dst += 3 * r->width) {
        if (!read_row(r, err))
            return false;
        if (r->photometric == PHOTOMETRIC_PALETTE)
            for (int64_t x = 0; x < r->width; x++)
                memcpy(dst + 3 * x, r->palette[r->row[x]], 3);
        else
            image_row_to_rgb(r->row, r->samples, r->premultiplied, r->width, dst);
    }
    return true;
}

const struct image_format image_strips = { .vendor = "striped-tiff",
                                           .open = strip_rows_open,
                                           .rows = strip_rows_read,
                                           .close = strip_rows_close };
