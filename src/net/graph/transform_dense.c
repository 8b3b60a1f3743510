/* transform_dense.c: a network with a window of fixed size, run over a whole image at once. Where a
 * stride is removed, neighbours in the original map are `spread` px apart in the dense one, and
 * every window after it is dilated by that much. */
#include <stdlib.h>
#include <string.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

struct place {
    int64_t stride;          /* px of the input for one step of the dense map */
    int64_t spread;          /* steps of the dense map for one step of the original one */
    bool vector;             /* the original was flattened: [N, features] */
    const struct node *mean; /* a global mean that is taken behind the classifier; NULL: none */
};

struct dense {
    struct rewrite r;
    struct graph *window; /* the original at the size of the window */
    struct place *places; /* [n_values] */
    int64_t output_stride;
};

static bool refuse(const struct node *node, const char *why, struct err *err)
{
    return err_set(err, ERR_USAGE, "%s: %s cannot be run densely%s%s", node->name, node->op->name,
                   *why ? ": " : "", why);
}

/* The part of a stride that a window keeps: what divides both it and the steps that are left. */
static int64_t kept_stride(const struct dense *d, const struct place *place, int64_t stride)
{
    int64_t room = d->output_stride / place->stride;
    if (place->spread > 1)
        return 1;
    while (room) {
        int64_t rest = stride % room;
        stride = room, room = rest;
    }
    return stride;
}

/* Stride, dilation and padding of a sliding window; the place of its output. */
static bool spread_window(const struct dense *d, const struct node *node, int64_t stride[2],
                          int64_t dilation[2], int64_t pad[SIDES], struct place *place,
                          struct err *err)
{
    if (stride[0] != stride[1])
        return refuse(node, "its strides differ", err);
    int64_t original = stride[0], kept = kept_stride(d, place, original);
    for (int i = 0; i < 2; i++) {
        stride[i] = kept;
        dilation[i] *= place->spread;
    }
    for (int side = 0; side < SIDES; side++)
        pad[side] *= place->spread;
    place->stride *= kept;
    place->spread *= original / kept;
    return true;
}

/* x under a mean or maximum that slides over as much as the window held, under a name. */
static value_id slide(struct dense *d, const struct node *node, const char *name, value_id x,
                      const struct place *place)
{
    bool is_max = node->op->kind == OP_GLOBAL_MAX_POOL;
    const struct shape *in = graph_shape(d->window, node->inputs[0]);
    struct pool_attr attr = { .kernel = { in->dim[2], in->dim[3] },
                              .stride = { 1, 1 },
                              .dilation = { place->spread, place->spread } };
    return x == NO_VALUE ? NO_VALUE
                         : graph_node(d->r.to, is_max ? OP_MAX_POOL : OP_AVERAGE_POOL, name, &x, 1,
                                      &(union attr){ .pool = attr });
}

/* Whether a linear layer with fewer outputs is all that follows a global pooling. A mean can then
 * be taken behind it, where it is of a few classes instead of a thousand features. */
static bool is_only_classified(const struct graph *graph, const struct node *node)
{
    const struct node *user = graph_only_user(graph, node->output);
    if (user && user->op->kind == OP_FLATTEN)
        user = graph_only_user(graph, user->output);
    if (!user || user->op->kind != OP_LINEAR || user->attr.linear.activation != ACT_NONE)
        return false;
    const struct shape *weight = graph_shape(graph, user->inputs[1]);
    return weight->dim[0] < weight->dim[1];
}

/* A mean or maximum over all that the window held becomes a sliding one. */
static bool slide_global(struct dense *d, const struct node *node, struct place *place,
                         struct err *err)
{
    value_id x = rewrite_value(&d->r, node->inputs[0]);
    if (node->op->kind != OP_GLOBAL_MAX_POOL && is_only_classified(d->window, node)) {
        place->mean = node;
        d->r.map[node->output] = x;
    } else {
        d->r.map[node->output] = slide(d, node, node->name, x, place);
    }
    return d->r.map[node->output] != NO_VALUE || graph_ok(d->r.to, err);
}

/* Adaptive pooling to more than one px: windows side by side. */
static bool divide(struct dense *d, const struct node *node, const struct shape *in,
                   struct place *place, struct err *err)
{
    struct pool_attr attr = { .dilation = { 1, 1 } };
    for (int i = 0; i < 2; i++) {
        int64_t size = node->attr.adaptive.size[i];
        if (in->dim[2 + i] % size)
            return refuse(node, "its windows would have different sizes", err);
        attr.kernel[i] = attr.stride[i] = in->dim[2 + i] / size;
    }
    if (!spread_window(d, node, attr.stride, attr.dilation, attr.pad, place, err))
        return false;
    value_id x = rewrite_value(&d->r, node->inputs[0]);
    d->r.map[node->output] = x == NO_VALUE ? NO_VALUE
                                           : graph_node(d->r.to, OP_AVERAGE_POOL, node->name, &x, 1,
                                                        &(union attr){ .pool = attr });
    return true;
}

/* A linear layer on what was flattened: a convolution as large as the map was. */
static bool classify(struct dense *d, const struct node *node, struct place *place, struct err *err)
{
    const struct graph *graph = d->window;
    const struct shape *weight = graph_shape(graph, node->inputs[1]);
    value_id x = rewrite_value(&d->r, node->inputs[0]);
    if (x == NO_VALUE || !graph_is_parameter(graph, node->inputs[1]))
        return refuse(node, "", err);
    int64_t channels = graph_shape(d->r.to, x)->dim[1], area = weight->dim[1] / channels, side = 1;
    while (side * side < area)
        side++;
    if (weight->dim[1] % channels || side * side != area)
        return refuse(node, "its input is not a square map", err);
    struct conv_attr attr = { .kernel = { side, side },
                              .dilation = { place->spread, place->spread },
                              .activation = node->attr.linear.activation };
    value_id inputs[3] = { x, rewrite_reshaped(&d->r, node->inputs[1],
                                               SHAPE(weight->dim[0], channels, side, side)) };
    if (node->n_inputs > 2)
        inputs[2] = rewrite_value(&d->r, node->inputs[2]);
    /* of two nodes, the one that has the layer's numbers has its name */
    char *before = place->mean ? rewrite_new_name(&d->r, node->name, ".map") : NULL;
    value_id made = graph_node(d->r.to, OP_CONV, before ? before : node->name, inputs,
                               node->n_inputs, &(union attr){ .conv = attr });
    if (place->mean)
        made = slide(d, place->mean, node->name, made, place);
    free(before);
    place->mean = NULL;
    d->r.map[node->output] = made;
    return true;
}

static bool is_global_mean(const struct node *node)
{
    return node->op->kind == OP_REDUCE_MEAN && node->attr.reduce.axes == (1u << 2 | 1u << 3);
}

static bool dense_pooling(struct dense *d, const struct node *node, struct place *place,
                          struct err *err)
{
    const struct shape *in = graph_shape(d->window, node->inputs[0]);
    union attr attr = node->attr;
    switch (node->op->kind) {
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL:
        if (!spread_window(d, node, attr.pool.stride, attr.pool.dilation, attr.pool.pad, place,
                           err))
            return false;
        rewrite_node(&d->r, node, &attr);
        return true;
    case OP_ADAPTIVE_AVERAGE_POOL:
        if (attr.adaptive.size[0] * attr.adaptive.size[1] > 1)
            return divide(d, node, in, place, err);
        return slide_global(d, node, place, err);
    case OP_REDUCE_MEAN:
        if (!is_global_mean(node))
            return refuse(node, "", err);
        place->vector = !attr.reduce.keep;
        return slide_global(d, node, place, err);
    default:
        return slide_global(d, node, place, err);
    }
}

/* Nodes that process each px separately; axes of flattened values become those of channels. */
static bool dense_pointwise(struct dense *d, const struct node *node, const struct place *place,
                            struct err *err)
{
    const struct shape *in = graph_shape(d->window, node->inputs[0]);
    union attr attr = node->attr;
    switch (node->op->kind) {
    case OP_SOFTMAX:
    case OP_LOG_SOFTMAX:
    case OP_CONCAT:
        if (axis_of(attr.axis.axis, in->rank) != 1)
            return refuse(node, "it does not work along channels", err);
        attr.axis.axis = 1;
        break;
    case OP_SLICE:
        if (axis_of(attr.slice.axis, in->rank) != 1)
            return refuse(node, "it does not work along channels", err);
        attr.slice.axis = 1;
        break;
    case OP_PAD:
        for (int side = 0; side < SIDES; side++)
            attr.pad.pad[side] *= place->spread;
        break;
    default:
        break;
    }
    rewrite_node(&d->r, node, &attr);
    return true;
}

static bool dense_node(struct dense *d, const struct node *node, struct err *err)
{
    struct place place = d->places[node->inputs[0]];
    union attr attr = node->attr;
    bool ok = true;
    for (int i = 1; i < node->n_inputs; i++)
        if (node->inputs[i] != NO_VALUE && !graph_is_parameter(d->window, node->inputs[i])) {
            const struct place *other = &d->places[node->inputs[i]];
            if (other->stride != place.stride || other->spread != place.spread)
                return refuse(node, "its inputs have different strides", err);
        }
    switch (node->op->kind) {
    case OP_CONV:
        ok = spread_window(d, node, attr.conv.stride, attr.conv.dilation, attr.conv.pad, &place,
                           err);
        if (ok)
            rewrite_node(&d->r, node, &attr);
        break;
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL:
    case OP_GLOBAL_MAX_POOL:
    case OP_GLOBAL_AVERAGE_POOL:
    case OP_ADAPTIVE_AVERAGE_POOL:
    case OP_REDUCE_MEAN:
        ok = dense_pooling(d, node, &place, err);
        break;
    case OP_FLATTEN:
        place.vector = true;
        d->r.map[node->output] = rewrite_value(&d->r, node->inputs[0]);
        break;
    case OP_LINEAR:
        ok = place.vector ? classify(d, node, &place, err) : refuse(node, "", err);
        break;
    case OP_CONV_TRANSPOSE:
    case OP_MATMUL:
    case OP_ATTENTION:
    case OP_RMS_NORM:
    case OP_GROUP_NORM:
    case OP_LAYER_NORM:
    case OP_RESHAPE:
    case OP_TRANSPOSE:
    case OP_EXPAND_BATCH:
    case OP_UPSAMPLE:
    case OP_HALO:
    case OP_ALL_REDUCE:
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_GLOBAL_LSE_POOL:
    case OP_ATTENTION_POOL:
    case OP_CARRY:
    case OP_REDUCE_MAX:
    case OP_TAKE:
        return refuse(node, "", err);
    default:
        ok = dense_pointwise(d, node, &place, err);
        break;
    }
    d->places[node->output] = place;
    d->r.replaced[node->output] = place.mean != NULL; /* not the mean yet */
    return ok;
}

static bool dense_begin(struct dense *d, const struct graph *graph, const struct dense_spec *spec,
                        struct err *err)
{
    *d = (struct dense){ .output_stride = spec->output_stride };
    if (spec->window < 1 || spec->output_stride < 1 || spec->height < spec->window ||
        spec->width < spec->window)
        return err_set(
            err, ERR_USAGE, "%s: an image of %lld x %lld px is smaller than a window of %lld px",
            graph->name, (long long)spec->width, (long long)spec->height, (long long)spec->window);
    if (!transform_resize(graph, 0, spec->window, spec->window, &d->window, err))
        return false;
    d->places = calloc((size_t)graph->n_values + 1, sizeof *d->places);
    if (!d->places)
        return err_memory(err, graph->name);
    if (!rewrite_begin(&d->r, d->window, false, NULL, 0, err))
        return false;
    for (int i = 0; i < d->window->n_inputs; i++) {
        value_id old = d->window->inputs[i].value;
        struct shape shape = *graph_shape(d->window, old);
        if (shape.rank != 4)
            return err_set(err, ERR_USAGE, "%s: the input is not an image",
                           d->window->inputs[i].name);
        shape.dim[2] = spec->height, shape.dim[3] = spec->width;
        d->r.map[old] = graph_input(d->r.to, d->window->inputs[i].name, shape);
    }
    for (int32_t i = 0; i < graph->n_values; i++)
        d->places[i] = (struct place){ 1, 1, false, NULL };
    return true;
}

/* The output; a network that sees less than its window has scores beyond the last whole window:
 * they go. */
static void declare_output(struct dense *d, const struct graph_port *port,
                           const struct dense_spec *spec)
{
    value_id made = d->r.map[port->value];
    if (made == NO_VALUE)
        return;
    const struct shape *shape = graph_shape(d->r.to, made);
    int64_t rows = (spec->height - spec->window) / spec->output_stride + 1 - shape->dim[2];
    int64_t columns = (spec->width - spec->window) / spec->output_stride + 1 - shape->dim[3];
    struct pad_attr attr = { .pad = { 0, 0, rows < 0 ? rows : 0, columns < 0 ? columns : 0 } };
    graph_output(d->r.to, port->name,
                 rows < 0 || columns < 0 ? graph_pad(d->r.to, made, attr) : made);
}

bool transform_dense(const struct graph *graph, const struct dense_spec *spec, struct graph **out,
                     struct err *err)
{
    struct dense d;
    bool ok = dense_begin(&d, graph, spec, err);
    for (int32_t i = 0; ok && i < d.window->n_nodes; i++)
        ok = dense_node(&d, &d.window->nodes[i], err);
    for (int i = 0; ok && i < graph->n_outputs; i++) {
        const struct place *place = &d.places[graph->outputs[i].value];
        if (place->stride != spec->output_stride)
            ok = err_set(err, ERR_USAGE, "%s: its stride is %lld px; %lld px is not possible",
                         graph->outputs[i].name, (long long)place->stride,
                         (long long)spec->output_stride);
        else
            declare_output(&d, &graph->outputs[i], spec);
    }
    if (ok)
        ok = rewrite_hand_over(&d.r, out, err);
    else
        rewrite_discard(&d.r);
    graph_free(d.window);
    free(d.places);
    return ok;
}
