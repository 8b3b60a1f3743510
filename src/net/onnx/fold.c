/* fold.c: computations done during import: constants, shapes, and arithmetic on them, as exported
 * by PyTorch for views and dynamic sizes. */
#include "net/onnx/fold.h"
#include <string.h>

struct host *fold_fail(const struct fold_args *args, const char *fact)
{
    err_set(args->err, ERR_FORMAT, "%s", fact);
    return NULL;
}

static struct host *fold_constant(const struct fold_args *args)
{
    const Onnx__AttributeProto *value = onnx_attribute(args->node, "value");
    if (value && value->t)
        return host_from_proto(value->t, args->err);
    const Onnx__AttributeProto *ints = onnx_attribute(args->node, "value_ints");
    const Onnx__AttributeProto *floats = onnx_attribute(args->node, "value_floats");
    const Onnx__AttributeProto *one_int = onnx_attribute(args->node, "value_int");
    const Onnx__AttributeProto *one_float = onnx_attribute(args->node, "value_float");
    const Onnx__AttributeProto *list = ints ? ints : floats;
    if (!list && !one_int && !one_float)
        return fold_fail(args, "the constant is not a tensor of numbers");
    struct shape shape = { list ? 1 : 0,
                           { list ? (int64_t)(ints ? ints->n_ints : floats->n_floats) : 0 } };
    struct host *host =
        onnx_host_new(args->im, ints || one_int ? HOST_INT : HOST_FLOAT, shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++)
        if (host->type == HOST_INT)
            host->ints[i] = ints ? ints->ints[i] : one_int->i;
        else
            host->floats[i] = floats ? floats->floats[i] : one_float->f;
    return host;
}

static struct host *fold_constant_of_shape(const struct fold_args *args)
{
    const Onnx__AttributeProto *value = onnx_attribute(args->node, "value");
    struct shape shape = { .rank = args->in[0] ? (int)args->in[0]->count : 0 };
    struct host *element = NULL;
    if (!args->in[0] || args->in[0]->type != HOST_INT || args->in[0]->count > SHAPE_DIMS)
        return fold_fail(args, "the shape is not a list of at most 6 whole numbers");
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = args->in[0]->ints[i];
    if (value && value->t) {
        element = host_from_proto(value->t, args->err);
        if (!element)
            return NULL;
        if (element->count != 1) {
            host_free(element);
            return fold_fail(args, "the value is not one number");
        }
    }
    struct host *host =
        onnx_host_new(args->im, element ? element->type : HOST_FLOAT, shape, args->err);
    for (int64_t i = 0; host && element && i < host->count; i++)
        host_copy(host, i, element, 0);
    host_free(element);
    return host;
}

static const struct {
    const char *type;
    fold_fn fn;
} folds[] = {
    { "Constant", fold_constant },
    { "ConstantOfShape", fold_constant_of_shape },
    { "Identity", fold_identity },
    { "Cast", fold_cast },
    { "DequantizeLinear", fold_dequantize },
    { "Add", fold_add },
    { "Sub", fold_sub },
    { "Mul", fold_mul },
    { "Div", fold_div },
    { "Min", fold_min },
    { "Max", fold_max },
    { "Pow", fold_pow },
    { "Mod", fold_mod },
    { "Equal", fold_equal },
    { "Neg", fold_neg },
    { "Sqrt", fold_sqrt },
    { "Exp", fold_exp },
    { "Log", fold_log },
    { "Sin", fold_sin },
    { "Cos", fold_cos },
    { "Erf", fold_erf },
    { "Reciprocal", fold_reciprocal },
    { "Floor", fold_floor },
    { "Ceil", fold_ceil },
    { "Where", fold_where },
    { "Range", fold_range },
    { "ReduceProd", fold_reduce_prod },
    { "Not", fold_not },
    { "IsNaN", fold_is_nan },
    { "Less", fold_less },
    { "LessOrEqual", fold_at_most },
    { "Greater", fold_greater },
    { "GreaterOrEqual", fold_at_least },
    { "And", fold_and },
    { "Or", fold_or },
    { "Xor", fold_xor },
    { "Clip", fold_clip },
    { "CumSum", fold_cum_sum },
    { "ReduceMean", fold_reduce_mean },
    { "ReduceSum", fold_reduce_sum },
    { "ReduceSumSquare", fold_reduce_sum_square },
    { "ReduceL2", fold_reduce_l2 },
    { "ReduceMax", fold_reduce_max },
    { "ReduceMin", fold_reduce_min },
    { "BatchNormalization", fold_batch_norm },
    { "ScatterND", fold_scatter_nd },
    { "GatherND", fold_gather_nd },
    { "GatherElements", fold_gather_elements },
    { "Pad", fold_pad },
    { "OneHot", fold_one_hot },
    { "Trilu", fold_trilu },
    { "NonZero", fold_non_zero },
    { "Resize", fold_resize },
    { "Flatten", fold_flatten },
    { "Abs", fold_abs },
    { "Tanh", fold_tanh },
    { "Sigmoid", fold_sigmoid },
    { "Relu", fold_relu },
    { "Round", fold_round },
    { "Reshape", fold_reshape },
    { "Squeeze", fold_squeeze },
    { "Unsqueeze", fold_unsqueeze },
    { "Transpose", fold_transpose },
    { "Concat", fold_concat },
    { "Slice", fold_slice },
    { "Gather", fold_gather },
    { "Expand", fold_expand },
    { "Tile", fold_tile },
};

static fold_fn find(const char *type)
{
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (strcmp(folds[i].type, type) == 0)
            return folds[i].fn;
    return NULL;
}

/* The shape of input 0, known or not. */
static bool shape_of_input(struct onnx_import *im, onnx_node *node, struct shape *shape,
                           bool *activation, struct err *err)
{
    struct onnx_name *name = onnx_has(node, 0) ? onnx_name_find(im, node->input[0]) : NULL;
    if (!name)
        return err_set(err, ERR_FORMAT, "the input is missing");
    *activation = false;
    if (name->value != NO_VALUE) {
        *shape = *onnx_shape(im, name->value);
        *activation = !graph_is_parameter(im->graph, name->value);
        return true;
    }
    const struct host *host = onnx_constant(im, node, 0, "the input", err);
    if (!host)
        return false;
    *shape = host->shape;
    return true;
}

/* Shape (a part of it from opset 15 on) and Size. */
static struct host *fold_shape(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct shape shape;
    bool activation = false;
    if (!shape_of_input(im, node, &shape, &activation, err))
        return NULL;
    bool size = strcmp(node->op_type, "Size") == 0;
    int64_t rank = shape.rank;
    int64_t begin = onnx_int(node, "start", 0), end = onnx_int(node, "end", rank);
    begin = begin < -rank ? 0 : begin < 0 ? begin + rank : begin > rank ? rank : begin;
    end = end < -rank ? 0 : end < 0 ? end + rank : end > rank ? rank : end;
    int64_t count = size ? 1 : end > begin ? end - begin : 0;
    struct host *host = onnx_host_new(
        im, HOST_INT, size ? (struct shape){ 0 } : (struct shape){ 1, { count } }, err);
    for (int64_t i = 0; host && i < count; i++)
        host->ints[i] = size ? shape_count(&shape) : shape.dim[begin + i];
    if (host)
        host->from_shape = activation;
    return host;
}

bool onnx_fold(struct onnx_import *im, onnx_node *node, bool *done, struct err *err)
{
    const char *type = node->op_type ? node->op_type : "";
    *done = strcmp(type, "Shape") == 0 || strcmp(type, "Size") == 0;
    if (*done)
        return onnx_bind_host(im, node, 0, fold_shape(im, node, err), err) || err_prefix(err, type);
    fold_fn fn = find(type);
    struct fold_args args = { .im = im, .node = node, .n = (int)node->n_input, .err = err };
    bool split = strcmp(type, "Split") == 0;
    if ((!fn && !split) || node->n_input > FOLD_INPUTS || node->n_output < 1)
        return true;
    for (size_t i = 1; i < node->n_output && !split; i++)
        if (onnx_wanted(im, node, i))
            return true;
    bool from_shape = false;
    for (int i = 0; i < args.n; i++) {
        struct onnx_name *name = onnx_name_find(im, node->input[i]);
        if (!name)
            continue;
        args.in[i] = onnx_name_host(im, name, NULL);
        if (!args.in[i])
            return true;
        from_shape = from_shape || args.in[i]->from_shape;
    }
    if (!args.in[0] && fn != fold_constant)
        return true;
    if (fn == fold_expand && args.in[0]->type == HOST_FLOAT && args.n > 1 && args.in[1] &&
        args.in[1]->from_shape)
        return true; /* to every image of a batch: that stays a node */
    *done = true;
    if (split)
        return fold_split(&args, from_shape) || err_prefix(err, type);
    struct host *host = fn(&args);
    if (host)
        host->from_shape = from_shape;
    return onnx_bind_host(im, node, 0, host, err) || err_prefix(err, type);
}
