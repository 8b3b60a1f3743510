/* explain_cam.c: class activation maps (Zhou et al. 2016) of networks that end in a global mean and
 * one linear layer: the sum over channels of the activation before the mean, weighted by the linear
 * layer. Signed; its mean plus the bias is the logit. */
#include <stdlib.h>
#include "explain/layer_maps.h"
#include "explain/probe_layers.h"

/* The end of a network, if it is as needed. */
struct cam_end {
    value_id pooled; /* what the mean is taken of */
    value_id weight; /* [classes, channels] */
};

/* Before nodes that change no number of the result for one image. */
static value_id before_views(const struct graph *graph, value_id value, bool reshaped)
{
    for (const struct node *node; (node = graph_maker(graph, value)); value = node->inputs[0]) {
        enum op_kind kind = node->op->kind;
        if (kind != OP_DROPOUT && !(reshaped && (kind == OP_FLATTEN || kind == OP_RESHAPE)))
            break;
    }
    return value;
}

static bool is_linear(const struct node *node)
{
    const struct conv_attr *a = &node->attr.conv;
    return node->op->kind == OP_LINEAR ||
           (node->op->kind == OP_CONV && a->kernel[0] == 1 && a->kernel[1] == 1 && a->groups == 1);
}

/* Over height and width, or over all tokens. */
static bool is_global_mean(const struct graph *graph, const struct node *node)
{
    switch (node->op->kind) {
    case OP_GLOBAL_AVERAGE_POOL:
        return true;
    case OP_ADAPTIVE_AVERAGE_POOL:
        return node->attr.adaptive.size[0] == 1 && node->attr.adaptive.size[1] == 1;
    case OP_REDUCE_MEAN: {
        int rank = graph_shape(graph, node->inputs[0])->rank;
        return (rank == 4 && node->attr.reduce.axes == (1u << 2 | 1u << 3)) ||
               (rank == 3 && node->attr.reduce.axes == 1u << 1);
    }
    default:
        return false;
    }
}

static bool find_end(const struct graph *graph, struct cam_end *out)
{
    const struct node *linear =
        graph_maker(graph, before_views(graph, graph->outputs[0].value, true));
    if (!linear || !is_linear(linear) || !graph_is_parameter(graph, linear->inputs[1]))
        return false;
    const struct node *mean = graph_maker(graph, before_views(graph, linear->inputs[0], true));
    if (!mean || !is_global_mean(graph, mean))
        return false;
    out->pooled = before_views(graph, mean->inputs[0], false);
    out->weight = linear->inputs[1];
    return true;
}

static bool check(const struct explain_settings *settings, const struct probe *probe, int layer,
                  struct err *err)
{
    const struct graph *graph = settings->model->graph;
    const struct probe_layer *at = probe_layer(probe, layer);
    struct cam_end end;
    if (!find_end(graph, &end))
        return err_set(err, ERR_USAGE,
                       "%s: cam needs a network that ends in a global mean and one linear layer, "
                       "and this one does not; use gradcam",
                       settings->model->name);
    value_id value = before_views(graph, graph_find(graph, at->name), false);
    if (value != end.pooled || at->class_token)
        return err_set(err, ERR_USAGE,
                       "%s: cam maps the layer before the global mean, which is '%s', not '%s'; "
                       "pass --layer %s, or use gradcam",
                       settings->model->name, probe_name_of(graph, end.pooled), at->name,
                       probe_name_of(graph, end.pooled));
    return probe_need_spatial(probe, layer, err);
}

/* weight [channels]: the row of the class */
static void map_of(const struct probe_layer *layer, const float *activation, const float *weight,
                   double *map)
{
    int64_t n = layer->height * layer->width;
    for (int64_t c = 0; c < layer->channels; c++)
        layer_map_add((double)weight[c], activation + c * n, n, map);
}

static bool explain_many(const struct explain_settings *settings, struct probe *probe, int layer,
                         const struct explain_view *views, int64_t n, const struct ctx *ctx,
                         struct attribution *out, struct err *err)
{
    struct cam_end end;
    if (!check(settings, probe, layer, err) || !find_end(settings->model->graph, &end))
        return false;
    struct layer_maps_rule rule = { map_of, graph_data(settings->model->graph, end.weight) };
    return layer_maps(settings, probe, layer, views, n, ctx, &rule, out, err);
}

extern const struct explainer explainer_cam;
const struct explainer explainer_cam = {
    .name = "cam",
    .title = "CAM",
    .help = "channels of the last layer, weighted as the class weights their means",
    .maps = MAPS_LAYER,
    .positive = true,
    .forward_only = true,
    .check = check,
    .explain_many = explain_many,
};
