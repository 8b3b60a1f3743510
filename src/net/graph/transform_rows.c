/* transform_rows.c: of tokens [N, T, C] of which only some are read, only those are computed: a
 * slice along T moves in front of the nodes that treat every token by itself. */
#include <stdlib.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

#define TOKENS 1 /* the axis */

/* What is read of a value: nothing (yet), the same slice by all, or all of it. */
struct reading {
    enum { READ_NOTHING, READ_SLICE, READ_ALL } what;
    struct slice_attr slice;
};

/* Tokens of a value that is in the new graph as a whole. */
struct sliced {
    bool made;
    value_id value;
    struct slice_attr slice;
};

struct rows {
    struct rewrite r;
    struct reading *reading; /* [n_values] */
    struct sliced *sliced;   /* [n_values] */
};

static bool is_same_slice(const struct slice_attr *a, const struct slice_attr *b)
{
    return a->axis == b->axis && a->begin == b->begin && a->end == b->end && a->step == b->step;
}

static void join(struct reading *all, struct reading one)
{
    if (all->what == READ_NOTHING)
        *all = one;
    else if (all->what != one.what || !is_same_slice(&all->slice, &one.slice))
        all->what = READ_ALL;
}

static bool has(const struct node *node, int i)
{
    return i < node->n_inputs && node->inputs[i] != NO_VALUE;
}

/* Whether the node takes no more than half of the tokens of its input. */
static bool takes_few(const struct graph *graph, const struct node *node)
{
    const struct shape *x = graph_shape(graph, node->inputs[0]);
    const struct shape *y = graph_shape(graph, node->output);
    return node->op->kind == OP_SLICE && x->rank == 3 &&
           axis_of(node->attr.slice.axis, 3) == TOKENS && y->dim[TOKENS] * 2 <= x->dim[TOKENS];
}

/* Whether input i of a node is sliced where its output is, as tokens beside each other; else it is
 * the same for all of them. */
static bool has_tokens(const struct graph *graph, const struct node *node, int i)
{
    switch (node->op->kind) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
        return shape_equal(graph_shape(graph, node->inputs[i]), graph_shape(graph, node->output));
    default:
        return i == 0;
    }
}

static bool broadcasts_to_tokens(const struct graph *graph, const struct node *node)
{
    for (int i = 0; i < 2; i++) {
        const struct shape *x = graph_shape(graph, node->inputs[i]);
        if (!has_tokens(graph, node, i) && x->rank > 1 && x->dim[x->rank - 2] != 1)
            return false;
    }
    return true;
}

/* Whether a token of the output needs no other token of the inputs that has_tokens names. */
static bool treats_each_token(const struct graph *graph, const struct node *node)
{
    if (graph_shape(graph, node->output)->rank != 3)
        return false;
    switch (node->op->kind) {
    case OP_RELU:
    case OP_LEAKY_RELU:
    case OP_SILU:
    case OP_GELU:
    case OP_SIGMOID:
    case OP_TANH:
    case OP_SCALE:
        return true;
    case OP_LINEAR:
        return !has(node, 3);
    case OP_LAYER_NORM:
    case OP_RMS_NORM:
        return node->attr.norm.axes <= 1;
    case OP_SLICE:
        return axis_of(node->attr.slice.axis, 3) == 2;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
        return broadcasts_to_tokens(graph, node);
    case OP_ATTENTION: /* of the queries */
        return !has(node, 3);
    default:
        return false;
    }
}

/* q, k and v are one input. */
static bool is_packed_attention(const struct node *node)
{
    return node->op->kind == OP_ATTENTION && !has(node, 1);
}

static void read_inputs(struct rows *rows, const struct node *node)
{
    const struct graph *graph = rows->r.from;
    struct reading *of = &rows->reading[node->output];
    if (of->what == READ_NOTHING || !treats_each_token(graph, node))
        of->what = READ_ALL;
    for (int i = 0; i < node->n_inputs; i++) {
        struct reading one = { .what = READ_ALL };
        if (!has(node, i))
            continue;
        if (takes_few(graph, node) && !rows->r.protected[node->output])
            one = (struct reading){ READ_SLICE, node->attr.slice };
        else if (of->what == READ_SLICE && has_tokens(graph, node, i) && !is_packed_attention(node))
            one = *of;
        join(&rows->reading[node->inputs[i]], one);
    }
}

/* From the last node: the users of a value come before it. */
static void find_readings(struct rows *rows)
{
    const struct graph *graph = rows->r.from;
    for (int i = 0; i < graph->n_outputs; i++)
        rows->reading[graph->outputs[i].value].what = READ_ALL;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (rows->r.protected[i])
            rows->reading[i].what = READ_ALL;
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--)
        read_inputs(rows, &graph->nodes[i]);
}

static value_id add_slice(struct rows *rows, value_id x, const char *name, const char *suffix,
                          const struct slice_attr *slice)
{
    char *called = rewrite_new_name(&rows->r, name, suffix);
    value_id made = NO_VALUE;
    if (called)
        made = graph_node(rows->r.to, OP_SLICE, called, &x, 1, &(union attr){ .slice = *slice });
    free(called);
    return made;
}

/* Whether the new graph has only the tokens of a value that are read. */
static bool is_sliced(const struct rows *rows, value_id old)
{
    return rows->reading[old].what == READ_SLICE && rows->r.from->values[old].kind == VALUE_NODE;
}

/* The tokens of a value that `slice` takes, in the new graph. */
static value_id tokens_of(struct rows *rows, value_id old, const struct slice_attr *slice)
{
    value_id x = rewrite_value(&rows->r, old);
    struct sliced *s = &rows->sliced[old];
    if (is_sliced(rows, old))
        return x;
    if (!s->made || !is_same_slice(&s->slice, slice))
        *s = (struct sliced){ true,
                              add_slice(rows, x, rows->r.from->values[old].name, ".tokens", slice),
                              *slice };
    return s->value;
}

static void emit_tokens(struct rows *rows, const struct node *node)
{
    const struct slice_attr *slice = &rows->reading[node->output].slice;
    const struct graph *graph = rows->r.from;
    value_id inputs[5] = { NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE };
    int n = node->n_inputs;
    for (int i = 0; i < n; i++)
        if (has(node, i))
            inputs[i] = has_tokens(graph, node, i) ? tokens_of(rows, node->inputs[i], slice)
                                                   : rewrite_value(&rows->r, node->inputs[i]);
    if (is_packed_attention(node)) {
        static const char *const names[] = { ".q", ".k", ".v" };
        int64_t width = graph_shape(graph, node->output)->dim[2];
        value_id all = rewrite_value(&rows->r, node->inputs[0]);
        for (int i = 0; i < 3; i++)
            inputs[i] = add_slice(rows, i == 0 ? inputs[0] : all, node->name, names[i],
                                  &(struct slice_attr){ 2, i * width, (i + 1) * width, 1 });
        n = n < 3 ? 3 : n;
    }
    rows->r.map[node->output] =
        graph_node(rows->r.to, node->op->kind, node->name, inputs, n, &node->attr);
    rows->r.replaced[node->output] = true;
}

bool transform_rows(const struct graph *graph, const char *const *keep, int n_keep,
                    struct graph **out, struct err *err)
{
    struct rows rows = { .reading = calloc((size_t)graph->n_values + 1, sizeof *rows.reading),
                         .sliced = calloc((size_t)graph->n_values + 1, sizeof *rows.sliced) };
    bool ok = rows.reading && rows.sliced ? rewrite_begin(&rows.r, graph, true, keep, n_keep, err)
                                          : err_memory(err, graph->name);
    if (ok)
        find_readings(&rows);
    for (value_id v = 0; ok && v < graph->n_values; v++)
        if (graph_is_parameter(graph, v)) /* gradients stay in their order */
            rewrite_value(&rows.r, v);
    for (int32_t i = 0; ok && i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (is_sliced(&rows, node->output))
            emit_tokens(&rows, node);
        else if (takes_few(graph, node) && is_sliced(&rows, node->inputs[0]))
            rows.r.map[node->output] = rewrite_value(&rows.r, node->inputs[0]);
        else
            rewrite_node(&rows.r, node, NULL);
    }
    ok = ok && rewrite_end(&rows.r, out, err);
    free(rows.reading), free(rows.sliced);
    return ok;
}
