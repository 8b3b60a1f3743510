/* lesions.h: points on a slide that are called tumour, each with a score, as in CAMELYON16: a CSV
 * `score,x,y` for every slide, in level-0 pixels. */
#ifndef VERDICT_LESIONS_H
#define VERDICT_LESIONS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct lesion {
    double score, x_l0, y_l0;
};

struct lesion_list {
    struct lesion *items;
    int64_t n, room;
};

/* With or without a header; an empty file is a list without lesions. Errors name the line of a cell
 * that is not a finite number. *out is the caller's; free with lesions_free. */
bool lesions_read(const char *path, struct lesion_list *out, struct err *err);
/* The same from memory, for fuzzing; path is only used in messages. */
bool lesions_parse(const char *text, size_t size, const char *path, struct lesion_list *out,
                   struct err *err);
/* With a header; written beside and renamed. */
bool lesions_write(const char *path, const struct lesion_list *list, struct err *err);
bool lesions_add(struct lesion_list *list, struct lesion lesion, struct err *err);
void lesions_free(struct lesion_list *list); /* also fine on a zeroed struct */
#endif
