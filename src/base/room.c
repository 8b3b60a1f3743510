/* room.c: see room.h. */
#include "base/room.h"

#include <sys/mman.h>
#include <sys/resource.h>

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
