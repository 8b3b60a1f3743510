/* label_image.c: see label_image.h. */
#include "base/label_image.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/png_labels.h"

#define MOST_BYTES ((size_t)1 << 30)
#define MOST_PIXELS ((int64_t)1 << 30)
#define NPY_MAGIC "\x93NUMPY"
#define NPY_FIXED 10 /* bytes before the text of the header, version 1 */

void label_image_free(struct label_image *image)
{
    free(image->px);
    *image = (struct label_image){ 0 };
}

static bool make_room(struct label_image *out, const char *path, int64_t width, int64_t height,
                      struct err *err)
{
    if (width < 1 || height < 1 || width > MOST_PIXELS / height)
        return err_set(err, ERR_FORMAT,
                       "%s: %lld x %lld px; a label image has from 1 to 2^30 pixels", path,
                       (long long)width, (long long)height);
    out->px = malloc((size_t)(width * height) * sizeof *out->px);
    out->width = width;
    out->height = height;
    return out->px || err_memory(err, path);
}

/* --- PNG --- */

struct taking {
    struct label_image *out;
    const char *path;
};

static bool begin(void *arg, int64_t width, int64_t height, struct err *err)
{
    const struct taking *taking = arg;
    return make_room(taking->out, taking->path, width, height, err);
}

static bool take_row(void *arg, int64_t y, const uint16_t *labels, struct err *err)
{
    struct label_image *out = ((const struct taking *)arg)->out;
    (void)err;
    for (int64_t x = 0; x < out->width; x++)
        out->px[y * out->width + x] = labels[x];
    return true;
}

static bool read_png(const char *bytes, size_t size, const char *path, struct label_image *out,
                     struct err *err)
{
    struct taking taking = { out, path };
    return png_labels_read(bytes, size, path,
                           &(struct png_labels_taker){ begin, take_row, &taking }, err);
}

/* --- NumPy --- */

struct npy {
    int bytes; /* of a number */
    bool is_signed;
    int64_t width, height;
    const unsigned char *data;
};

static bool wrong_npy(const char *path, const char *why, struct err *err)
{
    return err_set(err, ERR_FORMAT,
                   "%s: %s; save label images with numpy.save as a 2-D array of whole numbers",
                   path, why);
}

/* The text of the header: {'descr': '<u2', 'fortran_order': False, 'shape': (64, 48), } */
static bool read_header(const char *text, const char *path, struct npy *npy, struct err *err)
{
    char order = 0, kind = 0, end = 0;
    long long height = 0, width = 0;
    const char *descr = strstr(text, "'descr':"), *shape = strstr(text, "'shape':");
    if (!descr || !shape)
        return wrong_npy(path, "its header has no type or no shape", err);
    if (!strstr(text, "'fortran_order': False"))
        return err_set(err, ERR_FORMAT,
                       "%s: is in Fortran order; save numpy.ascontiguousarray of the array", path);
    if (sscanf(descr, "'descr': '%c%c%d'", &order, &kind, &npy->bytes) != 3 || order == '>' ||
        !strchr("iub", kind) ||
        (npy->bytes != 1 && npy->bytes != 2 && npy->bytes != 4 && npy->bytes != 8))
        return wrong_npy(path, "its numbers are not whole numbers in little endian", err);
    if (sscanf(shape, "'shape': (%lld, %lld%c", &height, &width, &end) != 3 || end != ')')
        return wrong_npy(path, "it does not have two axes", err);
    npy->is_signed = kind == 'i';
    npy->width = width;
    npy->height = height;
    return true;
}

static bool open_npy(const char *bytes, size_t size, const char *path, struct npy *npy,
                     struct err *err)
{
    const unsigned char *at = (const unsigned char *)bytes;
    char text[1024] = "";
    size_t length = size >= NPY_FIXED ? (size_t)(at[8] | at[9] << 8) : 0;
    if (size < NPY_FIXED || at[6] != 1 || length >= sizeof text || NPY_FIXED + length > size)
        return wrong_npy(path, "not a .npy of version 1", err);
    memcpy(text, bytes + NPY_FIXED, length);
    npy->data = at + NPY_FIXED + length;
    return read_header(text, path, npy, err);
}

/* Beyond int32: -1. */
static int32_t number_at(const struct npy *npy, int64_t i)
{
    const unsigned char *at = npy->data + i * npy->bytes;
    uint64_t value = 0;
    for (int b = 0; b < npy->bytes; b++)
        value |= (uint64_t)at[b] << (8 * b);
    bool negative = npy->is_signed && value >> (8 * npy->bytes - 1) & 1;
    return negative || value > INT32_MAX ? -1 : (int32_t)value;
}

static bool read_npy(const char *bytes, size_t size, const char *path, struct label_image *out,
                     struct err *err)
{
    struct npy npy = { 0 };
    if (!open_npy(bytes, size, path, &npy, err))
        return false;
    size_t rest = size - (size_t)(npy.data - (const unsigned char *)bytes);
    if (npy.width > 0 && npy.height > 0 && npy.width <= MOST_PIXELS / npy.height &&
        (size_t)(npy.width * npy.height * npy.bytes) != rest)
        return wrong_npy(path, "its shape does not fit the length of the file", err);
    if (!make_room(out, path, npy.width, npy.height, err))
        return false;
    for (int64_t i = 0; i < npy.width * npy.height; i++) {
        out->px[i] = number_at(&npy, i);
        if (out->px[i] < 0)
            return err_set(err, ERR_FORMAT,
                           "%s: a number at x %lld, y %lld is below 0 or above 2147483647; labels "
                           "are 0 outside and count from 1",
                           path, (long long)(i % npy.width), (long long)(i / npy.width));
    }
    return true;
}

bool label_image_read(const char *path, struct label_image *out, struct err *err)
{
    char *bytes = NULL;
    size_t size = 0;
    *out = (struct label_image){ 0 };
    if (!file_read(path, MOST_BYTES, &bytes, &size, err))
        return false;
    bool ok = false;
    if (png_labels_claims(bytes, size))
        ok = read_png(bytes, size, path, out, err);
    else if (size >= 6 && memcmp(bytes, NPY_MAGIC, 6) == 0)
        ok = read_npy(bytes, size, path, out, err);
    else
        ok = err_set(err, ERR_FORMAT,
                     "%s: not a label image; a PNG (grey, 8 or 16 bits) or a .npy is expected",
                     path);
    free(bytes);
    if (!ok)
        label_image_free(out);
    return ok;
}

/* --- writing --- */

struct png_failure {
    jmp_buf jump;
    char text[128];
};

static void on_error(png_structp png, png_const_charp text)
{
    struct png_failure *failure = png_get_error_ptr(png);
    snprintf(failure->text, sizeof failure->text, "%s", text);
    longjmp(failure->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

/* row [2 * width]: big endian, as in the file */
static bool write_rows(FILE *stream, const char *path, const struct label_image *image,
                       png_byte *row, struct err *err)
{
    struct png_failure failure = { .text = "" };
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info || setjmp(failure.jump)) {
        bool made = info != NULL;
        png_destroy_write_struct(&png, &info);
        return made ? err_set(err, ERR_IO, "%s: cannot write: %s", path, failure.text)
                    : err_memory(err, path);
    }
    png_init_io(png, stream);
    png_set_compression_level(png, 3);
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, 16,
                 PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int64_t y = 0; y < image->height; y++) {
        const int32_t *from = image->px + y * image->width;
        for (int64_t x = 0; x < image->width; x++) {
            row[2 * x] = (png_byte)(from[x] >> 8);
            row[2 * x + 1] = (png_byte)(from[x] & 255);
        }
        png_write_row(png, row);
    }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return true;
}

bool label_image_write_png(const char *path, const struct label_image *image, struct err *err)
{
    struct file_out out;
    for (int64_t i = 0; i < image->width * image->height; i++)
        if (image->px[i] < 0 || image->px[i] > UINT16_MAX)
            return err_set(err, ERR_FORMAT,
                           "%s: label %d does not fit into 16 bits; make smaller images", path,
                           image->px[i]);
    png_byte *row = malloc(2 * (size_t)image->width + 1);
    if (!row || !file_out_open(&out, path, err)) {
        bool memory = row == NULL;
        free(row);
        return memory ? err_memory(err, path) : false;
    }
    bool ok = write_rows(out.stream, path, image, row, err);
    free(row);
    if (!ok)
        file_out_discard(&out);
    return ok && file_out_commit(&out, err);
}

bool label_image_write_npy(const char *path, const struct label_image *image, struct err *err)
{
    enum { HEADER = 128 };
    struct file_out out;
    char text[HEADER];
    if (!file_out_open(&out, path, err))
        return false;
    int n = snprintf(text, sizeof text,
                     "{'descr': '<i4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                     (long long)image->height, (long long)image->width);
    fwrite(NPY_MAGIC "\x01", 1, 7, out.stream);
    fputc(0, out.stream);
    fputc(HEADER - NPY_FIXED, out.stream);
    fputc(0, out.stream);
    fprintf(out.stream, "%s%*s\n", text, HEADER - NPY_FIXED - 1 - n, "");
    for (int64_t i = 0; i < image->width * image->height; i++) {
        uint32_t value = (uint32_t)image->px[i];
        unsigned char bytes[4] = { (unsigned char)value, (unsigned char)(value >> 8),
                                   (unsigned char)(value >> 16), (unsigned char)(value >> 24) };
        fwrite(bytes, 1, sizeof bytes, out.stream);
    }
    return file_out_commit(&out, err);
}
