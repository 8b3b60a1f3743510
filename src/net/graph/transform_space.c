/* transform_space.c: the part that one of rows x columns processes computes of a network. */
#include <stdlib.h>
#include "net/graph/space.h"

#define COARSEST                                                                                   \
    32 /* px: cuts at multiples of the strides of most networks, where parts are large */

/* Where part p begins: parts are as equal as possible but for rounding, at most an eighth. */
static int64_t cut_of(int64_t extent, int parts, int p)
{
    int64_t grain = COARSEST, at = extent * p / parts;
    if (p == 0 || p == parts)
        return at;
    while (grain > 1 && extent / parts < 8 * grain)
        grain /= 2;
    return (at + grain / 2) / grain * grain;
}

struct space_part space_part(const struct space_spec *spec, int64_t height, int64_t width)
{
    return (struct space_part){ cut_of(height, spec->rows, spec->row),
                                cut_of(height, spec->rows, spec->row + 1),
                                cut_of(width, spec->columns, spec->column),
                                cut_of(width, spec->columns, spec->column + 1) };
}

bool space_divide(struct space *s, value_id value, const struct space_axis *axes, struct err *err)
{
    value_id made = s->r.map[value];
    if (made == NO_VALUE)
        return graph_ok(s->r.to, err);
    s->values[value].axes = malloc(2 * sizeof *axes);
    if (!s->values[value].axes)
        return err_memory(err, s->graph->values[value].name);
    for (int i = 0; i < 2; i++) {
        s->values[value].axes[i] = axes[i];
        if (graph_shape(s->r.to, made)->dim[2 + i] != space_extent(&axes[i], s->at[i]))
            return err_set(err, ERR_USAGE, "%s: it cannot be divided among %d x %d processes",
                           s->graph->values[value].name, s->spec.rows, s->spec.columns);
    }
    return true;
}

/* Numbers without a height and a width. */
static bool is_per_channel(const struct shape *shape)
{
    for (int i = 1; i <= 2 && i <= shape->rank; i++)
        if (shape->dim[shape->rank - i] != 1)
            return false;
    return true;
}

/* The divided input that was made first. */
static value_id first_made(const struct space *s, const struct node *node)
{
    value_id first = NO_VALUE;
    for (int i = 0; i < node->n_inputs; i++)
        if (space_divided(s, node->inputs[i]) && (first == NO_VALUE || node->inputs[i] < first))
            first = node->inputs[i];
    return first;
}

/* Maps that meet are divided as the first of them is; all else has one number for a map. */
static bool meet(struct space *s, const struct node *node, struct err *err)
{
    const struct space_axis *axes = s->values[first_made(s, node)].axes;
    value_id *inputs = malloc((size_t)node->n_inputs * sizeof *inputs);
    bool ok = inputs || err_memory(err, node->name);
    for (int i = 0; ok && i < node->n_inputs; i++) {
        const struct shape *x = graph_shape(s->graph, node->inputs[i]);
        inputs[i] = rewrite_value(&s->r, node->inputs[i]);
        if (space_divided(s, node->inputs[i]) && x->dim[2] == axes[0].cuts[s->parts[0]] &&
            x->dim[3] == axes[1].cuts[s->parts[1]])
            ok = space_read_as(s, node, node->inputs[i], axes, &inputs[i], err);
        else if (space_divided(s, node->inputs[i]) || !is_per_channel(x))
            ok = space_refuse(node,
                              "joins tensors of different height or width, and is not "
                              "divided; cut the network into stages (parallel.stages) "
                              "instead",
                              err);
    }
    if (ok)
        s->r.map[node->output] =
            graph_node(s->r.to, node->op->kind, node->name, inputs, node->n_inputs, &node->attr);
    free(inputs);
    return ok && space_divide(s, node->output, axes, err);
}

static bool pointwise(struct space *s, const struct node *node, struct err *err)
{
    rewrite_node(&s->r, node, NULL);
    return space_divide(s, node->output, s->values[node->inputs[0]].axes, err);
}

static bool along_channels(struct space *s, const struct node *node, int64_t axis, struct err *err)
{
    if (axis_of(axis, 4) != 1)
        return space_refuse(node,
                            "along another axis than the channels is not divided; cut the network "
                            "into stages (parallel.stages) instead",
                            err);
    return node->op->kind == OP_CONCAT ? meet(s, node, err) : pointwise(s, node, err);
}

static bool refuse_op(const struct node *node, struct err *err)
{
    switch ((int)node->op->kind) {
    case OP_GROUP_NORM:
    case OP_LAYER_NORM:
    case OP_RMS_NORM:
        return space_refuse(node,
                            "normalises over the whole image, which is not divided; use a network "
                            "with batch norm, or cut it into stages (parallel.stages) instead",
                            err);
    case OP_DROPOUT:
        return space_refuse(node,
                            "between maps is not divided; use a network without it, or cut it "
                            "into stages (parallel.stages) instead",
                            err);
    default:
        return space_refuse(node,
                            "needs the whole image at once, which is not divided; use a "
                            "convolutional network, or cut it into stages (parallel.stages) "
                            "instead",
                            err);
    }
}

/* A node that reads a divided map. */
static bool divided_node(struct space *s, const struct node *node, struct err *err)
{
    if (graph_pools_maps(s->graph, node))
        return space_pool(s, node, err);
    switch ((int)node->op->kind) {
    case OP_CONV:
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL:
        return space_window(s, node, err);
    case OP_CONV_TRANSPOSE:
        return space_transposed(s, node, err);
    case OP_UPSAMPLE:
        return space_upsample(s, node, err);
    case OP_PAD:
        return space_pad(s, node, err);
    case OP_ADAPTIVE_AVERAGE_POOL:
    case OP_FLATTEN:
        return space_join(s, node, err);
    case OP_BATCH_NORM:
    case OP_RELU:
    case OP_LEAKY_RELU:
    case OP_SILU:
    case OP_GELU:
    case OP_SIGMOID:
    case OP_TANH:
    case OP_LRN:
    case OP_SCALE:
    case OP_CONVERT:
    case OP_FUNCTION:
        return pointwise(s, node, err);
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
        return meet(s, node, err);
    case OP_CONCAT:
    case OP_SOFTMAX:
    case OP_LOG_SOFTMAX:
        return along_channels(s, node, node->attr.axis.axis, err);
    case OP_SLICE:
        return along_channels(s, node, node->attr.slice.axis, err);
    default:
        return refuse_op(node, err);
    }
}

/* Ops that may read maps in other places than the first. */
static bool may_join(const struct node *node, int input)
{
    switch ((int)node->op->kind) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_CONCAT:
        return true;
    case OP_CONV:
        return input == 3;
    case OP_ATTENTION_POOL:
        return input == 1;
    default:
        return false;
    }
}

static bool space_one(struct space *s, const struct node *node, struct err *err)
{
    bool any = space_divided(s, node->inputs[0]);
    for (int i = 1; i < node->n_inputs; i++)
        if (space_divided(s, node->inputs[i])) {
            if (!may_join(node, i))
                return refuse_op(node, err);
            any = true;
        }
    if (any)
        return divided_node(s, node, err);
    union attr attr = node->attr;
    if (node->op->kind == OP_BATCH_NORM)
        attr.norm.alike = true;
    rewrite_node(&s->r, node, &attr);
    return s->r.map[node->output] != NO_VALUE || graph_ok(s->r.to, err);
}

static bool check_spec(const struct space_spec *spec, struct err *err)
{
    return (spec->rows >= 1 && spec->rows <= SPACE_MOST && spec->columns >= 1 &&
            spec->columns <= SPACE_MOST && spec->row >= 0 && spec->row < spec->rows &&
            spec->column >= 0 && spec->column < spec->columns) ||
           err_set(err, ERR_USAGE, "no part %d, %d of %d x %d (at most %d along an axis)",
                   spec->row, spec->column, spec->rows, spec->columns, SPACE_MOST);
}

/* Images are divided, other inputs are the same for all. */
static bool divide_inputs(struct space *s, struct err *err)
{
    bool ok = true;
    for (int k = 0; ok && k < s->graph->n_inputs; k++) {
        value_id old = s->graph->inputs[k].value;
        struct shape shape = *graph_shape(s->graph, old);
        struct space_axis axes[2];
        for (int i = 0; shape.rank == 4 && i < 2; i++) {
            int64_t extent = shape.dim[2 + i];
            for (int p = 0; p <= s->parts[i]; p++)
                axes[i].cuts[p] = cut_of(extent, s->parts[i], p);
            if (extent < s->parts[i])
                return err_set(err, ERR_USAGE, "%s: %lld px cannot be divided among %d processes",
                               s->graph->inputs[k].name, (long long)extent, s->parts[i]);
            shape.dim[2 + i] = space_extent(&axes[i], s->at[i]);
        }
        s->r.map[old] = graph_input(s->r.to, s->graph->inputs[k].name, shape);
        ok = shape.rank == 4 ? space_divide(s, old, axes, err)
                             : s->r.map[old] != NO_VALUE || graph_ok(s->r.to, err);
    }
    return ok;
}

/* A map that is an output: whole, or of the part; one as large as the image is divided as it is. */
static bool declare_output(struct space *s, const struct graph_port *port, struct err *err)
{
    const struct space_axis *axes = s->values[port->value].axes;
    value_id made = s->r.map[port->value];
    const struct node *maker = graph_maker(s->graph, port->value);
    struct space_axis like[2];
    bool whole = s->spec.whole_outputs && axes && maker, same = !whole && axes && maker;
    for (int i = 0; same && i < 2; i++) {
        int64_t extent = axes[i].cuts[s->parts[i]];
        same = extent == graph_shape(s->graph, s->graph->inputs[0].value)->dim[2 + i];
        for (int p = 0; p <= s->parts[i]; p++)
            like[i].cuts[p] = cut_of(extent, s->parts[i], p);
    }
    if (same && !space_read_as(s, maker, port->value, like, &made, err))
        return false;
    if (whole && (made = space_whole(s, maker, port->value)) == NO_VALUE)
        return graph_ok(s->r.to, err);
    graph_output(s->r.to, port->name, made);
    return true;
}

static void space_free(struct space *s)
{
    for (int32_t i = 0; s->values && i < s->graph->n_values; i++)
        free(s->values[i].axes), free(s->values[i].wider);
    free(s->values);
}

/* Parameters are declared first, in the order of the network: so are gradients. */
static bool make(struct space *s, struct graph **out, struct err *err)
{
    if (!rewrite_begin(&s->r, s->graph, false, NULL, 0, err))
        return false;
    bool ok = divide_inputs(s, err);
    for (int32_t i = 0; ok && i < s->graph->n_values; i++)
        if (graph_is_parameter(s->graph, i))
            rewrite_value(&s->r, i);
    for (int32_t i = 0; ok && i < s->graph->n_nodes; i++)
        ok = space_one(s, &s->graph->nodes[i], err);
    for (int i = 0; ok && i < s->graph->n_outputs; i++)
        ok = declare_output(s, &s->graph->outputs[i], err);
    if (ok)
        return rewrite_hand_over(&s->r, out, err);
    rewrite_discard(&s->r);
    return false;
}

bool transform_space(const struct graph *graph, const struct space_spec *spec, struct graph **out,
                     struct err *err)
{
    struct space s = { .graph = graph,
                       .spec = *spec,
                       .parts = { spec->rows, spec->columns },
                       .at = { spec->row, spec->column } };
    if (!check_spec(spec, err))
        return false;
    if (spec->rows * spec->columns == 1)
        return graph_copy(graph, out, err);
    s.values = calloc((size_t)graph->n_values + 1, sizeof *s.values);
    bool ok = (s.values || err_memory(err, graph->name)) && make(&s, out, err);
    space_free(&s);
    return ok;
}
