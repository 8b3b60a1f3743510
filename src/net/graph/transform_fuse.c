/* transform_fuse.c: folds batch norm into weights, and merges chains conv or linear + add +
 * activation. */
#include <math.h>
#include <stdlib.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

static bool has_residual(const struct node *node)
{
    return node->n_inputs > 3 && node->inputs[3] != NO_VALUE;
}

static bool takes_scale(const struct node *node)
{
    switch (node->op->kind) {
    case OP_CONV:
        return node->attr.conv.activation == ACT_NONE && !has_residual(node);
    case OP_LINEAR:
        return node->attr.linear.activation == ACT_NONE && !has_residual(node);
    case OP_CONV_TRANSPOSE:
        return true;
    default:
        return false;
    }
}

/* The batch norm that can be folded into this node, or NULL. */
static const struct node *norm_behind(const struct rewrite *r, const struct node *node)
{
    const struct graph *graph = r->from;
    if (!takes_scale(node) || r->protected[node->output])
        return NULL;
    const struct node *norm = graph_only_user(graph, node->output);
    if (!norm || norm->op->kind != OP_BATCH_NORM || norm->inputs[0] != node->output)
        return NULL;
    bool owns_weight = graph_is_parameter(graph, node->inputs[1]) &&
                       graph_users(graph, node->inputs[1]) == 1 &&
                       (node->op->kind != OP_LINEAR || graph_shape(graph, node->output)->rank == 2);
    if (node->n_inputs > 2 && node->inputs[2] != NO_VALUE)
        owns_weight = owns_weight && graph_is_parameter(graph, node->inputs[2]) &&
                      graph_users(graph, node->inputs[2]) == 1;
    for (int i = 1; i < 5; i++)
        owns_weight = owns_weight && graph_is_parameter(graph, norm->inputs[i]);
    return owns_weight ? norm : NULL;
}

static bool has_floats(const struct graph *graph, const struct node *node, int first,
                       struct err *err)
{
    for (int i = first; i < node->n_inputs; i++)
        if (node->inputs[i] != NO_VALUE && !graph_data(graph, node->inputs[i]))
            return err_set(err, ERR_MISSING,
                           "%s: has no values yet; load the weights before folding",
                           graph->values[node->inputs[i]].name);
    return true;
}

/* How a weight lies: rows of floats that belong to one output channel each. */
struct weight_rows {
    int64_t rows, row_length;
    int64_t inputs, columns; /* transposed: inputs and outputs of a group */
    bool transposed;
};

/* [O, ..], or [I, O/groups, ..] when transposed. */
static struct weight_rows weight_rows(const struct node *node, const struct shape *weight)
{
    if (node->op->kind != OP_CONV_TRANSPOSE)
        return (struct weight_rows){ .rows = weight->dim[0],
                                     .row_length = shape_span(weight, 1, weight->rank) };
    return (struct weight_rows){ .rows = weight->dim[0] * weight->dim[1],
                                 .row_length = shape_span(weight, 2, 4),
                                 .inputs = weight->dim[0] / node->attr.conv.groups,
                                 .columns = weight->dim[1],
                                 .transposed = true };
}

static int64_t row_channel(const struct weight_rows *w, int64_t row)
{
    return w->transposed ? row / w->columns / w->inputs * w->columns + row % w->columns : row;
}

static double norm_scale(const struct node *norm, const float *gamma, const float *variance,
                         int64_t c)
{
    return (double)gamma[c] / sqrt((double)variance[c] + (double)norm->attr.norm.epsilon);
}

static void fold(struct rewrite *r, const struct node *node, const struct node *norm)
{
    const struct graph *graph = r->from;
    const struct shape *shape = graph_shape(graph, node->inputs[1]);
    bool had_bias = node->n_inputs > 2 && node->inputs[2] != NO_VALUE;
    int64_t channels = graph_shape(graph, norm->inputs[1])->dim[0];
    const float *gamma = graph_data(graph, norm->inputs[1]);
    const float *beta = graph_data(graph, norm->inputs[2]);
    const float *mean = graph_data(graph, norm->inputs[3]);
    const float *variance = graph_data(graph, norm->inputs[4]);
    const float *weight = graph_data(graph, node->inputs[1]);
    const float *bias = had_bias ? graph_data(graph, node->inputs[2]) : NULL;
    float *new_weight = NULL, *new_bias = NULL;
    value_id inputs[3] = {
        rewrite_value(r, node->inputs[0]), rewrite_fresh(r, node->inputs[1], *shape, &new_weight),
        rewrite_fresh(r, had_bias ? node->inputs[2] : norm->inputs[2], SHAPE(channels), &new_bias)
    };
    if (!new_weight || !new_bias)
        return;
    struct weight_rows rows = weight_rows(node, shape);
    for (int64_t row = 0; row < rows.rows; row++) {
        const float *from = weight + row * rows.row_length;
        float *to = new_weight + row * rows.row_length;
        double scale = norm_scale(norm, gamma, variance, row_channel(&rows, row));
#pragma omp simd
        for (int64_t i = 0; i < rows.row_length; i++)
            to[i] = (float)((double)from[i] * scale);
    }
    for (int64_t c = 0; c < channels; c++) {
        double scale = norm_scale(norm, gamma, variance, c);
        double old = bias ? (double)bias[c] : 0;
        new_bias[c] = (float)((double)beta[c] + (old - (double)mean[c]) * scale);
    }
    const char *name = r->protected[norm->output] ? norm->name : node->name;
    r->map[norm->output] = graph_node(r->to, node->op->kind, name, inputs, 3, &node->attr);
}

bool transform_fold_batch_norm(const struct graph *graph, const char *const *keep, int n_keep,
                               struct graph **out, struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, true, keep, n_keep, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i], *norm = norm_behind(&r, node);
        if (norm) {
            if (!has_floats(graph, node, 1, err) || !has_floats(graph, norm, 1, err)) {
                rewrite_discard(&r);
                return false;
            }
            fold(&r, node, norm);
        } else if (r.map[node->output] == NO_VALUE) {
            rewrite_node(&r, node, NULL);
        }
    }
    return rewrite_end(&r, out, err);
}

/* One chain that becomes one node, at the place of its last node. */
struct chain {
    const struct node *base, *add; /* add NULL: none */
    value_id residual;             /* in the old graph; NO_VALUE: none */
    enum activation activation;
    const char *name;
};

struct chains {
    struct chain *ends; /* [n_nodes]: the chain that ends at this node; base NULL: none */
    bool *absorbed;     /* [n_nodes]: within a chain, before its end */
};

static enum activation activation_of(const struct node *node)
{
    switch (node->op->kind) {
    case OP_RELU:
        return ACT_RELU;
    case OP_SILU:
        return ACT_SILU;
    case OP_GELU:
        return node->attr.gelu.tanh_form ? ACT_NONE : ACT_GELU;
    default:
        return ACT_NONE;
    }
}

/* Whether the node adds an activation of the same shape and belongs to no chain yet. */
static bool is_free_addition(const struct graph *graph, const struct node *node, value_id from,
                             const struct chains *chains, value_id *other)
{
    if (!node || node->op->kind != OP_ADD || node->inputs[0] == node->inputs[1])
        return false;
    int64_t i = node - graph->nodes;
    *other = node->inputs[node->inputs[0] == from ? 1 : 0];
    return !chains->absorbed[i] && !chains->ends[i].base && !graph_is_parameter(graph, *other) &&
           shape_equal(graph_shape(graph, from), graph_shape(graph, *other));
}

/* Linear layers only on tokens: those behind a pooling are what other transforms look for. */
static bool takes_residual(const struct graph *graph, const struct node *node)
{
    return node->op->kind == OP_CONV || graph_shape(graph, node->output)->rank > 2;
}

/* Follows a chain from its first node; returns its last one. A protected value ends it. */
static const struct node *follow(const struct rewrite *r, const struct chains *chains,
                                 struct chain *chain)
{
    const struct graph *graph = r->from;
    const struct node *last = chain->base, *next;
    value_id other;
    chain->name = last->name;
    if (r->protected[last->output])
        return last;
    next = graph_only_user(graph, last->output);
    if (takes_residual(graph, last) &&
        is_free_addition(graph, next, last->output, chains, &other)) {
        chain->add = last = next;
        chain->residual = other;
        next = graph_only_user(graph, last->output);
        if (r->protected[last->output]) {
            chain->name = last->name;
            return last;
        }
    }
    if (next && activation_of(next) != ACT_NONE) {
        chain->activation = activation_of(next);
        last = next;
        if (r->protected[last->output])
            chain->name = last->name;
    }
    return last;
}

/* From the last node: of two layers that are added the later one takes the addition. */
static void find_chains(const struct rewrite *r, struct chains *chains)
{
    const struct graph *graph = r->from;
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--) {
        const struct node *node = &graph->nodes[i];
        if (node->op->kind == OP_CONV_TRANSPOSE || !takes_scale(node))
            continue;
        struct chain chain = { .base = node, .residual = NO_VALUE };
        const struct node *last = follow(r, chains, &chain);
        if (last == node)
            continue;
        chains->absorbed[i] = true;
        if (chain.add && chain.add != last)
            chains->absorbed[chain.add - graph->nodes] = true;
        chains->ends[last - graph->nodes] = chain;
    }
}

static void emit_chain(struct rewrite *r, const struct chain *chain, value_id output)
{
    const struct node *base = chain->base;
    value_id inputs[4] = { NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE };
    union attr attr = base->attr;
    int n = base->n_inputs < 3 ? base->n_inputs : 3;
    for (int i = 0; i < n; i++)
        inputs[i] = rewrite_value(r, base->inputs[i]);
    if (base->op->kind == OP_CONV)
        attr.conv.activation = chain->activation;
    else
        attr.linear.activation = chain->activation;
    if (chain->residual != NO_VALUE) {
        inputs[3] = rewrite_value(r, chain->residual);
        n = 4;
    }
    r->map[output] = graph_node(r->to, base->op->kind, chain->name, inputs, n, &attr);
}

bool transform_fuse(const struct graph *graph, const char *const *keep, int n_keep,
                    struct graph **out, struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, true, keep, n_keep, err))
        return false;
    struct chains chains = { calloc((size_t)graph->n_nodes + 1, sizeof *chains.ends),
                             calloc((size_t)graph->n_nodes + 1, sizeof *chains.absorbed) };
    bool ok = chains.ends && chains.absorbed;
    if (ok)
        find_chains(&r, &chains);
    for (int32_t i = 0; ok && i < graph->n_nodes; i++) {
        if (chains.ends[i].base)
            emit_chain(&r, &chains.ends[i], graph->nodes[i].output);
        else if (!chains.absorbed[i])
            rewrite_node(&r, &graph->nodes[i], NULL);
    }
    free(chains.ends), free(chains.absorbed);
    if (ok)
        return rewrite_end(&r, out, err);
    rewrite_discard(&r);
    return err_memory(err, graph->name);
}
