/* transform_heads.c: the part of a Transformer that one of several processes computes, each with
 * some heads of every attention and some columns of every MLP. First every node gets a role, then
 * the graph is rewritten. */
#include <stdlib.h>
#include <string.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

/* What a node does in a network that is divided. */
enum role {
    ROLE_WHOLE, /* the same on all processes */
    ROLE_FIRST, /* a linear layer of which a process has rows: q, k, v; the columns of an MLP */
    ROLE_TABLE, /* the bias of an attention, of which it has heads */
    ROLE_INNER, /* between the first and the last: works on what the process has */
    ROLE_LAST,  /* a linear layer of which it has columns: its output is a sum over processes */
};

struct division {
    const struct graph *graph;
    int parts, part;
    enum role *roles; /* [nodes] */
    int64_t *blocks;  /* [nodes]: of ROLE_FIRST: q, k and v (or gates) side by side, each divided */
    int64_t *outer;   /* [values]: see heads_move; 0: whole */
    int *axis;        /* [values]: along which a parameter is divided */
    value_id *entrance; /* [values]: in the new graph, where its gradient is summed */
    struct rewrite r;
};

void heads_move(float *whole, int64_t count, int64_t outer, int parts, int part, float *own,
                bool back)
{
    int64_t inner = count / (outer * parts);
    for (int64_t o = 0; o < outer; o++, own += inner) {
        float *place = whole + (o * parts + part) * inner;
        memcpy(back ? place : own, back ? own : place, (size_t)inner * sizeof *own);
    }
}

/* --- roles --- */

static enum role *role_of(const struct division *d, const struct node *node)
{
    return &d->roles[node - d->graph->nodes];
}

static int64_t features_of(const struct division *d, value_id value)
{
    const struct shape *shape = graph_shape(d->graph, value);
    return shape->dim[shape->rank - 1];
}

static bool is_linear(const struct node *node)
{
    return node && node->op->kind == OP_LINEAR;
}

/* Is it a matrix of tokens' features, [N, T, C]? */
static bool has_tokens(const struct division *d, value_id value)
{
    return graph_shape(d->graph, value)->rank == 3;
}

static bool cannot(const struct node *node, const char *why, struct err *err)
{
    return err_set(err, ERR_USAGE, "%s: %s, so its heads or columns cannot be divided", node->name,
                   why);
}

static bool divide_parameter(struct division *d, const struct node *node, int input, int axis,
                             int64_t outer, struct err *err)
{
    value_id value = input < node->n_inputs ? node->inputs[input] : NO_VALUE;
    if (value == NO_VALUE)
        return true;
    if (!graph_is_parameter(d->graph, value) || graph_users(d->graph, value) != 1)
        return cannot(node, "its weights are computed or used twice", err);
    d->outer[value] = outer;
    d->axis[value] = axis;
    return true;
}

/* A linear layer whose rows, in so many blocks, are divided. */
static bool mark_first(struct division *d, const struct node *node, int64_t blocks, struct err *err)
{
    enum role *role = role_of(d, node);
    int64_t *known = &d->blocks[node - d->graph->nodes];
    int64_t features = features_of(d, node->output);
    if (*role == ROLE_FIRST && *known == blocks)
        return true;
    if (*role != ROLE_WHOLE)
        return cannot(node, "it is part of two blocks", err);
    if (features % blocks != 0 || features / blocks % d->parts != 0)
        return err_set(err, ERR_USAGE, "%s: %lld columns cannot be divided among %d ranks",
                       node->name, (long long)(features / blocks), d->parts);
    *role = ROLE_FIRST;
    *known = blocks;
    return divide_parameter(d, node, 1, 0, blocks, err) &&
           divide_parameter(d, node, 2, 0, blocks, err);
}

static bool mark_last(struct division *d, const struct node *node, struct err *err)
{
    if (*role_of(d, node) != ROLE_WHOLE || node->attr.linear.activation != ACT_NONE)
        return cannot(node, "it is part of two blocks", err);
    *role_of(d, node) = ROLE_LAST;
    return divide_parameter(d, node, 1, 1, graph_shape(d->graph, node->inputs[1])->dim[0], err);
}

/* Of how many blocks a slice is one; 0: of none. */
static int64_t blocks_of(const struct division *d, const struct node *slice)
{
    const struct slice_attr *a = &slice->attr.slice;
    int64_t all = features_of(d, slice->inputs[0]), own = features_of(d, slice->output);
    int rank = graph_shape(d->graph, slice->output)->rank;
    bool fits = axis_of(a->axis, rank) == rank - 1 && a->step == 1 && all % own == 0 &&
                a->begin % own == 0 && own < all;
    return fits ? all / own : 0;
}

/* The linear layer that makes a value, alone or as one of several blocks. NULL: none does. */
static const struct node *linear_of(const struct division *d, value_id value, int64_t *blocks)
{
    const struct node *node = graph_maker(d->graph, value);
    *blocks = 1;
    if (node && node->op->kind == OP_SLICE) {
        *blocks = blocks_of(d, node);
        node = *blocks > 0 ? graph_maker(d->graph, node->inputs[0]) : NULL;
    }
    return is_linear(node) && has_tokens(d, node->inputs[0]) ? node : NULL;
}

static bool mark_source(struct division *d, value_id value, struct err *err)
{
    int64_t blocks = 1;
    const struct node *linear = linear_of(d, value, &blocks), *made = graph_maker(d->graph, value);
    if (made != linear)
        *role_of(d, made) = ROLE_INNER;
    return mark_first(d, linear, blocks, err);
}

/* q, k and v of an attention. */
static bool mark_inputs(struct division *d, const struct node *node, struct err *err)
{
    bool packed = node->n_inputs < 3 || node->inputs[1] == NO_VALUE;
    for (int i = 0; i < (packed ? 1 : 3); i++) {
        int64_t blocks = 1;
        const struct node *linear = linear_of(d, node->inputs[i], &blocks);
        if (!linear || (packed && blocks != 1))
            return cannot(node, "its queries, keys and values are not made by linear layers", err);
        if (packed ? !mark_first(d, linear, 3, err) : !mark_source(d, node->inputs[i], err))
            return false;
    }
    return true;
}

/* The bias of an attention: one of all heads stays whole. */
static bool mark_bias(struct division *d, const struct node *node, struct err *err)
{
    value_id bias = node->n_inputs > 3 ? node->inputs[3] : NO_VALUE;
    if (bias == NO_VALUE || graph_shape(d->graph, bias)->dim[1] == 1)
        return true;
    const struct node *maker = graph_maker(d->graph, bias);
    if (!maker || maker->op->kind != OP_RELATIVE_BIAS)
        return cannot(node, "its bias is not made by a table", err);
    if (*role_of(d, maker) == ROLE_TABLE)
        return true;
    *role_of(d, maker) = ROLE_TABLE;
    return divide_parameter(d, maker, 1, 1, graph_shape(d->graph, maker->inputs[1])->dim[0], err);
}

/* The linear layer behind it, perhaps with dropout between. */
static const struct node *linear_behind(const struct division *d, value_id value)
{
    const struct node *node = graph_only_user(d->graph, value);
    if (node && node->op->kind == OP_DROPOUT) {
        *role_of(d, node) = ROLE_INNER;
        node = graph_only_user(d->graph, node->output);
    }
    return is_linear(node) ? node : NULL;
}

static bool mark_attention(struct division *d, const struct node *node, struct err *err)
{
    if (node->attr.attention.heads % d->parts != 0)
        return err_set(err, ERR_USAGE, "%s: %lld heads cannot be divided among %d ranks",
                       node->name, (long long)node->attr.attention.heads, d->parts);
    const struct node *last = linear_behind(d, node->output);
    if (!last)
        return cannot(node, "no linear layer follows", err);
    *role_of(d, node) = ROLE_INNER;
    return mark_inputs(d, node, err) && mark_bias(d, node, err) && mark_last(d, last, err);
}

static bool is_activation(const struct node *node)
{
    switch (node->op->kind) {
    case OP_RELU:
    case OP_LEAKY_RELU:
    case OP_SILU:
    case OP_GELU:
    case OP_SIGMOID:
    case OP_TANH:
    case OP_DROPOUT:
        return true;
    default:
        return false;
    }
}

/* Is a value made by linear layers (depth > 0), activations and products of gates alone, and for
 * nobody else? */
static bool is_hidden(const struct division *d, value_id value, int depth)
{
    int64_t blocks = 1;
    const struct node *node = graph_maker(d->graph, value),
                      *linear = depth > 0 ? linear_of(d, value, &blocks) : NULL;
    if (!node || !graph_only_user(d->graph, value))
        return false;
    if (linear)
        return *role_of(d, linear) == ROLE_WHOLE;
    if (node->op->kind == OP_MUL)
        return is_hidden(d, node->inputs[0], depth + 1) && is_hidden(d, node->inputs[1], depth + 1);
    return is_activation(node) && is_hidden(d, node->inputs[0], depth + 1);
}

static bool mark_hidden(struct division *d, value_id value, struct err *err)
{
    const struct node *node = graph_maker(d->graph, value);
    if (is_linear(node) || node->op->kind == OP_SLICE)
        return mark_source(d, value, err);
    *role_of(d, node) = ROLE_INNER;
    return mark_hidden(d, node->inputs[0], err) &&
           (node->op->kind != OP_MUL || mark_hidden(d, node->inputs[1], err));
}

/* Does nobody else read what is divided? */
static bool check_uses(const struct division *d, struct err *err)
{
    for (int32_t i = 0; i < d->graph->n_nodes; i++) {
        const struct node *node = &d->graph->nodes[i];
        for (int k = 0; k < node->n_inputs; k++) {
            const struct node *maker = graph_maker(d->graph, node->inputs[k]);
            enum role made = maker ? *role_of(d, maker) : ROLE_WHOLE;
            bool divided = made == ROLE_FIRST || made == ROLE_INNER || made == ROLE_TABLE;
            bool blocks = made == ROLE_FIRST && d->blocks[maker - d->graph->nodes] > 1;
            bool whole_block = node->op->kind == OP_SLICE || node->op->kind == OP_ATTENTION;
            if (divided && ((d->roles[i] != ROLE_INNER && d->roles[i] != ROLE_LAST) ||
                            (blocks && !whole_block)))
                return cannot(maker, "what it makes is used elsewhere", err);
        }
    }
    for (int i = 0; i < d->graph->n_outputs; i++) {
        const struct node *maker = graph_maker(d->graph, d->graph->outputs[i].value);
        if (maker && *role_of(d, maker) != ROLE_WHOLE && *role_of(d, maker) != ROLE_LAST)
            return cannot(maker, "it is an output", err);
    }
    return true;
}

static bool find_roles(struct division *d, struct err *err)
{
    int found = 0;
    for (int32_t i = 0; i < d->graph->n_nodes; i++) {
        if (d->graph->nodes[i].op->kind != OP_ATTENTION)
            continue;
        if (!mark_attention(d, &d->graph->nodes[i], err))
            return false;
        found++;
    }
    for (int32_t i = 0; i < d->graph->n_nodes; i++) {
        const struct node *node = &d->graph->nodes[i];
        if (is_linear(node) && d->roles[i] == ROLE_WHOLE && is_hidden(d, node->inputs[0], 0) &&
            !(mark_hidden(d, node->inputs[0], err) && mark_last(d, node, err)))
            return false;
    }
    return found > 0
               ? check_uses(d, err)
               : err_set(err, ERR_USAGE,
                         "the network %s has no attention whose heads could be divided among %d "
                         "ranks",
                         d->graph->name, d->parts);
}

/* --- the new graph --- */

/* All parameters, in the order of the network. */
static void put_parameters(struct division *d)
{
    for (value_id v = 0; v < d->graph->n_values; v++) {
        if (!graph_is_parameter(d->graph, v))
            continue;
        if (d->outer[v] == 0) {
            rewrite_value(&d->r, v);
            continue;
        }
        struct shape shape = *graph_shape(d->graph, v);
        int64_t count = shape_count(&shape);
        float *own = NULL, *whole = graph_data(d->graph, v);
        shape.dim[d->axis[v]] /= d->parts;
        d->r.map[v] = rewrite_fresh(&d->r, v, shape, &own);
        if (d->r.map[v] == NO_VALUE)
            continue;
        if (whole)
            heads_move(whole, count, d->outer[v], d->parts, d->part, own, false);
        else
            memset(own, 0, (size_t)(count / d->parts) * sizeof *own);
    }
}

/* suffix NULL: under that name itself. */
static value_id put_sum(struct division *d, const char *like, const char *suffix, value_id x,
                        bool forward)
{
    char *name = x == NO_VALUE || !suffix ? NULL : rewrite_new_name(&d->r, like, suffix);
    value_id made = NO_VALUE;
    union attr attr = {
        .all_reduce = { .group = PEERS_HEADS, .sum_forward = forward, .sum_backward = !forward }
    };
    if (x != NO_VALUE && (name || !suffix))
        made = graph_node(d->r.to, OP_ALL_REDUCE, suffix ? name : like, &x, 1, &attr);
    free(name);
    return made;
}

/* What all processes have, as the input of what each has a part of: its gradient is a sum. */
static value_id enter(struct division *d, value_id value)
{
    if (d->entrance[value] == NO_VALUE)
        d->entrance[value] = put_sum(d, d->graph->values[value].name, ".to_heads",
                                     rewrite_value(&d->r, value), false);
    return d->entrance[value];
}

static void put_first(struct division *d, const struct node *node)
{
    value_id inputs[3] = { enter(d, node->inputs[0]), rewrite_value(&d->r, node->inputs[1]),
                           node->n_inputs > 2 ? rewrite_value(&d->r, node->inputs[2]) : NO_VALUE };
    if (inputs[0] != NO_VALUE && inputs[1] != NO_VALUE)
        d->r.map[node->output] =
            graph_node(d->r.to, OP_LINEAR, node->name, inputs, node->n_inputs, &node->attr);
}

static void put_inner(struct division *d, const struct node *node)
{
    union attr attr = node->attr;
    if (node->op->kind == OP_SLICE)
        attr.slice.begin /= d->parts, attr.slice.end /= d->parts;
    if (node->op->kind == OP_ATTENTION)
        attr.attention.heads /= d->parts;
    if (node->op->kind == OP_DROPOUT)
        attr.dropout.parts = d->parts, attr.dropout.part = d->part;
    rewrite_node(&d->r, node, &attr);
}

/* The bias is added once, behind the sum, which then has the name of the node. */
static void put_last(struct division *d, const struct node *node)
{
    bool biased = node->n_inputs > 2 && node->inputs[2] != NO_VALUE;
    char *name = rewrite_new_name(&d->r, node->name, ".part");
    value_id inputs[2] = { rewrite_value(&d->r, node->inputs[0]),
                           rewrite_value(&d->r, node->inputs[1]) };
    value_id y = NO_VALUE;
    if (name && inputs[0] != NO_VALUE && inputs[1] != NO_VALUE)
        y = graph_node(d->r.to, OP_LINEAR, name, inputs, 2, NULL);
    y = put_sum(d, node->name, biased ? ".sum" : NULL, y, true);
    if (biased && y != NO_VALUE) {
        inputs[0] = y, inputs[1] = rewrite_value(&d->r, node->inputs[2]);
        y = graph_node(d->r.to, OP_ADD, node->name, inputs, 2, NULL);
    }
    d->r.map[node->output] = y;
    free(name);
}

static bool rewrite_all(struct division *d, struct graph **out, struct err *err)
{
    if (!rewrite_begin(&d->r, d->graph, true, NULL, 0, err))
        return false;
    put_parameters(d);
    for (int32_t i = 0; i < d->graph->n_nodes; i++) {
        const struct node *node = &d->graph->nodes[i];
        enum role role = d->roles[i];
        d->r.replaced[node->output] = role != ROLE_WHOLE && role != ROLE_LAST;
        if (role == ROLE_FIRST)
            put_first(d, node);
        else if (role == ROLE_INNER)
            put_inner(d, node);
        else if (role == ROLE_LAST)
            put_last(d, node);
        else
            rewrite_node(&d->r, node, NULL);
    }
    return rewrite_end(&d->r, out, err);
}

bool transform_heads(const struct graph *graph, int parts, int part, struct graph **out,
                     int64_t *outer, struct err *err)
{
    size_t nodes = (size_t)graph->n_nodes + 1, values = (size_t)graph->n_values + 1;
    struct division d = { .graph = graph,
                          .parts = parts,
                          .part = part,
                          .roles = calloc(nodes, sizeof *d.roles),
                          .blocks = calloc(nodes, sizeof *d.blocks),
                          .outer = calloc(values, sizeof *d.outer),
                          .axis = calloc(values, sizeof *d.axis),
                          .entrance = malloc(values * sizeof *d.entrance) };
    bool ok = (d.roles && d.blocks && d.outer && d.axis && d.entrance) ||
              err_memory(err, "the parts of a network");
    for (size_t i = 0; ok && i < values; i++)
        d.entrance[i] = NO_VALUE;
    ok = ok && find_roles(&d, err) && rewrite_all(&d, out, err);
    if (ok && outer)
        memcpy(outer, d.outer, (values - 1) * sizeof *outer);
    free(d.roles), free(d.blocks), free(d.outer), free(d.axis), free(d.entrance);
    return ok;
}
