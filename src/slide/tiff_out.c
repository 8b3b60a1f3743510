/* tiff_out.c: see tiff_out.h. */
#include "slide/tiff_out.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/draft.h"

static int on_tiff_error(TIFF *tiff, void *arg, const char *module, const char *format,
                         va_list arguments)
{
    (void)tiff, (void)module;
    struct tiff_out *out = arg;
    vsnprintf(out->complaint, sizeof out->complaint, format, arguments);
    return 1;
}

static int on_tiff_warning(TIFF *tiff, void *arg, const char *module, const char *format,
                           va_list arguments)
{
    (void)tiff, (void)arg, (void)module, (void)format, (void)arguments;
    return 1;
}

bool tiff_out_failed(const struct tiff_out *out, struct err *err)
{
    if (errno)
        return err_errno(err, out->path, "write");
    return err_set(err, ERR_IO, "%s: cannot write: %s", out->path,
                   out->complaint[0] ? out->complaint : "libtiff gave no reason");
}

bool tiff_out_open(struct tiff_out *out, const char *path, const char *part, const char *mode,
                   struct err *err)
{
    *out = (struct tiff_out){ .path = path, .waiting = -1 };
    TIFFOpenOptions *how = TIFFOpenOptionsAlloc();
    if (!how)
        return err_memory(err, path);
    TIFFOpenOptionsSetErrorHandlerExtR(how, on_tiff_error, out);
    TIFFOpenOptionsSetWarningHandlerExtR(how, on_tiff_warning, out);
    errno = 0;
    out->tiff = TIFFOpenExt(part, mode, how);
    TIFFOpenOptionsFree(how);
    return out->tiff || tiff_out_failed(out, err);
}

void tiff_out_close(struct tiff_out *out)
{
    if (out->tiff)
        TIFFClose(out->tiff); /* every directory has been written, or the file is abandoned */
    if (out->waiting >= 0)
        close(out->waiting);
    out->tiff = NULL, out->waiting = -1;
}

bool tiff_out_tile(struct tiff_out *out, int64_t index, const void *bytes, int64_t size,
                   struct err *err)
{
    errno = 0;
    /* libtiff does not modify the buffer, but its parameter is not const. */
    return TIFFWriteRawTile(out->tiff, (uint32_t)index, (void *)(uintptr_t)bytes, (tmsize_t)size) ==
               (tmsize_t)size ||
           tiff_out_failed(out, err);
}

static bool open_waiting(struct tiff_out *out, struct err *err)
{
    char *name = NULL;
    out->waiting = draft_create(out->path, &name, err);
    if (name)
        unlink(name);
    free(name);
    return out->waiting >= 0;
}

bool tiff_out_wait(struct tiff_out *out, const void *bytes, int64_t size, struct tiff_waiting *tile,
                   struct err *err)
{
    if (out->waiting < 0 && !open_waiting(out, err))
        return false;
    *tile = (struct tiff_waiting){ out->waiting_size, size };
    for (const char *at = bytes; size > 0;) {
        ssize_t n = pwrite(out->waiting, at, (size_t)size, out->waiting_size);
        if (n < 0 && errno != EINTR)
            return err_errno(err, out->path, "write");
        if (n > 0)
            at += n, size -= n, out->waiting_size += n;
    }
    return true;
}

bool tiff_out_copy(struct tiff_out *out, const struct tiff_waiting *tiles, int64_t n,
                   struct err *err)
{
    uint8_t *bytes = NULL;
    size_t room = 0;
    bool ok = true;
    for (int64_t i = 0; ok && i < n; i++) {
        size_t size = (size_t)tiles[i].size;
        if (size > room) {
            free(bytes);
            bytes = malloc(size);
            room = bytes ? size : 0;
        }
        if (!bytes)
            ok = err_memory(err, out->path);
        else if (pread(out->waiting, bytes, size, tiles[i].offset) != (ssize_t)size)
            ok = err_errno(err, out->path, "read back a level of");
        else
            ok = tiff_out_tile(out, i, bytes, tiles[i].size, err);
    }
    free(bytes);
    return ok;
}

bool tiff_out_clear(struct tiff_out *out, struct err *err)
{
    out->waiting_size = 0;
    return out->waiting < 0 || ftruncate(out->waiting, 0) == 0 ||
           err_errno(err, out->path, "write");
}

bool tiff_out_directory(struct tiff_out *out, struct err *err)
{
    errno = 0;
    return TIFFWriteDirectory(out->tiff) || tiff_out_failed(out, err);
}
