/* build.c: see build.h. */
#include "net/onnx/build.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void onnx_build_free(struct onnx_builder *b)
{
    for (size_t i = 0; i < b->n_kept; i++)
        free(b->kept[i]);
    free(b->kept);
    free(b->nodes);
    free(b->tensors);
}

/* Room for one more pointer in a list that grows by doubling. */
static bool grow(void ***list, size_t n)
{
    if (n & (n - 1))
        return true; /* not full: the room is the next power of two */
    void **larger = reallocarray(*list, n ? 2 * n : 1, sizeof *larger);
    if (larger)
        *list = larger;
    return larger != NULL;
}

static void *keep_pointer(struct onnx_builder *b, void *memory)
{
    if (!memory || !grow(&b->kept, b->n_kept)) {
        free(memory);
        if (b->err.kind == ERR_NONE)
            err_memory(&b->err, "the ONNX file");
        return NULL;
    }
    b->kept[b->n_kept++] = memory;
    return memory;
}

void *onnx_keep(struct onnx_builder *b, size_t bytes)
{
    return b->err.kind != ERR_NONE ? NULL : keep_pointer(b, calloc(1, bytes ? bytes : 1));
}

char *onnx_text(struct onnx_builder *b, const char *format, ...)
{
    static char nothing[] = "";
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    if (b->err.kind != ERR_NONE || vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    text = b->err.kind != ERR_NONE ? text : keep_pointer(b, text);
    return text ? text : nothing;
}

Onnx__NodeProto *onnx_emit(struct onnx_builder *b, const char *type, const char *name,
                           const char *const *inputs, size_t n_inputs, const char *output)
{
    Onnx__NodeProto *node = onnx_keep(b, sizeof *node);
    char **names = onnx_keep(b, (n_inputs + 1) * sizeof *names);
    void **list = (void **)b->nodes;
    if (!node || !names)
        return NULL;
    if (!grow(&list, b->n_nodes)) {
        err_memory(&b->err, "the ONNX file");
        return NULL;
    }
    b->nodes = (Onnx__NodeProto **)list;
    onnx__node_proto__init(node);
    for (size_t i = 0; i < n_inputs; i++)
        names[i] = onnx_text(b, "%s", inputs[i]);
    names[n_inputs] = onnx_text(b, "%s", output);
    node->input = names, node->n_input = n_inputs;
    node->output = names + n_inputs, node->n_output = 1;
    node->name = onnx_text(b, "%s", name);
    node->op_type = onnx_text(b, "%s", type);
    b->nodes[b->n_nodes++] = node;
    return node;
}

static Onnx__AttributeProto *add_attribute(struct onnx_builder *b, Onnx__NodeProto *node,
                                           const char *name,
                                           Onnx__AttributeProto__AttributeType type)
{
    enum { MOST = 8 };
    Onnx__AttributeProto *attribute = node ? onnx_keep(b, sizeof *attribute) : NULL;
    if (attribute && !node->attribute)
        node->attribute = onnx_keep(b, MOST * sizeof(void *));
    if (!attribute || !node->attribute || node->n_attribute == MOST)
        return NULL;
    onnx__attribute_proto__init(attribute);
    attribute->name = onnx_text(b, "%s", name);
    attribute->has_type = 1, attribute->type = type;
    node->attribute[node->n_attribute++] = attribute;
    return attribute;
}

void onnx_set_int(struct onnx_builder *b, Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (attribute)
        attribute->has_i = 1, attribute->i = value;
}

void onnx_set_float(struct onnx_builder *b, Onnx__NodeProto *node, const char *name, float value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (attribute)
        attribute->has_f = 1, attribute->f = value;
}

void onnx_set_text(struct onnx_builder *b, Onnx__NodeProto *node, const char *name,
                   const char *value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    if (!attribute)
        return;
    attribute->has_s = 1;
    attribute->s.data = (uint8_t *)onnx_text(b, "%s", value);
    attribute->s.len = strlen(value);
}

void onnx_set_ints(struct onnx_builder *b, Onnx__NodeProto *node, const char *name,
                   const int64_t *values, size_t n)
{
    Onnx__AttributeProto *attribute =
        add_attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *copy = onnx_keep(b, n * sizeof *copy);
    if (!attribute || !copy)
        return;
    memcpy(copy, values, n * sizeof *copy);
    attribute->ints = copy, attribute->n_ints = n;
}

/* An initializer over `bytes` of data that stay where they are. */
static const char *add_tensor(struct onnx_builder *b, const char *name, int type,
                              const int64_t *dims, size_t rank, const void *data, size_t bytes)
{
    Onnx__TensorProto *tensor = onnx_keep(b, sizeof *tensor);
    int64_t *copy = onnx_keep(b, rank * sizeof *copy);
    void **list = (void **)b->tensors;
    if (!tensor || !copy)
        return "";
    if (!grow(&list, b->n_tensors)) {
        err_memory(&b->err, "the ONNX file");
        return "";
    }
    b->tensors = (Onnx__TensorProto **)list;
    onnx__tensor_proto__init(tensor);
    for (size_t i = 0; i < rank; i++)
        copy[i] = dims[i];
    tensor->name = onnx_text(b, "%s", name);
    tensor->dims = copy, tensor->n_dims = rank;
    tensor->has_data_type = 1, tensor->data_type = type;
    tensor->has_raw_data = 1;
    tensor->raw_data.len = bytes;
    tensor->raw_data.data = (uint8_t *)(uintptr_t)data; /* only read */
    b->tensors[b->n_tensors++] = tensor;
    return tensor->name;
}

const char *onnx_weight(struct onnx_builder *b, const char *name, const struct shape *shape,
                        const float *floats)
{
    return add_tensor(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, shape->dim,
                      (size_t)shape->rank, floats, (size_t)shape_count(shape) * sizeof *floats);
}

const char *onnx_const_floats(struct onnx_builder *b, const char *name, const struct shape *shape,
                              const float *floats)
{
    size_t bytes = (size_t)shape_count(shape) * sizeof *floats;
    float *copy = onnx_keep(b, bytes);
    if (!copy)
        return "";
    memcpy(copy, floats, bytes);
    return onnx_weight(b, name, shape, copy);
}

const char *onnx_const_number(struct onnx_builder *b, const char *name, float value)
{
    struct shape scalar = { 0, { 0 } };
    return onnx_const_floats(b, name, &scalar, &value);
}

const char *onnx_const_ints(struct onnx_builder *b, const char *name, const int64_t *values,
                            size_t n)
{
    int64_t *copy = onnx_keep(b, n * sizeof *copy), count = (int64_t)n;
    if (!copy)
        return "";
    memcpy(copy, values, n * sizeof *copy);
    return add_tensor(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &count, 1, copy,
                      n * sizeof *copy);
}

const char *onnx_const_int8(struct onnx_builder *b, const char *name, int8_t value)
{
    int8_t *copy = onnx_keep(b, sizeof *copy);
    if (!copy)
        return "";
    *copy = value;
    return add_tensor(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT8, NULL, 0, copy, sizeof *copy);
}

Onnx__ValueInfoProto *onnx_value_info(struct onnx_builder *b, const char *name,
                                      const struct shape *shape, bool batch)
{
    Onnx__ValueInfoProto *info = onnx_keep(b, sizeof *info);
    Onnx__TypeProto *type = onnx_keep(b, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = onnx_keep(b, sizeof *tensor);
    Onnx__TensorShapeProto *dims = onnx_keep(b, sizeof *dims);
    Onnx__TensorShapeProto__Dimension *dim = onnx_keep(b, (size_t)shape->rank * sizeof *dim);
    Onnx__TensorShapeProto__Dimension **list = onnx_keep(b, (size_t)shape->rank * sizeof *list);
    if (!info || !type || !tensor || !dims || !dim || !list)
        return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(dims);
    for (int i = 0; i < shape->rank; i++) {
        list[i] = &dim[i];
        onnx__tensor_shape_proto__dimension__init(list[i]);
        list[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        list[i]->dim_value = shape->dim[i];
        if (batch && i == 0) {
            list[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            list[i]->dim_param = onnx_text(b, "batch");
        }
    }
    dims->dim = list, dims->n_dim = (size_t)shape->rank;
    tensor->has_elem_type = 1, tensor->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    tensor->shape = dims;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE, type->tensor_type = tensor;
    info->name = onnx_text(b, "%s", name), info->type = type;
    return info;
}
