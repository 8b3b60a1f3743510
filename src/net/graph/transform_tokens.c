/* transform_tokens.c: the part of a Transformer that transform_heads made, with tokens divided
 * between its sums and its divided layers. A value is whole, or has the tokens of this process;
 * what a node needs of the other kind is joined or cut. */
#include <stdlib.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

struct tokens {
    const struct graph *graph;
    int parts, part;
    bool *own;       /* [values]: has this process's tokens alone */
    value_id *other; /* [values]: in the new graph, joined or cut; NO_VALUE: not yet */
    bool *learnt;    /* [values]: parameters of nodes that run on own tokens */
    struct rewrite r;
};

enum { BATCH_AXIS, TOKEN_AXIS, TOKEN_RANK = 3 };

/* --- which nodes run on own tokens --- */

static bool is_sum(const struct node *node, bool forward)
{
    const struct all_reduce_attr *a = &node->attr.all_reduce;
    return node->op->kind == OP_ALL_REDUCE && a->group == PEERS_HEADS &&
           a->sum_forward == forward && a->sum_backward != forward;
}

/* A parameter of one number for each feature, which this node alone uses. */
static bool is_of_features(const struct tokens *t, value_id value)
{
    return graph_is_parameter(t->graph, value) && graph_shape(t->graph, value)->rank == 1 &&
           graph_users(t->graph, value) == 1;
}

/* Can each process do it for its tokens, given that one input has them alone? */
static bool is_by_token(const struct tokens *t, const struct node *node)
{
    const struct shape *y = graph_shape(t->graph, node->output);
    int first_parameter = 1;
    switch (node->op->kind) {
    case OP_LAYER_NORM:
    case OP_RMS_NORM:
        if (node->attr.norm.axes > 1)
            return false;
        break;
    case OP_ADD:
    case OP_MUL:
        first_parameter = 0;
        break;
    case OP_DROPOUT:
        if (node->attr.dropout.parts > 1)
            return false;
        break;
    case OP_SCALE:
    case OP_RELU:
    case OP_GELU:
    case OP_SILU:
        break;
    default:
        return false;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        value_id x = node->inputs[i];
        bool tokens = shape_equal(graph_shape(t->graph, x), y) && !graph_is_parameter(t->graph, x);
        if (!tokens && (i < first_parameter || !is_of_features(t, x)))
            return false;
    }
    return true;
}

static bool has_own_input(const struct tokens *t, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NO_VALUE && t->own[node->inputs[i]])
            return true;
    return false;
}

static bool mark(struct tokens *t, struct err *err)
{
    for (int32_t i = 0; i < t->graph->n_nodes; i++) {
        const struct node *node = &t->graph->nodes[i];
        const struct shape *y = graph_shape(t->graph, node->output);
        bool sum = is_sum(node, true) && y->rank == TOKEN_RANK;
        t->own[node->output] = sum || (has_own_input(t, node) && is_by_token(t, node));
        if (sum && y->dim[TOKEN_AXIS] < t->parts)
            return err_set(err, ERR_USAGE, "%s: %lld tokens cannot be divided among %d ranks",
                           node->name, (long long)y->dim[TOKEN_AXIS], t->parts);
        for (int k = 0; t->own[node->output] && k < node->n_inputs; k++)
            t->learnt[node->inputs[k]] = graph_is_parameter(t->graph, node->inputs[k]);
    }
    return true;
}

/* --- the new graph --- */

static int64_t tokens_of(const struct tokens *t, value_id value)
{
    return graph_shape(t->graph, value)->dim[TOKEN_AXIS];
}

/* All tokens of `like` from those in x. sum_backward: as of all_gather. */
static value_id join(struct tokens *t, value_id like, value_id x, const char *name,
                     bool sum_backward)
{
    union attr attr = { .all_gather = { .axis = TOKEN_AXIS,
                                        .parts = t->parts,
                                        .group = PEERS_HEADS,
                                        .sum_backward = sum_backward,
                                        .extent = tokens_of(t, like),
                                        .again = true } };
    return x == NO_VALUE || !name ? NO_VALUE
                                  : graph_node(t->r.to, OP_ALL_GATHER, name, &x, 1, &attr);
}

/* Own tokens, of x or of its sum. */
static value_id divide(struct tokens *t, value_id x, const char *name, bool sum_forward)
{
    union attr attr = { .reduce_scatter = { .axis = TOKEN_AXIS,
                                            .parts = t->parts,
                                            .part = t->part,
                                            .group = PEERS_HEADS,
                                            .sum_forward = sum_forward } };
    return x == NO_VALUE || !name ? NO_VALUE
                                  : graph_node(t->r.to, OP_REDUCE_SCATTER, name, &x, 1, &attr);
}

/* A value as a node needs it. Parameters are neither. */
static value_id as_needed(struct tokens *t, value_id value, bool own)
{
    value_id x = rewrite_value(&t->r, value);
    if (value == NO_VALUE || t->own[value] == own || graph_is_parameter(t->graph, value))
        return x;
    if (t->other[value] == NO_VALUE) {
        const char *like = t->graph->values[value].name;
        char *name = rewrite_new_name(&t->r, like, own ? ".own_tokens" : ".all_tokens");
        t->other[value] = own ? divide(t, x, name, false) : join(t, value, x, name, false);
        free(name);
    }
    return t->other[value];
}

/* Elements of a sample before those of the process. */
static int64_t elements_before(const struct tokens *t, value_id value)
{
    const struct shape *shape = graph_shape(t->graph, value);
    return tokens_of(t, value) * t->part / t->parts * shape->dim[TOKEN_AXIS + 1];
}

static void put_node(struct tokens *t, const struct node *node)
{
    bool own = t->own[node->output];
    union attr attr = node->attr;
    value_id *inputs = calloc((size_t)node->n_inputs + 1, sizeof *inputs);
    if (!inputs) {
        err_memory(&t->r.to->err, node->name);
        return;
    }
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = as_needed(t, node->inputs[i], own);
    if (own && node->op->kind == OP_DROPOUT)
        attr.dropout.before = elements_before(t, node->output);
    t->r.map[node->output] =
        graph_node(t->r.to, node->op->kind, node->name, inputs, node->n_inputs, &attr);
    free(inputs);
}

static void put(struct tokens *t, const struct node *node)
{
    value_id x = node->inputs[0], y = node->output;
    t->r.replaced[y] = t->own[y];
    if (is_sum(node, true) && t->own[y])
        t->r.map[y] = divide(t, as_needed(t, x, false), node->name, true);
    else if (is_sum(node, false) && t->own[x])
        t->r.map[y] = join(t, x, rewrite_value(&t->r, x), node->name, true);
    else
        put_node(t, node);
}

/* Outputs are whole. */
static bool finish(struct tokens *t, struct graph **out, bool *summed, struct err *err)
{
    for (value_id v = 0; v < t->graph->n_values; v++)
        if (t->learnt[v] && t->r.map[v] != NO_VALUE)
            summed[t->r.map[v]] = true;
    for (int i = 0; i < t->graph->n_outputs; i++) {
        value_id value = t->graph->outputs[i].value;
        graph_output(t->r.to, t->graph->outputs[i].name, as_needed(t, value, false));
    }
    return rewrite_hand_over(&t->r, out, err);
}

static bool rewrite_all(struct tokens *t, struct graph **out, bool **summed, struct err *err)
{
    if (!rewrite_begin(&t->r, t->graph, true, NULL, 0, err))
        return false;
    for (value_id v = 0; v < t->graph->n_values; v++)
        if (graph_is_parameter(t->graph, v))
            rewrite_value(&t->r, v); /* in the order of the network */
    for (int32_t i = 0; i < t->graph->n_nodes; i++)
        put(t, &t->graph->nodes[i]);
    *summed = calloc((size_t)t->r.to->n_values + (size_t)t->graph->n_values + 1, sizeof **summed);
    if (!*summed) {
        rewrite_discard(&t->r);
        return err_memory(err, "the parts of a network");
    }
    if (finish(t, out, *summed, err))
        return true;
    free(*summed);
    *summed = NULL;
    return false;
}

bool transform_tokens(const struct graph *graph, int parts, int part, struct graph **out,
                      bool **summed, struct err *err)
{
    size_t values = (size_t)graph->n_values + 1;
    struct tokens t = { .graph = graph,
                        .parts = parts,
                        .part = part,
                        .own = calloc(values, sizeof *t.own),
                        .learnt = calloc(values, sizeof *t.learnt),
                        .other = malloc(values * sizeof *t.other) };
    bool ok = (t.own && t.learnt && t.other) || err_memory(err, "the parts of a network");
    for (size_t i = 0; ok && i < values; i++)
        t.other[i] = NO_VALUE;
    ok = ok && mark(&t, err) && rewrite_all(&t, out, summed, err);
    free(t.own), free(t.learnt), free(t.other);
    return ok;
}
