/* array.c: see array.h. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

bool array_grow(void *array, int64_t *room, int64_t need, size_t size, const char *what,
                struct err *err)
{
    if (need <= *room)
        return true;
    int64_t more = *room ? *room * 2 : FIRST_ROOM;
    more = more < need ? need : more;
    void *items;
    memcpy(&items, array, sizeof items);
    items = reallocarray(items, (size_t)more, size);
    if (!items)
        return err_memory(err, what);
    memcpy(array, &items, sizeof items);
    *room = more;
    return true;
}
