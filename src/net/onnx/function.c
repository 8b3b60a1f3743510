/* function.c: functions of one element that the graph has by name, and what is made of them;
 * powers; the larger and the smaller of tensors. */
#include <math.h>
#include "net/onnx/import.h"

static value_id apply(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                      enum function_kind kind, float exponent, struct err *err)
{
    union attr attr = { .function = { kind, exponent } };
    return x == NO_VALUE ? NO_VALUE : onnx_add(im, node, suffix, OP_FUNCTION, &x, 1, &attr, err);
}

value_id onnx_add_function(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                           enum function_kind kind, struct err *err)
{
    return apply(im, node, suffix, x, kind, 0, err);
}

#define FUNCTION(name, kind)                                                                       \
    bool name(struct onnx_import *im, onnx_node *node, struct err *err)                            \
    {                                                                                              \
        value_id x = onnx_value(im, node, 0, err);                                                 \
        return onnx_bind(im, node, 0, apply(im, node, NULL, x, kind, 0, err), err);                \
    }
FUNCTION(onnx_exp, FUNCTION_EXP)
FUNCTION(onnx_log, FUNCTION_LOG)
FUNCTION(onnx_sqrt, FUNCTION_SQRT)
FUNCTION(onnx_reciprocal, FUNCTION_RECIPROCAL)
FUNCTION(onnx_abs, FUNCTION_ABS)
FUNCTION(onnx_erf, FUNCTION_ERF)
FUNCTION(onnx_sin, FUNCTION_SIN)
FUNCTION(onnx_cos, FUNCTION_COS)

/* Powers 1, 2 and 3 are products, which have no trouble with negative numbers. */
bool onnx_pow(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    const struct host *power = onnx_constant(im, node, 1, "the exponent", err);
    if (x == NO_VALUE || !power)
        return false;
    if (power->count != 1 || power->shape.rank > onnx_shape(im, x)->rank)
        return err_set(err, ERR_FORMAT, "only one exponent for all elements is supported");
    double number = host_number(power, 0);
    if (number == 0.5)
        return onnx_bind(im, node, 0, apply(im, node, NULL, x, FUNCTION_SQRT, 0, err), err);
    if (number == -1)
        return onnx_bind(im, node, 0, apply(im, node, NULL, x, FUNCTION_RECIPROCAL, 0, err), err);
    if (number != 1 && number != 2 && number != 3)
        return onnx_bind(im, node, 0, apply(im, node, NULL, x, FUNCTION_POWER, (float)number, err),
                         err);
    value_id y = x;
    for (int i = 1; i < (int)number; i++) {
        const char *suffix = i + 1 < (int)number ? ".square" : NULL;
        y = onnx_add(im, node, suffix, OP_MUL, (value_id[]){ y, x }, 2, NULL, err);
        if (y == NO_VALUE)
            return false;
    }
    return onnx_bind(im, node, 0, y, err);
}

static value_id pair(struct onnx_import *im, onnx_node *node, const char *suffix, enum op_kind kind,
                     value_id a, value_id b, struct err *err)
{
    if (a == NO_VALUE || b == NO_VALUE)
        return NO_VALUE;
    return onnx_add(im, node, suffix, kind, (value_id[]){ a, b }, 2, NULL, err);
}

static value_id single(struct onnx_import *im, onnx_node *node, const char *suffix,
                       enum op_kind kind, value_id x, struct err *err)
{
    return x == NO_VALUE ? NO_VALUE : onnx_add(im, node, suffix, kind, &x, 1, NULL, err);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which never overflows */
static value_id softplus(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                         struct err *err)
{
    value_id y = apply(im, node, ".abs", x, FUNCTION_ABS, 0, err);
    y = onnx_add_scale(im, node, ".minus", y, -1, 0, err);
    y = apply(im, node, ".exp", y, FUNCTION_EXP, 0, err);
    y = onnx_add_scale(im, node, ".one", y, 1, 1, err);
    y = apply(im, node, ".log", y, FUNCTION_LOG, 0, err);
    return pair(im, node, suffix, OP_ADD, single(im, node, ".above", OP_RELU, x, err), y, err);
}

bool onnx_softplus(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    return onnx_bind(im, node, 0, softplus(im, node, NULL, x, err), err);
}

bool onnx_mish(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    value_id gate = softplus(im, node, ".softplus", x, err);
    gate = single(im, node, ".gate", OP_TANH, gate, err);
    return onnx_bind(im, node, 0, pair(im, node, NULL, OP_MUL, x, gate, err), err);
}

/* gamma max(x, 0) + gamma alpha (exp(min(x, 0) / width) - 1) */
static bool exponential(struct onnx_import *im, onnx_node *node, double alpha, double gamma,
                        double width, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    value_id above = single(im, node, ".above", OP_RELU, x, err);
    value_id below = onnx_add_scale(im, node, ".minus", x, -1, 0, err);
    below = single(im, node, ".below", OP_RELU, below, err);
    below = onnx_add_scale(im, node, ".width", below, -1 / width, 0, err);
    below = apply(im, node, ".exp", below, FUNCTION_EXP, 0, err);
    below = onnx_add_scale(im, node, ".alpha", below, gamma * alpha, -gamma * alpha, err);
    above = gamma == 1 ? above : onnx_add_scale(im, node, ".gamma", above, gamma, 0, err);
    return onnx_bind(im, node, 0, pair(im, node, NULL, OP_ADD, above, below, err), err);
}

bool onnx_elu(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return exponential(im, node, (double)onnx_float(node, "alpha", 1), 1, 1, err);
}

bool onnx_selu(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return exponential(im, node, (double)onnx_float(node, "alpha", 1.67326319f),
                       (double)onnx_float(node, "gamma", 1.05070102f), 1, err);
}

bool onnx_celu(struct onnx_import *im, onnx_node *node, struct err *err)
{
    double alpha = (double)onnx_float(node, "alpha", 1);
    if (!(fabs(alpha) > 1e-6))
        return err_set(err, ERR_FORMAT, "alpha %g is not supported", alpha);
    return exponential(im, node, alpha, 1, alpha, err);
}

/* max(a, b) = b + relu(a - b), min(a, b) = b - relu(b - a), of all inputs in turn */
static bool extreme(struct onnx_import *im, onnx_node *node, bool larger, struct err *err)
{
    value_id y = onnx_value(im, node, 0, err);
    for (size_t i = 1; y != NO_VALUE && i < node->n_input; i++) {
        value_id b = onnx_value(im, node, i, err);
        value_id more = larger ? pair(im, node, ".difference", OP_SUB, y, b, err)
                               : pair(im, node, ".difference", OP_SUB, b, y, err);
        more = single(im, node, ".more", OP_RELU, more, err);
        y = pair(im, node, i + 1 < node->n_input ? ".part" : NULL, larger ? OP_ADD : OP_SUB, b,
                 more, err);
    }
    return onnx_bind(im, node, 0, y, err);
}

bool onnx_max(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return extreme(im, node, true, err);
}

bool onnx_min(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return extreme(im, node, false, err);
}
