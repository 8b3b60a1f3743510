/* activation.c: functions of one element; those missing from our graph are composed. */
#include <math.h>
#include "net/onnx/import.h"

static bool unary(struct onnx_import *im, onnx_node *node, enum op_kind kind,
                  const union attr *attr, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, kind, &x, 1, attr, err), err);
}

bool onnx_relu(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return unary(im, node, OP_RELU, NULL, err);
}

bool onnx_leaky_relu(struct onnx_import *im, onnx_node *node, struct err *err)
{
    union attr attr = { .leaky = { onnx_float(node, "alpha", 0.01f) } };
    return unary(im, node, OP_LEAKY_RELU, &attr, err);
}

bool onnx_sigmoid(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return unary(im, node, OP_SIGMOID, NULL, err);
}

bool onnx_tanh(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return unary(im, node, OP_TANH, NULL, err);
}

bool onnx_gelu(struct onnx_import *im, onnx_node *node, struct err *err)
{
    static const char *const forms[] = { "none", "tanh", NULL };
    int form = onnx_choice(node, "approximate", forms, err);
    union attr attr = { .gelu = { form == 1 } };
    return form >= 0 && unary(im, node, OP_GELU, &attr, err);
}

static value_id relu(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                     struct err *err)
{
    return x == NO_VALUE ? NO_VALUE : onnx_add(im, node, suffix, OP_RELU, &x, 1, NULL, err);
}

/* clip(x, low, high) from ReLUs; infinite limits do not count. max(x, low) = relu(x - low) + low,
 * and min(y, high) = high - relu(high - y): differences to the limit, so that nothing is lost far
 * from it. */
static value_id clipped(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                        double low, double high, struct err *err)
{
    bool below = isfinite(low), above = isfinite(high);
    if (below && low == 0) {
        x = relu(im, node, above ? ".low" : suffix, x, err);
    } else if (below) {
        x = onnx_add_scale(im, node, ".low", x, 1, -low, err);
        x = relu(im, node, ".low", x, err);
        x = onnx_add_scale(im, node, above ? ".low" : suffix, x, 1, low, err);
    }
    if (!above)
        return x;
    x = onnx_add_scale(im, node, ".high", x, -1, high, err);
    x = relu(im, node, ".high", x, err);
    return onnx_add_scale(im, node, suffix, x, -1, high, err);
}

/* A limit of Clip: input i from opset 11 on, else an attribute. */
static bool limit(struct onnx_import *im, onnx_node *node, size_t i, const char *name, double none,
                  double *out, struct err *err)
{
    *out = none;
    if (im->opset < 11) {
        *out = (double)onnx_float(node, name, (float)none);
    } else if (onnx_has(node, i)) {
        const struct host *host = onnx_constant(im, node, i, name, err);
        if (!host)
            return false;
        if (host->count != 1)
            return err_set(err, ERR_FORMAT, "%s is not one number", name);
        *out = host_number(host, 0);
    }
    if (fabs(*out) >= 3e38) /* the largest float means no limit */
        *out = none;
    return true;
}

bool onnx_clip(struct onnx_import *im, onnx_node *node, struct err *err)
{
    double low, high;
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE || !limit(im, node, 1, "min", -INFINITY, &low, err) ||
        !limit(im, node, 2, "max", INFINITY, &high, err))
        return false;
    return onnx_bind(im, node, 0, clipped(im, node, NULL, x, low, high, err), err);
}

bool onnx_hard_sigmoid(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    x = onnx_add_scale(im, node, ".line", x, (double)onnx_float(node, "alpha", 0.2f),
                       (double)onnx_float(node, "beta", 0.5f), err);
    return onnx_bind(im, node, 0, clipped(im, node, NULL, x, 0, 1, err), err);
}

bool onnx_hard_swish(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    value_id gate = onnx_add_scale(im, node, ".line", x, 1.0 / 6, 0.5, err);
    gate = clipped(im, node, ".gate", gate, 0, 1, err);
    if (gate == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node, NULL, OP_MUL, (value_id[]){ x, gate }, 2, NULL, err);
    return onnx_bind(im, node, 0, y, err);
}

/* The slope of PRelu so that it broadcasts: before opset 7 one for each channel. */
static value_id slope_of(struct onnx_import *im, onnx_node *node, const struct shape *x,
                         struct err *err)
{
    const struct host *slope = onnx_known(im, node, 1, NULL);
    if (!slope || im->opset >= 7 || slope->shape.rank != 1 || slope->count == 1 || x->rank < 2)
        return onnx_value(im, node, 1, err);
    struct shape shape = { x->rank - 1, { slope->count } };
    for (int i = 1; i < shape.rank; i++)
        shape.dim[i] = 1;
    return onnx_parameter(im, node, 1, shape, false, err);
}

/* relu(x) - slope relu(-x) */
bool onnx_prelu(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    struct shape shape = *onnx_shape(im, x);
    value_id slope = slope_of(im, node, &shape, err);
    if (slope == NO_VALUE)
        return false;
    value_id above = relu(im, node, ".above", x, err);
    value_id below =
        relu(im, node, ".below", onnx_add_scale(im, node, ".minus", x, -1, 0, err), err);
    if (above == NO_VALUE || below == NO_VALUE)
        return false;
    below = onnx_add(im, node, ".slope", OP_MUL, (value_id[]){ below, slope }, 2, NULL, err);
    if (below == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node, NULL, OP_SUB, (value_id[]){ above, below }, 2, NULL, err);
    return onnx_bind(im, node, 0, y, err);
}

/* Before opset 13 softmax runs over all axes from `axis` on together. */
static bool softmax(struct onnx_import *im, onnx_node *node, enum op_kind kind, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    struct shape shape = *onnx_shape(im, x);
    int64_t given = onnx_int(node, "axis", im->opset < 13 ? 1 : -1);
    int axis = axis_of(given, shape.rank);
    if (axis < 0)
        return no_axis(given, shape.rank, err);
    bool together = im->opset < 13 && shape_span(&shape, axis + 1, shape.rank) > 1;
    union attr attr = { .axis = { axis } };
    if (!together)
        return onnx_bind(im, node, 0, onnx_add(im, node, NULL, kind, &x, 1, &attr, err), err);
    value_id flat = onnx_add(im, node, ".flat", OP_FLATTEN, &x, 1, &attr, err);
    if (flat == NO_VALUE)
        return false;
    attr.axis.axis = 1;
    value_id y = onnx_add(im, node, ".flat", kind, &flat, 1, &attr, err);
    return onnx_bind(im, node, 0, onnx_add_reshape(im, node, NULL, y, shape, err), err);
}

bool onnx_softmax(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return softmax(im, node, OP_SOFTMAX, err);
}

bool onnx_log_softmax(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return softmax(im, node, OP_LOG_SOFTMAX, err);
}

bool onnx_identity(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return onnx_bind(im, node, 0, onnx_value(im, node, 0, err), err);
}

/* To another type of floats: bfloat16 is rounded to, all others are floats here. */
bool onnx_cast(struct onnx_import *im, onnx_node *node, struct err *err)
{
    int64_t to = onnx_int(node, "to", 0);
    union attr attr = { .convert = { .dtype = DTYPE_BFLOAT16 } };
    if (to == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16)
        return unary(im, node, OP_CONVERT, &attr, err);
    if (to != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT && to != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE &&
        to != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16)
        return err_set(err, ERR_FORMAT, "only floats are supported");
    return onnx_identity(im, node, err);
}

bool onnx_dropout(struct onnx_import *im, onnx_node *node, struct err *err)
{
    float rate = onnx_float(node, "ratio", 0.5f);
    const struct host *known = im->opset >= 12 ? onnx_known(im, node, 1, NULL) : NULL;
    const struct host *training = im->opset >= 12 ? onnx_known(im, node, 2, NULL) : NULL;
    if (onnx_wanted(im, node, 1))
        return err_set(err, ERR_FORMAT, "the mask (second output) is not supported");
    if (known && known->count)
        rate = host_float(known, 0);
    if (rate > 0 && training && training->count && host_number(training, 0) != 0)
        return err_set(err, ERR_FORMAT, "training mode is not supported; export for inference");
    if (!(rate > 0 && rate < 0.999f))
        return onnx_identity(im, node, err);
    return unary(im, node, OP_DROPOUT, &(union attr){ .dropout = { .rate = rate } }, err);
}
