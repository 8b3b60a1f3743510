/* file.c: see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/draft.h"
#include "base/text.h"

const char *file_extension(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? dot : name + strlen(name);
}

char *file_stem(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return text_format("%.*s", (int)(file_extension(path) - name), name);
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

void file_remove_in(const char *folder, const char *name)
{
    char *path = text_format("%s/%s", folder, name);
    if (path)
        unlink(path);
    free(path);
}

bool file_make_folder(const char *path, struct err *err)
{
    char *partial = strdup(path);
    if (!partial)
        return err_memory(err, path);
    bool ok = true;
    for (char *at = partial + 1; ok; at++) {
        if (*at != '/' && *at != 0)
            continue;
        char kept = *at;
        *at = 0;
        if (mkdir(partial, 0777) != 0 && errno != EEXIST)
            ok = err_errno(err, path, "create the folder");
        *at = kept;
        if (!kept)
            break;
    }
    if (ok && !file_is_folder(path))
        ok = err_set(err, ERR_IO, "%s: exists and is not a folder", path);
    if (ok)
        draft_sweep(path);
    free(partial);
    return ok;
}

bool file_out_reserve(struct file_out *out, const char *path, struct err *err)
{
    *out = (struct file_out){ .path = strdup(path) };
    if (!out->path)
        return err_memory(err, path);
    out->fd = draft_create(path, &out->draft, err);
    out->reserved = out->fd >= 0;
    if (!out->reserved) {
        file_out_discard(out);
        return false;
    }
    snprintf(out->handle, sizeof out->handle, "/proc/self/fd/%d", out->fd);
    return true;
}

bool file_out_open(struct file_out *out, const char *path, struct err *err)
{
    if (!file_out_reserve(out, path, err))
        return false;
    out->stream = fdopen(out->fd, "wb");
    if (out->stream) {
        out->reserved = false; /* the stream's now */
        return true;
    }
    err_errno(err, path, "write");
    file_out_discard(out);
    return false;
}

bool file_out_open_in(struct file_out *out, const char *folder, const char *name, struct err *err)
{
    char *path = text_format("%s/%s", folder, name);
    bool ok = path ? file_out_open(out, path, err) : err_memory(err, name);
    free(path);
    return ok;
}

static bool sync_folder_of(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = !slash          ? strdup(".")
                   : slash == path ? strdup("/")
                                   : text_format("%.*s", (int)(slash - path), path);
    if (!folder)
        return err_memory(err, path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0)
        return err_errno(err, path, "open to sync");
    bool ok = fsync(fd) == 0 || err_errno(err, path, "sync to disk");
    close(fd);
    return ok;
}

static bool end_stream(struct file_out *out, bool sync, struct err *err)
{
    bool ok = !ferror(out->stream);
    errno = ok ? 0 : EIO;
    ok = fflush(out->stream) == 0 && ok;
    int cause = errno;
    const char *verb = "write";
    if (ok && sync && fsync(fileno(out->stream)) != 0) {
        ok = false, cause = errno;
        verb = "sync to disk";
    }
    ok = fclose(out->stream) == 0 && ok;
    out->stream = NULL;
    if (!ok) {
        errno = cause ? cause : errno;
        err_errno(err, out->path, verb);
    }
    return ok;
}

static bool put_into_place(struct file_out *out, bool sync, struct err *err)
{
    bool ok = true;
    if (out->stream)
        ok = end_stream(out, sync, err);
    else if (sync && fsync(out->fd) != 0)
        ok = err_errno(err, out->path, "sync to disk");
    if (ok && rename(out->draft, out->path) != 0)
        ok = err_errno(err, out->path, "rename into place");
    ok = ok && (!sync || sync_folder_of(out->path, err));
    file_out_discard(out);
    return ok;
}

bool file_out_commit(struct file_out *out, struct err *err)
{
    return put_into_place(out, true, err);
}

bool file_out_rename(struct file_out *out, struct err *err)
{
    return put_into_place(out, false, err);
}

void file_out_discard(struct file_out *out)
{
    if (out->stream)
        fclose(out->stream);
    if (out->reserved)
        close(out->fd);
    if (out->draft)
        unlink(out->draft); /* already gone after a rename */
    free(out->draft);
    free(out->path);
    *out = (struct file_out){ 0 };
}

bool file_read(const char *path, size_t limit, char **out, size_t *size, struct err *err)
{
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return err_errno(err, path, "open");
    bool ok = false;
    char *text = NULL;
    size_t length = 0, room = 0;
    while (!feof(stream) && !ferror(stream)) {
        if (length + 1 >= room) {
            room = room ? 2 * room : 65536;
            char *larger = realloc(text, room);
            if (!larger) {
                err_memory(err, path);
                goto done;
            }
            text = larger;
        }
        length += fread(text + length, 1, room - length - 1, stream);
        if (length > limit) {
            err_set(err, ERR_FORMAT, "%s: larger than the limit of %zu MB for such a file", path,
                    limit >> 20);
            goto done;
        }
    }
    if (ferror(stream)) {
        err_errno(err, path, "read");
        goto done;
    }
    text[length] = 0;
    *out = text, text = NULL, ok = true;
    if (size)
        *size = length;
done:
    free(text);
    fclose(stream);
    return ok;
}

char *file_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (file_is_folder(path))
        return text_format("%s/%s", path, name);
    return slash ? text_format("%.*s%s", (int)(slash + 1 - path), path, name) : strdup(name);
}

char *file_absolute(const char *path)
{
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    char *absolute = here ? text_format("%s/%s", here, path) : strdup(path);
    free(here);
    return absolute;
}

bool file_copy(const char *from, const char *to, struct err *err)
{
    char piece[1 << 16];
    struct file_out out;
    size_t n;
    FILE *in = fopen(from, "rb");
    if (!in)
        return err_errno(err, from, "open");
    bool ok = file_out_open(&out, to, err);
    if (ok) {
        while ((n = fread(piece, 1, sizeof piece, in)) > 0)
            fwrite(piece, 1, n, out.stream); /* the commit checks the stream */
        if (ferror(in)) {
            file_out_discard(&out);
            ok = err_errno(err, from, "read");
        } else {
            ok = file_out_commit(&out, err);
        }
    }
    fclose(in);
    return ok;
}
