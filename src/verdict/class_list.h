/* class_list.h: the classes of a table or a model, in the order of their numbers. */
#ifndef VERDICT_CLASS_LIST_H
#define VERDICT_CLASS_LIST_H
#include <stdbool.h>
#include <stddef.h>
#include "base/csv.h"

#define CLASS_LIST_MOST 1000

struct class_list {
    char **names; /* [n], each once */
    size_t n;
};

/* The caller owns the list; free with class_list_free, also after a failure. */
bool class_list_add(struct class_list *list, const char *name, size_t length, struct err *err);
void class_list_free(struct class_list *list); /* also fine on a zeroed struct */

/* "normal,tumor". `option` is used in messages. */
bool class_list_parse(const char *text, const char *option, struct class_list *out,
                      struct err *err);
/* The classes of the columns prob_<class>, in the order of the columns; none: an empty list.
 * The same column twice is an error. */
bool class_list_of_columns(const struct csv *csv, struct class_list *out, struct err *err);
/* The columns of those classes: columns [n]. */
bool class_list_columns(const struct class_list *list, const struct csv *csv, int *columns,
                        struct err *err);

/* The number of a class by its name (if no name is the same, case does not matter, and tumour is
 * tumor), else by its number from 0; -1: not in the list. */
int class_list_find(const struct class_list *list, const char *text);
/* The same by its name only. */
int class_list_find_name(const struct class_list *list, const char *name);
#endif
