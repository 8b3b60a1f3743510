/* transform_norm.c: networks with batch norm, without it: with standardised weights, with initial
 * values that need no normalisation, or with group norm. */
#include <math.h>
#include <stdlib.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

const char *const norm_names[] = { "batch", "frozen", "ws", "fixup", "group", NULL };

/* A normal distribution behind a ReLU has a variance of (1 - 1/pi) / 2: with this gain a layer
 * gives it a variance of 1 again. */
#define RELU_GAIN 1.7139
/* The last layer of a residual branch starts with this fraction, so that the sum of many branches
 * grows slowly (alpha of Brock et al.). */
#define BRANCH_FRACTION 0.2
#define WS_EPSILON 1e-6f
#define MOST_GROUPS                                                                                \
    32 /* of a group norm; with one channel each, the mean of a map would be lost                  \
        */
#define LEAST_CHANNELS 4 /* in a group, if there is more than one group */

/* What is known of the convolutions and sums of a network; by node. */
struct anatomy {
    const struct graph *graph;
    const struct node **norm; /* [n_nodes]: of a convolution: the batch norm behind it */
    int *branch;              /* [n_nodes]: of a convolution: how many its residual branch has; 0:
                                 it is in none */
    bool *last;               /* [n_nodes]: it is the last of its branch */
    bool *shortcut;           /* [n_nodes]: it makes the other side of the sum */
    int branches;
};

static void anatomy_free(struct anatomy *a)
{
    free(a->norm), free(a->branch), free(a->last), free(a->shortcut);
}

static int64_t index_of(const struct graph *graph, const struct node *node)
{
    return node - graph->nodes;
}

/* The convolution that alone feeds a batch norm; NULL: it is something else. */
static const struct node *conv_of(const struct graph *graph, const struct node *norm)
{
    const struct node *conv = graph_maker(graph, norm->inputs[0]);
    return conv && conv->op->kind == OP_CONV && graph_only_user(graph, conv->output) == norm &&
                   conv->attr.conv.activation == ACT_NONE && conv->n_inputs <= 3 &&
                   graph_is_parameter(graph, conv->inputs[1]) &&
                   graph_users(graph, conv->inputs[1]) == 1
               ? conv
               : NULL;
}

/* Convolutions on the longest way from an input to each value, [n_values]. */
static int *depths_of(const struct graph *graph)
{
    int *depths = calloc((size_t)graph->n_values + 1, sizeof *depths);
    for (int32_t i = 0; depths && i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        int deepest = 0;
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NO_VALUE && depths[node->inputs[k]] > deepest)
                deepest = depths[node->inputs[k]];
        depths[node->output] = deepest + (node->op->kind == OP_CONV);
    }
    return depths;
}

/* The convolution behind a value, under its batch norm; NULL: none. */
static const struct node *last_conv(const struct graph *graph, value_id value)
{
    const struct node *norm = graph_maker(graph, value);
    return norm && norm->op->kind == OP_BATCH_NORM ? conv_of(graph, norm) : NULL;
}

/* Marks the branch that ends in `value`: what the shortcut does not need as well. */
static void mark_branch(struct anatomy *a, value_id value, const bool *needed)
{
    const struct graph *graph = a->graph;
    int convs = 0;
    for (int pass = 0; pass < 2; pass++)
        for (const struct node *at = graph_maker(graph, value); at && !needed[at->output];
             at = graph_maker(graph, at->inputs[0]))
            if (at->op->kind == OP_CONV && pass == 0)
                convs++;
            else if (at->op->kind == OP_CONV)
                a->branch[index_of(graph, at)] = convs;
    a->last[index_of(graph, last_conv(graph, value))] = true;
    a->branches++;
}

/* The deeper side of a sum of two maps is a residual branch, if it ends in a convolution. */
static bool visit_sum(struct anatomy *a, const struct node *sum, const int *depths, struct err *err)
{
    const struct graph *graph = a->graph;
    if (graph_is_parameter(graph, sum->inputs[0]) || graph_is_parameter(graph, sum->inputs[1]) ||
        depths[sum->inputs[0]] == depths[sum->inputs[1]])
        return true;
    int deeper = depths[sum->inputs[0]] > depths[sum->inputs[1]] ? 0 : 1;
    value_id branch = sum->inputs[deeper], shortcut = sum->inputs[1 - deeper];
    if (!last_conv(graph, branch))
        return true;
    bool *needed = calloc((size_t)graph->n_values + 1, sizeof *needed);
    if (!needed)
        return err_memory(err, graph->name);
    rewrite_mark_needed(graph, shortcut, needed);
    mark_branch(a, branch, needed);
    free(needed);
    if (last_conv(graph, shortcut))
        a->shortcut[index_of(graph, last_conv(graph, shortcut))] = true;
    return true;
}

static bool anatomy_of(const struct graph *graph, enum norm_rule rule, struct anatomy *a,
                       struct err *err)
{
    size_t n = (size_t)graph->n_nodes + 1;
    *a = (struct anatomy){ .graph = graph,
                           .norm = calloc(n, sizeof *a->norm),
                           .branch = calloc(n, sizeof *a->branch),
                           .last = calloc(n, sizeof *a->last),
                           .shortcut = calloc(n, sizeof *a->shortcut) };
    int *depths = depths_of(graph);
    bool ok =
        (a->norm && a->branch && a->last && a->shortcut && depths) || err_memory(err, graph->name);
    for (int32_t i = 0; ok && i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i], *conv = NULL;
        if (node->op->kind == OP_ADD)
            ok = visit_sum(a, node, depths, err);
        if (node->op->kind != OP_BATCH_NORM)
            continue;
        conv = conv_of(graph, node);
        if (conv)
            a->norm[index_of(graph, conv)] = node;
        else
            ok = err_set(err, ERR_USAGE,
                         "%s: its batch norm %s does not follow a convolution, and there is no "
                         "rule for that in network.norm: %s; frozen works for every network",
                         graph->name, node->name, norm_names[rule]);
    }
    free(depths);
    return ok;
}

/* A new parameter NAME + suffix. */
static value_id parameter(struct rewrite *r, const char *name, const char *suffix,
                          struct shape shape, float start)
{
    char *text = rewrite_new_name(r, name, suffix);
    value_id made = text ? graph_parameter(r->to, text, shape) : NO_VALUE;
    free(text);
    if (made != NO_VALUE)
        r->to->values[made].init = (struct init){ INIT_CONSTANT, start };
    return made;
}

/* --- weight standardisation --- */

static value_id standardized(struct rewrite *r, const struct node *conv, float gain)
{
    value_id weight = rewrite_value(r, conv->inputs[1]);
    if (weight == NO_VALUE)
        return NO_VALUE;
    int64_t outputs = graph_shape(r->to, weight)->dim[0];
    value_id inputs[2] = { weight, parameter(r, conv->name, ".gain", SHAPE(outputs), gain) };
    char *name = rewrite_new_name(r, conv->name, ".standardized");
    value_id made = NO_VALUE;
    if (name && inputs[1] != NO_VALUE)
        made = graph_node(r->to, OP_STANDARDIZE, name, inputs, 2,
                          &(union attr){ .norm = { .epsilon = WS_EPSILON } });
    free(name);
    return made;
}

/* conv -> batch norm becomes the convolution with a standardised weight and a bias. */
static void standardize(struct rewrite *r, const struct anatomy *a, const struct node *conv)
{
    int64_t outputs = graph_shape(a->graph, conv->output)->dim[1];
    bool last = a->last[index_of(a->graph, conv)];
    value_id inputs[3] = { rewrite_value(r, conv->inputs[0]) };
    inputs[1] = standardized(r, conv, (float)(last ? BRANCH_FRACTION * RELU_GAIN : RELU_GAIN));
    inputs[2] = conv->n_inputs > 2 ? rewrite_value(r, conv->inputs[2])
                                   : parameter(r, conv->name, ".bias", SHAPE(outputs), 0);
    if (inputs[0] != NO_VALUE && inputs[1] != NO_VALUE && inputs[2] != NO_VALUE)
        r->map[conv->output] = graph_node(r->to, OP_CONV, conv->name, inputs, 3, &conv->attr);
}

/* --- fixup --- */

static value_id combined(struct rewrite *r, enum op_kind kind, value_id x, const char *name,
                         const char *suffix, float start)
{
    value_id number = parameter(r, name, suffix, SHAPE(1), start);
    char *text = number == NO_VALUE ? NULL
                                    : rewrite_new_name(r, r->to->values[number].name,
                                                       kind == OP_MUL ? ".mul" : ".add");
    value_id made = NO_VALUE;
    if (x != NO_VALUE && text)
        made = graph_node(r->to, kind, text, (value_id[]){ x, number }, 2, NULL);
    free(text);
    return made;
}

/* He's initial values, smaller in residual branches of m layers, L of them: by L^(-1 / (2 m - 2));
 * the last layer of a branch starts with 0. */
static struct init fixup_init(const struct anatomy *a, const struct node *conv)
{
    const struct shape *weight = graph_shape(a->graph, conv->inputs[1]);
    int64_t i = index_of(a->graph, conv);
    double fan_out = (double)(weight->dim[0] * weight->dim[2] * weight->dim[3]);
    double std = sqrt(2 / fan_out);
    if (a->last[i])
        return (struct init){ INIT_CONSTANT, 0 };
    if (a->branch[i] > 1)
        std *= pow(a->branches, -1.0 / (2 * a->branch[i] - 2));
    return (struct init){ INIT_NORMAL, (float)std };
}

/* conv -> batch norm becomes (x + a) -> conv [times a factor] -> + b; biased [n_values]: the sums
 * with a that exist already, since a shortcut shares that of its block. */
static void fix_up(struct rewrite *r, const struct anatomy *a, const struct node *conv,
                   value_id *biased)
{
    int64_t i = index_of(a->graph, conv);
    value_id x = conv->inputs[0];
    bool first = a->graph->values[x].kind == VALUE_INPUT;
    if (!first && biased[x] == NO_VALUE)
        biased[x] = combined(r, OP_ADD, rewrite_value(r, x), conv->name, ".bias_before", 0);
    value_id inputs[3] = { first ? rewrite_value(r, x) : biased[x],
                           rewrite_value(r, conv->inputs[1]) };
    if (inputs[0] == NO_VALUE || inputs[1] == NO_VALUE)
        return;
    r->to->values[inputs[1]].init = fixup_init(a, conv);
    value_id y = graph_node(r->to, OP_CONV, conv->name, inputs, 2, &conv->attr);
    if (a->last[i])
        y = combined(r, OP_MUL, y, conv->name, ".factor", 1);
    if (!a->shortcut[i])
        y = combined(r, OP_ADD, y, conv->name, ".bias_behind", 0);
    r->map[conv->output] = y;
}

/* The classifier starts with 0. */
static void fix_up_output(struct rewrite *r)
{
    const struct node *linear = graph_maker(r->from, r->from->outputs[0].value);
    for (int i = 1; linear && linear->op->kind == OP_LINEAR && i < linear->n_inputs; i++) {
        value_id made = rewrite_value(r, linear->inputs[i]);
        if (made != NO_VALUE)
            r->to->values[made].init = (struct init){ INIT_CONSTANT, 0 };
    }
}

/* --- group norm --- */

/* The batch norm's weight and bias, for as many groups as there may be. */
static void group(struct rewrite *r, const struct node *norm)
{
    value_id inputs[3];
    for (int i = 0; i < 3; i++)
        if ((inputs[i] = rewrite_value(r, norm->inputs[i])) == NO_VALUE)
            return;
    int64_t channels = graph_shape(r->from, norm->output)->dim[1], groups = MOST_GROUPS;
    while (groups > 1 && (channels % groups != 0 || channels / groups < LEAST_CHANNELS))
        groups--;
    r->map[norm->output] = graph_node(
        r->to, OP_GROUP_NORM, norm->name, inputs, 3,
        &(union attr){ .norm = { .groups = groups, .epsilon = norm->attr.norm.epsilon } });
}

static bool group_all(const struct graph *graph, struct graph **out, struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op->kind == OP_BATCH_NORM)
            group(&r, &graph->nodes[i]);
        else
            rewrite_node(&r, &graph->nodes[i], NULL);
    return rewrite_end(&r, out, err);
}

static bool rewrite_all(struct rewrite *r, const struct anatomy *a, enum norm_rule rule,
                        struct err *err)
{
    const struct graph *graph = a->graph;
    value_id *biased = malloc(((size_t)graph->n_values + 1) * sizeof *biased);
    if (!biased)
        return err_memory(err, graph->name);
    for (int32_t i = 0; i < graph->n_values; i++)
        biased[i] = NO_VALUE;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (node->op->kind == OP_BATCH_NORM)
            r->map[node->output] = rewrite_value(r, node->inputs[0]);
        else if (!a->norm[i])
            rewrite_node(r, node, NULL);
        else if (rule == NORM_WS)
            standardize(r, a, node);
        else
            fix_up(r, a, node, biased);
    }
    if (rule == NORM_FIXUP)
        fix_up_output(r);
    free(biased);
    return true;
}

static bool has_norm(const struct graph *graph)
{
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op->kind == OP_BATCH_NORM)
            return true;
    return false;
}

bool transform_norm(const struct graph *graph, enum norm_rule rule, struct graph **out,
                    struct err *err)
{
    struct anatomy a;
    struct rewrite r;
    if (rule == NORM_BATCH || rule == NORM_FROZEN)
        return graph_copy(graph, out, err);
    if (!has_norm(graph))
        return err_set(err, ERR_USAGE,
                       "%s: has no batch norm that network.norm: %s could replace; use batch",
                       graph->name, norm_names[rule]);
    if (rule == NORM_GROUP)
        return group_all(graph, out, err);
    bool ok = anatomy_of(graph, rule, &a, err);
    if (ok && rule == NORM_FIXUP && a.branches == 0)
        ok = err_set(err, ERR_USAGE,
                     "%s: has no residual branches that end in a convolution and its batch norm, "
                     "which are what fixup is for; use network.norm: ws or frozen",
                     graph->name);
    ok = ok && rewrite_begin(&r, graph, true, NULL, 0, err);
    if (ok && !rewrite_all(&r, &a, rule, err)) {
        rewrite_discard(&r);
        ok = false;
    }
    ok = ok && rewrite_end(&r, out, err);
    anatomy_free(&a);
    return ok;
}
