/* dropout.c: elements set to 0 at random while training, the others scaled up. */
#include "net/ops/ops.h"

#define ATTR_STRUCT struct dropout_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_REAL, rate, 1, 0, 0.999),
    { .name = NULL },
};
#undef ATTR_STRUCT

const struct op op_dropout = {
    .kind = OP_DROPOUT,
    .name = "dropout",
    .onnx = "Dropout",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = shape_same,
};
