/* stages.c: a graph and the places of its cuts -> a graph for each stage, and what they send. */
#include "net/stages/stages.h"
#include <stdlib.h>
#include "net/graph/attr.h"
#include "net/graph/graph_names.h"
#include "net/graph/rewrite.h"

/* While stages are made; arrays by value of the whole graph. */
struct cutting {
    const struct graph *graph;
    struct stages *out;
    int *made_in;   /* the stage that makes it; -1: inputs and parameters */
    int *last_read; /* the last stage that reads it; -1: none */
    int *output;    /* its port in the graph of the stage that makes it; -1: it is not sent */
    int64_t room_edges;
};

static bool check_begin(const struct graph *graph, const int32_t *begin, int n, struct err *err)
{
    if (n < 1 || n > STAGES_MOST)
        return err_set(err, ERR_USAGE, "%s: cannot be cut into %d stages; the most is %d",
                       graph->name, n, STAGES_MOST);
    bool ok = begin[0] == 0 && begin[n] == graph->n_nodes;
    for (int s = 0; s < n; s++)
        ok = ok && begin[s] < begin[s + 1];
    return ok || err_set(err, ERR_USAGE, "%s: cannot be cut into %d stages: it has %d layers",
                         graph->name, n, (int)graph->n_nodes);
}

static bool check_outputs(const struct graph *graph, struct err *err)
{
    for (int i = 0; i < graph->n_outputs; i++)
        if (!graph_maker(graph, graph->outputs[i].value))
            return err_set(err, ERR_USAGE,
                           "%s: output %s is an input of the network, so no stage makes it",
                           graph->name, graph->outputs[i].name);
    return true;
}

/* Who makes and who reads what. */
static bool look_through(struct cutting *c, struct err *err)
{
    const struct graph *graph = c->graph;
    for (int32_t v = 0; v < graph->n_values; v++)
        c->made_in[v] = c->last_read[v] = c->output[v] = -1;
    for (int s = 0; s < c->out->n; s++) {
        for (int32_t i = c->out->begin[s]; i < c->out->begin[s + 1]; i++) {
            const struct node *node = &graph->nodes[i];
            c->made_in[node->output] = s;
            for (int k = 0; k < node->n_inputs; k++) {
                value_id x = node->inputs[k];
                if (x == NO_VALUE)
                    continue;
                if (graph->values[x].kind == VALUE_PARAMETER && c->last_read[x] >= 0 &&
                    c->last_read[x] < s)
                    return err_set(err, ERR_USAGE,
                                   "%s: stages %d and %d would share the parameter %s; cut so that "
                                   "all layers that use it are in one stage",
                                   graph->name, c->last_read[x] + 1, s + 1, graph->values[x].name);
                c->last_read[x] = s;
            }
        }
    }
    return true;
}

/* A weight that is computed belongs to the layer that uses it. */
static bool check_weights(const struct cutting *c, struct err *err)
{
    for (int32_t i = 0; i < c->graph->n_nodes; i++) {
        const struct node *node = &c->graph->nodes[i];
        if (node->op->kind == OP_STANDARDIZE &&
            c->last_read[node->output] != c->made_in[node->output])
            return err_set(err, ERR_USAGE,
                           "%s: a cut would separate the weight %s from its layer; cut elsewhere",
                           c->graph->name, node->name);
    }
    return true;
}

static bool add_edge(struct cutting *c, struct stage_edge edge, struct err *err)
{
    struct stages *out = c->out;
    if (out->n_edges == c->room_edges) {
        int64_t room = c->room_edges ? 2 * c->room_edges : 16;
        struct stage_edge *larger = realloc(out->edges, (size_t)room * sizeof *larger);
        if (!larger)
            return err_memory(err, c->graph->name);
        out->edges = larger, c->room_edges = room;
    }
    out->edges[out->n_edges++] = edge;
    return true;
}

/* A value that an earlier stage makes becomes an input under its name, unless an input or parameter
 * of the network has that name too. What was stored rounded is rounded again, which changes
 * nothing, so that kernels for such numbers find them. */
static void receive(struct rewrite *r, value_id value)
{
    const struct value *from = &r->from->values[value];
    bool taken = graph_names_has(r->from, false, from->name);
    char *input = rewrite_new_name(r, from->name, ".received");
    value_id made = input ? graph_input(r->to, taken ? input : from->name, from->shape) : NO_VALUE;
    char *node = rewrite_new_name(r, from->name, ".stored");
    if (made != NO_VALUE && node && from->storage.dtype != DTYPE_FLOAT32)
        made = graph_node(r->to, OP_CONVERT, node, &made, 1,
                          &(union attr){ .convert = from->storage });
    free(input), free(node);
    r->map[value] = made;
}

/* The inputs of a stage: those of the network first, then what other stages send, in the order in
 * which the network makes it: so edges are in the order of the stages that make them. */
static bool add_inputs(struct cutting *c, struct rewrite *r, int s, struct err *err)
{
    const struct graph *graph = c->graph;
    bool *read = r->protected; /* nothing is protected here: the array serves as marks */
    for (int32_t i = c->out->begin[s]; i < c->out->begin[s + 1]; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] != NO_VALUE)
                read[graph->nodes[i].inputs[k]] = true;
    for (int i = 0; i < graph->n_inputs; i++) {
        value_id old = graph->inputs[i].value;
        if (read[old])
            r->map[old] = graph_input(r->to, graph->inputs[i].name, *graph_shape(graph, old));
    }
    for (int32_t i = 0; i < c->out->begin[s]; i++) {
        value_id old = graph->nodes[i].output;
        if (!read[old])
            continue;
        struct stage_edge edge = { .from = c->made_in[old],
                                   .to = s,
                                   .output = c->output[old],
                                   .input = r->to->n_inputs,
                                   .bytes = (size_t)shape_count(graph_shape(graph, old)) *
                                            sizeof(float) };
        receive(r, old);
        if (!add_edge(c, edge, err))
            return false;
    }
    return true;
}

/* The outputs of a stage: those of the network first, under their names, then what it sends. */
static void add_outputs(struct cutting *c, struct rewrite *r, int s)
{
    const struct graph *graph = c->graph;
    for (int i = 0; i < graph->n_outputs; i++) {
        value_id old = graph->outputs[i].value;
        if (c->made_in[old] != s)
            continue;
        if (c->output[old] < 0)
            c->output[old] = r->to->n_outputs;
        graph_output(r->to, graph->outputs[i].name, r->map[old]);
    }
    for (int32_t i = c->out->begin[s]; i < c->out->begin[s + 1]; i++) {
        value_id old = graph->nodes[i].output;
        if (c->last_read[old] <= s || c->output[old] >= 0)
            continue;
        const char *name = graph->values[old].name;
        bool taken = graph_names_find(graph, NAME_OUTPUT, name) >= 0;
        char *other = taken ? rewrite_new_name(r, name, ".sent") : NULL;
        c->output[old] = r->to->n_outputs;
        if (!taken || other)
            graph_output(r->to, other ? other : name, r->map[old]);
        free(other);
    }
}

static bool make_stage(struct cutting *c, int s, struct err *err)
{
    const struct graph *graph = c->graph;
    struct rewrite r;
    if (!rewrite_begin(&r, graph, false, NULL, 0, err))
        return false;
    if (!add_inputs(c, &r, s, err)) {
        rewrite_discard(&r);
        return false;
    }
    for (int32_t i = c->out->begin[s]; i < c->out->begin[s + 1]; i++)
        rewrite_node(&r, &graph->nodes[i], NULL);
    /* what no layer reads is kept too: every parameter is in one stage */
    for (int32_t v = 0; s == c->out->n - 1 && v < graph->n_values; v++)
        if (graph_is_parameter(graph, v) && c->last_read[v] < 0)
            rewrite_value(&r, v);
    add_outputs(c, &r, s);
    if (r.to->n_outputs == 0 && r.to->err.kind == ERR_NONE) {
        rewrite_discard(&r);
        return err_set(err, ERR_USAGE, "%s: nothing that stage %d (%s to %s) makes is needed",
                       graph->name, s + 1, graph->nodes[c->out->begin[s]].name,
                       graph->nodes[c->out->begin[s + 1] - 1].name);
    }
    return rewrite_hand_over(&r, &c->out->graphs[s], err);
}

bool stages_new(const struct graph *graph, const int32_t *begin, int n, struct stages *out,
                struct err *err)
{
    *out = (struct stages){ .n = n };
    if (!graph_ok(graph, err) || !check_begin(graph, begin, n, err) || !check_outputs(graph, err))
        return false;
    for (int s = 0; s <= n; s++)
        out->begin[s] = begin[s];
    size_t room = (size_t)graph->n_values + 1;
    struct cutting c = { .graph = graph,
                         .out = out,
                         .made_in = malloc(room * sizeof *c.made_in),
                         .last_read = malloc(room * sizeof *c.last_read),
                         .output = malloc(room * sizeof *c.output) };
    bool ok = (c.made_in && c.last_read && c.output) || err_memory(err, graph->name);
    ok = ok && look_through(&c, err) && check_weights(&c, err);
    for (int s = 0; ok && s < n; s++)
        ok = make_stage(&c, s, err);
    free(c.made_in), free(c.last_read), free(c.output);
    if (!ok)
        stages_free(out);
    return ok;
}

void stages_free(struct stages *stages)
{
    for (int s = 0; s < STAGES_MOST; s++)
        graph_free(stages->graphs[s]);
    free(stages->edges);
    *stages = (struct stages){ 0 };
}

bool stages_at(const struct graph *graph, const char *const *layers, int n_layers, int32_t *begin,
               struct err *err)
{
    if (n_layers + 1 > STAGES_MOST)
        return err_set(err, ERR_USAGE, "%s: cannot be cut into %d stages; the most is %d",
                       graph->name, n_layers + 1, STAGES_MOST);
    begin[0] = 0;
    for (int i = 0; i < n_layers; i++) {
        value_id value = NO_VALUE;
        if (!graph_layer(graph, layers[i], &value, err))
            return err_prefix(err, graph->name);
        if (!graph_maker(graph, value))
            return err_set(err, ERR_USAGE,
                           "%s: %s is an input of the network: no stage can end "
                           "there",
                           graph->name, layers[i]);
        begin[i + 1] = graph->values[value].node + 1;
        if (begin[i + 1] == graph->n_nodes)
            return err_set(err, ERR_USAGE, "%s: no layer follows %s: no stage can begin there",
                           graph->name, layers[i]);
        if (i > 0 && begin[i + 1] <= begin[i])
            return err_set(err, ERR_USAGE,
                           begin[i + 1] == begin[i]
                               ? "%s: %s and %s are the same layer; a stage needs one at least"
                               : "%s: %s comes after %s; name the last layers of stages in the "
                                 "order of the network",
                           graph->name, layers[i - 1], layers[i]);
    }
    begin[n_layers + 1] = graph->n_nodes;
    return true;
}

/* One parameter or buffer; constants may be in several stages. */
static void hold(struct graph *to, const struct value *value)
{
    if (value->kind == VALUE_BUFFER && graph_find(to, value->name) != NO_VALUE)
        return;
    value_id made = value->kind == VALUE_PARAMETER ? graph_parameter(to, value->name, value->shape)
                                                   : graph_buffer(to, value->name, value->shape);
    if (made == NO_VALUE)
        return;
    to->values[made].init = value->init;
    if (value->data)
        to->values[made].data = buffer_share(value->data);
}

bool stages_held(const struct stages *stages, const int *held, int n_held, struct graph **out,
                 int64_t *at, struct err *err)
{
    struct graph *to = graph_new(stages->graphs[held[0]]->name);
    if (!to)
        return err_memory(err, "the parameters of stages");
    int64_t begin = 0;
    for (int i = 0; i < n_held; i++) {
        const struct graph *graph = stages->graphs[held[i]];
        at[i] = begin;
        begin += graph_parameter_count(graph);
        for (int32_t v = 0; v < graph->n_values; v++)
            if (graph_is_parameter(graph, v))
                hold(to, &graph->values[v]);
    }
    if (to->err.kind != ERR_NONE) {
        err_set(err, to->err.kind, "%s", to->err.text);
        graph_free(to);
        return false;
    }
    *out = to;
    return true;
}

void stages_pair_statistics(struct stages *stages, int stage, int copy, float *shares)
{
    enum { RUNNING_MEAN = 3, RUNNING_VAR };
    struct graph *graph = stages->graphs[stage];
    for (int32_t v = 0; v < graph->n_values; v++)
        shares[v] = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        struct node *node = &graph->nodes[i];
        if (node->op->kind != OP_BATCH_NORM)
            continue;
        /* one process: q^n r + m (q^(n - 1) x0 + q^(n - 2) x1 + .. ); copy 0 of two has
         * q^n r + (1 - q^2) (q^(n - 2) x0 + q^(n - 4) x2 + ..), copy 1 the same of x1, x3, .. */
        double q = 1.0 - (double)node->attr.norm.momentum;
        float share = (float)((copy == 0 ? q : 1) / (1 + q));
        shares[node->inputs[RUNNING_MEAN]] = shares[node->inputs[RUNNING_VAR]] = share;
        node->attr.norm.momentum = (float)(1 - q * q);
    }
}
