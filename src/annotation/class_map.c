/* class_map.c: a class map in use, and "name=class,..." -> a draft of one. */
#include "annotation/class_map.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/file.h"

#define MAX_YAML_BYTES ((size_t)1 << 20)

/* What NULL means. */
static const struct class_map two_classes = { .classes = { "normal", "tumor" },
                                              .n_classes = 2,
                                              .precedence = { 1, 0 },
                                              .unlabelled = 0,
                                              .plain = true,
                                              .text = "" };

static const struct class_map *or_two(const struct class_map *map)
{
    return map ? map : &two_classes;
}

int class_map_n(const struct class_map *map)
{
    return or_two(map)->n_classes;
}

const char *class_map_class(const struct class_map *map, int place)
{
    return or_two(map)->classes[place];
}

int class_map_place(const struct class_map *map, const char *name)
{
    for (int i = 0; i < class_map_n(map); i++)
        if (!strcasecmp(class_map_class(map, i), name))
            return i;
    return -1;
}

int class_map_precedence(const struct class_map *map, int rank)
{
    return or_two(map)->precedence[rank];
}

int class_map_unlabelled(const struct class_map *map)
{
    return or_two(map)->unlabelled;
}

int class_map_positive(const struct class_map *map)
{
    int tumor = class_map_place(map, "tumor");
    return tumor >= 0 ? tumor : class_map_n(map) - 1;
}

bool class_map_is_plain(const struct class_map *map)
{
    return or_two(map)->plain;
}

const char *class_map_text(const struct class_map *map)
{
    return or_two(map)->text;
}

char *class_map_json(const struct class_map *map)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; ok && i < class_map_n(map); i++)
        ok = json_array_append_new(list, json_string(class_map_class(map, i))) == 0;
    char *text = ok ? json_dumps(list, 0) : NULL;
    json_decref(list);
    return text;
}

int class_map_find(const struct class_map *map, const char *name, size_t length)
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

void class_map_free(struct class_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->n; i++)
        free(map->entries[i].name);
    for (int i = 0; i < map->n_classes; i++)
        free(map->classes[i]);
    free(map->entries);
    free(map->text);
    free(map);
}

/* Copies up to the first `,` or `=` not preceded by a backslash. Returns where it stopped. out has
 * room for the whole text. */
static const char *take(const char *text, char *out)
{
    for (; *text && *text != ',' && *text != '='; text++) {
        text += *text == '\\' && text[1];
        *out++ = *text;
    }
    *out = 0;
    return text;
}

static bool parse_pairs(const char *text, struct class_map **out, struct err *err)
{
    struct map_draft draft = { .source = "--class-map" };
    char *name = malloc(strlen(text) + 1), *word = malloc(strlen(text) + 1);
    bool ok = (name && word) || err_memory(err, "the class map");
    while (ok && *text) {
        const char *end = take(text, name);
        if (*end == '=')
            end = take(end + 1, word);
        else
            ok = map_draft_refuse(&draft, 0, err,
                                  "'%.127s' has no meaning; write NAME=tumor, or pass a file whose "
                                  "name ends in .yaml",
                                  name);
        if (ok && *end == '=')
            ok = map_draft_refuse(
                &draft, 0, err,
                "a second '=' after '%.127s'; write \\= for an equals sign in a name", name);
        ok = ok && map_words_add(&draft.names, name, word, 0, err);
        text = end + (*end == ',');
    }
    ok = ok && class_map_build(&draft, out, err);
    free(name);
    free(word);
    map_draft_free(&draft);
    return ok;
}

static bool is_file(const char *text)
{
    const char *extension = file_extension(text);
    bool yaml = !strcasecmp(extension, ".yaml") || !strcasecmp(extension, ".yml");
    return yaml && (!strchr(text, '=') || file_exists(text));
}

bool class_map_parse(const char *text, struct class_map **out, struct err *err)
{
    *out = NULL;
    if (!text)
        return true;
    if (*text == '{')
        return class_map_parse_yaml(text, strlen(text), "--class-map", out, err);
    if (!is_file(text))
        return parse_pairs(text, out, err);
    char *yaml = NULL;
    size_t size = 0;
    bool ok = file_read(text, MAX_YAML_BYTES, &yaml, &size, err) &&
              class_map_parse_yaml(yaml, size, text, out, err);
    free(yaml);
    return ok;
}
