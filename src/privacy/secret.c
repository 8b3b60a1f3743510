/* secret.c: see secret.h. */
#include "privacy/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

bool secret_start(struct err *err)
{
    return sodium_init() >= 0 || err_set(err, ERR_MISSING, "libsodium: cannot start");
}

bool secret_draw(struct secret *out, struct err *err)
{
    size_t have = 0;
    while (have < SECRET_BYTES) {
        ssize_t got = getrandom(out->key + have, SECRET_BYTES - have, 0);
        if (got < 0 && errno != EINTR)
            return err_errno(err, "random numbers of the kernel", "read");
        have += got > 0 ? (size_t)got : 0;
    }
    return true;
}

void secret_forget(struct secret *secret)
{
    sodium_memzero(secret->key, SECRET_BYTES);
}

static bool write_all(int fd, const uint8_t *bytes)
{
    size_t done = 0;
    while (done < SECRET_BYTES) {
        ssize_t n = pwrite(fd, bytes + done, SECRET_BYTES - done, (off_t)done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) == 0;
}

/* The name of a new file is on disk once its folder is. */
static bool sync_folder(const char *path, struct err *err)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    free(copy);
    return ok || err_errno(err, path, "sync the folder");
}

bool secret_create(const char *path, struct secret *out, struct err *err)
{
    if (!secret_draw(out, err))
        return false;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, path, "create");
    bool ok = fchmod(fd, 0600) == 0 && write_all(fd, out->key);
    if (!ok)
        err_errno(err, path, "write");
    if (close(fd) != 0 && ok)
        ok = err_errno(err, path, "write");
    ok = ok && sync_folder(path, err);
    if (!ok) {
        unlink(path);
        secret_forget(out);
    }
    return ok;
}

/* Of this user, for nobody else, and of the right size. */
static bool check_file(int fd, const char *path, struct err *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return err_errno(err, path, "read");
    if (!S_ISREG(info.st_mode) || info.st_size != SECRET_BYTES)
        return err_set(err, ERR_FORMAT, "%s: not a key of %d bytes; pass --overwrite to start over",
                       path, SECRET_BYTES);
    if (info.st_uid != geteuid() || (info.st_mode & 077))
        return err_set(err, ERR_USAGE,
                       "%s: others may have read the key (mode %03o), and with it the noise can be "
                       "subtracted; pass --overwrite to start over with a new one",
                       path, (unsigned)info.st_mode & 0777);
    return true;
}

bool secret_open(const char *path, struct secret *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, path, "open");
    bool ok = check_file(fd, path, err);
    if (ok && read(fd, out->key, SECRET_BYTES) != SECRET_BYTES)
        ok = err_errno(err, path, "read");
    close(fd);
    return ok;
}

bool secret_destroy(const char *path, struct err *err)
{
    static const uint8_t zeros[SECRET_BYTES];
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return true;
    bool ok = fd >= 0 && write_all(fd, zeros);
    if (fd >= 0)
        ok &= close(fd) == 0;
    ok &= unlink(path) == 0;
    return ok || err_errno(err, path, "destroy");
}
