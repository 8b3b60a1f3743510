/* spill_file.c: see spill_file.h. */
#include "net/stream/spill_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct spill_file {
    int fd;
    bool direct;
    char folder[];
};

#define REMEDY                                                                                     \
    "choose another folder for the strips (train.spill, --spill), or raise the memory limit"

/* Names the folder, the fact and the remedy. */
static bool refuse(const struct spill_file *file, const char *what, int cause, struct err *err)
{
    bool full = cause == ENOSPC || cause == EDQUOT || cause == EFBIG;
    return err_set(err, ERR_IO, "%s: cannot %s: %s; %s" REMEDY, file->folder, what, strerror(cause),
                   full ? "free space there, " : "");
}

static int open_without_name(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    static const char name[] = "/.strips-XXXXXX"; /* a file system that has no such files */
    size_t length = strlen(folder);
    char *path = malloc(length + sizeof name);
    if (!path)
        return -1;
    memcpy(path, folder, length);
    memcpy(path + length, name, sizeof name);
    fd = mkostemp(path, O_CLOEXEC);
    int cause = errno;
    if (fd >= 0 && unlink(path) != 0) {
        cause = errno;
        close(fd);
        fd = -1;
    }
    free(path);
    errno = cause;
    return fd;
}

bool spill_file_new(const char *folder, struct spill_file **out, struct err *err)
{
    size_t length = strlen(folder) + 1;
    struct spill_file *file = malloc(sizeof *file + length);
    if (!file)
        return err_memory(err, "the file of strips");
    memcpy(file->folder, folder, length);
    file->fd = open_without_name(folder);
    if (file->fd < 0) {
        refuse(file, "create a file for strips", errno, err);
        spill_file_free(file);
        return false;
    }
    file->direct = fcntl(file->fd, F_SETFL, O_DIRECT) == 0;
    *out = file;
    return true;
}

bool spill_file_reserve(struct spill_file *file, int64_t bytes, struct err *err)
{
    char what[80];
    if (fallocate(file->fd, 0, 0, bytes) == 0 || errno == EOPNOTSUPP || errno == ENOSYS ||
        errno == EINVAL)
        return true;
    snprintf(what, sizeof what, "reserve %.1f MB for strips", (double)bytes / (1 << 20));
    return refuse(file, what, errno, err);
}

void spill_file_free(struct spill_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    free(file);
}

/* For a file system that promises direct transfers but refuses this one. */
static bool can_fall_back(struct spill_file *file, int cause)
{
    if (cause != EINVAL || !file->direct || fcntl(file->fd, F_SETFL, 0) != 0)
        return false;
    file->direct = false;
    return true;
}

bool spill_file_write(struct spill_file *file, const void *data, int64_t bytes, int64_t offset,
                      struct err *err)
{
    for (int64_t done = 0; done < bytes;) {
        ssize_t step = pwrite(file->fd, (const char *)data + done, (size_t)(bytes - done),
                              (off_t)(offset + done));
        if (step > 0)
            done += step;
        else if (step == 0)
            return refuse(file, "write strips", ENOSPC, err);
        else if (errno != EINTR && !can_fall_back(file, errno))
            return refuse(file, "write strips", errno, err);
    }
    return true;
}

bool spill_file_read(struct spill_file *file, void *data, int64_t bytes, int64_t offset,
                     struct err *err)
{
    for (int64_t done = 0; done < bytes;) {
        ssize_t step =
            pread(file->fd, (char *)data + done, (size_t)(bytes - done), (off_t)(offset + done));
        if (step > 0)
            done += step;
        else if (step == 0)
            return err_set(err, ERR_IO,
                           "%s: the file of strips ends after %lld of %lld bytes that were written "
                           "to it; check that disk, or " REMEDY,
                           file->folder, (long long)(offset + done), (long long)(offset + bytes));
        else if (errno != EINTR && !can_fall_back(file, errno))
            return refuse(file, "read strips back", errno, err);
    }
    return true;
}

bool spill_file_is_direct(const struct spill_file *file)
{
    return file->direct;
}
