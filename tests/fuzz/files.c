/* files.c: see files.h. */
#include "tests/fuzz/files.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/file.h"
#include "tests/fuzz/fuzz.h"

long fuzz_taken;

int fuzz_memory_file(const uint8_t *bytes, size_t size, char path[32])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

static const char *folder_name(void)
{
    static char name[512];
    const char *scratch = getenv("SCRATCH");
    if (access("/dev/shm", W_OK) == 0) /* thousands of files that are synced */
        scratch = "/dev/shm";
    if (!name[0])
        snprintf(name, sizeof name, "%s/microtome-fuzz.%d", scratch ? scratch : "/tmp",
                 (int)getpid());
    return name;
}

const char *fuzz_folder(void)
{
    fuzz_clear();
    if (!file_make_folder(folder_name(), NULL))
        abort();
    return folder_name();
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

void fuzz_clear(void)
{
    if (file_is_folder(folder_name()) &&
        nftw(folder_name(), remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        abort();
}

void fuzz_write(const char *name, const uint8_t *bytes, size_t size)
{
    char path[1024], parent[1024];
    snprintf(path, sizeof path, "%s/%s", folder_name(), name);
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    FILE *stream = file_make_folder(parent, NULL) ? fopen(path, "wb") : NULL;
    if (!stream || fwrite(bytes, 1, size, stream) != size || fclose(stream) != 0)
        abort();
}

struct fuzz_piece fuzz_next(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size ? memchr(*data, 0, *size) : NULL;
    struct fuzz_piece piece = { *data, end ? (size_t)(end - *data) : *size };
    size_t skip = piece.size + (end != NULL);
    *data += skip, *size -= skip;
    return piece;
}
