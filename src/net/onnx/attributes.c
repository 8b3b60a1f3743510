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

static const char *const type_names[] = { "nothing", "FLOAT",  "INT",  "STRING", "TENSOR",
                                          "GRAPH",   "FLOATS", "INTS", "STRINGS" };
enum { NOTHING, FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, KNOWN_TYPES };

/* The attributes that are read anywhere, of the same type in every operator that has them (but see
 * expected_type). */
static const struct {
    const char *name;
    int type;
} known[] = {
    { "allowzero", INT },
    { "alpha", FLOAT },
    { "antialias", INT },
    { "approximate", STRING },
    { "auto_pad", STRING },
    { "axes", INTS },
    { "axis", INT },
    { "batch_dims", INT },
    { "beta", FLOAT },
    { "bias", FLOAT },
    { "block_size", INT },
    { "blocksize", INT },
    { "broadcast", INT },
    { "ceil_mode", INT },
    { "coordinate_transformation_mode", STRING },
    { "count_include_pad", INT },
    { "cubic_coeff_a", FLOAT },
    { "dilations", INTS },
    { "end", INT },
    { "ends", INTS },
    { "epsilon", FLOAT },
    { "equation", STRING },
    { "exclude_outside", INT },
    { "exclusive", INT },
    { "fmod", INT },
    { "gamma", FLOAT },
    { "group", INT },
    { "is_causal", INT },
    { "is_test", INT },
    { "keep_aspect_ratio_policy", STRING },
    { "keepdims", INT },
    { "kernel_shape", INTS },
    { "kv_num_heads", INT },
    { "max", FLOAT },
    { "min", FLOAT },
    { "mode", STRING },
    { "momentum", FLOAT },
    { "nearest_mode", STRING },
    { "noop_with_empty_axes", INT },
    { "num_groups", INT },
    { "output_dtype", INT },
    { "output_padding", INTS },
    { "output_shape", INTS },
    { "paddings", INTS },
    { "pads", INTS },
    { "perm", INTS },
    { "q_num_heads", INT },
    { "ratio", FLOAT },
    { "reduction", STRING },
    { "reverse", INT },
    { "scale", FLOAT },
    { "scales", FLOATS },
    { "shape", INTS },
    { "size", INT },
    { "softcap", FLOAT },
    { "spatial", INT },
    { "split", INTS },
    { "start", INT },
    { "starts", INTS },
    { "storage_order", INT },
    { "strides", INTS },
    { "to", INT },
    { "training_mode", INT },
    { "transA", INT },
    { "transB", INT },
    { "upper", INT },
    { "value", TENSOR },
    { "value_float", FLOAT },
    { "value_floats", FLOATS },
    { "value_int", INT },
    { "value_ints", INTS },
};

/* NOTHING: it is not read. */
static int expected_type(onnx_node *node, const char *name)
{
    if (node->op_type && strcmp(node->op_type, "Pad") == 0 && strcmp(name, "value") == 0)
        return FLOAT;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].type;
    return NOTHING;
}

/* What it holds, whatever it says: NOTHING also for a zero. */
static int held_type(const Onnx__AttributeProto *a)
{
    return a->i           ? INT
           : a->f != 0    ? FLOAT
           : a->s.len     ? STRING
           : a->n_ints    ? INTS
           : a->n_floats  ? FLOATS
           : a->n_strings ? STRINGS
           : a->t         ? TENSOR
           : a->g         ? GRAPH
                          : NOTHING;
}

bool onnx_attributes_check(onnx_node *node, struct err *err)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        int expected = a->name ? expected_type(node, a->name) : NOTHING;
        int held = held_type(a), said = a->has_type ? (int)a->type : NOTHING;
        if (expected == NOTHING)
            continue;
        /* files of the first version do not say it, but hold even a zero */
        bool unsaid = said == NOTHING &&
                      (held == expected || (held == NOTHING && ((expected == INT && a->has_i) ||
                                                                (expected == FLOAT && a->has_f))));
        if (unsaid || (said == expected && (held == expected || held == NOTHING)))
            continue;
        int wrong = said != expected && said != NOTHING ? said : held;
        return err_set(err, ERR_FORMAT, "%.80s: the attribute '%.80s' is %s; ONNX defines it as %s",
                       node->op_type ? node->op_type : "", a->name,
                       wrong >= 0 && wrong < KNOWN_TYPES ? type_names[wrong] : "of another type",
                       type_names[expected]);
    }
    return true;
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
