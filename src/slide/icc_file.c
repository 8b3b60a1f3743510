/* icc_file.c: the bytes of the ICC profile in a TIFF, PNG or JPEG (icc.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <zlib.h>
#include "base/jpeg_failure.h"
#include "slide/icc.h"
#include "slide/tiff_file.h"

#define ICC_MARKER (JPEG_APP0 + 2)
#define MOST_CHUNK_BYTES (16U << 20) /* of a compressed profile, and of what becomes of it */
#define PNG_SIGNATURE_BYTES 8

static bool damaged(const char *path, const char *why, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s: its ICC profile is damaged: %s; omit --icc", path, why);
}

static bool read_tiff(const char *path, uint8_t **bytes, size_t *n, struct err *err)
{
    TIFF *tiff = tiff_file_handle(path, NULL);
    uint32_t count = 0;
    void *data = NULL;
    bool ok = true;
    if (tiff && TIFFGetField(tiff, TIFFTAG_ICCPROFILE, &count, &data) && count > 0) {
        *bytes = malloc(count);
        ok = *bytes || err_memory(err, path);
        if (ok)
            memcpy(*bytes, data, count);
        *n = count;
    }
    if (tiff)
        TIFFClose(tiff);
    return ok;
}

/* A name, a zero, the method (0) and a zlib stream. */
static bool inflate_profile(const uint8_t *chunk, size_t size, const char *path, uint8_t **bytes,
                            size_t *n, struct err *err)
{
    const uint8_t *end = memchr(chunk, 0, size < 80 ? size : 80);
    if (!end || (size_t)(end - chunk) + 2 >= size || end[1] != 0)
        return damaged(path, "a chunk iCCP without a name", err);
    size_t packed = size - (size_t)(end - chunk) - 2;
    for (uLongf room = 64 << 10; room <= MOST_CHUNK_BYTES; room *= 4) {
        uLongf length = room;
        *bytes = malloc(room);
        if (!*bytes)
            return err_memory(err, path);
        int code = uncompress(*bytes, &length, end + 2, (uLong)packed);
        if (code == Z_OK) {
            *n = length;
            return true;
        }
        free(*bytes);
        *bytes = NULL;
        if (code != Z_BUF_ERROR)
            return damaged(path, "its chunk iCCP cannot be decompressed", err);
    }
    return damaged(path, "its chunk iCCP is truncated or larger than 16 MB", err);
}

static uint32_t big_endian(const uint8_t b[4])
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The chunk comes before the pixels. */
static bool read_png(FILE *stream, const char *path, uint8_t **bytes, size_t *n, struct err *err)
{
    uint8_t head[8];
    if (fseek(stream, PNG_SIGNATURE_BYTES, SEEK_SET) != 0)
        return err_errno(err, path, "read");
    while (fread(head, 1, sizeof head, stream) == sizeof head && memcmp(head + 4, "IDAT", 4) != 0) {
        uint32_t size = big_endian(head);
        if (memcmp(head + 4, "iCCP", 4) != 0) {
            if (fseek(stream, (long)size + 4, SEEK_CUR) != 0)
                break;
            continue;
        }
        if (size > MOST_CHUNK_BYTES)
            return damaged(path, "its chunk iCCP is larger than 16 MB", err);
        uint8_t *chunk = malloc(size ? size : 1);
        if (!chunk)
            return err_memory(err, path);
        bool ok = fread(chunk, 1, size, stream) == size
                      ? inflate_profile(chunk, size, path, bytes, n, err)
                      : damaged(path, "its chunk iCCP is truncated", err);
        free(chunk);
        return ok;
    }
    return true;
}

/* libjpeg's errors jump out of here. */
static bool read_markers(struct jpeg_decompress_struct *jpeg, FILE *stream, uint8_t **bytes,
                         size_t *n)
{
    JOCTET *data = NULL;
    unsigned length = 0;
    jpeg_create_decompress(jpeg);
    jpeg_stdio_src(jpeg, stream);
    jpeg_save_markers(jpeg, ICC_MARKER, 0xFFFF);
    jpeg_read_header(jpeg, TRUE);
    if (!jpeg_read_icc_profile(jpeg, &data, &length))
        return false;
    *bytes = data; /* by malloc */
    *n = length;
    return true;
}

static bool read_jpeg(FILE *stream, const char *path, uint8_t **bytes, size_t *n, struct err *err)
{
    struct jpeg_failure failure;
    struct jpeg_decompress_struct jpeg = { .err = jpeg_failure_begin(&failure) };
    rewind(stream);
    if (setjmp(failure.jump)) {
        jpeg_destroy_decompress(&jpeg);
        return damaged(path, failure.text, err);
    }
    read_markers(&jpeg, stream, bytes, n);
    jpeg_destroy_decompress(&jpeg);
    return true;
}

bool icc_read_file(const char *path, uint8_t **bytes, size_t *n, struct err *err)
{
    static const uint8_t png[PNG_SIGNATURE_BYTES] = { 137, 'P', 'N', 'G', '\r', '\n', 26, '\n' };
    uint8_t head[PNG_SIGNATURE_BYTES] = { 0 };
    *bytes = NULL;
    *n = 0;
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return err_errno(err, path, "open");
    size_t got = fread(head, 1, sizeof head, stream);
    bool ok = true;
    if (got == sizeof head && memcmp(head, png, sizeof png) == 0)
        ok = read_png(stream, path, bytes, n, err);
    else if (got >= 3 && head[0] == 0xFF && head[1] == 0xD8 && head[2] == 0xFF)
        ok = read_jpeg(stream, path, bytes, n, err);
    else if (memcmp(head, "II", 2) == 0 || memcmp(head, "MM", 2) == 0)
        ok = read_tiff(path, bytes, n, err);
    fclose(stream);
    return ok;
}
