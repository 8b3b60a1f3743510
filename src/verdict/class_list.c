/* class_list.c: see class_list.h. */
#include "verdict/class_list.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/text.h"

#define COLUMN "prob_"

bool class_list_add(struct class_list *list, const char *name, size_t length, struct err *err)
{
    if (list->n == CLASS_LIST_MOST)
        return err_set(err, ERR_FORMAT, "more than %d classes", CLASS_LIST_MOST);
    char **names = realloc(list->names, (list->n + 1) * sizeof *names);
    list->names = names ? names : list->names;
    char *copy = names ? strndup(name, length) : NULL;
    if (!copy)
        return err_memory(err, "the classes");
    list->names[list->n++] = copy;
    return true;
}

void class_list_free(struct class_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
    *list = (struct class_list){ 0 };
}

bool class_list_parse(const char *text, const char *option, struct class_list *out, struct err *err)
{
    *out = (struct class_list){ 0 };
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const char *begin = at + strspn(at, " ");
        size_t length = strcspn(begin, ",");
        while (length > 0 && begin[length - 1] == ' ')
            length--;
        if (length == 0)
            return err_set(
                err, ERR_USAGE,
                "--%s '%s': a name is empty; separate the names of the classes by single "
                "commas",
                option, text);
        if (!class_list_add(out, begin, length, err))
            return false;
        for (size_t i = 0; i + 1 < out->n; i++)
            if (strcmp(out->names[i], out->names[out->n - 1]) == 0)
                return err_set(err, ERR_USAGE, "--%s '%s': class '%s' is listed twice", option,
                               text, out->names[i]);
    }
    return out->n > 1 ||
           err_set(err, ERR_USAGE, "--%s '%s': name at least two classes", option, text);
}

bool class_list_of_columns(const struct csv *csv, struct class_list *out, struct err *err)
{
    const size_t start = strlen(COLUMN);
    *out = (struct class_list){ 0 };
    for (size_t i = 0; i < csv->n_columns; i++) {
        const char *name = csv->names[i];
        if (strncmp(name, COLUMN, start) != 0 || !name[start])
            continue;
        for (size_t k = 0; k < out->n; k++)
            if (strcmp(out->names[k], name + start) == 0)
                return err_set(err, ERR_FORMAT, "%s:1: two columns '%s'; keep one", csv->path,
                               name);
        if (!class_list_add(out, name + start, strlen(name + start), err))
            return err_prefix(err, csv->path);
    }
    return true;
}

bool class_list_columns(const struct class_list *list, const struct csv *csv, int *columns,
                        struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        char *name = text_format(COLUMN "%s", list->names[i]);
        if (!name)
            return err_memory(err, csv->path);
        columns[i] = csv_column(csv, name);
        free(name);
        if (columns[i] < 0)
            return err_set(err, ERR_FORMAT,
                           "%s:1: no column '" COLUMN "%s'; a table of scores needs one for each "
                           "class",
                           csv->path, list->names[i]);
    }
    return true;
}

static bool alike(const char *a, const char *b)
{
    if (strcasecmp(a, b) == 0)
        return true;
    const char *const pair[2] = { a, b };
    for (int i = 0; i < 2; i++)
        if (strcasecmp(pair[i], "tumor") == 0)
            return strcasecmp(pair[1 - i], "tumour") == 0;
    return false;
}

int class_list_find_name(const struct class_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->names[i], name) == 0)
            return (int)i;
    for (size_t i = 0; i < list->n; i++)
        if (alike(list->names[i], name))
            return (int)i;
    return -1;
}

int class_list_find(const struct class_list *list, const char *text)
{
    char *end = NULL;
    int named = class_list_find_name(list, text);
    if (named >= 0)
        return named;
    double number = strtod(text, &end);
    bool whole = end != text && !*end && number >= 0 && number < (double)list->n &&
                 number == (double)(int)number;
    return whole ? (int)number : -1;
}
