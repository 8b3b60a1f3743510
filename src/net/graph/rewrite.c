/* rewrite.c: a new graph from an old one, node by node. */
#include "net/graph/rewrite.h"
#include <stdlib.h>
#include <string.h>
#include "base/text.h"

bool rewrite_begin(struct rewrite *r, const struct graph *from, bool with_inputs,
                   const char *const *keep, int n_keep, struct err *err)
{
    size_t n = (size_t)from->n_values + 1;
    *r = (struct rewrite){ .from = from,
                           .to = graph_new(from->name),
                           .map = malloc(n * sizeof *r->map),
                           .protected = calloc(n, sizeof *r->protected),
                           .replaced = calloc(n, sizeof *r->replaced) };
    if (!graph_ok(from, err))
        goto failed;
    if (!r->to || !r->map || !r->protected || !r->replaced) {
        err_memory(err, from->name);
        goto failed;
    }
    for (int32_t i = 0; i < from->n_values; i++)
        r->map[i] = NO_VALUE;
    for (int i = 0; with_inputs && i < from->n_inputs; i++) {
        value_id old = from->inputs[i].value;
        r->map[old] = graph_input(r->to, from->inputs[i].name, *graph_shape(from, old));
    }
    for (int i = 0; i < n_keep; i++) {
        value_id value = NO_VALUE;
        if (!graph_layer(from, keep[i], &value, err)) {
            err_prefix(err, from->name);
            goto failed;
        }
        r->protected[value] = true;
    }
    return true;
failed:
    rewrite_discard(r);
    return false;
}

void rewrite_discard(struct rewrite *r)
{
    graph_free(r->to);
    free(r->map), free(r->protected), free(r->replaced);
    *r = (struct rewrite){ 0 };
}

static value_id declare(struct rewrite *r, value_id old, struct shape shape)
{
    const struct value *value = &r->from->values[old];
    value_id made = value->kind == VALUE_PARAMETER ? graph_parameter(r->to, value->name, shape)
                                                   : graph_buffer(r->to, value->name, shape);
    if (made != NO_VALUE)
        r->to->values[made].init = value->init;
    return made;
}

value_id rewrite_reshaped(struct rewrite *r, value_id old, struct shape shape)
{
    const struct value *value = &r->from->values[old];
    value_id made = declare(r, old, shape);
    if (made != NO_VALUE && value->data)
        r->to->values[made].data = buffer_share(value->data);
    r->map[old] = made;
    return made;
}

value_id rewrite_value(struct rewrite *r, value_id old)
{
    if (old == NO_VALUE)
        return NO_VALUE;
    if (r->map[old] == NO_VALUE && graph_is_parameter(r->from, old))
        return rewrite_reshaped(r, old, r->from->values[old].shape);
    return r->map[old];
}

value_id rewrite_fresh(struct rewrite *r, value_id like, struct shape shape, float **data)
{
    value_id made = declare(r, like, shape);
    if (made == NO_VALUE)
        return NO_VALUE;
    struct buffer *floats = buffer_new_unset(shape_count(&shape));
    if (!floats) {
        err_memory(&r->to->err, r->from->values[like].name);
        return NO_VALUE;
    }
    r->to->values[made].data = floats;
    *data = buffer_data(floats);
    return made;
}

value_id rewrite_node(struct rewrite *r, const struct node *node, const union attr *attr)
{
    value_id *inputs = calloc((size_t)node->n_inputs, sizeof *inputs);
    if (!inputs) {
        err_memory(&r->to->err, node->name);
        return NO_VALUE;
    }
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = rewrite_value(r, node->inputs[i]);
    value_id made = graph_node(r->to, node->op->kind, node->name, inputs, node->n_inputs,
                               attr ? attr : &node->attr);
    free(inputs);
    r->map[node->output] = made;
    return made;
}

char *rewrite_new_name(struct rewrite *r, const char *name, const char *suffix)
{
    char *text = text_format("%s%s", name, suffix);
    while (text && (graph_find(r->from, text) != NO_VALUE || graph_find(r->to, text) != NO_VALUE)) {
        char *longer = text_format("%s_", text);
        free(text);
        text = longer;
    }
    if (!text)
        err_memory(&r->to->err, name);
    return text;
}

/* To the values that have the same numbers. */
static void carry_aliases(struct rewrite *r)
{
    for (int i = 0; i < r->from->n_aliases; i++) {
        const struct graph_port *alias = &r->from->aliases[i];
        value_id made = r->map[alias->value];
        if (made != NO_VALUE && !r->replaced[alias->value])
            graph_alias(r->to, alias->name, made);
    }
}

bool rewrite_hand_over(struct rewrite *r, struct graph **out, struct err *err)
{
    carry_aliases(r);
    bool ok = graph_ok(r->to, err);
    if (ok)
        *out = r->to, r->to = NULL;
    rewrite_discard(r);
    return ok;
}

bool rewrite_end(struct rewrite *r, struct graph **out, struct err *err)
{
    for (int i = 0; i < r->from->n_outputs; i++)
        graph_output(r->to, r->from->outputs[i].name, r->map[r->from->outputs[i].value]);
    return rewrite_hand_over(r, out, err);
}

void rewrite_mark_needed(const struct graph *graph, value_id value, bool *needed)
{
    memset(needed, 0, (size_t)graph->n_values * sizeof *needed);
    needed[value] = true;
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--) {
        const struct node *node = &graph->nodes[i];
        for (int k = 0; needed[node->output] && k < node->n_inputs; k++)
            if (node->inputs[k] != NO_VALUE)
                needed[node->inputs[k]] = true;
    }
}
