/* room.h: address space under a limit (ulimit -v, Grid Engine's h_vmem). Some libraries abort,
 * crash or hang if an allocation fails, so it is checked first. */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H
#include <stdbool.h>
#include <stddef.h>

/* Could `bytes` more be mapped? Always true if no limit is set. */
bool room_for(size_t bytes);

/* The limit in bytes; 0: none. */
size_t room_limit(void);
#endif
