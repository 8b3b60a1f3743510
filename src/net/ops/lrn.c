/* lrn.c: local response normalisation across channels. */
#include "net/ops/ops.h"

#define ATTR_STRUCT struct lrn_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_INT, size, 1, 1, ATTR_LIMIT),
    FIELD(ATTR_REAL, alpha, 1, 0, 1e6),
    FIELD(ATTR_REAL, beta, 1, 0, 1e3),
    FIELD(ATTR_REAL, bias, 1, 0, 1e6),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool lrn_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                      struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    *out = *in[0];
    return shape_is_image(in[0], err);
}

const struct op op_lrn = {
    .kind = OP_LRN,
    .name = "lrn",
    .onnx = "LRN",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = lrn_shape,
};
