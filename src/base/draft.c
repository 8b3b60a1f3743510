/* draft.c: see draft.h. */
#include "base/draft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_KEPT                                                                                  \
    180 /* of the name, so that the whole stays below the 255 bytes of file systems                \
         */
#define TRIES 16
#define OLD_S (7 * 24 * 3600)

/* Of the host and, because containers share its name, of the process namespace. */
static uint32_t host_hash(void)
{
    char text[256] = "";
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    gethostname(text, 128);
    size_t used = strlen(text);
    ssize_t more = readlink("/proc/self/ns/pid", text + used, sizeof text - used - 1);
    if (more > 0)
        text[used + (size_t)more] = 0;
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    return hash;
}

int draft_create(const char *path, char **name, struct err *err)
{
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    int fd = -1;
    errno = EEXIST;
    for (int i = 0; i < TRIES && fd < 0 && errno == EEXIST; i++) {
        uint64_t chance = 0;
        if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
            chance = (uint64_t)time(NULL) * UINT64_C(6364136223846793005) + (uint64_t)i;
        if (asprintf(name, "%.*s%.*s.%08x-%x-%016llx.part", (int)(stem - path), path, NAME_KEPT,
                     stem, host_hash(), (unsigned)getpid(), (unsigned long long)chance) < 0) {
            *name = NULL;
            err_memory(err, path);
            return -1;
        }
        fd = open(*name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0) {
            int cause = errno;
            free(*name);
            *name = NULL;
            errno = cause;
        }
    }
    if (fd < 0)
        err_errno(err, path, "write");
    return fd;
}

static bool is_dead(int folder, const char *name, uint32_t here)
{
    static const char pattern[] = ".00000000-0-0000000000000000.part"; /* the shortest end of one */
    size_t length = strlen(name), whole = 0;
    unsigned host = 0, pid = 0;
    unsigned long long chance = 0;
    int n = 0;
    if (length < sizeof pattern || strcmp(name + length - 5, ".part") != 0)
        return false;
    const char *at = name + length - 6;
    for (; at > name && *at != '.'; at--)
        whole++;
    if (sscanf(at, ".%8x-%8x-%16llx.part%n", &host, &pid, &chance, &n) != 3 ||
        (size_t)n != whole + 6)
        return false;
    struct stat status;
    if (host == here)
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           difftime(time(NULL), status.st_mtime) > OLD_S;
}

void draft_sweep(const char *folder)
{
    uint32_t here = host_hash();
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_dead(dirfd(dir), entry->d_name, here))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}
