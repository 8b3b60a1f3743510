/* room.h: the memory of this process. Address space under a limit (ulimit -v, Grid Engine's
 * h_vmem): some libraries abort, crash or hang if an allocation fails, so it is checked first. And
 * what it takes and took of the machine's memory. */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H
#include <stdbool.h>
#include <stddef.h>

/* Could `bytes` more be mapped? Always true if no limit is set. */
bool room_for(size_t bytes);

/* The limit in bytes; 0: none. */
size_t room_limit(void);

/* Resident bytes: now, and the most there ever were. 0: unknown. */
size_t room_resident(void);
size_t room_peak(void);
#endif
