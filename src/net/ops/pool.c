/* pool.c: max and average pooling of images: sliding, global, adaptive. */
#include "net/ops/ops.h"

#define ATTR_STRUCT struct pool_attr
#define WINDOW_FIELDS                                                                              \
    FIELD(ATTR_INT, kernel, 2, 1, ATTR_LIMIT), FIELD(ATTR_INT, stride, 2, 1, ATTR_LIMIT),          \
        FIELD(ATTR_INT, pad, SIDES, 0, ATTR_LIMIT), FIELD(ATTR_INT, dilation, 2, 1, ATTR_LIMIT),   \
        FIELD(ATTR_BOOL, ceil_mode, 1, 0, 1)
static const struct attr_field max_fields[] = { WINDOW_FIELDS, { .name = NULL } };
static const struct attr_field average_fields[] = { WINDOW_FIELDS,
                                                    FIELD(ATTR_BOOL, count_include_pad, 1, 0, 1),
                                                    { .name = NULL } };
#undef ATTR_STRUCT

#define ATTR_STRUCT struct adaptive_attr
static const struct attr_field adaptive_fields[] = { FIELD(ATTR_INT, size, 2, 1, ATTR_LIMIT),
                                                     { .name = NULL } };
#undef ATTR_STRUCT

static void complete(union attr *attr)
{
    complete_ones(attr->pool.stride, 2);
    complete_ones(attr->pool.dilation, 2);
}

static bool window_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct pool_attr *a = &attr->pool;
    char text[SHAPE_TEXT];
    if (!shape_is_image(in[0], err))
        return false;
    *out = *in[0];
    for (int i = 0; i < 2; i++) {
        int64_t reach = a->dilation[i] * (a->kernel[i] - 1);
        if (a->pad[i] > reach || a->pad[2 + i] > reach)
            return err_set(err, ERR_FORMAT, "the padding leaves windows without any input");
        out->dim[2 + i] = window_extent(in[0]->dim[2 + i], a->kernel[i], a->stride[i], a->pad[i],
                                        a->pad[2 + i], a->dilation[i], a->ceil_mode);
        if (out->dim[2 + i] < 1)
            return err_set(err, ERR_FORMAT, "the input is %s; the window does not fit into it",
                           shape_text(in[0], text));
    }
    return true;
}

static bool global_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    if (!shape_is_image(in[0], err))
        return false;
    *out = SHAPE(in[0]->dim[0], in[0]->dim[1], 1, 1);
    return true;
}

static bool adaptive_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                           struct shape *out, struct err *err)
{
    (void)n_inputs;
    if (!shape_is_image(in[0], err))
        return false;
    *out = SHAPE(in[0]->dim[0], in[0]->dim[1], attr->adaptive.size[0], attr->adaptive.size[1]);
    return true;
}

const struct op op_max_pool = {
    .kind = OP_MAX_POOL,
    .name = "max_pool",
    .onnx = "MaxPool",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = max_fields,
    .complete = complete,
    .shape = window_shape,
};

const struct op op_average_pool = {
    .kind = OP_AVERAGE_POOL,
    .name = "average_pool",
    .onnx = "AveragePool",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = average_fields,
    .complete = complete,
    .shape = window_shape,
};

const struct op op_global_max_pool = {
    .kind = OP_GLOBAL_MAX_POOL,
    .name = "global_max_pool",
    .onnx = "GlobalMaxPool",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = global_shape,
};

const struct op op_global_average_pool = {
    .kind = OP_GLOBAL_AVERAGE_POOL,
    .name = "global_average_pool",
    .onnx = "GlobalAveragePool",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = global_shape,
};

const struct op op_adaptive_average_pool = {
    .kind = OP_ADAPTIVE_AVERAGE_POOL,
    .name = "adaptive_average_pool",
    .onnx = NULL,
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = adaptive_fields,
    .shape = adaptive_shape,
};
