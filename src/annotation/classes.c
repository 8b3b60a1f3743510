/* classes.c: the name of a group, layer or class -> its meaning, and the error message for names
 * that have none. */
#include "annotation/classes.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "annotation/class_map.h"

enum table_meaning {
    TUMOUR,    /* class tumor, if there is one */
    NO_CLASS,  /* the same, only in a plain map */
    NORMAL,    /* the rest of the tissue, only in a plain map; others have a class for it */
    EXCLUSION, /* of every class */
};

static const struct {
    const char *name;
    enum table_meaning meaning;
} meanings[] = {
    { "_0", TUMOUR }, /* CAMELYON16 */
    { "_1", TUMOUR },           { "_2", EXCLUSION },      { "Tumor", TUMOUR },
    { "Exclusion", EXCLUSION }, { "metastases", TUMOUR }, /* CAMELYON17 */
    { "normal", NORMAL },       { "Metastasis", TUMOUR }, /* QuPath and ImageScope, as people write
                                                             them */
    { "Tumour", TUMOUR },       { "Cancer", TUMOUR },     { "Carcinoma", TUMOUR },
    { "Lesion", TUMOUR },       { "Exclude", EXCLUSION }, { "Hole", EXCLUSION },
    { "Ignore", EXCLUSION },    { "Ignore*", EXCLUSION }, { "", NO_CLASS }, /* no class */
    { "None", NO_CLASS },
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

/* The class of exactly this name, or REGION_UNKNOWN; a plain map draws only tumour, by the table.
 */
static int class_named(const struct class_map *map, const char *name, size_t length)
{
    for (int i = 0; !class_map_is_plain(map) && length > 0 && i < class_map_n(map); i++) {
        const char *class = class_map_class(map, i);
        if (strlen(class) == length && !strncasecmp(class, name, length))
            return i;
    }
    return REGION_UNKNOWN;
}

static int by_table(const struct class_map *map, const char *name, size_t length)
{
    bool plain = class_map_is_plain(map);
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (strlen(meanings[i].name) != length || strncasecmp(meanings[i].name, name, length) != 0)
            continue;
        if (meanings[i].meaning == EXCLUSION || (plain && meanings[i].meaning == NORMAL))
            return REGION_EXCLUSION;
        int tumor = class_map_place(map, "tumor");
        return tumor >= 0 && (plain || meanings[i].meaning == TUMOUR) ? tumor : REGION_UNKNOWN;
    }
    return REGION_UNKNOWN;
}

int class_meaning(const struct class_map *map, const char *name)
{
    name = class_is_none(name) ? "" : without_blanks(name);
    size_t whole = trimmed(name, strlen(name)), first = trimmed(name, strcspn(name, ":"));
    int meaning = class_map_find(map, name, whole);
    if (meaning == REGION_UNKNOWN && first < whole)
        meaning = class_map_find(map, name, first);
    if (meaning == REGION_UNKNOWN)
        meaning = class_named(map, name, whole);
    if (meaning == REGION_UNKNOWN && first < whole)
        meaning = class_named(map, name, first);
    return meaning == REGION_UNKNOWN ? by_table(map, name, first) : meaning;
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

/* What may stand behind the equals sign. */
static void list_meanings(const struct class_map *map, struct line *out)
{
    for (int i = 0; i < class_map_n(map) && !class_map_is_plain(map); i++) {
        put(out, class_map_class(map, i));
        put(out, ", ");
    }
    put(out, class_map_is_plain(map) ? "tumor, " : "");
    put(out, map && map->listed ? "exclusion or ignore" : "exclusion, ignore or another class");
}

bool unknown_classes_refuse(const struct unknown_classes *unknown, const struct class_map *map,
                            const char *where, struct err *err)
{
    char names[300] = "", option[240] = "", words[200] = "";
    char piece[CLASS_NAME + 40], escaped[2 * CLASS_NAME];
    struct line list = { names, sizeof names, 0 }, entries = { option, sizeof option, 0 };
    struct line meanings_of = { words, sizeof words, 0 };
    bool none = false, plain = class_map_is_plain(map);
    for (size_t i = 0; i < unknown->n; i++) {
        const char *name = unknown->items[i].name;
        none = none || !*name;
        snprintf(piece, sizeof piece, *name ? "%s'%s' (%" PRId64 ")" : "%sno class%s (%" PRId64 ")",
                 i > 0 ? ", " : "", name, unknown->items[i].regions);
        put(&list, piece);
        class_map_escape(name, escaped);
        put(&entries, i > 0 ? "," : "");
        put(&entries, escaped);
        put(&entries, "=MEANING");
    }
    snprintf(piece, sizeof piece, ", others (%" PRId64 ")", unknown->more);
    put(&list, unknown->more > 0 ? piece : "");
    list_meanings(map, &meanings_of);
    return err_set(err, ERR_FORMAT,
                   "%.200s: regions of unknown class: %s%s; %s \"%s\"%s, where MEANING is %s",
                   where, names, none && plain ? " beside named tumour regions" : "",
                   plain ? "pass --class-map" : "add", option,
                   plain ? "" : " to --class-map (in YAML: NAME: MEANING, under names)", words);
}
