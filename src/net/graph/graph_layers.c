/* graph_layers.c: the builders of layers: each declares its parameters and adds its node. */
#include "net/graph/graph.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"

struct conv_attr conv_square(int64_t kernel, int64_t stride, int64_t pad)
{
    return (struct conv_attr){ .kernel = { kernel, kernel },
                               .stride = { stride, stride },
                               .pad = { pad, pad, pad, pad } };
}

struct pool_attr pool_square(int64_t kernel, int64_t stride, int64_t pad)
{
    return (struct pool_attr){ .kernel = { kernel, kernel },
                               .stride = { stride, stride },
                               .pad = { pad, pad, pad, pad },
                               .count_include_pad = true };
}

/* Parameter or buffer "prefix.leaf". */
static value_id declare(struct graph *graph, enum value_kind kind, const char *prefix,
                        const char *leaf, struct shape shape, struct init init)
{
    char *name = text_format("%s.%s", prefix, leaf);
    if (!name) {
        err_memory(&graph->err, prefix);
        return NO_VALUE;
    }
    value_id value = kind == VALUE_PARAMETER ? graph_parameter(graph, name, shape)
                                             : graph_buffer(graph, name, shape);
    free(name);
    if (value != NO_VALUE)
        graph->values[value].init = init;
    return value;
}

static value_id learnt(struct graph *graph, const char *prefix, const char *leaf,
                       struct shape shape, struct init init)
{
    return declare(graph, VALUE_PARAMETER, prefix, leaf, shape, init);
}

static value_id bad_input(struct graph *graph, const char *name, const char *fact)
{
    if (graph->err.kind == ERR_NONE)
        err_set(&graph->err, ERR_FORMAT, "%s: %s", name, fact);
    return NO_VALUE;
}

/* PyTorch's default bias: uniform by the fan-in of the weight. */
static struct init bias_init(int64_t fan_in)
{
    return (struct init){ INIT_UNIFORM, fan_in > 0 ? (float)(1 / sqrt((double)fan_in)) : 0 };
}

value_id graph_conv(struct graph *graph, value_id x, const char *name, int64_t out_channels,
                    bool bias, struct conv_attr attr)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    const struct shape *in = graph_shape(graph, x);
    int64_t groups = attr.groups ? attr.groups : 1;
    if (in->rank != 4 || groups < 1 || in->dim[1] % groups)
        return bad_input(
            graph, name,
            "conv: the input is not [N, C, H, W] with C divisible by the number of groups");
    struct shape weight = SHAPE(out_channels, in->dim[1] / groups, attr.kernel[0], attr.kernel[1]);
    value_id inputs[3] = { x, learnt(graph, name, "weight", weight,
                                     (struct init){ INIT_FAN_IN_UNIFORM, 1 }) };
    if (bias)
        inputs[2] =
            learnt(graph, name, "bias", SHAPE(out_channels), bias_init(shape_span(&weight, 1, 4)));
    return graph_node(graph, OP_CONV, name, inputs, bias ? 3 : 2, &(union attr){ .conv = attr });
}

value_id graph_conv_transpose(struct graph *graph, value_id x, const char *name,
                              int64_t out_channels, bool bias, struct conv_attr attr)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    const struct shape *in = graph_shape(graph, x);
    int64_t groups = attr.groups ? attr.groups : 1;
    if (in->rank != 4 || groups < 1 || out_channels % groups)
        return bad_input(graph, name,
                         "conv_transpose: the input is not [N, C, H, W], or the output channels "
                         "are not divisible by the number of groups");
    struct shape weight = SHAPE(in->dim[1], out_channels / groups, attr.kernel[0], attr.kernel[1]);
    value_id inputs[3] = { x, learnt(graph, name, "weight", weight,
                                     (struct init){ INIT_FAN_IN_UNIFORM, 1 }) };
    if (bias)
        inputs[2] =
            learnt(graph, name, "bias", SHAPE(out_channels), bias_init(shape_span(&weight, 1, 4)));
    return graph_node(graph, OP_CONV_TRANSPOSE, name, inputs, bias ? 3 : 2,
                      &(union attr){ .conv = attr });
}

value_id graph_linear(struct graph *graph, value_id x, const char *name, int64_t out_features,
                      bool bias)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    const struct shape *in = graph_shape(graph, x);
    if (in->rank < 1)
        return bad_input(graph, name, "linear: the input is a scalar");
    int64_t features = in->dim[in->rank - 1];
    value_id inputs[3] = { x, learnt(graph, name, "weight", SHAPE(out_features, features),
                                     (struct init){ INIT_FAN_IN_UNIFORM, 1 }) };
    if (bias)
        inputs[2] = learnt(graph, name, "bias", SHAPE(out_features), bias_init(features));
    return graph_node(graph, OP_LINEAR, name, inputs, bias ? 3 : 2, NULL);
}

value_id graph_batch_norm_with(struct graph *graph, value_id x, const char *name,
                               struct norm_attr attr)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    const struct shape *in = graph_shape(graph, x);
    if (in->rank < 2)
        return bad_input(graph, name, "batch_norm: the input has no channels");
    struct shape channels = SHAPE(in->dim[1]);
    struct init zero = { INIT_CONSTANT, 0 }, one = { INIT_CONSTANT, 1 };
    value_id inputs[5] = {
        x,
        learnt(graph, name, "weight", channels, one),
        learnt(graph, name, "bias", channels, zero),
        declare(graph, VALUE_BUFFER, name, "running_mean", channels, zero),
        declare(graph, VALUE_BUFFER, name, "running_var", channels, one),
    };
    return graph_node(graph, OP_BATCH_NORM, name, inputs, 5, &(union attr){ .norm = attr });
}

value_id graph_batch_norm(struct graph *graph, value_id x, const char *name)
{
    return graph_batch_norm_with(graph, x, name,
                                 (struct norm_attr){ .epsilon = 1e-5f, .momentum = 0.1f });
}

static value_id scaled_norm(struct graph *graph, enum op_kind kind, value_id x, const char *name,
                            int axis_from_end, struct norm_attr attr)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    const struct shape *in = graph_shape(graph, x);
    int axis = axis_from_end ? in->rank - axis_from_end : 1;
    if (in->rank < 2)
        return bad_input(graph, name, "normalisation: the input has no channels");
    struct shape extent = SHAPE(in->dim[axis]);
    value_id inputs[3] = {
        x,
        learnt(graph, name, "weight", extent, (struct init){ INIT_CONSTANT, 1 }),
    };
    bool bias = kind != OP_RMS_NORM;
    if (bias)
        inputs[2] = learnt(graph, name, "bias", extent, (struct init){ INIT_CONSTANT, 0 });
    return graph_node(graph, kind, name, inputs, bias ? 3 : 2, &(union attr){ .norm = attr });
}

value_id graph_group_norm(struct graph *graph, value_id x, const char *name, int64_t groups,
                          float epsilon)
{
    return scaled_norm(graph, OP_GROUP_NORM, x, name, 0,
                       (struct norm_attr){ .groups = groups, .epsilon = epsilon });
}

value_id graph_layer_norm(struct graph *graph, value_id x, const char *name, float epsilon)
{
    return scaled_norm(graph, OP_LAYER_NORM, x, name, 1, (struct norm_attr){ .epsilon = epsilon });
}

value_id graph_rms_norm(struct graph *graph, value_id x, const char *name, float epsilon)
{
    return scaled_norm(graph, OP_RMS_NORM, x, name, 1, (struct norm_attr){ .epsilon = epsilon });
}

static value_id unary(struct graph *graph, enum op_kind kind, value_id x, const union attr *attr)
{
    return x == NO_VALUE ? NO_VALUE : graph_node(graph, kind, NULL, &x, 1, attr);
}

static value_id binary(struct graph *graph, enum op_kind kind, value_id a, value_id b,
                       const union attr *attr)
{
    if (a == NO_VALUE || b == NO_VALUE)
        return NO_VALUE;
    return graph_node(graph, kind, NULL, (value_id[]){ a, b }, 2, attr);
}

value_id graph_relu(struct graph *graph, value_id x)
{
    return unary(graph, OP_RELU, x, NULL);
}

value_id graph_leaky_relu(struct graph *graph, value_id x, float slope)
{
    return unary(graph, OP_LEAKY_RELU, x, &(union attr){ .leaky = { slope } });
}

value_id graph_silu(struct graph *graph, value_id x)
{
    return unary(graph, OP_SILU, x, NULL);
}

value_id graph_gelu(struct graph *graph, value_id x)
{
    return unary(graph, OP_GELU, x, NULL);
}

value_id graph_sigmoid(struct graph *graph, value_id x)
{
    return unary(graph, OP_SIGMOID, x, NULL);
}

value_id graph_tanh(struct graph *graph, value_id x)
{
    return unary(graph, OP_TANH, x, NULL);
}

value_id graph_max_pool(struct graph *graph, value_id x, struct pool_attr attr)
{
    return unary(graph, OP_MAX_POOL, x, &(union attr){ .pool = attr });
}

value_id graph_average_pool(struct graph *graph, value_id x, struct pool_attr attr)
{
    return unary(graph, OP_AVERAGE_POOL, x, &(union attr){ .pool = attr });
}

value_id graph_global_max_pool(struct graph *graph, value_id x)
{
    return unary(graph, OP_GLOBAL_MAX_POOL, x, NULL);
}

value_id graph_global_average_pool(struct graph *graph, value_id x)
{
    return unary(graph, OP_GLOBAL_AVERAGE_POOL, x, NULL);
}

value_id graph_global_lse_pool(struct graph *graph, value_id x, float r)
{
    return unary(graph, OP_GLOBAL_LSE_POOL, x, &(union attr){ .lse = { r } });
}

value_id graph_attention_pool(struct graph *graph, value_id x, value_id scores)
{
    return binary(graph, OP_ATTENTION_POOL, x, scores, NULL);
}

value_id graph_adaptive_average_pool(struct graph *graph, value_id x, int64_t height, int64_t width)
{
    return unary(graph, OP_ADAPTIVE_AVERAGE_POOL, x,
                 &(union attr){ .adaptive = { { height, width } } });
}

value_id graph_lrn(struct graph *graph, value_id x, struct lrn_attr attr)
{
    return unary(graph, OP_LRN, x, &(union attr){ .lrn = attr });
}

value_id graph_add(struct graph *graph, value_id a, value_id b)
{
    return binary(graph, OP_ADD, a, b, NULL);
}

value_id graph_sub(struct graph *graph, value_id a, value_id b)
{
    return binary(graph, OP_SUB, a, b, NULL);
}

value_id graph_mul(struct graph *graph, value_id a, value_id b)
{
    return binary(graph, OP_MUL, a, b, NULL);
}

value_id graph_div(struct graph *graph, value_id a, value_id b)
{
    return binary(graph, OP_DIV, a, b, NULL);
}

value_id graph_scale(struct graph *graph, value_id x, float factor, float offset)
{
    return unary(graph, OP_SCALE, x, &(union attr){ .scale = { factor, offset } });
}

value_id graph_concat(struct graph *graph, const value_id *inputs, int n, int64_t axis)
{
    for (int i = 0; i < n; i++)
        if (inputs[i] == NO_VALUE)
            return NO_VALUE;
    return graph_node(graph, OP_CONCAT, NULL, inputs, n, &(union attr){ .axis = { axis } });
}

value_id graph_slice(struct graph *graph, value_id x, int64_t axis, int64_t begin, int64_t end)
{
    return unary(graph, OP_SLICE, x, &(union attr){ .slice = { axis, begin, end, 1 } });
}

value_id graph_pad(struct graph *graph, value_id x, struct pad_attr attr)
{
    return unary(graph, OP_PAD, x, &(union attr){ .pad = attr });
}

value_id graph_reshape(struct graph *graph, value_id x, struct shape target)
{
    return unary(graph, OP_RESHAPE, x, &(union attr){ .reshape = { target } });
}

value_id graph_flatten(struct graph *graph, value_id x)
{
    return unary(graph, OP_FLATTEN, x, &(union attr){ .axis = { 1 } });
}

value_id graph_transpose(struct graph *graph, value_id x, const int64_t *order)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    union attr attr = { .transpose = { .rank = graph_shape(graph, x)->rank } };
    memcpy(attr.transpose.order, order, (size_t)attr.transpose.rank * sizeof *order);
    return unary(graph, OP_TRANSPOSE, x, &attr);
}

value_id graph_matmul(struct graph *graph, value_id a, value_id b, struct matmul_attr attr)
{
    return binary(graph, OP_MATMUL, a, b, &(union attr){ .matmul = attr });
}

value_id graph_expand_batch(struct graph *graph, value_id x, value_id like)
{
    return binary(graph, OP_EXPAND_BATCH, x, like, NULL);
}

value_id graph_reduce_mean(struct graph *graph, value_id x, uint32_t axes, bool keep)
{
    return unary(graph, OP_REDUCE_MEAN, x, &(union attr){ .reduce = { axes, keep } });
}

value_id graph_softmax(struct graph *graph, value_id x, int64_t axis)
{
    return unary(graph, OP_SOFTMAX, x, &(union attr){ .axis = { axis } });
}

value_id graph_dropout(struct graph *graph, value_id x, float rate)
{
    return unary(graph, OP_DROPOUT, x, &(union attr){ .dropout = { .rate = rate } });
}

value_id graph_convert(struct graph *graph, value_id x, struct storage storage)
{
    return unary(graph, OP_CONVERT, x, &(union attr){ .convert = storage });
}

value_id graph_upsample(struct graph *graph, value_id x, struct upsample_attr attr)
{
    return unary(graph, OP_UPSAMPLE, x, &(union attr){ .upsample = attr });
}

value_id graph_halo(struct graph *graph, value_id x, struct halo_attr attr)
{
    return unary(graph, OP_HALO, x, &(union attr){ .halo = attr });
}

value_id graph_all_reduce(struct graph *graph, value_id x, struct all_reduce_attr attr)
{
    return unary(graph, OP_ALL_REDUCE, x, &(union attr){ .all_reduce = attr });
}

value_id graph_all_gather(struct graph *graph, value_id x, struct all_gather_attr attr)
{
    return unary(graph, OP_ALL_GATHER, x, &(union attr){ .all_gather = attr });
}

value_id graph_reduce_scatter(struct graph *graph, value_id x, struct reduce_scatter_attr attr)
{
    return unary(graph, OP_REDUCE_SCATTER, x, &(union attr){ .reduce_scatter = attr });
}

value_id graph_attention(struct graph *graph, value_id q, value_id k, value_id v, value_id bias,
                         value_id mask, struct attention_attr attr)
{
    if (q == NO_VALUE || k == NO_VALUE || v == NO_VALUE)
        return NO_VALUE;
    return graph_node(graph, OP_ATTENTION, NULL, (value_id[]){ q, k, v, bias, mask }, 5,
                      &(union attr){ .attention = attr });
}

value_id graph_attention_packed(struct graph *graph, value_id qkv, value_id bias, value_id mask,
                                struct attention_attr attr)
{
    if (qkv == NO_VALUE)
        return NO_VALUE;
    return graph_node(graph, OP_ATTENTION, NULL,
                      (value_id[]){ qkv, NO_VALUE, NO_VALUE, bias, mask }, 5,
                      &(union attr){ .attention = attr });
}

static value_id table_node(struct graph *graph, enum op_kind kind, value_id x, const char *name,
                           struct shape shape)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    value_id inputs[2] = { x,
                           learnt(graph, name, "weight", shape, (struct init){ INIT_NORMAL, 1 }) };
    return inputs[1] == NO_VALUE ? NO_VALUE : graph_node(graph, kind, name, inputs, 2, NULL);
}

value_id graph_embedding(struct graph *graph, value_id ids, const char *name, int64_t rows,
                         int64_t width)
{
    return table_node(graph, OP_EMBEDDING, ids, name, SHAPE(rows, width));
}

value_id graph_relative_bias(struct graph *graph, value_id x, const char *name, int64_t rows,
                             int64_t heads)
{
    return table_node(graph, OP_RELATIVE_BIAS, x, name, SHAPE(rows, heads));
}
