/* class_map_build.c: what a class map says -> the map: classes in order, the meaning of drawn
 * names, precedence, the class of what nobody drew on, and the canonical text. */
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "annotation/class_map.h"
#include "base/array.h"
#include "base/names.h"

#define OMIT "omit"
#define MOST_DRAWN_NAMES 10000

/* Words with another meaning, and the columns of slides.csv, in which every class has one. */
static const char *const reserved[] = {
    "exclusion", "ignore",  "omit",  "unlabeled", "unlabelled", "slide",     "name", "path",
    "state",     "seconds", "error", "modified",  "patches",    "groups",    "mpp",  "patch_mpp",
    "label",     "patient", "node",  "center",    "split",      "annotation"
};

/* Drawn names are compared without surrounding blanks, so a name with them would never be found. */
static char *copy_trimmed(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    return strndup(text, length);
}

bool map_words_add(struct map_words *words, const char *name, const char *word, size_t line,
                   struct err *err)
{
    if (!array_grow(&words->items, &words->room, (int64_t)words->n + 1, sizeof *words->items,
                    "the class map", err))
        return false;
    struct map_word *item = &words->items[words->n++];
    *item = (struct map_word){ name ? copy_trimmed(name) : NULL, copy_trimmed(word), line };
    return ((item->name || !name) && item->word) || err_memory(err, "the class map");
}

static void free_words(struct map_words *words)
{
    for (size_t i = 0; i < words->n; i++) {
        free(words->items[i].name);
        free(words->items[i].word);
    }
    free(words->items);
    *words = (struct map_words){ 0 };
}

void map_draft_free(struct map_draft *draft)
{
    free_words(&draft->names);
    free_words(&draft->classes);
    free_words(&draft->precedence);
    free_words(&draft->unlabelled);
}

bool map_draft_refuse(const struct map_draft *draft, size_t line, struct err *err,
                      const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (draft->lines)
        return err_set(err, ERR_USAGE, "%.300s:%zu: %s", draft->source, line, text);
    return err_set(err, ERR_USAGE, "%.300s: %s", draft->source, text);
}

/* One spelling of the class that has two. */
static const char *spelled(const char *word)
{
    return !strcasecmp(word, "tumour") || !strcasecmp(word, "tumor") ? "tumor"
           : !strcasecmp(word, "normal")                             ? "normal"
                                                                     : word;
}

static bool is_exclusion(const char *word)
{
    return !strcasecmp(word, "exclusion");
}

static bool is_ignore(const char *word)
{
    return !strcasecmp(word, "ignore");
}

static bool is_omit(const char *word)
{
    return !strcasecmp(word, OMIT);
}

/* Nothing but what two classes need. */
static bool is_plain(const struct map_draft *draft)
{
    if (draft->classes.n > 0 || draft->precedence.n > 0 || draft->unlabelled.n > 0)
        return false;
    for (size_t i = 0; i < draft->names.n; i++) {
        const char *word = spelled(draft->names.items[i].word);
        if (strcmp(word, "tumor") != 0 && strcmp(word, "normal") != 0 && !is_exclusion(word) &&
            !is_ignore(word))
            return false;
    }
    return true;
}

/* The next character of UTF-8, and *at behind it; -1 if it is none. */
static long next_character(const unsigned char **at)
{
    const unsigned char *byte = *at;
    int more = byte[0] < 0x80 ? 0 : byte[0] < 0xE0 ? 1 : byte[0] < 0xF0 ? 2 : 3;
    static const long first[] = { 0x7F, 0x1F, 0x0F, 0x07 }, least[] = { 0, 0x80, 0x800, 0x10000 };
    long value = byte[0] & first[more];
    if ((byte[0] >= 0x80 && byte[0] < 0xC2) || byte[0] > 0xF4)
        return -1;
    for (int i = 1; i <= more; i++) {
        if ((byte[i] & 0xC0) != 0x80)
            return -1;
        value = value << 6 | (byte[i] & 0x3F);
    }
    *at += 1 + more;
    return value < least[more] ? -1 : value;
}

/* Characters that YAML can hold, and no line ends: the canonical text is YAML in one line. */
static bool is_printable(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        long c = next_character(&at);
        if (c < ' ' || (c > 0x7E && c < 0xA0) || (c >= 0xD800 && c < 0xE000) || c == 0xFEFF ||
            c == 0xFFFE || c == 0xFFFF || c > 0x10FFFF)
            return false;
    }
    return true;
}

static bool check_class(const struct map_draft *draft, const struct map_word *item, struct err *err)
{
    const char *word = item->word;
    if (!*word)
        return map_draft_refuse(draft, item->line, err, "a class has no name");
    if (strlen(word) >= CLASS_NAME / 2)
        return map_draft_refuse(draft, item->line, err, "class '%.40s...' is longer than %d bytes",
                                word, CLASS_NAME / 2 - 1);
    if (!is_printable(word))
        return map_draft_refuse(draft, item->line, err,
                                "a class is not UTF-8 text, or has a control character");
    if (strchr(word, '/'))
        return map_draft_refuse(draft, item->line, err, "class '%s' has a slash; use another name",
                                word);
    if (word[strspn(word, ".")] == 0) /* of a store, "." is the group itself */
        return map_draft_refuse(draft, item->line, err, "class '%s' is no name; use another", word);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcasecmp(word, reserved[i]))
            return map_draft_refuse(draft, item->line, err,
                                    "'%s' has another meaning; use another name for the class",
                                    word);
    return true;
}

static bool add_class(struct class_map *map, const struct map_draft *draft,
                      const struct map_word *item, struct err *err)
{
    const char *name = spelled(item->word);
    if (class_map_place(map, name) >= 0)
        return true;
    if (!check_class(draft, item, err))
        return false;
    if (map->n_classes == CLASS_MOST)
        return map_draft_refuse(draft, item->line, err, "more than %d classes", CLASS_MOST);
    map->classes[map->n_classes] = strdup(name);
    return map->classes[map->n_classes] ? (map->n_classes++, true)
                                        : err_memory(err, "the class map");
}

static bool check_names(const struct map_draft *draft, bool plain, struct err *err)
{
    if (draft->names.n > MOST_DRAWN_NAMES)
        return map_draft_refuse(draft, draft->names.items[MOST_DRAWN_NAMES].line, err,
                                "more than %d names", MOST_DRAWN_NAMES);
    for (size_t i = 0; i < draft->names.n; i++) {
        const struct map_word *item = &draft->names.items[i];
        if (strlen(item->name) >= CLASS_NAME)
            return map_draft_refuse(draft, item->line, err, "'%.40s...' is longer than %d bytes",
                                    item->name, CLASS_NAME - 1);
        if (!*item->word)
            return map_draft_refuse(draft, item->line, err,
                                    "'%s' has no meaning; name a class, exclusion or ignore",
                                    item->name);
        if (!plain && !is_printable(item->name))
            return map_draft_refuse(draft, item->line, err,
                                    "name %zu is not UTF-8 text, or has a control character",
                                    i + 1);
    }
    return true;
}

/* In the order of the list. */
static bool take_classes(struct class_map *map, const struct map_draft *draft, struct err *err)
{
    for (size_t i = 0; i < draft->classes.n; i++) {
        const struct map_word *item = &draft->classes.items[i];
        if (class_map_place(map, spelled(item->word)) >= 0)
            return map_draft_refuse(draft, item->line, err, "class '%.63s' is listed twice",
                                    item->word);
        if (!add_class(map, draft, item, err))
            return false;
    }
    return true;
}

/* Without a list: the class of what nobody drew on, normal, the others as they are first named, and
 * tumor. */
static bool collect_classes(struct class_map *map, const struct map_draft *draft, struct err *err)
{
    enum { UNLABELLED, NORMAL, OTHERS, TUMOR, N_ROUNDS };
    const struct map_words *rest = &draft->unlabelled;
    bool ok =
        rest->n == 0 || is_omit(rest->items[0].word) || add_class(map, draft, &rest->items[0], err);
    for (int round = NORMAL; round < N_ROUNDS; round++)
        for (size_t i = 0; ok && i < draft->names.n; i++) {
            const struct map_word *item = &draft->names.items[i];
            const char *word = spelled(item->word);
            int belongs = !strcmp(word, "normal")  ? NORMAL
                          : !strcmp(word, "tumor") ? TUMOR
                                                   : OTHERS;
            if (belongs == round && !is_exclusion(word) && !is_ignore(word))
                ok = add_class(map, draft, item, err);
        }
    return ok;
}

static bool list_classes(struct class_map *map, const struct map_draft *draft, struct err *err)
{
    static char normal[] = "normal", tumor[] = "tumor";
    const struct map_word words[] = { { NULL, normal, 1 }, { NULL, tumor, 1 } };
    if (map->plain)
        return add_class(map, draft, &words[0], err) && add_class(map, draft, &words[1], err);
    if (!(draft->classes.n > 0 ? take_classes(map, draft, err) : collect_classes(map, draft, err)))
        return false;
    if (map->n_classes == 1 && class_map_place(map, "tumor") == 0 && draft->unlabelled.n == 0) {
        map->classes[1] = map->classes[0];
        map->n_classes = 2;
        map->classes[0] = strdup(normal);
    }
    return (map->n_classes > 0 && map->classes[0]) ||
           map_draft_refuse(draft, 1, err, "no class; name at least one");
}

/* A word that must be one of the classes. */
static bool find_class(const struct class_map *map, const struct map_draft *draft,
                       const struct map_word *item, int *out, struct err *err)
{
    char all[300];
    const char *const *classes = (const char *const *)map->classes;
    *out = class_map_place(map, spelled(item->word));
    if (*out >= 0)
        return true;
    const char *nearest = names_nearest(item->word, classes, (size_t)map->n_classes);
    return map_draft_refuse(
        draft, item->line, err, "'%.63s' is not one of the classes %s%s%s%s", item->word,
        names_join(classes, (size_t)map->n_classes, all, sizeof all),
        nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static const char *word_of(const struct class_map *map, int meaning)
{
    return meaning == REGION_EXCLUSION ? "exclusion"
           : meaning == REGION_IGNORED ? "ignore"
                                       : map->classes[meaning];
}

static bool add_name(struct class_map *map, const struct map_draft *draft,
                     const struct map_word *item, struct err *err)
{
    const char *name = class_is_none(item->name) ? "" : item->name;
    int meaning = is_exclusion(item->word) ? REGION_EXCLUSION : REGION_IGNORED;
    if (!is_exclusion(item->word) && !is_ignore(item->word) &&
        !find_class(map, draft, item, &meaning, err))
        return false;
    if (map->plain && meaning == 0) /* normal: what is not tumour */
        meaning = REGION_EXCLUSION;
    int before = class_map_find(map, name, strlen(name));
    if (before != REGION_UNKNOWN && before != meaning)
        return map_draft_refuse(draft, item->line, err, "'%s' has two meanings, %s and %s", name,
                                word_of(map, before), word_of(map, meaning));
    if (before != REGION_UNKNOWN)
        return true;
    map->entries[map->n] = (struct map_entry){ strdup(name), meaning };
    return map->entries[map->n++].name || err_memory(err, "the class map");
}

/* Classes that are not listed come after those that are; of them, the later class wins. */
static bool set_precedence(struct class_map *map, const struct map_draft *draft, struct err *err)
{
    bool ranked[CLASS_MOST] = { false };
    int n = 0;
    for (size_t i = 0; i < draft->precedence.n; i++) {
        const struct map_word *item = &draft->precedence.items[i];
        int place = 0;
        if (!find_class(map, draft, item, &place, err))
            return false;
        if (ranked[place])
            return map_draft_refuse(draft, item->line, err, "precedence lists '%.63s' twice",
                                    item->word);
        ranked[place] = true;
        map->precedence[n++] = place;
    }
    for (int place = map->n_classes - 1; place >= 0; place--)
        if (!ranked[place])
            map->precedence[n++] = place;
    return true;
}

static bool set_unlabelled(struct class_map *map, const struct map_draft *draft, struct err *err)
{
    map->unlabelled = class_map_place(map, "normal");
    if (draft->unlabelled.n == 0)
        return true;
    map->unlabelled = -1;
    return is_omit(draft->unlabelled.items[0].word) ||
           find_class(map, draft, &draft->unlabelled.items[0], &map->unlabelled, err);
}

static int by_name(const void *a, const void *b)
{
    return strcasecmp(((const struct map_entry *)a)->name, ((const struct map_entry *)b)->name);
}

static void lower(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

/* Names are written in lower case: case does not matter. */
static char *plain_text(const struct class_map *map)
{
    size_t room = 1;
    for (size_t i = 0; i < map->n; i++)
        room += 2 * strlen(map->entries[i].name) + strlen("=exclusion,");
    char *text = malloc(room), *at = text;
    if (!text)
        return NULL;
    *at = 0;
    for (size_t i = 0; i < map->n; i++) {
        if (i > 0)
            *at++ = ',';
        class_map_escape(map->entries[i].name, at);
        lower(at);
        at += strlen(at);
        at +=
            snprintf(at, room - (size_t)(at - text), "=%s", word_of(map, map->entries[i].meaning));
    }
    return text;
}

/* YAML, in one line; it is JSON as well. */
static char *yaml_text(const struct class_map *map)
{
    json_t *classes = json_array(), *names = json_object(), *precedence = json_array();
    bool ok = true;
    for (int i = 0; i < map->n_classes; i++) {
        ok = ok && json_array_append_new(classes, json_string(map->classes[i])) == 0;
        ok = ok &&
             json_array_append_new(precedence, json_string(map->classes[map->precedence[i]])) == 0;
    }
    for (size_t i = 0; i < map->n; i++) {
        char name[CLASS_NAME];
        snprintf(name, sizeof name, "%s", map->entries[i].name);
        lower(name);
        ok = ok && json_object_set_new(names, name,
                                       json_string(word_of(map, map->entries[i].meaning))) == 0;
    }
    /* takes the three, also when it fails */
    json_t *all = json_pack("{s:o, s:o, s:o, s:s}", "classes", classes, "names", names,
                            "precedence", precedence, "unlabelled",
                            map->unlabelled < 0 ? OMIT : map->classes[map->unlabelled]);
    char *text = ok && all ? json_dumps(all, 0) : NULL;
    json_decref(all);
    return text;
}

bool class_map_build(const struct map_draft *draft, struct class_map **out, struct err *err)
{
    if (!check_names(draft, is_plain(draft), err))
        return false;
    struct class_map *map = calloc(1, sizeof *map);
    if (!map || !(map->entries = calloc(draft->names.n + 1, sizeof *map->entries))) {
        free(map);
        return err_memory(err, "the class map");
    }
    map->plain = is_plain(draft);
    map->listed = draft->classes.n > 0;
    bool ok = list_classes(map, draft, err);
    for (size_t i = 0; ok && i < draft->names.n; i++)
        ok = add_name(map, draft, &draft->names.items[i], err);
    ok = ok && set_precedence(map, draft, err) && set_unlabelled(map, draft, err);
    if (ok) {
        qsort(map->entries, map->n, sizeof *map->entries, by_name);
        map->text = map->plain ? plain_text(map) : yaml_text(map);
        ok = map->text || err_memory(err, "the class map");
    }
    if (ok)
        *out = map;
    else
        class_map_free(map);
    return ok;
}
