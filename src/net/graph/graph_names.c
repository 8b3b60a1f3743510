/* graph_names.c: the index of a graph's names, and aliases: names of layers that a user types. */
#include "net/graph/graph_names.h"
#include <stdlib.h>
#include <string.h>
#include "base/names.h"
#include "base/rng.h"

static const char *text_of(const struct graph *graph, const struct graph_name *name)
{
    switch (name->kind) {
    case NAME_OUTPUT:
        return graph->outputs[name->index].name;
    case NAME_VALUE:
        return graph->values[name->index].name;
    case NAME_ALIAS:
        return graph->aliases[name->index].name;
    case NAME_FREE:
        break;
    }
    return "";
}

static void put(struct graph_name *names, uint32_t room, struct graph_name name)
{
    uint32_t at = name.hash & (room - 1);
    while (names[at].kind != NAME_FREE)
        at = (at + 1) & (room - 1);
    names[at] = name;
}

/* At most half full, so that searches are short. */
static bool make_room(struct graph *graph)
{
    if (2 * (graph->n_names + 1) <= graph->room_names)
        return true;
    uint32_t room = graph->room_names ? 2 * graph->room_names : 64;
    struct graph_name *larger = calloc(room, sizeof *larger);
    if (!larger)
        return false;
    for (uint32_t i = 0; i < graph->room_names; i++)
        if (graph->names[i].kind != NAME_FREE)
            put(larger, room, graph->names[i]);
    free(graph->names);
    graph->names = larger, graph->room_names = room;
    return true;
}

bool graph_names_add(struct graph *graph, enum graph_name_kind kind, int32_t index)
{
    if (!make_room(graph))
        return false;
    struct graph_name name = { .kind = kind, .index = index };
    name.hash = (uint32_t)rng_hash(text_of(graph, &name));
    put(graph->names, graph->room_names, name);
    graph->n_names++;
    return true;
}

/* Calls of this walk over all entries with one name: *at counts from the name's hash. NULL: no
 * more. */
static const struct graph_name *next(const struct graph *graph, const char *text, uint32_t hash,
                                     uint32_t *at)
{
    while (graph->room_names) {
        const struct graph_name *name = &graph->names[(*at)++ & (graph->room_names - 1)];
        if (name->kind == NAME_FREE)
            return NULL;
        if (name->hash == hash && strcmp(text_of(graph, name), text) == 0)
            return name;
    }
    return NULL;
}

int32_t graph_names_find(const struct graph *graph, enum graph_name_kind kind, const char *name)
{
    uint32_t hash = (uint32_t)rng_hash(name), at = hash;
    int32_t first = -1;
    for (const struct graph_name *n; (n = next(graph, name, hash, &at));)
        if (n->kind == kind && (first < 0 || n->index < first))
            first = n->index;
    return first;
}

bool graph_names_has(const struct graph *graph, bool node, const char *name)
{
    uint32_t hash = (uint32_t)rng_hash(name), at = hash;
    for (const struct graph_name *n; (n = next(graph, name, hash, &at));)
        if (n->kind == NAME_VALUE && node == (graph->values[n->index].kind == VALUE_NODE))
            return true;
    return false;
}

void graph_names_free(struct graph *graph)
{
    for (int i = 0; i < graph->n_aliases; i++)
        free(graph->aliases[i].name);
    free(graph->aliases);
    free(graph->names);
}

value_id graph_find(const struct graph *graph, const char *name)
{
    int32_t output = graph_names_find(graph, NAME_OUTPUT, name);
    if (output >= 0)
        return graph->outputs[output].value;
    int32_t value = graph_names_find(graph, NAME_VALUE, name);
    if (value >= 0)
        return value;
    int32_t alias = graph_names_find(graph, NAME_ALIAS, name);
    return alias >= 0 ? graph->aliases[alias].value : NO_VALUE;
}

/* Whether the name means this value, or nothing yet. */
static bool is_free_for(const struct graph *graph, const char *name, value_id value)
{
    uint32_t hash = (uint32_t)rng_hash(name), at = hash;
    for (const struct graph_name *n; (n = next(graph, name, hash, &at));) {
        value_id other = n->kind == NAME_OUTPUT  ? graph->outputs[n->index].value
                         : n->kind == NAME_ALIAS ? graph->aliases[n->index].value
                                                 : n->index;
        if (other != value)
            return false;
    }
    return true;
}

/* Why it cannot be; NULL: it can. */
static const char *alias_problem(const struct graph *graph, const char *name, value_id value)
{
    if (value < 0 || value >= graph->n_values || graph_is_parameter(graph, value))
        return "the alias is not of an activation";
    if (!*name)
        return "an alias has no name";
    return is_free_for(graph, name, value) ? NULL : "is the name of another value";
}

bool graph_can_alias(const struct graph *graph, const char *name, value_id value)
{
    return !alias_problem(graph, name, value);
}

value_id graph_alias(struct graph *graph, const char *name, value_id value)
{
    if (graph->err.kind != ERR_NONE)
        return NO_VALUE;
    const char *problem = alias_problem(graph, name, value);
    if (problem) {
        err_set(&graph->err, ERR_FORMAT, "%s: %s", name, problem);
        return NO_VALUE;
    }
    if (graph_names_find(graph, NAME_ALIAS, name) >= 0)
        return value;
    if (!graph_add_port(&graph->aliases, &graph->n_aliases, name, value) ||
        !graph_names_add(graph, NAME_ALIAS, graph->n_aliases - 1)) {
        err_memory(&graph->err, name);
        return NO_VALUE;
    }
    return value;
}

static bool no_layer(const struct graph *graph, const char *name, struct err *err)
{
    size_t n = 0;
    const char **names =
        calloc((size_t)graph->n_values + (size_t)graph->n_aliases + 1, sizeof *names);
    if (!names)
        return err_memory(err, name);
    for (int i = 0; i < graph->n_aliases; i++)
        names[n++] = graph->aliases[i].name;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (!graph_is_parameter(graph, i))
            names[n++] = graph->values[i].name;
    const char *nearest = names_nearest(name, names, n);
    free(names);
    return nearest ? err_set(err, ERR_USAGE, "no layer '%s'; did you mean %s?", name, nearest)
                   : err_set(err, ERR_USAGE,
                             "no layer '%s'; 'microtome model show --layers' lists them", name);
}

bool graph_layer(const struct graph *graph, const char *name, value_id *out, struct err *err)
{
    value_id value = graph_find(graph, name);
    if (value == NO_VALUE)
        return no_layer(graph, name, err);
    if (graph_is_parameter(graph, value))
        return err_set(err, ERR_USAGE, "'%s' is a weight, not a layer", name);
    *out = value;
    return true;
}
