/* body.c: see body.h. */
#include "net/stream/body.h"
#include <stdlib.h>
#include <string.h>
#include "net/graph/rewrite.h"
#include "net/stream/reduce.h"

/* What the inputs of a node are. */
struct inputs {
    bool map, tail;
};

static struct inputs inputs_of(const struct body *body, const struct node *node)
{
    struct inputs in = { 0 };
    for (int k = 0; k < node->n_inputs; k++) {
        enum part part = node->inputs[k] == NO_VALUE ? PART_FIXED : body->parts[node->inputs[k]];
        in.map = in.map || part == PART_MAP;
        in.tail = in.tail || part == PART_TAIL;
    }
    return in;
}

static bool add_edges(struct body *body, int32_t node, const struct plan_options *options,
                      struct err *err)
{
    const struct node *reader = &body->graph->nodes[node];
    struct axis_rule rules[2];
    if (!rules_of(body, reader, options, rules, err))
        return false;
    for (int k = 0; k < reader->n_inputs; k++) {
        value_id x = reader->inputs[k];
        if (x == NO_VALUE || body->parts[x] != PART_MAP)
            continue;
        int e = body->n_edges++;
        body->edge_nodes[e] = node, body->edge_inputs[e] = k;
        for (int a = 0; a < 2; a++)
            body->edges[a][e] = (struct axis_edge){
                .from = body->map_of[x],
                .to = body->map_of[reader->output],
                .rule = k == 0 ? rules[a] : (struct axis_rule){ .reach = 1, .stride = 1 },
            };
    }
    return true;
}

static void add_end(struct body *body, value_id value)
{
    int map = body->map_of[value];
    if (body_end(body, map) < 0)
        body->ends[body->n_ends++] = map;
}

static bool add_pooling(struct body *body, int32_t node, struct err *err)
{
    const struct node *pooling = &body->graph->nodes[node];
    for (int k = 0; k < pooling->n_inputs; k++) {
        value_id x = pooling->inputs[k];
        if (x == NO_VALUE || body->parts[x] != PART_MAP || body->map_of[x] == 0)
            return err_set(err, ERR_USAGE,
                           "%s: a pooling of something else than maps of the "
                           "network is not streamed",
                           pooling->name);
        add_end(body, x);
    }
    body->poolings[body->n_poolings++] = node;
    body->parts[pooling->output] = PART_TAIL;
    return true;
}

static bool visit(struct body *body, int32_t i, const struct plan_options *options, struct err *err)
{
    const struct node *node = &body->graph->nodes[i];
    struct inputs in = inputs_of(body, node);
    if (in.map && in.tail)
        return err_set(err, ERR_USAGE,
                       "%s: %s joins a map with what a pooling of the whole image gives (squeeze "
                       "and excitation), which is not streamed; use a network without it",
                       node->name, node->op->name);
    if (in.map && reduction_takes(body->graph, node))
        return add_pooling(body, i, err);
    body->parts[node->output] = in.map ? PART_MAP : in.tail ? PART_TAIL : PART_FIXED;
    if (!in.map)
        return true;
    body->map_of[node->output] = body->n_maps;
    body->maps[body->n_maps++] = node->output;
    return add_edges(body, i, options, err);
}

/* Whether an output needs each value. */
static bool *find_needed(const struct graph *graph)
{
    bool *needed = calloc((size_t)graph->n_values, sizeof *needed);
    for (int i = 0; needed && i < graph->n_outputs; i++)
        needed[graph->outputs[i].value] = true;
    for (int32_t i = graph->n_nodes - 1; needed && i >= 0; i--) {
        const struct node *node = &graph->nodes[i];
        for (int k = 0; needed[node->output] && k < node->n_inputs; k++)
            if (node->inputs[k] != NO_VALUE)
                needed[node->inputs[k]] = true;
    }
    return needed;
}

static bool divide(struct body *body, const struct plan_options *options, struct err *err)
{
    const struct graph *graph = body->graph;
    bool *needed = find_needed(graph);
    if (!needed)
        return err_memory(err, graph->name);
    for (int32_t i = 0; i < graph->n_values; i++) {
        body->map_of[i] = -1;
        body->parts[i] = graph_is_parameter(graph, i) ? PART_FIXED : PART_UNUSED;
    }
    value_id image = graph->inputs[0].value;
    body->parts[image] = PART_MAP, body->map_of[image] = 0;
    body->maps[0] = image, body->n_maps = 1;
    bool ok = true;
    for (int32_t i = 0; ok && i < graph->n_nodes; i++)
        ok = !needed[graph->nodes[i].output] || visit(body, i, options, err);
    for (int i = 0; ok && i < graph->n_outputs; i++)
        if (graph->outputs[i].value == image)
            ok = err_set(err, ERR_USAGE, "%s: the image itself is an output, which is not streamed",
                         graph->name);
        else if (body->parts[graph->outputs[i].value] == PART_MAP)
            add_end(body, graph->outputs[i].value);
    free(needed);
    return ok && (body->n_ends > 0 || err_set(err, ERR_USAGE,
                                              "%s: has no maps that could be "
                                              "streamed",
                                              graph->name));
}

void body_mark(const struct body *body, bool tail, bool *nodes)
{
    const struct graph *graph = body->graph;
    enum part own = tail ? PART_TAIL : PART_MAP;
    memset(nodes, 0, (size_t)graph->n_nodes * sizeof *nodes);
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--) {
        enum part part = body->parts[graph->nodes[i].output];
        nodes[i] = nodes[i] || part == own;
        for (int k = 0; nodes[i] && k < graph->nodes[i].n_inputs; k++) {
            value_id x = graph->nodes[i].inputs[k];
            if (x != NO_VALUE && body->parts[x] == PART_FIXED && graph->values[x].node >= 0)
                nodes[graph->values[x].node] = true;
        }
    }
    for (int i = 0; i < body->n_poolings; i++)
        nodes[body->poolings[i]] = false;
    for (int i = 0; tail && i < graph->n_outputs; i++) {
        int32_t node = graph->values[graph->outputs[i].value].node;
        if (node >= 0 && body->parts[graph->outputs[i].value] == PART_FIXED)
            nodes[node] = true;
    }
}

bool body_rewrite(const struct body *body, struct rewrite *r, struct err *err)
{
    const struct graph *graph = body->graph;
    if (!rewrite_begin(r, graph, false, NULL, 0, err))
        return false;
    memset(r->replaced, true, (size_t)graph->n_values * sizeof *r->replaced); /* no aliases */
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph_is_parameter(graph, i))
            rewrite_value(r, i);
    return true;
}

static bool make_tail(struct body *body, struct err *err)
{
    const struct graph *graph = body->graph;
    bool any = false;
    for (int i = 0; i < graph->n_outputs; i++)
        any = any || body->parts[graph->outputs[i].value] != PART_MAP;
    struct rewrite r;
    if (!any)
        return true;
    bool *nodes = calloc((size_t)graph->n_nodes + 1, sizeof *nodes);
    if (!nodes)
        return err_memory(err, graph->name);
    body_mark(body, true, nodes);
    if (!body_rewrite(body, &r, err)) {
        free(nodes);
        return false;
    }
    for (int i = 0; i < body->n_poolings; i++) {
        value_id pooled = graph->nodes[body->poolings[i]].output;
        r.map[pooled] = graph_input(r.to, graph->values[pooled].name, *graph_shape(graph, pooled));
    }
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (nodes[i])
            rewrite_node(&r, &graph->nodes[i], NULL);
    free(nodes);
    for (int i = 0; i < graph->n_outputs; i++)
        if (body->parts[graph->outputs[i].value] != PART_MAP)
            graph_output(r.to, graph->outputs[i].name, r.map[graph->outputs[i].value]);
    return rewrite_hand_over(&r, &body->tail, err);
}

static bool allocate(struct body *body, struct err *err)
{
    const struct graph *graph = body->graph;
    size_t values = (size_t)graph->n_values, nodes = (size_t)graph->n_nodes + 1, reads = 1;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        reads += (size_t)graph->nodes[i].n_inputs;
    body->parts = calloc(values, sizeof *body->parts);
    body->map_of = calloc(values, sizeof *body->map_of);
    body->maps = calloc(values, sizeof *body->maps);
    body->ends = calloc(values, sizeof *body->ends);
    body->poolings = calloc(nodes, sizeof *body->poolings);
    for (int a = 0; a < 2; a++)
        body->edges[a] = calloc(reads, sizeof *body->edges[a]);
    body->edge_nodes = calloc(reads, sizeof *body->edge_nodes);
    body->edge_inputs = calloc(reads, sizeof *body->edge_inputs);
    return (body->parts && body->map_of && body->maps && body->ends && body->poolings &&
            body->edges[0] && body->edges[1] && body->edge_nodes && body->edge_inputs) ||
           err_memory(err, graph->name);
}

static bool check_input(const struct graph *graph, struct err *err)
{
    const struct shape *shape = graph->n_inputs ? graph_shape(graph, graph->inputs[0].value) : NULL;
    char text[SHAPE_TEXT];
    if (graph->n_inputs != 1)
        return err_set(err, ERR_USAGE, "%s: has %d inputs; a streamed network has one, an image",
                       graph->name, graph->n_inputs);
    if (shape->rank != 4 || shape->dim[0] != 1)
        return err_set(err, ERR_USAGE, "%s: the input is %s; one image is streamed at a time",
                       graph->name, shape_text(shape, text));
    return true;
}

bool body_new(const struct graph *graph, const struct plan_options *options, struct body *out,
              struct err *err)
{
    *out = (struct body){ .graph = graph };
    if (check_input(graph, err) && allocate(out, err) && divide(out, options, err) &&
        make_tail(out, err))
        return true;
    body_free(out);
    return false;
}

void body_free(struct body *body)
{
    free(body->parts), free(body->map_of), free(body->maps), free(body->ends);
    free(body->poolings), free(body->edges[0]), free(body->edges[1]);
    free(body->edge_nodes), free(body->edge_inputs);
    graph_free(body->tail);
    *body = (struct body){ 0 };
}

int body_end(const struct body *body, int map)
{
    for (int i = 0; i < body->n_ends; i++)
        if (body->ends[i] == map)
            return i;
    return -1;
}
