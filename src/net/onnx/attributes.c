/* attributes.c: the attributes of a node, by name. */
#include <string.h>
#include "net/onnx/import.h"

const Onnx__AttributeProto *onnx_attribute(onnx_node *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && strcmp(node->attribute[i]->name, name) == 0)
            return node->attribute[i];
    return NULL;
}

int64_t onnx_int(onnx_node *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(node, name);
    return attribute ? attribute->i : otherwise;
}

float onnx_float(onnx_node *node, const char *name, float otherwise)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(node, name);
    return attribute ? attribute->f : otherwise;
}

int onnx_choice(onnx_node *node, const char *name, const char *const *choices, struct err *err)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(node, name);
    if (!attribute)
        return 0;
    for (int i = 0; choices[i]; i++)
        if (strlen(choices[i]) == attribute->s.len &&
            memcmp(choices[i], attribute->s.data, attribute->s.len) == 0)
            return i;
    int length = attribute->s.len < 80 ? (int)attribute->s.len : 80;
    err_set(err, ERR_FORMAT, "%s '%.*s' is not supported", name, length,
            attribute->s.data ? (const char *)attribute->s.data : "");
    return -1;
}

int onnx_int_list(onnx_node *node, const char *name, int64_t *out, int max, struct err *err)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(node, name);
    size_t n = attribute ? attribute->n_ints : 0;
    if (n > (size_t)max) {
        err_set(err, ERR_FORMAT, "%s has %zu entries; at most %d are supported", name, n, max);
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = attribute->ints[i];
    return (int)n;
}

bool onnx_axes(struct onnx_import *im, onnx_node *node, int64_t input_since, int rank,
               uint32_t *bits, bool *given, struct err *err)
{
    int64_t axes[SHAPE_DIMS];
    bool input = im->opset >= input_since && onnx_has(node, 1);
    int n = input ? onnx_ints(im, node, 1, "the list of axes", axes, SHAPE_DIMS, err)
                  : onnx_int_list(node, "axes", axes, SHAPE_DIMS, err);
    if (n < 0)
        return false;
    *bits = 0, *given = n > 0;
    for (int i = 0; i < n; i++) {
        int axis = axis_of(axes[i], rank);
        if (axis < 0)
            return no_axis(axes[i], rank, err);
        *bits |= 1u << axis;
    }
    return true;
}
