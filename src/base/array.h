/* array.h: arrays that grow. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H
#include <stdint.h>
#include "base/err.h"

/* Room for `need` items of `size` bytes in the array that the pointer at `array` holds (its address
 * is given: array_grow(&list->items, ...)), which has *room; at least doubled, so that adding one
 * by one costs little. `what` names it where there is no memory; the array then stays as it is. */
bool array_grow(void *array, int64_t *room, int64_t need, size_t size, const char *what,
                struct err *err);
#endif
