/* reduce.c: means over axes, and softmax. */
#include "net/ops/ops.h"

#define ATTR_STRUCT struct reduce_attr
static const struct attr_field mean_fields[] = {
    FIELD(ATTR_BITS, axes, 1, 1, (1 << SHAPE_DIMS) - 1),
    FIELD(ATTR_BOOL, keep, 1, 0, 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct axis_attr
static const struct attr_field softmax_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool mean_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                       struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct shape *x = in[0];
    char text[SHAPE_TEXT];
    if (attr->reduce.axes >> x->rank)
        return err_set(err, ERR_FORMAT, "%s has no such axes", shape_text(x, text));
    struct shape y = { 0, { 0 } };
    for (int i = 0; i < x->rank; i++) {
        bool reduced = attr->reduce.axes >> i & 1;
        if (!reduced || attr->reduce.keep)
            y.dim[y.rank++] = reduced ? 1 : x->dim[i];
    }
    *out = y;
    return true;
}

static bool softmax_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                          struct shape *out, struct err *err)
{
    (void)n_inputs;
    char text[SHAPE_TEXT];
    if (axis_of(attr->axis.axis, in[0]->rank) < 0)
        return err_set(err, ERR_FORMAT, "axis %lld of %s", (long long)attr->axis.axis,
                       shape_text(in[0], text));
    *out = *in[0];
    return true;
}

const struct op op_reduce_mean = {
    .kind = OP_REDUCE_MEAN,
    .name = "reduce_mean",
    .onnx = "ReduceMean",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = mean_fields,
    .shape = mean_shape,
};

const struct op op_softmax = {
    .kind = OP_SOFTMAX,
    .name = "softmax",
    .onnx = "Softmax",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = softmax_fields,
    .shape = softmax_shape,
};
