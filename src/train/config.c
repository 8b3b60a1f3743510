/* config.c: YAML -> struct train_config (config.h), with libyaml. Defaults and settings from the
 * command line are YAML too and are read the same way. */
#include "train/config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "base/file.h"
#include "base/names.h"

#define MAX_CONFIG_BYTES (1 << 20)
#define MAX_TEXTS 100000
#define MAX_PATH_TEXT 128

/* How a file names a key. */
enum seen { SEEN_NOT, SEEN_NOW, SEEN_FORMER };

/* A section and a key of older configs and checkpoints, and their present names. */
static const char former_section[] = "ranks.grid", present_section[] = "parallel";
static const char former_key[] = "parallel.stage", present_key[] = "parallel.stages";

struct reading {
    yaml_document_t document;
    const char *name; /* of the file, or of the setting */
    bool lines;       /* a file: messages say the line */
    char *seen;       /* [config_n_keys] of enum seen; NULL: not looked at */
    struct train_config *config;
};

/* "run.yaml:12: <text>" */
static bool complain(const struct reading *reading, const yaml_node_t *node, const char *text,
                     struct err *err)
{
    if (reading->lines)
        return err_set(err, ERR_USAGE, "%s:%zu: %s", reading->name, node->start_mark.line + 1,
                       text);
    return err_set(err, ERR_USAGE, "%s: %s", reading->name, text);
}

static const char *scalar(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

static bool complain_value(const struct reading *reading, const struct config_key *key,
                           const yaml_node_t *node, const char *wanted, struct err *err)
{
    char text[700];
    const char *given = scalar(node);
    snprintf(text, sizeof text, "%s: '%.100s' is not %s", key->path,
             given ? given : "a list or a section", wanted);
    return complain(reading, node, text, err);
}

static bool set_choice(const struct reading *reading, const struct config_key *key,
                       const yaml_node_t *node, int *out, struct err *err)
{
    const char *given = scalar(node);
    char all[300], wanted[400];
    size_t n = 0;
    for (; key->choices[n]; n++) {
        if (given && strcmp(given, key->choices[n]) == 0) {
            *out = (int)n;
            return true;
        }
    }
    const char *nearest = given ? names_nearest(given, key->choices, n) : NULL;
    snprintf(wanted, sizeof wanted, "one of %s%s%.60s%s",
             names_join(key->choices, n, all, sizeof all), nearest ? "; did you mean " : "",
             nearest ? nearest : "", nearest ? "?" : "");
    return complain_value(reading, key, node, wanted, err);
}

static bool set_number(const struct reading *reading, const struct config_key *key,
                       const yaml_node_t *node, double *real, int64_t *integer, struct err *err)
{
    const char *given = scalar(node);
    char wanted[160], *end = NULL;
    errno = 0;
    long long whole = given && integer ? strtoll(given, &end, 10) : 0;
    double value = !given ? NAN : integer ? (double)whole : strtod(given, &end);
    bool good = given && end != given && *end == 0 && errno != ERANGE && !isnan(value) &&
                value >= key->min && value <= key->max;
    if (!good) {
        snprintf(wanted, sizeof wanted, "a %snumber from %.10g to %.10g", integer ? "whole " : "",
                 key->min, key->max);
        return complain_value(reading, key, node, wanted, err);
    }
    if (integer)
        *integer = whole;
    else
        *real = value;
    return true;
}

/* A whole number from `min` to `max` at *text, which is moved behind it. */
static bool take_count(const char **text, const struct config_key *key, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    *out = **text >= '0' && **text <= '9' ? strtoll(*text, &end, 10) : 0;
    bool good = end && errno != ERANGE && (double)*out >= key->min && (double)*out <= key->max;
    *text = end ? end : *text;
    return good;
}

static bool set_parts(const struct reading *reading, const struct config_key *key,
                      const yaml_node_t *node, int64_t out[2], struct err *err)
{
    const char *rest = scalar(node);
    char wanted[100];
    int64_t rows = 1, columns = 1;
    bool good = rest && take_count(&rest, key, &columns);
    if (good && *rest == 'x') {
        rows = columns, rest++;
        good = take_count(&rest, key, &columns);
    }
    if (!good || *rest) {
        snprintf(wanted, sizeof wanted, "rows x columns, each from %.10g to %.10g: 2x2", key->min,
                 key->max);
        return complain_value(reading, key, node, wanted, err);
    }
    out[0] = rows, out[1] = columns;
    return true;
}

static bool set_bool(const struct reading *reading, const struct config_key *key,
                     const yaml_node_t *node, bool *out, struct err *err)
{
    const char *given = scalar(node);
    if (!given || (strcmp(given, "true") != 0 && strcmp(given, "false") != 0))
        return complain_value(reading, key, node, "true or false", err);
    *out = given[0] == 't';
    return true;
}

static void free_texts(struct texts *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        free(texts->items[i]);
    free(texts->items);
    *texts = (struct texts){ 0 };
}

static bool add_text(struct texts *texts, const char *text, struct err *err)
{
    char **more = realloc(texts->items, (texts->n + 1) * sizeof *more);
    if (!more)
        return err_memory(err, "the config");
    texts->items = more;
    more[texts->n] = strdup(text);
    return more[texts->n] ? (texts->n++, true) : err_memory(err, "the config");
}

static yaml_node_t *node_at(const struct reading *reading, int item)
{
    return yaml_document_get_node((yaml_document_t *)&reading->document, item);
}

/* A list, or one text, which is then the only one. */
static bool set_texts(const struct reading *reading, const struct config_key *key,
                      const yaml_node_t *node, struct texts *out, struct err *err)
{
    free_texts(out);
    if (scalar(node))
        return add_text(out, scalar(node), err);
    if (node->type != YAML_SEQUENCE_NODE ||
        node->data.sequence.items.top - node->data.sequence.items.start > MAX_TEXTS)
        return complain_value(reading, key, node, "a list of names", err);
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *part = node_at(reading, *item);
        if (!scalar(part))
            return complain_value(reading, key, part, "a name", err);
        if (!add_text(out, scalar(part), err))
            return false;
    }
    return true;
}

static bool set_rgb(const struct reading *reading, const struct config_key *key,
                    const yaml_node_t *node, double out[3], struct err *err)
{
    if (node->type != YAML_SEQUENCE_NODE ||
        node->data.sequence.items.top - node->data.sequence.items.start != 3)
        return complain_value(reading, key, node, "a list of three numbers", err);
    for (int i = 0; i < 3; i++)
        if (!set_number(reading, key, node_at(reading, node->data.sequence.items.start[i]), &out[i],
                        NULL, err))
            return false;
    return true;
}

static bool set_key(const struct reading *reading, const struct config_key *key,
                    const yaml_node_t *node, struct err *err)
{
    void *slot = (char *)reading->config + key->offset;
    switch (key->type) {
    case CONFIG_BOOL:
        return set_bool(reading, key, node, slot, err);
    case CONFIG_INT:
        return set_number(reading, key, node, NULL, slot, err);
    case CONFIG_REAL:
        return set_number(reading, key, node, slot, NULL, err);
    case CONFIG_RGB:
        return set_rgb(reading, key, node, slot, err);
    case CONFIG_CHOICE:
        return set_choice(reading, key, node, slot, err);
    case CONFIG_PARTS:
        return set_parts(reading, key, node, slot, err);
    case CONFIG_TEXTS:
        return set_texts(reading, key, node, slot, err);
    case CONFIG_TEXT:
        break;
    }
    if (!scalar(node))
        return complain_value(reading, key, node, "text", err);
    free(*(char **)slot);
    *(char **)slot = strdup(scalar(node));
    return *(char **)slot ? true : err_memory(err, "the config");
}

static bool is_within(const char *path, const char *section)
{
    size_t length = strlen(section);
    return strncmp(path, section, length) == 0 && (path[length] == '.' || path[length] == 0);
}

/* The path by which the table has a key or a section. */
static const char *present_path(const char *path, char out[MAX_PATH_TEXT])
{
    if (is_within(path, former_section)) {
        snprintf(out, MAX_PATH_TEXT, "%s%.100s", present_section, path + strlen(former_section));
        path = out;
    }
    return strcmp(path, former_key) == 0 ? present_key : path;
}

const struct config_key *config_key_at(const char *given)
{
    char now[MAX_PATH_TEXT];
    const char *path = present_path(given, now);
    for (size_t i = 0; i < config_n_keys; i++)
        if (strcmp(config_keys[i].path, path) == 0)
            return &config_keys[i];
    return NULL;
}

static bool is_section(const char *given)
{
    char now[MAX_PATH_TEXT];
    const char *path = present_path(given, now);
    size_t length = strlen(path);
    for (size_t i = 0; i < config_n_keys; i++)
        if (strncmp(config_keys[i].path, path, length) == 0 && config_keys[i].path[length] == '.')
            return true;
    return false;
}

/* The key that a section set to `auto` stands for; NULL: it cannot be. */
static const struct config_key *auto_key(const char *section)
{
    char path[MAX_PATH_TEXT + 8];
    snprintf(path, sizeof path, "%s.auto", section);
    return is_section(section) ? config_key_at(path) : NULL;
}

/* Names the nearest key, or lists those of the section. */
static bool unknown_key(const struct reading *reading, const yaml_node_t *node, const char *given,
                        struct err *err)
{
    char now[MAX_PATH_TEXT];
    const char *path = present_path(given, now);
    const char *paths[256];
    char text[800];
    for (size_t i = 0; i < config_n_keys; i++)
        paths[i] = config_keys[i].path;
    const char *nearest = names_nearest(path, paths, config_n_keys);
    if (nearest) {
        snprintf(text, sizeof text, "no key '%.100s'; did you mean '%s'?", path, nearest);
        return complain(reading, node, text, err);
    }
    const char *dot = strrchr(path, '.');
    size_t length = dot ? (size_t)(dot + 1 - path) : 0;
    snprintf(text, sizeof text, "no key '%.100s'; the keys are:", path);
    for (size_t i = 0; i < config_n_keys; i++) {
        if (strncmp(paths[i], path, length) != 0)
            continue;
        size_t rest = strcspn(paths[i] + length, "."), used = strlen(text);
        if (i > 0 && strncmp(paths[i - 1], paths[i], length + rest) == 0 &&
            (paths[i - 1][length + rest] == '.'))
            continue;
        snprintf(text + used, sizeof text - used, " %.*s", (int)rest, paths[i] + length);
    }
    return complain(reading, node, text, err);
}

/* A key is given once, and a section by one of its names. */
static bool see(const struct reading *reading, const struct config_key *key, const char *path,
                const yaml_node_t *node, struct err *err)
{
    char text[2 * MAX_PATH_TEXT];
    enum seen how = is_within(path, former_section) ? SEEN_FORMER : SEEN_NOW;
    for (size_t i = 0; is_within(key->path, present_section) && i < config_n_keys; i++) {
        if (!is_within(config_keys[i].path, present_section) || !reading->seen[i] ||
            reading->seen[i] == (char)how)
            continue;
        snprintf(text, sizeof text,
                 "'%s' and '%s' are given, but the first is only the former name of the second; "
                 "give '%s' alone",
                 former_section, present_section, present_section);
        return complain(reading, node, text, err);
    }
    if (reading->seen[key - config_keys]) {
        snprintf(text, sizeof text, "'%s' is given twice", path);
        return complain(reading, node, text, err);
    }
    reading->seen[key - config_keys] = (char)how;
    return true;
}

static bool read_section(const struct reading *reading, const yaml_node_t *node, const char *prefix,
                         int depth, struct err *err)
{
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = node_at(reading, pair->key),
                          *value = node_at(reading, pair->value);
        char path[MAX_PATH_TEXT], text[2 * MAX_PATH_TEXT];
        if (!scalar(name))
            return complain(reading, name, "a key must be a name", err);
        snprintf(path, sizeof path, "%s%s%.100s", prefix, *prefix ? "." : "", scalar(name));
        const struct config_key *key = config_key_at(path);
        if (key && reading->seen && !see(reading, key, path, name, err))
            return false;
        bool ok = false, automatic = scalar(value) && strcmp(scalar(value), "auto") == 0;
        if (key) {
            ok = set_key(reading, key, value, err);
        } else if (automatic && auto_key(path)) {
            ok = config_set(reading->config, auto_key(path), "true", reading->name, err);
        } else if (!is_section(path) || depth > 2) {
            ok = unknown_key(reading, name, path, err);
        } else if (value->type != YAML_MAPPING_NODE) {
            snprintf(text, sizeof text, "'%s' is a section; its keys go below it", path);
            ok = complain(reading, name, text, err);
        } else {
            ok = read_section(reading, value, path, depth + 1, err);
        }
        if (!ok)
            return false;
    }
    return true;
}

/* Loads one document; *empty if there is none. */
static bool load(struct reading *reading, const char *text, size_t size, bool *empty,
                 struct err *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return err_memory(err, "the config");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    bool ok = yaml_parser_load(&parser, &reading->document);
    if (!ok && reading->lines)
        err_set(err, ERR_USAGE, "%s:%zu: not YAML: %s", reading->name, parser.problem_mark.line + 1,
                parser.problem ? parser.problem : "unreadable");
    else if (!ok)
        err_set(err, ERR_USAGE, "%s: not YAML: %s", reading->name,
                parser.problem ? parser.problem : "unreadable");
    yaml_parser_delete(&parser);
    *empty = ok && !yaml_document_get_root_node(&reading->document);
    return ok;
}

bool config_set(struct train_config *config, const struct config_key *key, const char *yaml,
                const char *name, struct err *err)
{
    char where[MAX_PATH_TEXT + 32];
    struct reading reading = { .name = where, .config = config };
    bool empty = false;
    snprintf(where, sizeof where, "%.24s: %s", name, key->path);
    if (!load(&reading, yaml, strlen(yaml), &empty, err))
        return false;
    reading.name = name; /* messages of set_key have the key */
    bool ok = !empty ? set_key(&reading, key, yaml_document_get_root_node(&reading.document), err)
                     : err_set(err, ERR_USAGE, "%s: %s: the value is empty", name, key->path);
    yaml_document_delete(&reading.document);
    return ok;
}

static bool apply_setting(struct train_config *config, const char *setting, struct err *err)
{
    struct reading reading = { .name = "--set", .config = config };
    char path[MAX_PATH_TEXT];
    const char *equals = strchr(setting, '=');
    if (!equals)
        return err_set(err, ERR_USAGE, "--set: '%s' is not key=value", setting);
    snprintf(path, sizeof path, "%.*s", (int)(equals - setting), setting);
    const struct config_key *key = config_key_at(path);
    if (!key && strcmp(equals + 1, "auto") == 0 && auto_key(path))
        return config_set(config, auto_key(path), "true", "--set", err);
    if (!key)
        return unknown_key(&reading, NULL, path, err);
    return config_set(config, key, equals + 1, "--set", err);
}

static bool read_document(struct train_config *config, const char *text, size_t size,
                          const char *path, struct err *err)
{
    bool empty = false;
    struct reading reading = { .name = path, .lines = true, .config = config };
    reading.seen = calloc(config_n_keys, sizeof *reading.seen);
    if (!reading.seen)
        return err_memory(err, "the config");
    bool ok = load(&reading, text, size, &empty, err);
    if (ok && !empty) {
        const yaml_node_t *root = yaml_document_get_root_node(&reading.document);
        ok = root->type == YAML_MAPPING_NODE
                 ? read_section(&reading, root, "", 0, err)
                 : complain(&reading, root, "not a mapping of keys to values", err);
    }
    if (ok || reading.document.nodes.start)
        yaml_document_delete(&reading.document);
    free(reading.seen);
    return ok;
}

bool config_parse(const char *text, size_t size, const char *path, const char *const *settings,
                  size_t n_settings, struct train_config *out, struct err *err)
{
    *out = (struct train_config){ 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < config_n_keys; i++)
        ok = config_set(out, &config_keys[i], config_keys[i].initial, "default", err);
    ok = ok && read_document(out, text, size, path, err);
    for (size_t i = 0; ok && i < n_settings; i++)
        ok = apply_setting(out, settings[i], err);
    if (ok && out->classes.n < 2)
        ok = err_set(err, ERR_USAGE, "%s: classes: at least two are required", path);
    if (ok && out->train.memory_mb > 0 &&
        (out->train.memory == MEMORY_PLAIN || out->train.memory == MEMORY_HALF))
        ok = err_set(err, ERR_USAGE,
                     "%s: train.memory_mb: only train.memory: recompute, stream and auto keep to a "
                     "budget; set one of them, or omit train.memory_mb",
                     path);
    if (!ok)
        config_free(out);
    return ok;
}

bool config_read(const char *path, const char *const *settings, size_t n_settings,
                 struct train_config *out, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    *out = (struct train_config){ 0 };
    if (path && !file_read(path, MAX_CONFIG_BYTES, &text, &size, err))
        return false;
    bool ok = config_parse(text ? text : "", size, path ? path : "the settings", settings,
                           n_settings, out, err);
    free(text);
    return ok;
}

void config_free(struct train_config *config)
{
    for (size_t i = 0; i < config_n_keys; i++) {
        void *slot = (char *)config + config_keys[i].offset;
        if (config_keys[i].type == CONFIG_TEXT)
            free(*(char **)slot);
        else if (config_keys[i].type == CONFIG_TEXTS)
            free_texts(slot);
    }
    free(config->classes_from);
    *config = (struct train_config){ 0 };
}
