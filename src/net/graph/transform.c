/* transform.c: another batch or size, dropout removed, graphs cut in two. */
#include "net/graph/transform.h"
#include <stdlib.h>
#include "net/graph/rewrite.h"

bool transform_resize(const struct graph *graph, int64_t batch, int64_t height, int64_t width,
                      struct graph **out, struct err *err)
{
    struct graph *copy = NULL;
    if (!graph_copy(graph, &copy, err))
        return false;
    for (int i = 0; i < copy->n_inputs; i++) {
        struct shape *shape = &copy->values[copy->inputs[i].value].shape;
        if (shape->rank > 0 && batch > 0)
            shape->dim[0] = batch;
        if (shape->rank == 4 && height > 0)
            shape->dim[2] = height;
        if (shape->rank == 4 && width > 0)
            shape->dim[3] = width;
        if (!shape_check(shape, copy->inputs[i].name, err))
            goto failed;
    }
    if (!graph_infer(copy, err))
        goto failed;
    *out = copy;
    return true;
failed:
    graph_free(copy);
    return false;
}

static bool remove_dropout(const struct graph *graph, const char *const *keep, int n_keep,
                           struct graph **out, struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, true, keep, n_keep, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (node->op->kind == OP_DROPOUT && !r.protected[node->output])
            r.map[node->output] = rewrite_value(&r, node->inputs[0]);
        else
            rewrite_node(&r, node, NULL);
    }
    return rewrite_end(&r, out, err);
}

bool transform_remove_dropout(const struct graph *graph, struct graph **out, struct err *err)
{
    return remove_dropout(graph, NULL, 0, out, err);
}

bool transform_bypass(const struct graph *graph, value_id value, struct graph **out,
                      struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (node->output == value)
            r.map[value] = rewrite_value(&r, node->inputs[0]), r.replaced[value] = true;
        else
            rewrite_node(&r, node, NULL);
    }
    return rewrite_end(&r, out, err);
}

bool transform_grey(const struct graph *graph, struct graph **out, struct err *err)
{
    static const float luma[3] = { 0.299f, 0.587f, 0.114f };
    struct rewrite r;
    if (!rewrite_begin(&r, graph, false, NULL, 0, err))
        return false;
    struct shape shape = *graph_shape(graph, graph->inputs[0].value);
    shape.dim[1] = 3;
    char *name = rewrite_new_name(&r, graph->inputs[0].name, ".grey");
    char *weight = rewrite_new_name(&r, graph->inputs[0].name, ".grey.weight");
    value_id inputs[2] = { graph_input(r.to, graph->inputs[0].name, shape), NO_VALUE };
    if (name && weight) {
        inputs[1] = graph_constant(r.to, weight, SHAPE(1, 3, 1, 1), luma);
        r.map[graph->inputs[0].value] = graph_node(r.to, OP_CONV, name, inputs, 2,
                                                   &(union attr){ .conv = conv_square(1, 1, 0) });
    }
    free(name), free(weight);
    for (int32_t i = 0; i < graph->n_nodes; i++)
        rewrite_node(&r, &graph->nodes[i], NULL);
    return rewrite_end(&r, out, err);
}

bool transform_for_inference(const struct graph *graph, const char *const *keep, int n_keep,
                             struct graph **out, struct err *err)
{
    struct graph *plain = NULL, *few = NULL, *folded = NULL;
    bool ok = remove_dropout(graph, keep, n_keep, &plain, err) &&
              transform_rows(plain, keep, n_keep, &few, err) &&
              transform_fold_batch_norm(few, keep, n_keep, &folded, err) &&
              transform_fuse(folded, keep, n_keep, out, err);
    graph_free(plain), graph_free(few), graph_free(folded);
    return ok;
}

bool transform_freeze(const struct graph *graph, struct graph **out, struct err *err)
{
    struct graph *copy = NULL;
    if (!graph_copy(graph, &copy, err))
        return false;
    for (int32_t i = 0; i < copy->n_values; i++)
        if (copy->values[i].kind == VALUE_PARAMETER)
            copy->values[i].kind = VALUE_BUFFER;
    *out = copy;
    return true;
}

static bool check_activation(const struct graph *graph, value_id value, struct err *err)
{
    if (value < 0 || value >= graph->n_values || graph_is_parameter(graph, value))
        return err_set(err, ERR_USAGE, "%s: not an activation of the network", graph->name);
    return true;
}

bool transform_prefix(const struct graph *graph, value_id value, struct graph **out,
                      struct err *err)
{
    struct rewrite r;
    if (!check_activation(graph, value, err) || !rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    bool *needed = r.protected; /* nothing is protected here: the array serves as marks */
    rewrite_mark_needed(graph, value, needed);
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (needed[graph->nodes[i].output])
            rewrite_node(&r, &graph->nodes[i], NULL);
    graph_output(r.to, graph->values[value].name, r.map[value]);
    return rewrite_hand_over(&r, out, err);
}

/* Values that nodes behind the cut read and that are not made there. */
static void mark_crossing(const struct graph *graph, const bool *in_head, bool *crosses)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        for (int k = 0; !in_head[node->output] && k < node->n_inputs; k++) {
            value_id x = node->inputs[k];
            if (x != NO_VALUE && graph->values[x].kind == VALUE_NODE && in_head[x])
                crosses[x] = true;
        }
    }
}

static bool make_head(const struct graph *graph, const bool *in_head, const bool *crosses,
                      struct graph **out, struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, false, NULL, 0, err))
        return false;
    for (int i = 0; i < graph->n_inputs; i++) {
        value_id old = graph->inputs[i].value;
        if (in_head[old])
            r.map[old] = graph_input(r.to, graph->inputs[i].name, *graph_shape(graph, old));
    }
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (in_head[graph->nodes[i].output])
            rewrite_node(&r, &graph->nodes[i], NULL);
    for (int32_t i = 0; i < graph->n_values; i++)
        if (crosses[i])
            graph_output(r.to, graph->values[i].name, r.map[i]);
    for (int i = 0; i < graph->n_outputs; i++)
        if (in_head[graph->outputs[i].value] && !crosses[graph->outputs[i].value])
            graph_output(r.to, graph->outputs[i].name, r.map[graph->outputs[i].value]);
    return rewrite_hand_over(&r, out, err);
}

static bool make_tail(const struct graph *graph, const bool *in_head, const bool *crosses,
                      struct graph **out, struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, false, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (crosses[i])
            r.map[i] = graph_input(r.to, graph->values[i].name, *graph_shape(graph, i));
    for (int i = 0; i < graph->n_inputs; i++) {
        value_id old = graph->inputs[i].value;
        bool read = false;
        for (int32_t n = 0; n < graph->n_nodes; n++)
            for (int k = 0; k < graph->nodes[n].n_inputs; k++)
                read =
                    read || (!in_head[graph->nodes[n].output] && graph->nodes[n].inputs[k] == old);
        if (read)
            r.map[old] = graph_input(r.to, graph->inputs[i].name, *graph_shape(graph, old));
    }
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (!in_head[graph->nodes[i].output])
            rewrite_node(&r, &graph->nodes[i], NULL);
    for (int i = 0; i < graph->n_outputs; i++)
        if (!in_head[graph->outputs[i].value])
            graph_output(r.to, graph->outputs[i].name, r.map[graph->outputs[i].value]);
    return rewrite_hand_over(&r, out, err);
}

bool transform_cut(const struct graph *graph, value_id value, struct graph **head,
                   struct graph **tail, struct err *err)
{
    if (!check_activation(graph, value, err))
        return false;
    bool *in_head = calloc((size_t)graph->n_values + 1, sizeof *in_head);
    bool *crosses = calloc((size_t)graph->n_values + 1, sizeof *crosses);
    struct graph *first = NULL, *second = NULL;
    bool ok = in_head && crosses;
    if (!ok)
        err_memory(err, graph->name);
    if (ok) {
        rewrite_mark_needed(graph, value, in_head);
        mark_crossing(graph, in_head, crosses);
        ok = crosses[value] || err_set(err, ERR_USAGE, "%s: nothing follows %s", graph->name,
                                       graph->values[value].name);
    }
    ok = ok && make_head(graph, in_head, crosses, &first, err) &&
         make_tail(graph, in_head, crosses, &second, err);
    free(in_head), free(crosses);
    if (!ok) {
        graph_free(first), graph_free(second);
        return false;
    }
    *head = first, *tail = second;
    return true;
}
