/* tile_cache_room.c: see tile_cache_room.h. */
#include "slide/tile_cache_room.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/folder.h"
#include "base/text.h"
#include "slide/tile_cache.h"

struct kept {
    char *path;
    struct timespec used;
    int64_t bytes;
};

static int by_age(const void *a, const void *b)
{
    const struct kept *first = a, *second = b;
    if (first->used.tv_sec != second->used.tv_sec)
        return first->used.tv_sec < second->used.tv_sec ? -1 : 1;
    return (first->used.tv_nsec > second->used.tv_nsec) -
           (first->used.tv_nsec < second->used.tv_nsec);
}

/* The regular files of the names, with their sizes; how many there are. */
static size_t look(const char *folder, char *const *names, size_t n, struct kept *out)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        struct stat status;
        char *path = text_format("%s/%s", folder, names[i]);
        if (path && lstat(path, &status) == 0 && S_ISREG(status.st_mode))
            out[found++] = (struct kept){ path, status.st_mtim, status.st_size };
        else
            free(path);
    }
    return found;
}

static bool remove_oldest(const char *folder, int64_t bytes, struct err *err)
{
    static const char *const endings[] = { TILE_CACHE_ENDING, NULL };
    char **names = NULL;
    size_t n = 0;
    if (!folder_names(folder, endings, &names, &n, err))
        return false;
    struct kept *files = calloc(n + 1, sizeof *files);
    size_t found = files ? look(folder, names, n, files) : 0;
    int64_t total = bytes;
    for (size_t i = 0; i < found; i++)
        total += files[i].bytes;
    if (found > 0)
        qsort(files, found, sizeof *files, by_age);
    for (size_t i = 0; i < found; i++) {
        if (total > TILE_CACHE_MAX_BYTES && unlink(files[i].path) == 0)
            total -= files[i].bytes;
        free(files[i].path);
    }
    folder_names_free(names, n);
    bool ok = files || err_memory(err, folder);
    free(files);
    return ok;
}

bool tile_cache_make_room(const char *folder, int64_t bytes, struct err *err)
{
    struct statvfs disk;
    if (!remove_oldest(folder, bytes, err))
        return false;
    if (statvfs(folder, &disk) != 0)
        return true; /* the writes will tell */
    double left = (double)disk.f_bavail * (double)disk.f_frsize;
    return left >= (double)bytes ||
           err_set(err, ERR_IO, "%s: only %.0f MB of disk space left", folder, left / (1 << 20));
}
