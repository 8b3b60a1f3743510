/* patch.c: see patch.h. */
#include "patch/patch.h"

#include <stdlib.h>

bool patch_list_add(struct patch_list *list, const struct patch *patch, struct err *err)
{
    if (list->n == list->room) {
        int64_t room = list->room ? 2 * list->room : 1024;
        struct patch *more = realloc(list->items, (size_t)room * sizeof *more);
        if (!more)
            return err_memory(err, "the list of patches");
        list->items = more;
        list->room = room;
    }
    list->items[list->n++] = *patch;
    return true;
}

/* Patches at one place are equal in all that is stored but the label, which settles the order. */
static int by_place(const void *a_, const void *b_)
{
    const struct patch *a = a_, *b = b_;
    if (a->y != b->y)
        return a->y < b->y ? -1 : 1;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return (a->label > b->label) - (a->label < b->label);
}

void patch_list_sort(struct patch_list *list)
{
    if (list->n > 1)
        qsort(list->items, (size_t)list->n, sizeof *list->items, by_place);
}

void patch_list_free(struct patch_list *list)
{
    free(list->items);
    *list = (struct patch_list){ 0 };
}
