/* direct.c: see direct.h. Direct writes need the offset, the length and the address on page
 * boundaries: a stretch of adjacent pieces lies in memory at the same distance from a page boundary
 * as in the file, its whole pages are written directly and its ragged ends through the page cache.
 * No page is written in both ways. */
#include "patch/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

struct stretch {
    int64_t offset, bytes; /* in the file */
    int64_t at;            /* in the buffer */
};

struct batch {
    uint8_t *buffer;
    int64_t used;
    struct stretch *stretches;
    int64_t n_stretches, room;
};

struct direct {
    char *name;
    int direct_fd, cached_fd; /* direct_fd is -1 where the file system cannot */
    int64_t capacity;
    struct batch batches[2];
    int filling; /* the batch that direct_place fills; the other one is the thread's if busy */
    pthread_t thread;
    bool has_thread, busy, closing;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int failure; /* errno of the first failed write */
};

int64_t direct_batch_pieces(int64_t batch_bytes, int64_t piece_bytes)
{
    int64_t pieces = batch_bytes / (piece_bytes + 2 * PAGE); /* each may start a separate stretch */
    return pieces > 0 ? pieces : 1;
}

static int write_all(int fd, const uint8_t *data, int64_t bytes, int64_t offset)
{
    while (bytes > 0) {
        ssize_t written = pwrite(fd, data, (size_t)bytes, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        data += written;
        offset += written;
        bytes -= written;
    }
    return 0;
}

static int write_cached(struct direct *direct, const uint8_t *data, int64_t bytes, int64_t offset)
{
    int failure = write_all(direct->cached_fd, data, bytes, offset);
    if (!failure && bytes >= PAGE) /* begin now what the sync at the end would wait for */
        sync_file_range(direct->cached_fd, offset, bytes, SYNC_FILE_RANGE_WRITE);
    return failure;
}

static int write_stretch(struct direct *direct, const uint8_t *data, int64_t bytes, int64_t offset)
{
    int64_t first = (offset + PAGE - 1) / PAGE * PAGE, last = (offset + bytes) / PAGE * PAGE;
    if (direct->direct_fd < 0 || last <= first)
        return write_cached(direct, data, bytes, offset);
    int failure = write_all(direct->direct_fd, data + (first - offset), last - first, first);
    if (failure == EINVAL) { /* opened, but cannot after all */
        close(direct->direct_fd);
        direct->direct_fd = -1;
        return write_cached(direct, data, bytes, offset);
    }
    if (!failure && first > offset)
        failure = write_cached(direct, data, first - offset, offset);
    if (!failure && last < offset + bytes)
        failure = write_cached(direct, data + (last - offset), offset + bytes - last, last);
    return failure;
}

static void *writer_main(void *argument)
{
    struct direct *direct = argument;
    pthread_mutex_lock(&direct->mutex);
    for (;;) {
        while (!direct->busy && !direct->closing)
            pthread_cond_wait(&direct->changed, &direct->mutex);
        if (!direct->busy)
            break;
        struct batch *batch = &direct->batches[1 - direct->filling];
        pthread_mutex_unlock(&direct->mutex);
        int failure = 0;
        for (int64_t i = 0; i < batch->n_stretches && !failure; i++)
            failure = write_stretch(direct, batch->buffer + batch->stretches[i].at,
                                    batch->stretches[i].bytes, batch->stretches[i].offset);
        pthread_mutex_lock(&direct->mutex);
        if (!direct->failure)
            direct->failure = failure;
        batch->used = batch->n_stretches = 0;
        direct->busy = false;
        pthread_cond_broadcast(&direct->changed);
    }
    pthread_mutex_unlock(&direct->mutex);
    return NULL;
}

static bool take_space(struct direct *direct, struct err *err)
{
    struct stat status;
    if (fstat(direct->cached_fd, &status) != 0)
        return err_errno(err, direct->name, "open");
    if (status.st_size == 0 || fallocate(direct->cached_fd, 0, 0, status.st_size) == 0 ||
        errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)
        return true;
    int cause = errno;
    return err_set(err, ERR_IO, "%s: cannot reserve %.1f MB of disk space: %s", direct->name,
                   (double)status.st_size / 1e6, strerror(cause));
}

static bool get_buffers(struct direct *direct, int64_t batch_bytes, struct err *err)
{
    direct->capacity = (batch_bytes + 4 * PAGE) / PAGE * PAGE;
    for (int i = 0; i < 2; i++) {
        direct->batches[i].buffer = aligned_alloc(PAGE, (size_t)direct->capacity);
        if (!direct->batches[i].buffer)
            return err_memory(err, "the pixels to be written");
    }
    return true;
}

bool direct_open(const char *path, const char *name, int64_t batch_bytes, struct direct **out,
                 struct err *err)
{
    struct direct *direct = calloc(1, sizeof *direct);
    if (!direct)
        return err_memory(err, "the pixels to be written");
    direct->direct_fd = -1;
    pthread_mutex_init(&direct->mutex, NULL);
    pthread_cond_init(&direct->changed, NULL);
    direct->name = strdup(name);
    direct->cached_fd = open(path, O_RDWR | O_CLOEXEC);
    bool ok = direct->name ? direct->cached_fd >= 0 || err_errno(err, name, "open")
                           : err_memory(err, name);
    ok = ok && take_space(direct, err) && get_buffers(direct, batch_bytes, err);
    if (ok) {
        direct->direct_fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
        direct->has_thread = pthread_create(&direct->thread, NULL, writer_main, direct) == 0;
        if (!direct->has_thread)
            ok = err_set(err, ERR_MEMORY, "%s: cannot start a thread to write it", name);
    }
    if (!ok) {
        direct_close(direct);
        return false;
    }
    *out = direct;
    return true;
}

static struct stretch *new_stretch(struct batch *batch)
{
    if (batch->n_stretches == batch->room) {
        int64_t room = batch->room ? 2 * batch->room : 64;
        struct stretch *more = realloc(batch->stretches, (size_t)room * sizeof *more);
        if (!more)
            return NULL;
        batch->stretches = more;
        batch->room = room;
    }
    return &batch->stretches[batch->n_stretches++];
}

uint8_t *direct_place(struct direct *direct, int64_t offset, int64_t bytes)
{
    struct batch *batch = &direct->batches[direct->filling];
    struct stretch *last = batch->n_stretches ? &batch->stretches[batch->n_stretches - 1] : NULL;
    bool adjacent = last && last->offset + last->bytes == offset;
    int64_t at = batch->used;
    if (!adjacent)
        at = (at + PAGE - 1) / PAGE * PAGE + offset % PAGE;
    if (at + bytes > direct->capacity)
        return NULL;
    if (adjacent) {
        last->bytes += bytes;
    } else {
        struct stretch *stretch = new_stretch(batch);
        if (!stretch)
            return NULL;
        *stretch = (struct stretch){ .offset = offset, .bytes = bytes, .at = at };
    }
    batch->used = at + bytes;
    return batch->buffer + at;
}

/* Waits until the thread is idle. */
static bool wait_idle(struct direct *direct, struct err *err)
{
    while (direct->busy)
        pthread_cond_wait(&direct->changed, &direct->mutex);
    errno = direct->failure;
    return direct->failure ? err_errno(err, direct->name, "write") : true;
}

bool direct_submit(struct direct *direct, struct err *err)
{
    pthread_mutex_lock(&direct->mutex);
    bool ok = wait_idle(direct, err);
    if (ok) {
        direct->filling = 1 - direct->filling;
        direct->busy = true;
        pthread_cond_broadcast(&direct->changed);
    }
    pthread_mutex_unlock(&direct->mutex);
    return ok;
}

bool direct_finish(struct direct *direct, struct err *err)
{
    bool ok = direct_submit(direct, err);
    pthread_mutex_lock(&direct->mutex);
    ok = ok && wait_idle(direct, err);
    pthread_mutex_unlock(&direct->mutex);
    if (ok && fsync(direct->cached_fd) != 0)
        ok = err_errno(err, direct->name, "sync to disk");
    if (ok && close(direct->cached_fd) != 0)
        ok = err_errno(err, direct->name, "close");
    if (ok)
        direct->cached_fd = -1;
    direct_close(direct);
    return ok;
}

void direct_close(struct direct *direct)
{
    if (!direct)
        return;
    if (direct->has_thread) {
        pthread_mutex_lock(&direct->mutex);
        direct->closing = true;
        pthread_cond_broadcast(&direct->changed);
        pthread_mutex_unlock(&direct->mutex);
        pthread_join(direct->thread, NULL);
    }
    if (direct->direct_fd >= 0)
        close(direct->direct_fd);
    if (direct->cached_fd >= 0)
        close(direct->cached_fd);
    for (int i = 0; i < 2; i++) {
        free(direct->batches[i].buffer);
        free(direct->batches[i].stretches);
    }
    pthread_cond_destroy(&direct->changed);
    pthread_mutex_destroy(&direct->mutex);
    free(direct->name);
    free(direct);
}
