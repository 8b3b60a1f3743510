/* tile_cache.c: see tile_cache.h. A header of 4096 bytes with the key as text, then the tiles row
 * by row of the grid, uncompressed. */
#include "slide/tile_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/divide.h"
#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "slide/slide_identity.h"
#include "slide/tile_cache_room.h"

#define HEADER_BYTES 4096
#define MAGIC "microtome-tiles 1\n"

struct tile_cache {
    char header[HEADER_BYTES];
    char *slide, *path; /* the file's final name */
    int fd;
    bool own_fd; /* else the draft's */
    int64_t columns, tile_width, tile_height, bytes;
    atomic_bool write_failed;
};

static int64_t tile_bytes(const struct tile_cache *cache)
{
    return 3 * cache->tile_width * cache->tile_height;
}

int64_t tile_cache_bytes(const struct tile_cache_key *key)
{
    return HEADER_BYTES + 3 * key->tile_width * key->tile_height *
                              ceil_div(key->width, key->tile_width) *
                              ceil_div(key->height, key->tile_height);
}

char *tile_cache_home(void)
{
    const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given && given[0] == '/')
        return text_format("%s/microtome", given);
    return home && home[0] == '/' ? text_format("%s/.cache/microtome", home) : NULL;
}

void tile_cache_close(struct tile_cache *cache)
{
    if (!cache)
        return;
    if (cache->own_fd)
        close(cache->fd);
    free(cache->slide);
    free(cache->path);
    free(cache);
}

/* The time of the last change counts too: a tile may be edited where the identity takes no sample.
 */
static bool write_header(struct tile_cache *cache, const struct tile_cache_key *key,
                         struct err *err)
{
    struct identity identity;
    struct stat status;
    char inputs[INPUTS_ROOM] = "";
    if (!slide_identity(key->slide, &identity, err))
        return false;
    if (stat(key->slide, &status) != 0)
        return err_errno(err, key->slide, "read");
    inputs_add(inputs, "slide", &identity);
    snprintf(cache->header, sizeof cache->header,
             MAGIC "program=" MICROTOME_VERSION
                   " %s modified=%lld.%09ld\n%s\n%lld x %lld px, tiles %lld x %lld\n",
             inputs, (long long)status.st_mtim.tv_sec, (long)status.st_mtim.tv_nsec, key->what,
             (long long)key->width, (long long)key->height, (long long)key->tile_width,
             (long long)key->tile_height);
    return true;
}

static bool new_cache(const char *folder, const struct tile_cache_key *key, struct tile_cache **out,
                      struct err *err)
{
    struct tile_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return err_memory(err, key->slide);
    *out = cache;
    cache->columns = ceil_div(key->width, key->tile_width);
    cache->tile_width = key->tile_width;
    cache->tile_height = key->tile_height;
    cache->bytes = tile_cache_bytes(key);
    if (!write_header(cache, key, err))
        return false;
    char *stem = file_stem(key->slide);
    uint64_t hash = identity_hash(IDENTITY_HASH_BEGIN, cache->header, strlen(cache->header));
    cache->slide = strdup(key->slide);
    cache->path = stem ? text_format("%s/%.128s-%016llx" TILE_CACHE_ENDING, folder, stem,
                                     (unsigned long long)hash)
                       : NULL;
    free(stem);
    return (cache->slide && cache->path) || err_memory(err, key->slide);
}

/* Opens the file if it exists and is what it should be. */
static bool open_made(struct tile_cache *cache)
{
    char header[HEADER_BYTES];
    struct stat status;
    int fd = open(cache->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    if (fstat(fd, &status) != 0 || status.st_size != cache->bytes ||
        pread(fd, header, sizeof header, 0) != HEADER_BYTES ||
        memcmp(header, cache->header, HEADER_BYTES) != 0) {
        close(fd);
        return false;
    }
    futimens(fd, NULL); /* used just now: removed last; only a hint */
    cache->fd = fd;
    cache->own_fd = true;
    return true;
}

/* Adds what it is about and what to do to the reason why the folder cannot be used. */
static bool cannot_keep(const struct tile_cache *cache, struct err *err)
{
    if (!err)
        return false;
    struct err why = *err;
    return err_set(err, why.kind,
                   "%s: its decoded tiles (%.0f MB) cannot be kept: %s; pass --cache DIR to use "
                   "another folder",
                   cache->slide, (double)cache->bytes / (1 << 20), why.text);
}

static bool write_file(struct tile_cache *cache, tile_cache_fill fill, void *arg, struct err *err)
{
    struct file_out out;
    if (!file_out_reserve(&out, cache->path, err))
        return cannot_keep(cache, err);
    cache->fd = out.fd;
    bool ok = pwrite(out.fd, cache->header, HEADER_BYTES, 0) == HEADER_BYTES &&
              ftruncate(out.fd, (off_t)cache->bytes) == 0;
    if (!ok) {
        err_errno(err, cache->path, "write");
        cache->write_failed = true;
    }
    ok = ok && fill(arg, cache, err);
    cache->fd = -1;
    if (!ok) {
        file_out_discard(&out);
        return cache->write_failed ? cannot_keep(cache, err) : false;
    }
    return file_out_commit(&out, err) || cannot_keep(cache, err);
}

/* One process makes a file; others that want it wait here. Without locks several make the same one,
 * and the last is kept. */
static int lock(const struct tile_cache *cache, char **name)
{
    *name = text_format("%s.lock", cache->path);
    int fd = *name ? open(*name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666) : -1;
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    return fd;
}

static void unlock(int fd, char *name)
{
    if (fd >= 0) {
        unlink(name);
        close(fd);
    }
    free(name);
}

static bool make(const char *folder, struct tile_cache *cache, tile_cache_fill fill, void *arg,
                 struct err *err)
{
    if (!file_make_folder(folder, err))
        return cannot_keep(cache, err);
    char *name = NULL;
    int fd = lock(cache, &name);
    bool ok = open_made(cache);
    if (!ok) {
        unlink(cache->path); /* of this name, but truncated or damaged */
        ok = (tile_cache_make_room(folder, cache->bytes, err) || cannot_keep(cache, err)) &&
             write_file(cache, fill, arg, err);
        ok = ok &&
             (open_made(cache) ||
              err_set(err, ERR_IO, "%s: was removed while it was made; try again", cache->path));
    }
    unlock(fd, name);
    return ok;
}

bool tile_cache_open(const char *folder, const struct tile_cache_key *key, tile_cache_fill fill,
                     void *arg, struct tile_cache **out, struct err *err)
{
    struct tile_cache *cache = NULL;
    bool ok = new_cache(folder, key, &cache, err) &&
              (open_made(cache) || make(folder, cache, fill, arg, err));
    if (ok)
        *out = cache;
    else
        tile_cache_close(cache);
    return ok;
}

static int64_t tile_offset(const struct tile_cache *cache, int64_t column, int64_t row)
{
    return HEADER_BYTES + (row * cache->columns + column) * tile_bytes(cache);
}

static void list_rows(const struct tile_cache *cache, const uint8_t *px, int64_t stride_bytes,
                      struct iovec rows[TILE_CACHE_MAX_TILE_PX])
{
    for (int64_t y = 0; y < cache->tile_height; y++)
        rows[y] =
            (struct iovec){ (void *)(px + y * stride_bytes), (size_t)(3 * cache->tile_width) };
}

bool tile_cache_put(struct tile_cache *cache, int64_t column, int64_t row, const uint8_t *px,
                    int64_t stride_bytes, struct err *err)
{
    struct iovec rows[TILE_CACHE_MAX_TILE_PX];
    list_rows(cache, px, stride_bytes, rows);
    errno = ENOSPC; /* what a short write means */
    if (pwritev(cache->fd, rows, (int)cache->tile_height, (off_t)tile_offset(cache, column, row)) ==
        tile_bytes(cache))
        return true;
    cache->write_failed = true;
    return err_errno(err, cache->path, "write");
}

bool tile_cache_get(const struct tile_cache *cache, int64_t column, int64_t row, uint8_t *px,
                    int64_t stride_bytes, struct err *err)
{
    struct iovec rows[TILE_CACHE_MAX_TILE_PX];
    list_rows(cache, px, stride_bytes, rows);
    ssize_t n =
        preadv(cache->fd, rows, (int)cache->tile_height, (off_t)tile_offset(cache, column, row));
    if (n == tile_bytes(cache))
        return true;
    return n < 0 ? err_errno(err, cache->path, "read")
                 : err_set(err, ERR_IO, "%s: is truncated; remove it and try again", cache->path);
}
