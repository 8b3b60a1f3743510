/* quantize.c: tensors of 8-bit integers. What QuantizeLinear gives is a value that the graph has
 * stored as int8, and DequantizeLinear of it is that value: in the graph it stands for its numbers.
 * So nothing but DequantizeLinear may read the integers. Constants become floats (fold). */
#include <string.h>
#include "net/onnx/fold.h"

#define TYPE(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

/* The type of the integers: that of the zero point, else what QuantizeLinear's attribute says, else
 * `otherwise`. */
static int type_of(onnx_node *node, const struct host *zero_point, int otherwise)
{
    int64_t said = onnx_int(node, "output_dtype", 0);
    return zero_point ? zero_point->element : said ? (int)said : otherwise;
}

/* How a node's scale and zero point store numbers. uint8 is int8 with another zero point: both
 * stand for the same numbers. */
static bool storage_of(struct onnx_import *im, onnx_node *node, int otherwise, struct storage *out,
                       int *type, struct err *err)
{
    const struct host *scale = onnx_constant(im, node, 1, "the scale", err);
    const struct host *zero_point = NULL;
    if (!scale)
        return false;
    if (onnx_has(node, 2) && !(zero_point = onnx_constant(im, node, 2, "the zero point", err)))
        return false;
    if (scale->count != 1 || (zero_point && zero_point->count != 1))
        return err_set(err, ERR_FORMAT,
                       "activations with several scales are not supported: one for the whole "
                       "tensor is");
    *type = type_of(node, zero_point, otherwise);
    if (*type != TYPE(INT8) && *type != TYPE(UINT8))
        return err_set(err, ERR_FORMAT, "only int8 and uint8 are supported");
    int64_t zero = zero_point ? zero_point->ints[0] : 0;
    *out = (struct storage){ DTYPE_INT8, host_float(scale, 0),
                             *type == TYPE(UINT8) ? zero - 128 : zero };
    return true;
}

/* Whether all that reads output 0 is DequantizeLinear. */
static bool only_dequantized(const struct onnx_import *im, onnx_node *node, struct err *err)
{
    int32_t dequantized = 0;
    if (node->n_output != 1)
        return err_set(err, ERR_FORMAT, "one output is needed");
    for (size_t i = 0; i < im->proto->n_node; i++) {
        onnx_node *user = im->proto->node[i];
        for (size_t k = 0; k < user->n_input; k++)
            if (strcmp(user->input[k], node->output[0]) == 0) {
                if (k > 0 || !user->op_type || strcmp(user->op_type, "DequantizeLinear") != 0)
                    return err_set(err, ERR_FORMAT,
                                   "its integers are read by '%.100s'; only DequantizeLinear may",
                                   user->op_type ? user->op_type : "");
                dequantized++;
            }
    }
    const struct onnx_name *name = onnx_name_find(im, node->output[0]);
    return (name && name->n_uses == dequantized) ||
           err_set(err, ERR_FORMAT, "its integers are an output of the network; only floats may");
}

bool onnx_quantize(struct onnx_import *im, onnx_node *node, struct err *err)
{
    union attr attr = { .convert = { 0 } };
    int type;
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE || !storage_of(im, node, TYPE(UINT8), &attr.convert, &type, err) ||
        !only_dequantized(im, node, err))
        return false;
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_CONVERT, &x, 1, &attr, err), err);
}

bool onnx_dequantize(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct storage made, read;
    int type = 0, read_type;
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    const struct onnx_name *name = onnx_name_find(im, node->input[0]);
    onnx_node *maker = name && name->producer >= 0 ? im->proto->node[name->producer] : NULL;
    if (!maker || !maker->op_type || strcmp(maker->op_type, "QuantizeLinear") != 0)
        return err_set(err, ERR_FORMAT,
                       "its input is neither a constant nor the output of QuantizeLinear");
    if (!storage_of(im, maker, TYPE(UINT8), &made, &type, err) ||
        !storage_of(im, node, type, &read, &read_type, err))
        return false;
    if (type != read_type || !storage_equal(&made, &read))
        return err_set(err, ERR_FORMAT, "its scale or zero point is not that of '%.100s'",
                       maker->name ? maker->name : "");
    return onnx_bind(im, node, 0, x, err);
}

struct host *fold_dequantize(const struct fold_args *args)
{
    const struct host *x = args->in[0], *scale = args->n > 1 ? args->in[1] : NULL;
    const struct host *zero = args->n > 2 ? args->in[2] : NULL;
    int axis = axis_of(onnx_int(args->node, "axis", 1), x->shape.rank);
    if (!scale || scale->type != HOST_FLOAT || x->type != HOST_INT ||
        (zero && (zero->type != HOST_INT || zero->count != scale->count)))
        return fold_fail(args, "integers, and as many zero points as scales, are needed");
    bool along = scale->count != 1; /* one scale for each index of an axis */
    if (onnx_int(args->node, "block_size", 0) ||
        (along && (axis < 0 || scale->shape.rank != 1 || x->shape.dim[axis] != scale->count)))
        return fold_fail(args, "the scales do not fit the axis");
    int64_t inner = along ? shape_span(&x->shape, axis + 1, x->shape.rank) : 1;
    struct host *host = onnx_host_new(args->im, HOST_FLOAT, x->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t k = along ? i / inner % scale->count : 0;
        double whole = (double)x->ints[i] - (zero ? (double)zero->ints[k] : 0);
        host->floats[i] = (float)whole * scale->floats[k];
    }
    if (host && x->origin) /* a weight of the file, under the name of its floats */
        host->origin = args->node->output[0];
    return host;
}
