/* room.c: see room.h. */
#include "base/room.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

size_t room_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    return (size_t)limit.rlim_cur;
}

bool room_for(size_t bytes)
{
    if (room_limit() == 0)
        return true;
    void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return false;
    munmap(room, bytes);
    return true;
}

size_t room_resident(void)
{
    FILE *stream = fopen("/proc/self/statm", "r");
    unsigned long long mapped = 0, resident = 0;
    if (!stream)
        return 0;
    bool ok = fscanf(stream, "%llu %llu", &mapped, &resident) == 2;
    fclose(stream);
    return ok ? (size_t)resident * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

size_t room_peak(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (size_t)usage.ru_maxrss * 1024 : 0;
}
