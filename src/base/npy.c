/* npy.c: see npy.h. Version 1.0 with a header of 128 bytes. */
#include "base/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"

#define START_BYTES 10
#define HEADER_BYTES 128             /* with the start */
#define MOST_BYTES ((size_t)1 << 32) /* of a file that is read */
#define MOST_SIDE (INT64_C(1) << 31)

bool npy_out_open(struct npy_out *out, const char *path, const int64_t *shape, int rank,
                  struct err *err)
{
    char header[HEADER_BYTES + 1], sides[HEADER_BYTES / 2] = "";
    int used = 0;
    *out = (struct npy_out){ 0 };
    for (int i = 0; i < rank; i++)
        used += snprintf(sides + used, sizeof sides - (size_t)used, i ? ", %lld" : "%lld",
                         (long long)shape[i]);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", START_BYTES);
    used = snprintf(header + START_BYTES, HEADER_BYTES - START_BYTES,
                    "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", sides);
    memset(header + START_BYTES + used, ' ', (size_t)(HEADER_BYTES - START_BYTES - used));
    header[HEADER_BYTES - 1] = '\n';
    if (!file_out_open(&out->file, path, err))
        return false;
    out->open = true;
    if (fwrite(header, 1, HEADER_BYTES, out->file.stream) == HEADER_BYTES)
        return true;
    err_errno(err, path, "write");
    npy_out_discard(out);
    return false;
}

bool npy_out_put(struct npy_out *out, int64_t first, const float *values, int64_t n,
                 struct err *err)
{
    off_t at = (off_t)HEADER_BYTES + (off_t)first * (off_t)sizeof *values;
    return (fseeko(out->file.stream, at, SEEK_SET) == 0 &&
            fwrite(values, sizeof *values, (size_t)n, out->file.stream) == (size_t)n) ||
           err_errno(err, out->file.path, "write");
}

bool npy_out_commit(struct npy_out *out, struct err *err)
{
    out->open = false;
    return file_out_commit(&out->file, err);
}

void npy_out_discard(struct npy_out *out)
{
    if (out->open)
        file_out_discard(&out->file);
    out->open = false;
}

bool npy_write(const char *path, const float *values, int64_t height, int64_t width,
               struct err *err)
{
    struct npy_out out;
    bool ok = npy_out_open(&out, path, (int64_t[]){ height, width }, 2, err);
    ok = ok && npy_out_put(&out, 0, values, height * width, err) && npy_out_commit(&out, err);
    npy_out_discard(&out);
    return ok;
}

bool npy_read(const char *path, float **values, int64_t *height, int64_t *width, struct err *err)
{
    char *bytes = NULL;
    size_t size = 0;
    long long h = 0, w = 0;
    *values = NULL;
    if (!file_read(path, MOST_BYTES, &bytes, &size, err))
        return false;
    const char *shape = size > HEADER_BYTES ? strstr(bytes + START_BYTES, "'shape':") : NULL;
    bool ok = shape && memcmp(bytes, "\x93NUMPY\x01\x00\x76\x00", START_BYTES) == 0 &&
              shape < bytes + HEADER_BYTES && strstr(bytes + START_BYTES, "'<f4'") &&
              sscanf(shape + 8, " (%lld, %lld)", &h, &w) == 2 && h > 0 && w > 0 && h < MOST_SIDE &&
              w < MOST_SIDE && (size - HEADER_BYTES) / sizeof **values == (size_t)h * (size_t)w;
    if (!ok)
        err_set(err, ERR_FORMAT, "%s: is not a map of this program; make it again", path);
    *values = ok ? malloc((size_t)(h * w) * sizeof **values) : NULL;
    if (ok && !*values)
        ok = err_memory(err, path);
    if (ok)
        memcpy(*values, bytes + HEADER_BYTES, (size_t)(h * w) * sizeof **values);
    *height = h, *width = w;
    free(bytes);
    return ok;
}
