/* class_map.c: "name=meaning,..." -> a list of names and meanings, sorted by name. */
#include "annotation/class_map.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct entry {
    char *name;
    enum region_class meaning;
};

struct class_map {
    struct entry *entries; /* [n] */
    size_t n;
    char *text;
};

static const struct {
    const char *word;
    enum region_class meaning;
} words[] = { { "tumor", REGION_TUMOUR },
              { "tumour", REGION_TUMOUR },
              { "exclusion", REGION_EXCLUSION },
              { "normal", REGION_EXCLUSION },
              { "ignore", REGION_IGNORED } };

static const char *word_of(enum region_class meaning)
{
    size_t i = 0;
    while (words[i].meaning != meaning)
        i++;
    return words[i].word;
}

enum region_class class_map_find(const struct class_map *map, const char *name, size_t length)
{
    for (size_t i = 0; map && i < map->n; i++)
        if (strlen(map->entries[i].name) == length &&
            !strncasecmp(map->entries[i].name, name, length))
            return map->entries[i].meaning;
    return REGION_UNKNOWN;
}

void class_map_escape(const char *name, char *out)
{
    for (; *name; name++) {
        if (strchr(",=\\", *name))
            *out++ = '\\';
        *out++ = *name;
    }
    *out = 0;
}

/* Copies up to the first `,` or `=` not preceded by a backslash, without surrounding blanks.
 * Returns where it stopped. out has room for the whole text. */
static const char *take(const char *text, char *out)
{
    size_t n = 0, keep = 0; /* an escaped blank would be kept as well */
    while (isspace((unsigned char)*text))
        text++;
    for (; *text && *text != ',' && *text != '='; text++) {
        bool escaped = *text == '\\' && text[1];
        text += escaped;
        out[n++] = *text;
        if (escaped || !isspace((unsigned char)*text))
            keep = n;
    }
    out[keep] = 0;
    return text;
}

static bool meaning_of(const char *word, enum region_class *out)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(words[i].word, word)) {
            *out = words[i].meaning;
            return true;
        }
    return false;
}

static bool add(struct class_map *map, const char *name, const char *word, struct err *err)
{
    enum region_class meaning, before;
    if (class_is_none(name))
        name = "";
    if (strlen(name) >= CLASS_NAME)
        return err_set(err, ERR_USAGE, "--class-map: '%.40s...' is longer than %d bytes", name,
                       CLASS_NAME - 1);
    if (!meaning_of(word, &meaning))
        return err_set(
            err, ERR_USAGE,
            "--class-map: '%.127s=%.127s': the meaning must be tumor, exclusion or ignore", name,
            word);
    before = class_map_find(map, name, strlen(name));
    if (before != REGION_UNKNOWN && before != meaning)
        return err_set(err, ERR_USAGE, "--class-map: '%s' has two meanings, %s and %s", name,
                       word_of(before), word_of(meaning));
    if (before != REGION_UNKNOWN)
        return true;
    map->entries[map->n] = (struct entry){ strdup(name), meaning };
    return map->entries[map->n++].name || err_memory(err, "the class map");
}

static int by_name(const void *a, const void *b)
{
    return strcasecmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Names are written in lower case: case does not matter. */
static bool spell(struct class_map *map, struct err *err)
{
    size_t room = 1;
    for (size_t i = 0; i < map->n; i++)
        room += 2 * strlen(map->entries[i].name) + strlen("=exclusion,");
    char *at = map->text = malloc(room);
    if (!at)
        return err_memory(err, "the class map");
    *at = 0;
    for (size_t i = 0; i < map->n; i++) {
        if (i > 0)
            *at++ = ',';
        class_map_escape(map->entries[i].name, at);
        for (; *at; at++)
            *at = (char)tolower((unsigned char)*at);
        *at++ = '=';
        const char *word = word_of(map->entries[i].meaning);
        memcpy(at, word, strlen(word) + 1);
        at += strlen(word);
    }
    return true;
}

bool class_map_parse(const char *text, struct class_map **out, struct err *err)
{
    *out = NULL;
    if (!text)
        return true;
    size_t length = strlen(text);
    struct class_map *map = calloc(1, sizeof *map);
    char *name = malloc(length + 1), *word = malloc(length + 1);
    bool ok = map && name && word && (map->entries = calloc(length + 1, sizeof *map->entries));
    if (!ok)
        err_memory(err, "the class map");
    while (ok && *text) {
        const char *end = take(text, name);
        if (*end == '=')
            end = take(end + 1, word);
        else
            ok = err_set(err, ERR_USAGE, "--class-map: '%.127s' has no meaning; write NAME=tumor",
                         name);
        if (ok && *end == '=')
            ok = err_set(
                err, ERR_USAGE,
                "--class-map: a second '=' after '%.127s'; write \\= for an equals sign in a name",
                name);
        ok = ok && add(map, name, word, err);
        text = end + (*end == ',');
    }
    if (ok) {
        qsort(map->entries, map->n, sizeof *map->entries, by_name);
        ok = spell(map, err);
    }
    free(name);
    free(word);
    if (ok)
        *out = map;
    else
        class_map_free(map);
    return ok;
}

void class_map_free(struct class_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->n; i++)
        free(map->entries[i].name);
    free(map->entries);
    free(map->text);
    free(map);
}

const char *class_map_text(const struct class_map *map)
{
    return map ? map->text : "";
}
