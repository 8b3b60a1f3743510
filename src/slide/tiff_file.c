/* tiff_file.c: a TIFF -> its pages and their SubIFDs. Decoding is in tile_decoder.c. */
#include "slide/tiff_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tiffio.h>
#include "slide/tiff_entry.h"

#define MAX_DIRECTORIES 128
#define MAX_TABLE_BYTES ((tmsize_t)1 << 30)

/* libtiff prints to standard error unless it is given a handler. */
static int keep_text(TIFF *tiff, void *data, const char *module, const char *format, va_list ap)
{
    (void)tiff, (void)module;
    if (data)
        vsnprintf(data, TIFF_FILE_TEXT, format, ap);
    return 1;
}

/* libjpeg's warnings mean that pixels were made up; others are about tags. */
static int keep_jpeg_warning(TIFF *tiff, void *data, const char *module, const char *format,
                             va_list ap)
{
    return module && strcmp(module, "JPEGLib") == 0 ? keep_text(tiff, data, module, format, ap) : 1;
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

bool tiff_file_begins(const void *head, size_t n)
{
    static const char heads[4][5] = { "II*\0", "MM\0*", "II+\0", "MM\0+" };
    for (int i = 0; n >= 4 && i < 4; i++)
        if (memcmp(head, heads[i], 4) == 0)
            return true;
    return false;
}

struct tiff *tiff_file_handle(const char *path, char text[TIFF_FILE_TEXT])
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_text, text);
    TIFFOpenOptionsSetWarningHandlerExtR(options, keep_jpeg_warning, text);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MAX_TABLE_BYTES);
    TIFF *tiff =
        TIFFOpenExt(path, "rm", options); /* m: no mmap, a shrinking file must not crash us */
    TIFFOpenOptionsFree(options);
    return tiff;
}

/* What identifies the family (tiff_family.h), from the current directory. */
static bool read_facts(struct tiff_file *file, TIFF *tiff, struct err *err)
{
    char *description = NULL, *software = NULL, *xmp = NULL;
    uint32_t xmp_size = 0;
    TIFFGetField(tiff, TIFFTAG_IMAGEDESCRIPTION, &description);
    TIFFGetField(tiff, TIFFTAG_SOFTWARE, &software);
    if (TIFFGetField(tiff, TIFFTAG_XMLPACKET, &xmp_size, &xmp) && xmp)
        file->iscan = memmem(xmp, xmp_size, "iScan", 5) != NULL;
    file->description = strdup(description ? description : "");
    file->software = strdup(software ? software : "");
    return (file->description && file->software) || err_memory(err, file->path);
}

static double um_per_px(const struct tiff_file *file, TIFF *tiff, uint16_t tag)
{
    uint16_t unit = RESUNIT_INCH;
    float rounded = 0;
    double per_unit = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_RESOLUTIONUNIT, &unit);
    if (!tiff_entry_rational(file->fd, TIFFCurrentDirOffset(tiff), tag, &per_unit) &&
        TIFFGetField(tiff, tag, &rounded))
        per_unit = (double)rounded;
    double um = unit == RESUNIT_CENTIMETER ? 10000 : unit == RESUNIT_INCH ? 25400 : 0;
    return per_unit > 0 ? um / per_unit : 0;
}

static bool add_directory(struct tiff_file *file, TIFF *tiff, int page, bool sub, struct err *err)
{
    if (file->n_directories == MAX_DIRECTORIES)
        return true;
    struct tiff_directory *d = &file->directories[file->n_directories++];
    bool ok = tiff_directory_read(tiff, file->size, TIFFIsByteSwapped(tiff), d, err);
    d->page = page;
    d->sub = sub;
    return ok;
}

struct sub_directory {
    uint64_t offset;
    int page;
};

/* Notes the SubIFDs of the current page. */
static int note_subs(TIFF *tiff, int page, struct sub_directory *subs, int n)
{
    uint16_t count = 0;
    uint64_t *offsets = NULL;
    if (!TIFFGetField(tiff, TIFFTAG_SUBIFD, &count, &offsets) || !offsets)
        return n;
    for (uint16_t i = 0; i < count && n < MAX_DIRECTORIES; i++)
        subs[n++] = (struct sub_directory){ .offset = offsets[i], .page = page };
    return n;
}

static bool cut_short(const struct tiff_file *file, struct err *err)
{
    return err_set(err, ERR_FORMAT,
                   "%s: a directory of this TIFF cannot be read: the file is truncated or damaged; "
                   "copy it again",
                   file->path);
}

static bool read_directories(struct tiff_file *file, TIFF *tiff, struct err *err)
{
    struct sub_directory subs[MAX_DIRECTORIES];
    int n_subs = 0;
    file->directories = calloc(MAX_DIRECTORIES, sizeof *file->directories);
    if (!file->directories)
        return err_memory(err, file->path);
    if (!read_facts(file, tiff, err))
        return false;
    file->mpp_x = um_per_px(file, tiff, TIFFTAG_XRESOLUTION);
    file->mpp_y = um_per_px(file, tiff, TIFFTAG_YRESOLUTION);
    for (bool last = false; !last && file->n_pages < MAX_DIRECTORIES; file->n_pages++) {
        if (!add_directory(file, tiff, file->n_pages, false, err))
            return false;
        n_subs = note_subs(tiff, file->n_pages, subs, n_subs);
        last = TIFFLastDirectory(tiff);
        if (!last && !TIFFReadDirectory(tiff))
            return cut_short(file, err);
    }
    for (int i = 0; i < n_subs; i++) {
        if (!TIFFSetSubDirectory(tiff, subs[i].offset))
            return cut_short(file, err);
        if (!add_directory(file, tiff, subs[i].page, true, err))
            return false;
    }
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
        cut_short(file, err);
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
    for (int i = 0; i < file->n_directories; i++)
        tiff_directory_free(&file->directories[i]);
    free(file->directories);
    free(file->description);
    free(file->software);
    free(file->path);
    if (file->fd >= 0)
        close(file->fd);
    free(file);
}
