/* arithmetic.c: sums and products. A constant of one element is a factor or an offset. */
#include <math.h>
#include "net/onnx/import.h"

/* Before opset 7 the right side may begin at an axis of the left one ("broadcast", "axis"). */
static value_id aligned(struct onnx_import *im, onnx_node *node, value_id a, value_id b,
                        struct err *err)
{
    struct shape left = *onnx_shape(im, a), right = *onnx_shape(im, b);
    if (im->opset >= 7 || !onnx_int(node, "broadcast", 0) || !onnx_attribute(node, "axis"))
        return b;
    int axis = axis_of(onnx_int(node, "axis", 0), left.rank);
    if (axis < 0 || axis + right.rank > left.rank) {
        err_set(err, ERR_FORMAT, "the second input does not fit axis %lld of the first",
                (long long)onnx_int(node, "axis", 0));
        return NO_VALUE;
    }
    if (axis + right.rank == left.rank)
        return b;
    struct shape target = { left.rank - axis, { 0 } };
    for (int i = 0; i < target.rank; i++)
        target.dim[i] = i < right.rank ? right.dim[i] : 1;
    return onnx_add(im, node, ".aligned", OP_RESHAPE, &b, 1, &(union attr){ .reshape = { target } },
                    err);
}

/* Input i is one known number that does not change the shape of the other input. */
static bool is_number(struct onnx_import *im, onnx_node *node, size_t i, value_id other,
                      double *out)
{
    const struct host *host = onnx_known(im, node, i, NULL);
    if (!host || host->count != 1 || other == NO_VALUE ||
        host->shape.rank > onnx_shape(im, other)->rank || graph_is_parameter(im->graph, other))
        return false;
    *out = host_number(host, 0);
    return fabs(*out) < 1e30;
}

static bool is_known(struct onnx_import *im, onnx_node *node, size_t i)
{
    return onnx_known(im, node, i, NULL) != NULL;
}

/* kind with a number on one side, as factor x + offset; false if that is not so. */
static bool as_scale(struct onnx_import *im, onnx_node *node, enum op_kind kind, value_id *x,
                     double *factor, double *offset)
{
    double number;
    struct err ignored;
    bool right = is_known(im, node, 1) && !is_known(im, node, 0);
    bool left = is_known(im, node, 0) && !is_known(im, node, 1);
    if (!right && !left)
        return false;
    *x = onnx_value(im, node, right ? 0 : 1, &ignored);
    if (!is_number(im, node, right ? 1 : 0, *x, &number))
        return false;
    *factor = 1, *offset = 0;
    if (kind == OP_ADD)
        *offset = number;
    else if (kind == OP_SUB && right)
        *offset = -number;
    else if (kind == OP_SUB)
        *factor = -1, *offset = number;
    else if (kind == OP_MUL)
        *factor = number;
    else if (kind == OP_DIV && right && fabs(number) > 1e-30)
        *factor = 1 / number;
    else
        return false;
    return true;
}

static bool binary(struct onnx_import *im, onnx_node *node, enum op_kind kind, struct err *err)
{
    value_id x;
    double factor, offset;
    if (as_scale(im, node, kind, &x, &factor, &offset))
        return onnx_bind(im, node, 0, onnx_add_scale(im, node, NULL, x, factor, offset, err), err);
    value_id inputs[2] = { onnx_value(im, node, 0, err) };
    inputs[1] = inputs[0] == NO_VALUE ? NO_VALUE : onnx_value(im, node, 1, err);
    if (inputs[1] == NO_VALUE)
        return false;
    inputs[1] = aligned(im, node, inputs[0], inputs[1], err);
    if (inputs[1] == NO_VALUE)
        return false;
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, kind, inputs, 2, NULL, err), err);
}

bool onnx_add_op(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return binary(im, node, OP_ADD, err);
}

bool onnx_sub_op(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return binary(im, node, OP_SUB, err);
}

bool onnx_mul_op(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return binary(im, node, OP_MUL, err);
}

bool onnx_div_op(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return binary(im, node, OP_DIV, err);
}

bool onnx_neg(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    return onnx_bind(im, node, 0, onnx_add_scale(im, node, NULL, x, -1, 0, err), err);
}

bool onnx_sum(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id sum = onnx_value(im, node, 0, err);
    for (size_t i = 1; sum != NO_VALUE && i < node->n_input; i++) {
        value_id next = onnx_value(im, node, i, err);
        if (next == NO_VALUE)
            return false;
        const char *suffix = i + 1 < node->n_input ? ".part" : NULL;
        sum = onnx_add(im, node, suffix, OP_ADD, (value_id[]){ sum, next }, 2, NULL, err);
    }
    return onnx_bind(im, node, 0, sum, err);
}
