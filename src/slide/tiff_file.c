/* tiff_file.c: TIFF directories -> tables of tiles. Decoding is in tile_decoder.c. */
#include "slide/tiff_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tiffio.h>
#include "base/divide.h"
#include "slide/codec.h"

#define MAX_DIRECTORIES 128
#define MAX_TILE_PX 4096                   /* a ring holds whole rows of tiles */
#define MAX_TILE_BYTES ((uint64_t)1 << 27) /* compressed; an absurd count is not allocated */
#define MAX_TABLE_BYTES ((tmsize_t)1 << 30)

/* libtiff prints to standard error unless it is given a handler. */
static int be_silent(TIFF *tiff, void *data, const char *module, const char *format, va_list ap)
{
    (void)tiff, (void)data, (void)module, (void)format, (void)ap;
    return 1;
}

static int keep_text(TIFF *tiff, void *data, const char *module, const char *format, va_list ap)
{
    (void)tiff, (void)module;
    if (data)
        vsnprintf(data, TIFF_FILE_TEXT, format, ap);
    return 1;
}

static void silence(void)
{
    TIFFSetWarningHandler(NULL);
}

void tiff_file_silence(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, silence);
}

struct tiff *tiff_file_handle(const char *path, char text[TIFF_FILE_TEXT])
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_text, text);
    TIFFOpenOptionsSetWarningHandlerExtR(options, be_silent, NULL);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MAX_TABLE_BYTES);
    TIFF *tiff =
        TIFFOpenExt(path, "rm", options); /* m: no mmap, a shrinking file must not crash us */
    TIFFOpenOptionsFree(options);
    return tiff;
}

static const char *why_unfit(TIFF *tiff, const struct tiff_directory *d)
{
    if (!TIFFIsTiled(tiff))
        return "stored in strips, not in tiles";
    if (d->width < 1 || d->height < 1 || d->width > INT32_MAX || d->height > INT32_MAX)
        return "its size is out of range";
    if (d->tile_width < 1 || d->tile_height < 1 || d->tile_width > MAX_TILE_PX ||
        d->tile_height > MAX_TILE_PX)
        return "its tiles are empty or larger than 4096 px";
    if (!d->codec)
        return "the compression of its tiles is unknown";
    uint16_t fill_order = FILLORDER_MSB2LSB;
    TIFFGetField(tiff, TIFFTAG_FILLORDER, &fill_order);
    if (fill_order != FILLORDER_MSB2LSB && d->codec->gives == CODEC_SAMPLES)
        return "the bits of its bytes are reversed";
    const char *unfit = d->codec->why_unfit ? d->codec->why_unfit(d) : NULL;
    return unfit ? unfit : tile_decoder_why_unfit(d);
}

static int count_alpha(TIFF *tiff)
{
    uint16_t n = 0, *kinds = NULL;
    int alpha = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &n, &kinds);
    for (uint16_t i = 0; kinds && i < n; i++)
        alpha += kinds[i] == EXTRASAMPLE_ASSOCALPHA || kinds[i] == EXTRASAMPLE_UNASSALPHA;
    return alpha;
}

/* If a directory has more channels than its colour space, libtiff decodes the first ones. */
static void count_channels(TIFF *tiff, struct tiff_directory *d)
{
    uint16_t photometric = 0;
    if (!TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric)) /* libtiff's guess */
        photometric = d->samples < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB;
    int most = photometric == PHOTOMETRIC_SEPARATED    ? 4
               : photometric == PHOTOMETRIC_MINISBLACK ? 1
               : photometric == PHOTOMETRIC_MINISWHITE ? 1
               : photometric == PHOTOMETRIC_PALETTE    ? 1
                                                       : 3;
    d->channels = d->samples - count_alpha(tiff);
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

/* Copies the positions of the tiles. Sets d->unfit if the file does not give them. */
static bool copy_places(TIFF *tiff, int64_t file_size, struct tiff_directory *d, struct err *err)
{
    uint64_t *offsets = NULL, *counts = NULL;
    int64_t n = d->columns * d->rows; /* both below 2^31 */
    if (n != (int64_t)TIFFNumberOfTiles(tiff) || n > file_size ||
        !TIFFGetField(tiff, TIFFTAG_TILEOFFSETS, &offsets) ||
        !TIFFGetField(tiff, TIFFTAG_TILEBYTECOUNTS, &counts) || !offsets || !counts) {
        d->unfit = "its table of tiles is damaged";
        return true;
    }
    d->offsets = malloc((size_t)n * sizeof *d->offsets);
    d->sizes = malloc((size_t)n * sizeof *d->sizes);
    if (!d->offsets || !d->sizes || !copy_tables(tiff, d))
        return err_memory(err, "a table of tiles");
    d->beyond = -1;
    for (int64_t i = 0; i < n; i++) {
        bool inside = counts[i] <= MAX_TILE_BYTES && counts[i] <= (uint64_t)file_size &&
                      offsets[i] <= (uint64_t)file_size - counts[i];
        d->offsets[i] = inside ? offsets[i] : 0;
        d->sizes[i] = inside ? (uint32_t)counts[i] : 0;
        if (!inside && d->beyond < 0)
            d->beyond = i;
        d->n_absent += counts[i] == 0;
    }
    return true;
}

static bool read_directory(TIFF *tiff, int64_t file_size, struct tiff_directory *d, struct err *err)
{
    uint32_t width = 0, height = 0, tile_width = 0, tile_height = 0, kind = 0, depth = 1;
    uint16_t photometric = 0, compression = 0, bits = 0, samples = 1, planar = 0, predictor = 1;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    if (TIFFIsTiled(tiff)) {
        TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &tile_width);
        TIFFGetField(tiff, TIFFTAG_TILELENGTH, &tile_height);
    }
    TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetField(tiff, TIFFTAG_PREDICTOR, &predictor);
    TIFFGetField(tiff, TIFFTAG_IMAGEDEPTH, &depth);
    *d = (struct tiff_directory){ .number = (int)TIFFCurrentDirectory(tiff),
                                  .width = width,
                                  .height = height,
                                  .tile_width = tile_width,
                                  .tile_height = tile_height,
                                  .reduced = (kind & FILETYPE_REDUCEDIMAGE) != 0,
                                  .mask = (kind & FILETYPE_MASK) != 0,
                                  .samples = samples,
                                  .bits = bits,
                                  .depth = (int)depth,
                                  .planar = planar != PLANARCONFIG_CONTIG,
                                  .compression = compression,
                                  .photometric = photometric,
                                  .predictor = predictor,
                                  .codec = codec_find(compression),
                                  .beyond = -1 };
    d->row_bytes = ceil_div(d->tile_width * d->bits * (d->planar ? 1 : d->samples), 8);
    d->tile_bytes = d->row_bytes * d->tile_height;
    count_channels(tiff, d);
    d->unfit = why_unfit(tiff, d);
    d->scrambled = (d->unfit || d->codec != &codec_jpeg) &&
                   (d->tile_width > d->width || d->tile_height > d->height);
    if (d->unfit)
        return true;
    d->columns = ceil_div(d->width, d->tile_width);
    d->rows = ceil_div(d->height, d->tile_height);
    return copy_places(tiff, file_size, d, err);
}

static bool read_directories(struct tiff_file *file, TIFF *tiff, struct err *err)
{
    file->directories = calloc(MAX_DIRECTORIES, sizeof *file->directories);
    if (!file->directories)
        return err_memory(err, file->path);
    do {
        struct tiff_directory *d = &file->directories[file->n_directories++];
        if (!read_directory(tiff, file->size, d, err))
            return false;
    } while (file->n_directories < MAX_DIRECTORIES && TIFFReadDirectory(tiff));
    return true;
}

bool tiff_file_open(const char *path, struct tiff_file **out, struct err *err)
{
    bool ok = false;
    TIFF *tiff = NULL;
    struct stat status;
    struct tiff_file *file = calloc(1, sizeof *file);
    if (!file)
        return err_memory(err, path);
    file->fd = open(path, O_RDONLY | O_CLOEXEC);
    file->path = strdup(path);
    if (!file->path) {
        err_memory(err, path);
        goto done;
    }
    if (file->fd < 0 || fstat(file->fd, &status) != 0) {
        err_errno(err, path, "open");
        goto done;
    }
    file->size = status.st_size;
    tiff = tiff_file_handle(path, NULL);
    if (!tiff) {
        err_set(err, ERR_FORMAT, "%s: not a TIFF file, or damaged", path);
        goto done;
    }
    if (!read_directories(file, tiff, err))
        goto done;
    *out = file, file = NULL, ok = true;
done:
    if (tiff)
        TIFFClose(tiff);
    tiff_file_close(file);
    return ok;
}

void tiff_file_close(struct tiff_file *file)
{
    if (!file)
        return;
    for (int i = 0; i < file->n_directories; i++) {
        free(file->directories[i].offsets);
        free(file->directories[i].sizes);
        free(file->directories[i].tables);
    }
    free(file->directories);
    free(file->path);
    if (file->fd >= 0)
        close(file->fd);
    free(file);
}
