/* activation.c: functions of one element. */
#include "net/ops/ops.h"

static const struct attr_field leaky_fields[] = {
    { .name = "slope",
      .type = ATTR_REAL,
      .offset = offsetof(struct leaky_attr, slope),
      .count = 1,
      .min = -1e6,
      .max = 1e6 },
    { .name = NULL },
};

static const struct attr_field gelu_fields[] = {
    { .name = "tanh_form",
      .type = ATTR_BOOL,
      .offset = offsetof(struct gelu_attr, tanh_form),
      .count = 1,
      .min = 0,
      .max = 1 },
    { .name = NULL },
};

#define ACTIVATION(kind_, name_, onnx_, fields_)                                                   \
    {                                                                                              \
        .kind = kind_, .name = name_, .onnx = onnx_, .min_inputs = 1, .max_inputs = 1,             \
        .fields = fields_, .shape = shape_same                                                     \
    }

const struct op op_relu = ACTIVATION(OP_RELU, "relu", "Relu", NULL);
const struct op op_leaky_relu = ACTIVATION(OP_LEAKY_RELU, "leaky_relu", "LeakyRelu", leaky_fields);
const struct op op_silu = ACTIVATION(OP_SILU, "silu", NULL, NULL);
const struct op op_gelu = ACTIVATION(OP_GELU, "gelu", NULL, gelu_fields);
const struct op op_sigmoid = ACTIVATION(OP_SIGMOID, "sigmoid", "Sigmoid", NULL);
const struct op op_tanh = ACTIVATION(OP_TANH, "tanh", "Tanh", NULL);
