/* store_classes.c: see store_classes.h. */
#include "patch/store_classes.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CLASSES 128 /* labels are bytes with a sign */

int class_names_find(const struct class_names *names, const char *name)
{
    for (int i = 0; i < names->n; i++)
        if (strcmp(names->items[i], name) == 0)
            return i;
    return -1;
}

static bool take_names(const json_t *list, const char *path, struct class_names *out,
                       struct err *err)
{
    size_t n = json_array_size(list);
    if (n == 0 || n > MOST_CLASSES)
        return err_set(err, ERR_FORMAT, "%s: class_names is not a list of 1 to %d names", path,
                       MOST_CLASSES);
    out->items = calloc(n, sizeof *out->items);
    if (!out->items)
        return err_memory(err, path);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || !*name || class_names_find(out, name) >= 0)
            return err_set(err, ERR_FORMAT,
                           "%s: class_names: name %zu is empty, not text, or there twice", path,
                           i + 1);
        out->items[i] = strdup(name);
        if (!out->items[i])
            return err_memory(err, path);
        out->n++;
    }
    return true;
}

bool class_names_parse(const char *json, const char *path, struct class_names *out, struct err *err)
{
    *out = (struct class_names){ 0 };
    if (!*json)
        return true;
    json_t *list = json_loads(json, 0, NULL);
    bool ok = take_names(list, path, out, err);
    json_decref(list);
    if (!ok)
        class_names_free(out);
    return ok;
}

void class_names_free(struct class_names *names)
{
    for (int i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct class_names){ 0 };
}
