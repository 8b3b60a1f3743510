/* probe_layers.c: see probe_layers.h. */
#include "explain/probe_layers.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Marks what is computed from the inputs of the graph; marks [n_values] are zero. */
static void mark_from_input(const struct graph *graph, bool *marks)
{
    for (int i = 0; i < graph->n_inputs; i++)
        marks[graph->inputs[i].value] = true;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] != NO_VALUE && marks[graph->nodes[i].inputs[k]])
                marks[graph->nodes[i].output] = true;
}

/* Marks what `value` is computed from, itself included. */
static void mark_needed(const struct graph *graph, value_id value, bool *marks)
{
    marks[value] = true;
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--)
        for (int k = 0; marks[graph->nodes[i].output] && k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] != NO_VALUE)
                marks[graph->nodes[i].inputs[k]] = true;
}

/* Ops whose output is an image if their inputs are. */
static bool keeps_images(const struct node *node)
{
    switch (node->op->kind) {
    case OP_LINEAR:
    case OP_MATMUL:
    case OP_ATTENTION:
    case OP_RESHAPE:
    case OP_FLATTEN:
    case OP_TRANSPOSE:
    case OP_EXPAND_BATCH:
    case OP_REDUCE_MEAN:
    case OP_SOFTMAX:
    case OP_LOG_SOFTMAX:
        return false;
    default:
        return true;
    }
}

/* Marks images: computed from the input by ops that keep images. */
static void mark_images(const struct graph *graph, bool *marks)
{
    for (int i = 0; i < graph->n_inputs; i++)
        marks[graph->inputs[i].value] = true;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        bool image = keeps_images(node), any = false;
        for (int k = 0; k < node->n_inputs; k++) {
            value_id x = node->inputs[k];
            if (x == NO_VALUE || graph_is_parameter(graph, x))
                continue;
            image = image && marks[x], any = true;
        }
        marks[node->output] = image && any && graph_shape(graph, node->output)->rank == 4;
    }
}

/* A grid of `tokens` with the proportions of the input; false if there is none. */
static bool grid_of(int64_t tokens, const struct shape *input, struct probe_layer *layer)
{
    double side = sqrt((double)tokens * (double)input->dim[2] / (double)input->dim[3]);
    int64_t height = llround(side), width = height > 0 ? tokens / height : 0;
    if (height < 1 || width < 1 || height * width != tokens ||
        height * input->dim[3] != width * input->dim[2])
        return false;
    layer->height = height, layer->width = width;
    return true;
}

/* Tokens as an image; of no extent if they are none. */
static void place_tokens(int64_t tokens, const struct shape *input, struct probe_layer *layer)
{
    bool without = grid_of(tokens, input, layer);
    bool with = !without && grid_of(tokens - 1, input, layer);
    layer->tokens = layer->height * layer->width > 1;
    layer->class_token = with && layer->tokens;
}

static struct probe_layer layer_of(const struct graph *graph, value_id value)
{
    const struct shape *shape = graph_shape(graph, value);
    const struct shape *input = graph_shape(graph, graph->inputs[0].value);
    struct probe_layer layer = { .name = graph->values[value].name, .height = 1, .width = 1 };
    if (shape->rank == 4) {
        layer.channels = shape->dim[1], layer.height = shape->dim[2], layer.width = shape->dim[3];
    } else if (shape->rank == 3) {
        place_tokens(shape->dim[1], input, &layer);
        layer.channels = layer.tokens ? shape->dim[2] : shape_count(shape);
    } else {
        layer.channels = shape_count(shape);
    }
    layer.spatial = layer.height * layer.width > 1;
    return layer;
}

static struct probe_watch watch_of(const struct graph *graph, value_id value)
{
    struct probe_watch watch = { .value = value, .layer = layer_of(graph, value) };
    watch.stored = shape_count(graph_shape(graph, value));
    watch.floats = watch.layer.channels * watch.layer.height * watch.layer.width;
    return watch;
}

/* *out: its tokens, with the heads as channels. */
static bool is_attention(const struct graph *graph, const struct node *node,
                         struct probe_layer *out)
{
    const struct shape *shape = graph_shape(graph, node->output);
    int last = shape->rank - 1;
    *out = (struct probe_layer){ .name = node->name, .height = 1, .width = 1 };
    if (node->op->kind != OP_SOFTMAX || shape->rank < 3 || shape->rank > 4 ||
        axis_of(node->attr.axis.axis, shape->rank) != last ||
        shape->dim[last - 1] != shape->dim[last] || (shape->rank == 4 && shape->dim[0] != 1))
        return false;
    out->channels = shape->dim[last - 2];
    place_tokens(shape->dim[last], graph_shape(graph, graph->inputs[0].value), out);
    return out->tokens;
}

int probe_watch_attention(const struct graph *graph, struct probe_watch *out)
{
    int n = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        struct probe_layer layer;
        const struct node *node = &graph->nodes[i];
        if (!is_attention(graph, node, &layer))
            continue;
        int64_t count = shape_count(graph_shape(graph, node->output));
        layer.tokens = false; /* handed over as it is */
        out[n++] = (struct probe_watch){ node->output, layer, count, count };
    }
    return n;
}

/* The tokens that the last attention is computed from: the last that are normalised or, if none
 * are, the last at all. NO_VALUE: no attention, or no tokens before it. marks [n_values] are zero.
 */
static value_id tokens_attended(const struct graph *graph, bool *marks)
{
    int32_t last = graph->n_nodes - 1;
    struct probe_layer layer;
    while (last >= 0 && !is_attention(graph, &graph->nodes[last], &layer))
        last--;
    if (last < 0)
        return NO_VALUE;
    mark_needed(graph, graph->nodes[last].output, marks);
    value_id any = NO_VALUE;
    for (int32_t i = last - 1; i >= 0; i--) {
        value_id value = graph->nodes[i].output;
        if (!marks[value] || !layer_of(graph, value).tokens)
            continue;
        if (graph->nodes[i].op->kind == OP_LAYER_NORM || graph->nodes[i].op->kind == OP_RMS_NORM)
            return value;
        any = any == NO_VALUE ? value : any;
    }
    return any;
}

value_id probe_last_spatial(const struct graph *graph)
{
    size_t n = (size_t)graph->n_values;
    bool *marks = calloc(3 * n + 1, sizeof *marks), *images = marks + n, *attended = images + n;
    value_id found = NO_VALUE;
    if (!marks)
        return NO_VALUE;
    mark_needed(graph, graph->outputs[0].value, marks);
    mark_images(graph, images);
    for (int32_t i = graph->n_nodes - 1; found == NO_VALUE && i >= 0; i--) {
        value_id value = graph->nodes[i].output;
        struct probe_layer layer = layer_of(graph, value);
        if (!marks[value] || !layer.spatial || graph_shape(graph, value)->dim[0] != 1 ||
            graph->nodes[i].op->kind == OP_DROPOUT)
            continue;
        if (images[value])
            found = value;
        if (layer.tokens)
            found = layer.class_token ? tokens_attended(graph, attended) : value;
    }
    free(marks);
    return found;
}

const char *probe_name_of(const struct graph *graph, value_id value)
{
    const char *best = NULL;
    for (int i = 0; i < graph->n_aliases; i++)
        if (graph->aliases[i].value == value &&
            (!best || strlen(graph->aliases[i].name) < strlen(best)))
            best = graph->aliases[i].name;
    return best ? best : graph->values[value].name;
}

/* Between the image and the logits. */
static bool check_connected(const struct graph *graph, value_id value, const char *name,
                            const char *model_name, struct err *err)
{
    bool *from_input = calloc(2 * (size_t)graph->n_values + 1, sizeof *from_input);
    if (!from_input)
        return err_memory(err, name);
    bool *needed = from_input + graph->n_values, ok = true;
    const struct shape *shape = graph_shape(graph, value);
    mark_from_input(graph, from_input);
    mark_needed(graph, graph->outputs[0].value, needed);
    if (!needed[value])
        ok = err_set(err, ERR_USAGE,
                     "%s: the scores do not depend on layer '%s'; choose a layer before the output",
                     model_name, name);
    else if (!from_input[value] || shape->rank < 1 || shape->dim[0] != 1)
        ok = err_set(err, ERR_USAGE,
                     "%s: layer '%s' has no values for each image; 'microtome model show --layers' "
                     "lists layers that have",
                     model_name, name);
    free(from_input);
    return ok;
}

bool probe_watch_layer(const struct graph *graph, const char *model_name, const char *name,
                       struct probe_watch *out, struct err *err)
{
    value_id value = NO_VALUE;
    if (!*name) {
        value = probe_last_spatial(graph);
        if (value == NO_VALUE)
            return err_set(err, ERR_USAGE,
                           "%s: no layer is an image of more than 1 x 1 px at this input size; use "
                           "larger images",
                           model_name);
        name = probe_name_of(graph, value);
    } else if (!graph_layer(graph, name, &value, err)) {
        return err_prefix(err, model_name);
    }
    if (!check_connected(graph, value, name, model_name, err))
        return false;
    *out = watch_of(graph, value);
    out->layer.name = name;
    return true;
}

void probe_hand_over(const struct probe_watch *watch, int64_t n, const float *from, float *to)
{
    const struct probe_layer *layer = &watch->layer;
    int64_t channels = layer->channels, places = layer->height * layer->width;
    for (int64_t i = 0; i < n; i++) {
        const float *tokens = from + i * watch->stored + (layer->class_token ? channels : 0);
        float *image = to + i * watch->floats;
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < places; p++)
                image[c * places + p] = tokens[p * channels + c];
    }
}
