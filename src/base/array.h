/* array.h: arrays that grow. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H
#include <stdint.h>
#include "base/err.h"

/* Makes room for `need` items of `size` bytes in an array that has room for *room. `array` is the
 * address of the pointer to it: array_grow(&list->items, ...). The array is at least doubled, so
 * that adding items one by one costs little. `what` names it if memory runs out; the array is then
 * unchanged. */
bool array_grow(void *array, int64_t *room, int64_t need, size_t size, const char *what,
                struct err *err);
#endif
