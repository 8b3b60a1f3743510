/* transform_field.c: the part of the input that an output sees, and whether a dense run equals the
 * sliding window. */
#include <stdio.h>
#include <stdlib.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

struct sight {
    int64_t extent, stride; /* px of the input */
};

struct window {
    int64_t kernel, stride, dilation;
    bool padded;
};

/* The sliding window of a node along height or width (the larger one); kernel 1 if it has none. */
static struct window window_of(const struct graph *graph, const struct node *node)
{
    struct window w = { 1, 1, 1, false };
    const struct shape *in = graph_shape(graph, node->inputs[0]);
    const int64_t *pad = NULL;
    switch (node->op->kind) {
    case OP_CONV: {
        const struct conv_attr *a = &node->attr.conv;
        int i = a->kernel[0] * a->dilation[0] < a->kernel[1] * a->dilation[1];
        w = (struct window){ a->kernel[i], a->stride[i], a->dilation[i], false };
        pad = a->pad;
        break;
    }
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL: {
        const struct pool_attr *a = &node->attr.pool;
        int i = a->kernel[0] * a->dilation[0] < a->kernel[1] * a->dilation[1];
        w = (struct window){ a->kernel[i], a->stride[i], a->dilation[i], false };
        pad = a->pad;
        break;
    }
    case OP_GLOBAL_AVERAGE_POOL:
    case OP_GLOBAL_MAX_POOL:
    case OP_GLOBAL_LSE_POOL:
    case OP_ATTENTION_POOL:
        w.kernel = in->dim[2];
        break;
    case OP_ADAPTIVE_AVERAGE_POOL:
        w.kernel = w.stride = in->dim[2] / node->attr.adaptive.size[0];
        w.stride = node->attr.adaptive.size[0] > 1 ? w.stride : 1;
        break;
    case OP_REDUCE_MEAN:
    case OP_REDUCE_MAX:
        w.kernel = in->rank == 4 ? in->dim[2] : 1;
        break;
    case OP_FLATTEN:
        w.kernel = in->rank == 4 ? in->dim[2] : 1;
        break;
    case OP_PAD:
        pad = node->attr.pad.pad;
        break;
    default:
        break;
    }
    for (int side = 0; pad && side < SIDES; side++)
        w.padded = w.padded || pad[side] > 0;
    return w;
}

/* Ops that look at the whole of their input. */
static bool sees_all(const struct node *node)
{
    switch (node->op->kind) {
    case OP_MATMUL:
    case OP_ATTENTION:
    case OP_RMS_NORM:
    case OP_GROUP_NORM:
    case OP_LAYER_NORM:
    case OP_RESHAPE:
    case OP_TRANSPOSE:
    case OP_CONV_TRANSPOSE:
    case OP_UPSAMPLE:
    case OP_HALO:
    case OP_ALL_REDUCE:
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_GLOBAL_LSE_POOL:
    case OP_ATTENTION_POOL:
    case OP_CARRY:
    case OP_TAKE:
        return true;
    default:
        return false;
    }
}

static void note(struct field *field, const struct node *node, const char *why)
{
    if (field->exact)
        snprintf(field->reason, sizeof field->reason, "%s: %s %s", node->name, node->op->name, why);
    field->exact = false;
}

static void visit(const struct graph *graph, const struct node *node, struct sight *sights,
                  struct field *field)
{
    struct sight in = sights[node->inputs[0]];
    struct window w = window_of(graph, node);
    for (int i = 1; i < node->n_inputs; i++) {
        if (node->inputs[i] == NO_VALUE || graph_is_parameter(graph, node->inputs[i]))
            continue;
        const struct sight *other = &sights[node->inputs[i]];
        if (other->stride != in.stride)
            note(field, node, "joins branches of different stride");
        in.extent = other->extent > in.extent ? other->extent : in.extent;
    }
    if (w.padded) {
        field->padded = true;
        note(field, node, "pads, so the border of a window differs from the middle of an image");
    }
    if (sees_all(node))
        note(field, node, "uses the whole window");
    sights[node->output] =
        (struct sight){ in.extent + (w.kernel - 1) * w.dilation * in.stride, in.stride * w.stride };
}

bool transform_field(const struct graph *graph, value_id value, int64_t window, struct field *out,
                     struct err *err)
{
    struct graph *sized = NULL;
    if (value < 0 || value >= graph->n_values || graph_is_parameter(graph, value))
        return err_set(err, ERR_USAGE, "%s: not an activation of the network", graph->name);
    if (!transform_resize(graph, 0, window, window, &sized, err))
        return false;
    struct sight *sights = calloc((size_t)graph->n_values, sizeof *sights);
    bool *needed = calloc((size_t)graph->n_values, sizeof *needed);
    bool ok = sights && needed;
    *out = (struct field){ .exact = true };
    if (ok) {
        rewrite_mark_needed(sized, value, needed);
        for (int32_t i = 0; i < sized->n_values; i++)
            sights[i] = (struct sight){ 1, 1 };
        for (int32_t i = 0; i < sized->n_nodes; i++)
            if (needed[sized->nodes[i].output])
                visit(sized, &sized->nodes[i], sights, out);
        out->receptive_px = sights[value].extent;
        out->stride_px = sights[value].stride;
        if (out->exact && out->receptive_px > window) {
            out->exact = false;
            snprintf(out->reason, sizeof out->reason, "it sees %lld px, more than its window",
                     (long long)out->receptive_px);
        }
    } else {
        err_memory(err, graph->name);
    }
    free(sights), free(needed);
    graph_free(sized);
    return ok;
}
