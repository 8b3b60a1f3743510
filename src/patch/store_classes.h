/* store_classes.h: the names of a store's classes, as they are kept in it: a JSON list. */
#ifndef PATCH_STORE_CLASSES_H
#define PATCH_STORE_CLASSES_H
#include "base/err.h"

struct class_names {
    char **items;
    int n;
};

/* json "": none. path is used in messages. The caller owns *out; free with class_names_free. */
bool class_names_parse(const char *json, const char *path, struct class_names *out,
                       struct err *err);
void class_names_free(struct class_names *names); /* also fine on a zeroed struct */
/* -1 if there is none of that name. */
int class_names_find(const struct class_names *names, const char *name);
#endif
