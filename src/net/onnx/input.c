/* input.c: the inputs of the model as inputs of the graph. Images enter as floats [N, C, H, W];
 * where the file wants them with the channels last, or as bytes, nodes that make them so follow the
 * input. */
#include "net/onnx/import.h"

/* Images are at least so large: a map [N, 2048, 3, 3] is none with the channels last. */
#define SMALLEST_SIDE 16

static bool is_open(const Onnx__TensorShapeProto__Dimension *dim)
{
    return dim->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
           dim->dim_value < 1;
}

/* [N, H, W, 3] */
static bool has_channels_last(const Onnx__TensorShapeProto *dims)
{
    if (dims->n_dim != 4 || is_open(dims->dim[3]) || dims->dim[3]->dim_value != 3)
        return false;
    for (int i = 1; i < 3; i++)
        if (!is_open(dims->dim[i]) && dims->dim[i]->dim_value < SMALLEST_SIDE)
            return false;
    return true;
}

static bool is_float(int type)
{
    return type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
           type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
           type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
           type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
}

/* The extent of an axis, or what the options say where the file leaves it open. row: the axis of
 * the height of an image; 0: it is none. */
static bool extent_of(struct onnx_import *im, const char *name,
                      const Onnx__TensorShapeProto__Dimension *dim, int axis, int row, int64_t *out,
                      struct err *err)
{
    const struct onnx_options *options = im->options;
    int64_t given = axis == 0                ? im->batch
                    : row && axis == row     ? options->height
                    : row && axis == row + 1 ? options->width
                                             : 0;
    if (!is_open(dim)) {
        *out = dim->dim_value;
        return true;
    }
    if (given < 1)
        return err_set(err, ERR_MISSING,
                       "%s: the input '%.200s' leaves the size of axis %d open; specify it",
                       im->path, name, axis);
    im->open_batch = im->open_batch || axis == 0;
    *out = given;
    return true;
}

/* The input as the nodes of the file read it. */
static bool convert_image(struct onnx_import *im, struct onnx_name *name, bool bytes, bool last,
                          struct err *err)
{
    char *text = (char *)name->text;
    Onnx__NodeProto carrier = ONNX__NODE_PROTO__INIT;
    carrier.n_output = 1;
    carrier.output = &text;
    if (bytes)
        name->value = onnx_add_scale(im, &carrier, ".bytes", name->value, 255, 0, err);
    union attr attr = { .transpose = { 4, { 0, 2, 3, 1 } } };
    if (last && name->value != NO_VALUE)
        name->value =
            onnx_add(im, &carrier, ".channels_last", OP_TRANSPOSE, &name->value, 1, &attr, err);
    return name->value != NO_VALUE || err_prefix(err, im->path);
}

static bool check_input(const struct onnx_import *im, const struct onnx_name *name,
                        const Onnx__TypeProto *type, struct err *err)
{
    if (name->producer >= 0 || name->value != NO_VALUE)
        return err_set(err, ERR_FORMAT, "%s: the name '%.200s' is used twice", im->path,
                       name->text);
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type ||
        !type->tensor_type->shape)
        return err_set(err, ERR_FORMAT, "%s: the input '%.200s' is not a tensor with a shape",
                       im->path, name->text);
    if (type->tensor_type->shape->n_dim > SHAPE_DIMS)
        return err_set(err, ERR_FORMAT, "%s: the input '%.200s' has more than %d axes", im->path,
                       name->text, SHAPE_DIMS);
    return true;
}

bool onnx_add_input(struct onnx_import *im, const Onnx__ValueInfoProto *info, struct err *err)
{
    struct onnx_name *name = onnx_name_find(im, info->name);
    const Onnx__TypeProto *type = info->type;
    if (!name || name->tensor || name->bound || !name->n_uses)
        return true;
    if (!check_input(im, name, type, err))
        return false;
    const Onnx__TensorShapeProto *dims = type->tensor_type->shape;
    bool last = !im->options->as_stored && has_channels_last(dims);
    bool bytes = !im->options->as_stored && dims->n_dim == 4 &&
                 type->tensor_type->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
    if (!bytes && !is_float(type->tensor_type->elem_type))
        return err_set(
            err, ERR_FORMAT,
            "%s: the input '%.200s' is not a float tensor; it must be bound to a constant",
            im->path, name->text);
    struct shape shape = { .rank = (int)dims->n_dim };
    for (int i = 0; i < shape.rank; i++)
        if (!extent_of(im, name->text, dims->dim[i], i,
                       shape.rank != 4 ? 0
                       : last          ? 1
                                       : 2,
                       &shape.dim[i], err))
            return false;
    if (last)
        shape = SHAPE(shape.dim[0], shape.dim[3], shape.dim[1], shape.dim[2]);
    name->value = graph_input(im->graph, name->text, shape);
    if (name->value == NO_VALUE)
        return err_set(err, im->graph->err.kind, "%s: %s", im->path, im->graph->err.text);
    return convert_image(im, name, bytes, last, err);
}
