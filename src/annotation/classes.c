/* classes.c: the name of a group, layer or class -> its meaning, and the error message for names
 * that have none. */
#include "annotation/classes.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "annotation/class_map.h"

static const struct {
    const char *name;
    enum region_class meaning;
} meanings[] = {
    { "_0", REGION_TUMOUR }, /* CAMELYON16 */
    { "_1", REGION_TUMOUR },
    { "_2", REGION_EXCLUSION },
    { "Tumor", REGION_TUMOUR },
    { "Exclusion", REGION_EXCLUSION },
    { "metastases", REGION_TUMOUR }, /* CAMELYON17 */
    { "normal", REGION_EXCLUSION },
    { "Metastasis", REGION_TUMOUR }, /* QuPath and ImageScope, as people write them */
    { "Tumour", REGION_TUMOUR },
    { "Cancer", REGION_TUMOUR },
    { "Carcinoma", REGION_TUMOUR },
    { "Lesion", REGION_TUMOUR },
    { "Exclude", REGION_EXCLUSION },
    { "Hole", REGION_EXCLUSION },
    { "Ignore", REGION_EXCLUSION },
    { "Ignore*", REGION_EXCLUSION },
    { "", REGION_TUMOUR }, /* no class */
    { "None", REGION_TUMOUR },
};

/* The length of a name up to `end`, without trailing blanks. */
static size_t trimmed(const char *name, size_t length)
{
    while (length > 0 && isspace((unsigned char)name[length - 1]))
        length--;
    return length;
}

static const char *without_blanks(const char *name)
{
    while (name && isspace((unsigned char)*name))
        name++;
    return name ? name : "";
}

bool class_is_none(const char *name)
{
    name = without_blanks(name);
    size_t length = trimmed(name, strlen(name));
    return length == 0 || (length == 4 && !strncasecmp(name, "None", 4));
}

bool class_map_has_none(const struct class_map *map)
{
    return class_map_find(map, "", 0) != REGION_UNKNOWN;
}

enum region_class class_meaning(const struct class_map *map, const char *name)
{
    name = class_is_none(name) ? "" : without_blanks(name);
    size_t whole = trimmed(name, strlen(name)), first = trimmed(name, strcspn(name, ":"));
    enum region_class meaning = class_map_find(map, name, whole);
    if (meaning == REGION_UNKNOWN && first < whole)
        meaning = class_map_find(map, name, first);
    for (size_t i = 0; meaning == REGION_UNKNOWN && i < sizeof meanings / sizeof *meanings; i++)
        if (strlen(meanings[i].name) == first && !strncasecmp(meanings[i].name, name, first))
            meaning = meanings[i].meaning;
    return meaning;
}

void unknown_classes_add(struct unknown_classes *unknown, const char *name, int64_t regions)
{
    char shown[CLASS_NAME];
    size_t n = 0;
    name = class_is_none(name) ? "" : without_blanks(name);
    for (; name[n] && n + 1 < sizeof shown; n++) /* will be shown on a terminal */
        shown[n] = (unsigned char)name[n] < ' ' || name[n] == 127 ? '?' : name[n];
    shown[trimmed(shown, n)] = 0;
    size_t i = 0;
    while (i < unknown->n && strcasecmp(unknown->items[i].name, shown) != 0)
        i++;
    if (i == CLASS_MOST_NAMES) {
        unknown->more += regions;
        return;
    }
    if (i == unknown->n) {
        memcpy(unknown->items[i].name, shown, sizeof shown);
        unknown->items[unknown->n++].regions = 0;
    }
    unknown->items[i].regions += regions;
}

void unknown_classes_join(struct unknown_classes *all, const struct unknown_classes *one)
{
    for (size_t i = 0; i < one->n; i++)
        unknown_classes_add(all, one->items[i].name, one->items[i].regions);
    all->more += one->more;
}

/* A text that grows until its buffer is full and then ends in "...". */
struct line {
    char *text;
    size_t room, used;
};

static void put(struct line *line, const char *piece)
{
    size_t length = strlen(piece), left = line->room - line->used;
    if (length + 4 < left) {
        memcpy(line->text + line->used, piece, length + 1);
        line->used += length;
    } else if (left > 3) {
        memcpy(line->text + line->used, "...", 4);
        line->room = line->used;
    }
}

bool unknown_classes_refuse(const struct unknown_classes *unknown, const char *where,
                            struct err *err)
{
    char names[380] = "", option[300] = "", piece[CLASS_NAME + 40], escaped[2 * CLASS_NAME];
    struct line list = { names, sizeof names, 0 }, map = { option, sizeof option, 0 };
    bool none = false;
    for (size_t i = 0; i < unknown->n; i++) {
        const char *name = unknown->items[i].name;
        none = none || !*name;
        snprintf(piece, sizeof piece, *name ? "%s'%s' (%" PRId64 ")" : "%sno class%s (%" PRId64 ")",
                 i > 0 ? ", " : "", name, unknown->items[i].regions);
        put(&list, piece);
        class_map_escape(name, escaped);
        put(&map, i > 0 ? "," : "");
        put(&map, escaped);
        put(&map, "=MEANING");
    }
    snprintf(piece, sizeof piece, ", others (%" PRId64 ")", unknown->more);
    put(&list, unknown->more > 0 ? piece : "");
    return err_set(err, ERR_FORMAT,
                   "%.200s: regions of unknown class: %s%s; pass --class-map \"%s\", where MEANING "
                   "is tumor, exclusion or ignore",
                   where, names, none ? " beside named tumour regions" : "", option);
}
