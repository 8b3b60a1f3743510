/* site.c: see site.h. YAML by libyaml. */
#include "cluster/site.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "base/file.h"
#include "base/names.h"

#define MAX_SITE_BYTES (1 << 20)

struct site_key {
    const char *name, *initial;
    size_t offset;
    bool lines; /* struct site_lines, else char * */
};

static const struct site_key keys[] = {
    { "modules", NULL, offsetof(struct site, modules), true },
    { "setup", NULL, offsetof(struct site, setup), true },
    { "flags", NULL, offsetof(struct site, flags), true },
    { "container", NULL, offsetof(struct site, container), false },
    { "program", NULL, offsetof(struct site, program), false },
    { "parallel_environment", "smp", offsetof(struct site, parallel_environment), false },
    { "memory_resource", "mem_total", offsetof(struct site, memory_resource), false },
    { "mpi_environment", "mpi", offsetof(struct site, mpi_environment), false },
};
#define N_KEYS (sizeof keys / sizeof *keys)

static bool complain(const char *path, const yaml_node_t *node, const char *what, struct err *err)
{
    return err_set(err, ERR_USAGE, "%s:%zu: %s", path, node->start_mark.line + 1, what);
}

static bool complain_value(const char *path, const struct site_key *key, const yaml_node_t *node,
                           struct err *err)
{
    char text[120];
    snprintf(text, sizeof text, "%s must be one line of text%s", key->name,
             key->lines ? ", or a list of lines" : "");
    return complain(path, node, text, err);
}

/* One line of text: it goes into a script. */
static const char *line_of(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length && !strchr(text, '\n') && *text ? text : NULL;
}

static bool set_text(char **slot, const char *text, struct err *err)
{
    free(*slot);
    *slot = strdup(text);
    return *slot || err_memory(err, "the site file");
}

static bool add_line(struct site_lines *lines, const char *text, struct err *err)
{
    char **more = realloc(lines->items, (lines->n + 1) * sizeof *more);
    if (!more)
        return err_memory(err, "the site file");
    lines->items = more;
    lines->items[lines->n] = NULL;
    return set_text(&lines->items[lines->n++], text, err);
}

static bool set_lines(yaml_document_t *document, const yaml_node_t *node, const char *path,
                      const struct site_key *key, struct site_lines *out, struct err *err)
{
    if (node->type == YAML_SCALAR_NODE && line_of(node))
        return add_line(out, line_of(node), err);
    if (node->type != YAML_SEQUENCE_NODE)
        return complain_value(path, key, node, err);
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *part = yaml_document_get_node(document, *item);
        if (!line_of(part))
            return complain_value(path, key, part, err);
        if (!add_line(out, line_of(part), err))
            return false;
    }
    return true;
}

static const struct site_key *find_key(const yaml_node_t *node, const char *path, struct err *err)
{
    const char *names[N_KEYS], *given = line_of(node);
    char text[300];
    for (size_t i = 0; i < N_KEYS; i++) {
        names[i] = keys[i].name;
        if (given && strcmp(given, keys[i].name) == 0)
            return &keys[i];
    }
    const char *nearest = given ? names_nearest(given, names, N_KEYS) : NULL;
    snprintf(text, sizeof text, "no key '%.100s'%s%s%s", given ? given : "",
             nearest ? "; did you mean " : "; docs/cluster.md lists them", nearest ? nearest : "",
             nearest ? "?" : "");
    complain(path, node, text, err);
    return NULL;
}

static bool read_document(yaml_document_t *document, const char *path, struct site *out,
                          struct err *err)
{
    yaml_node_t *root = yaml_document_get_root_node(document);
    if (!root)
        return true; /* an empty file */
    if (root->type != YAML_MAPPING_NODE)
        return complain(path, root, "the file must consist of lines of the form KEY: VALUE", err);
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *value = yaml_document_get_node(document, pair->value);
        const struct site_key *key =
            find_key(yaml_document_get_node(document, pair->key), path, err);
        if (!key)
            return false;
        if (key->lines) {
            if (!set_lines(document, value, path, key, (void *)((char *)out + key->offset), err))
                return false;
        } else if (!line_of(value)) {
            return complain_value(path, key, value, err);
        } else if (!set_text((char **)((char *)out + key->offset), line_of(value), err)) {
            return false;
        }
    }
    return true;
}

bool site_parse(const char *text, size_t size, const char *path, struct site *out, struct err *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    bool ok = true;
    *out = (struct site){ 0 };
    for (size_t i = 0; ok && i < N_KEYS; i++)
        if (keys[i].initial)
            ok = set_text((char **)((char *)out + keys[i].offset), keys[i].initial, err);
    if (!ok)
        return false;
    if (!yaml_parser_initialize(&parser))
        return err_memory(err, path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    ok = yaml_parser_load(&parser, &document);
    if (ok) {
        ok = read_document(&document, path, out, err);
        yaml_document_delete(&document);
    } else {
        err_set(err, ERR_USAGE, "%s:%zu: not YAML: %s", path, parser.problem_mark.line + 1,
                parser.problem ? parser.problem : "unreadable");
    }
    yaml_parser_delete(&parser);
    return ok;
}

bool site_read(const char *path, struct site *out, struct err *err)
{
    if (!path)
        return site_parse("", 0, "", out, err);
    char *text = NULL;
    size_t size = 0;
    *out = (struct site){ 0 };
    bool ok = file_read(path, MAX_SITE_BYTES, &text, &size, err) &&
              site_parse(text, size, path, out, err);
    free(text);
    return ok;
}

void site_free(struct site *site)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        void *slot = (char *)site + keys[i].offset;
        if (keys[i].lines) {
            struct site_lines *lines = slot;
            for (size_t j = 0; j < lines->n; j++)
                free(lines->items[j]);
            free(lines->items);
        } else {
            free(*(char **)slot);
        }
    }
    *site = (struct site){ 0 };
}
