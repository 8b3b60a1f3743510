/* arithmetic.c: sums, differences, products and quotients of two tensors, and of a tensor and a
 * number. */
#include "net/ops/ops.h"

#define ATTR_STRUCT struct scale_attr
static const struct attr_field scale_fields[] = {
    FIELD(ATTR_REAL, factor, 1, -1e30, 1e30),
    FIELD(ATTR_REAL, offset, 1, -1e30, 1e30),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool binary_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    if (!shape_broadcast(in[0], in[1], out))
        return err_set(err, ERR_FORMAT, "%s and %s do not fit together", shape_text(in[0], a),
                       shape_text(in[1], b));
    return true;
}

#define BINARY(kind_, name_, onnx_)                                                                \
    {                                                                                              \
        .kind = kind_, .name = name_, .onnx = onnx_, .min_inputs = 2, .max_inputs = 2,             \
        .shape = binary_shape                                                                      \
    }

const struct op op_add = BINARY(OP_ADD, "add", "Add");
const struct op op_sub = BINARY(OP_SUB, "sub", "Sub");
const struct op op_mul = BINARY(OP_MUL, "mul", "Mul");
const struct op op_div = BINARY(OP_DIV, "div", "Div");

const struct op op_scale = {
    .kind = OP_SCALE,
    .name = "scale",
    .onnx = NULL,
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = scale_fields,
    .shape = shape_same,
};
