/* class_map_yaml.c: a class map in YAML -> a draft of one, with libyaml. The keys, all optional:
 * classes (list), names (drawn name: class), precedence (list), unlabelled (class or omit). */
#include <string.h>
#include <yaml.h>
#include "annotation/class_map.h"
#include "base/names.h"

struct reading {
    yaml_document_t document;
    struct map_draft *draft;
};

static const yaml_node_t *node_at(struct reading *reading, int item)
{
    return yaml_document_get_node(&reading->document, item);
}

static size_t line_of(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

static const char *scalar(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL; /* no 0 bytes */
}

static bool read_word(struct reading *reading, const char *key, const char *name,
                      const yaml_node_t *node, struct map_words *out, struct err *err)
{
    if (scalar(node))
        return map_words_add(out, name, scalar(node), line_of(node), err);
    return map_draft_refuse(reading->draft, line_of(node), err, "%s: a class must be a name", key);
}

static bool read_list(struct reading *reading, const char *key, const yaml_node_t *node,
                      struct map_words *out, struct err *err)
{
    if (node->type != YAML_SEQUENCE_NODE ||
        node->data.sequence.items.top == node->data.sequence.items.start)
        return map_draft_refuse(reading->draft, line_of(node), err,
                                "%s must be a list of classes: [stroma, tumor]", key);
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++)
        if (!read_word(reading, key, NULL, node_at(reading, *item), out, err))
            return false;
    return true;
}

static bool read_names(struct reading *reading, const yaml_node_t *node, struct err *err)
{
    if (node->type != YAML_MAPPING_NODE)
        return map_draft_refuse(reading->draft, line_of(node), err,
                                "names must consist of lines of the form DRAWN NAME: CLASS");
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = node_at(reading, pair->key);
        if (!scalar(name))
            return map_draft_refuse(reading->draft, line_of(name), err,
                                    "names: a drawn name must be text");
        if (!read_word(reading, "names", scalar(name), node_at(reading, pair->value),
                       &reading->draft->names, err))
            return false;
    }
    return true;
}

static bool read_key(struct reading *reading, const yaml_node_t *key, const yaml_node_t *value,
                     struct err *err)
{
    static const char *const keys[] = { "classes", "names", "precedence", "unlabelled" };
    struct map_draft *draft = reading->draft;
    struct map_words *words[] = { &draft->classes, &draft->names, &draft->precedence,
                                  &draft->unlabelled };
    const char *given = scalar(key);
    size_t k = 0;
    while (given && k < 4 && strcmp(given, keys[k]) != 0)
        k++;
    if (!given || k == 4) {
        const char *nearest = given ? names_nearest(given, keys, 4) : NULL;
        return map_draft_refuse(draft, line_of(key), err, "no key '%.63s'%s%s%s",
                                given ? given : "",
                                nearest ? "; did you mean "
                                        : "; the keys are classes, names, precedence and "
                                          "unlabelled",
                                nearest ? nearest : "", nearest ? "?" : "");
    }
    if (words[k]->n > 0)
        return map_draft_refuse(draft, line_of(key), err, "'%s' is given twice", keys[k]);
    if (words[k] == &draft->names)
        return read_names(reading, value, err);
    if (words[k] == &draft->unlabelled)
        return read_word(reading, keys[k], NULL, value, words[k], err);
    return read_list(reading, keys[k], value, words[k], err);
}

static bool read_document(struct reading *reading, struct err *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(&reading->document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return map_draft_refuse(reading->draft, root ? line_of(root) : 1, err,
                                "not a class map: it must have the keys classes, names, precedence "
                                "or unlabelled");
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++)
        if (!read_key(reading, node_at(reading, pair->key), node_at(reading, pair->value), err))
            return false;
    return true;
}

bool class_map_parse_yaml(const char *text, size_t size, const char *source, struct class_map **out,
                          struct err *err)
{
    struct map_draft draft = { .source = source, .lines = *source != '-' };
    struct reading reading = { .draft = &draft };
    yaml_parser_t parser;
    *out = NULL;
    if (!yaml_parser_initialize(&parser))
        return err_memory(err, "the class map");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    bool ok = yaml_parser_load(&parser, &reading.document);
    if (!ok)
        map_draft_refuse(&draft, parser.problem_mark.line + 1, err, "not YAML: %s",
                         parser.problem ? parser.problem : "unreadable");
    yaml_parser_delete(&parser);
    if (!ok)
        return false;
    ok = read_document(&reading, err) && class_map_build(&draft, out, err);
    yaml_document_delete(&reading.document);
    map_draft_free(&draft);
    return ok;
}
