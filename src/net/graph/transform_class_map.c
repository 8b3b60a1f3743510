/* transform_class_map.c: what a classifier would make of every cell of its last map alone, as one
 * more output. */
#include <stdlib.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

/* The node before those that only change the shape. */
static const struct node *before_views(const struct graph *graph, value_id value)
{
    const struct node *node = graph_maker(graph, value);
    while (node && (node->op->kind == OP_FLATTEN || node->op->kind == OP_RESHAPE ||
                    node->op->kind == OP_DROPOUT))
        node = graph_maker(graph, node->inputs[0]);
    return node;
}

static bool is_linear(const struct graph *graph, const struct node *node)
{
    const struct conv_attr *a = &node->attr.conv;
    bool one = node->op->kind == OP_CONV && a->kernel[0] == 1 && a->kernel[1] == 1 &&
               a->groups == 1 && a->activation == ACT_NONE && node->n_inputs <= 3;
    return (node->op->kind == OP_LINEAR || one) && graph_is_parameter(graph, node->inputs[1]) &&
           graph_data(graph, node->inputs[1]) &&
           (node->n_inputs < 3 || node->inputs[2] == NO_VALUE ||
            (graph_is_parameter(graph, node->inputs[2]) && graph_data(graph, node->inputs[2])));
}

static bool find(const struct graph *graph, struct map_ending *out, const struct node **linear,
                 const struct node **pooling, struct err *err)
{
    const struct node *last = before_views(graph, graph->outputs[0].value);
    *linear = last && is_linear(graph, last) ? last : NULL;
    *pooling = *linear ? before_views(graph, last->inputs[0]) : last;
    if (!*pooling || !graph_pools_maps(graph, *pooling))
        return err_set(err, ERR_USAGE,
                       "%s: does not end in a pooling of its last map and one linear layer, so "
                       "there is no map of its classes",
                       graph->name);
    const struct node *before = graph_maker(graph, (*pooling)->inputs[0]);
    const struct node *classifies = *linear                              ? *linear
                                    : before && is_linear(graph, before) ? before
                                                                         : NULL;
    bool biased = classifies && classifies->n_inputs > 2 && classifies->inputs[2] != NO_VALUE;
    *out = (struct map_ending){ .pooling = (*pooling)->op->kind,
                                .classified = !*linear,
                                .bias = biased ? graph_data(graph, classifies->inputs[2]) : NULL };
    return true;
}

/* The linear layer as a 1x1 convolution of what the pooling reads. */
static value_id classify_cells(struct rewrite *r, const struct node *linear,
                               const struct node *pooling)
{
    const struct shape *weight = graph_shape(r->from, linear->inputs[1]);
    char *name = rewrite_new_name(r, linear->name, ".cells");
    char *weight_name = name ? rewrite_new_name(r, name, ".weight") : NULL;
    char *bias_name = name ? rewrite_new_name(r, name, ".bias") : NULL;
    value_id inputs[3] = { rewrite_value(r, pooling->inputs[0]), NO_VALUE, NO_VALUE };
    value_id made = NO_VALUE;
    bool biased = linear->n_inputs > 2 && linear->inputs[2] != NO_VALUE;
    if (weight_name && bias_name) {
        inputs[1] = graph_constant(r->to, weight_name, SHAPE(weight->dim[0], weight->dim[1], 1, 1),
                                   graph_data(r->from, linear->inputs[1]));
        if (biased)
            inputs[2] = graph_constant(r->to, bias_name, SHAPE(weight->dim[0]),
                                       graph_data(r->from, linear->inputs[2]));
    }
    if (inputs[0] != NO_VALUE && inputs[1] != NO_VALUE && (!biased || inputs[2] != NO_VALUE)) {
        union attr one = { .conv = conv_square(1, 1, 0) };
        made = graph_node(r->to, OP_CONV, name, inputs, biased ? 3 : 2, &one);
    }
    free(name), free(weight_name), free(bias_name);
    return made;
}

bool transform_class_map(const struct graph *graph, struct graph **out, struct map_ending *about,
                         struct err *err)
{
    const struct node *linear = NULL, *pooling = NULL;
    struct rewrite r;
    if (!graph_ok(graph, err) || !find(graph, about, &linear, &pooling, err) ||
        !rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        rewrite_node(&r, &graph->nodes[i], NULL);
    value_id map =
        linear ? classify_cells(&r, linear, pooling) : rewrite_value(&r, pooling->inputs[0]);
    for (int i = 0; i < graph->n_outputs; i++)
        graph_output(r.to, graph->outputs[i].name, rewrite_value(&r, graph->outputs[i].value));
    graph_output(r.to, CLASS_MAP_OUTPUT, map);
    return rewrite_hand_over(&r, out, err);
}
