/* rules.c: which ops can be computed tile by tile, and which cells they need. */
#include <math.h>
#include "net/stream/body.h"

static bool refuse(const struct node *node, const char *why, struct err *err)
{
    return err_set(err, ERR_USAGE, "%s: %s %s", node->name, node->op->name, why);
}

static bool window(const int64_t *kernel, const int64_t *stride, const int64_t *dilation,
                   const int64_t *pad, struct axis_rule rules[2])
{
    for (int i = 0; i < 2; i++)
        rules[i] = (struct axis_rule){ .reach = (kernel[i] - 1) * dilation[i] + 1,
                                       .stride = stride[i],
                                       .pad = pad[i] };
    return true;
}

static bool transposed(const struct node *node, struct axis_rule rules[2], struct err *err)
{
    const struct conv_attr *a = &node->attr.conv;
    for (int i = 0; i < 2; i++) {
        if (a->kernel[i] != a->stride[i] || a->pad[i] || a->pad[2 + i] || a->output_pad[i] ||
            a->dilation[i] != 1)
            return refuse(node,
                          "is streamed only if its kernel is as large as its stride and it pads "
                          "nothing; run the network whole (memory: plain or recompute)",
                          err);
        rules[i] = (struct axis_rule){ .up = a->stride[i] };
    }
    return true;
}

static bool upsampling(const struct body *body, const struct node *node, struct axis_rule rules[2],
                       struct err *err)
{
    const struct upsample_attr *a = &node->attr.upsample;
    const struct shape *x = graph_shape(body->graph, node->inputs[0]);
    const struct shape *y = graph_shape(body->graph, node->output);
    for (int i = 0; i < 2; i++) {
        int64_t factor = y->dim[2 + i] / x->dim[2 + i];
        bool whole = factor * x->dim[2 + i] == y->dim[2 + i] &&
                     (a->size[i] || a->scale[i] == (double)factor);
        /* Neither rule depends on the extent if the factor is a power of two. */
        if (!whole || a->align_corners || factor & (factor - 1))
            return refuse(node,
                          "is streamed only by a factor that is a power of two, without "
                          "align_corners; run the network whole (memory: plain or recompute)",
                          err);
        rules[i] = (struct axis_rule){ .up = factor, .blend = a->mode == UPSAMPLE_BILINEAR };
    }
    return true;
}

static bool padding(const struct node *node, struct axis_rule rules[2], struct err *err)
{
    const struct pad_attr *a = &node->attr.pad;
    if (a->mode != PAD_ZERO)
        return refuse(
            node, "with reflected or repeated borders is not streamed; use network.padding: zero",
            err);
    for (int i = 0; i < 2; i++)
        rules[i] = (struct axis_rule){ .reach = 1, .stride = 1, .pad = a->pad[i] };
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

/* Maps that meet must have the same extents; constants none. */
static bool meeting(const struct body *body, const struct node *node, struct err *err)
{
    const struct shape *y = graph_shape(body->graph, node->output);
    for (int i = 0; i < node->n_inputs; i++) {
        const struct shape *x = graph_shape(body->graph, node->inputs[i]);
        if (body->parts[node->inputs[i]] == PART_MAP
                ? x->rank != 4 || x->dim[2] != y->dim[2] || x->dim[3] != y->dim[3]
                : !is_per_channel(x))
            return refuse(node, "joins tensors of different height or width, which is not streamed",
                          err);
    }
    return true;
}

static bool along_channels(const struct node *node, int64_t axis, struct err *err)
{
    return axis_of(axis, 4) == 1 ||
           refuse(node, "along another axis than the channels is not streamed", err);
}

static bool frozen(const struct node *node, const struct plan_options *options, struct err *err)
{
    return options->mode != PLAN_TRAIN || options->norm_frozen ||
           refuse(node,
                  "with the statistics of the batch needs the whole image at once; freeze it "
                  "(network.norm: frozen) or replace it (network.norm: ws or fixup)",
                  err);
}

/* Maps in the places of weights would need an op of another kind. */
static bool reads_maps_well(const struct body *body, const struct node *node, struct err *err)
{
    enum op_kind kind = node->op->kind;
    bool any =
        kind == OP_ADD || kind == OP_SUB || kind == OP_MUL || kind == OP_DIV || kind == OP_CONCAT;
    for (int i = 0; i < node->n_inputs && !any; i++) {
        bool map = node->inputs[i] != NO_VALUE && body->parts[node->inputs[i]] == PART_MAP;
        bool residual = kind == OP_CONV && i == 3;
        if (node->inputs[i] != NO_VALUE && !residual && map != (i == 0))
            return refuse(node, "with weights that depend on the image is not streamed", err);
    }
    return true;
}

bool rules_of(const struct body *body, const struct node *node, const struct plan_options *options,
              struct axis_rule rules[2], struct err *err)
{
    if (!reads_maps_well(body, node, err))
        return false;
    rules[0] = rules[1] = (struct axis_rule){ .reach = 1, .stride = 1 };
    const struct conv_attr *conv = &node->attr.conv;
    const struct pool_attr *pool = &node->attr.pool;
    switch ((int)node->op->kind) {
    case OP_CONV:
        return window(conv->kernel, conv->stride, conv->dilation, conv->pad, rules);
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL:
        return window(pool->kernel, pool->stride, pool->dilation, pool->pad, rules);
    case OP_CONV_TRANSPOSE:
        return transposed(node, rules, err);
    case OP_UPSAMPLE:
        return upsampling(body, node, rules, err);
    case OP_PAD:
        return padding(node, rules, err);
    case OP_BATCH_NORM:
        return frozen(node, options, err);
    case OP_DROPOUT:
        return options->mode != PLAN_TRAIN ||
               refuse(node,
                      "between maps is not streamed while training; use a network without it, or "
                      "run it whole (memory: plain or recompute)",
                      err);
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
        return true;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
        return meeting(body, node, err);
    case OP_CONCAT:
        return along_channels(node, node->attr.axis.axis, err) && meeting(body, node, err);
    case OP_SLICE:
        return along_channels(node, node->attr.slice.axis, err);
    case OP_SOFTMAX:
    case OP_LOG_SOFTMAX:
        return along_channels(node, node->attr.axis.axis, err);
    case OP_GROUP_NORM:
    case OP_LAYER_NORM:
    case OP_RMS_NORM:
        return refuse(node,
                      "normalises over the whole image, which is not streamed; use a network "
                      "with batch norm (network.norm: frozen, ws or fixup)",
                      err);
    default:
        return refuse(node,
                      "needs the whole image at once, so that it is not streamed; run the network "
                      "whole (memory: plain or recompute) or use a convolutional one",
                      err);
    }
}
