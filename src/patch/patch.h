/* patch.h: a place on a slide that is worth storing, and lists of them. */
#ifndef PATCH_PATCH_H
#define PATCH_PATCH_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

#define PATCH_UNLABELED (-1)

struct patch {
    int64_t x, y;        /* top-left of what is stored, raster pixels; may be negative */
    int64_t x_l0, y_l0;  /* the same corner in level-0 pixels */
    int64_t column, row; /* of the dense grid; -1 when drawn at random */
    float tissue, tumor; /* fractions of the tile (the patch without its margin) */
    float target;        /* a number to be learnt, if the store has targets; NaN: none is known */
    int8_t label;        /* a class, PATCH_UNLABELED, or the slide's own label */
};

/* Row by row, in each row from left to right. */
struct patch_list {
    struct patch *items;
    int64_t n, room;
};

bool patch_list_add(struct patch_list *list, const struct patch *patch, struct err *err);
/* By row, then column of the raster, then label. */
void patch_list_sort(struct patch_list *list);
void patch_list_free(struct patch_list *list); /* also fine on a zeroed struct */
#endif
