/* view.c: the same elements under another shape or order. */
#include "net/ops/ops.h"

static const struct attr_field reshape_fields[] = {
    { .name = "target",
      .type = ATTR_SHAPE,
      .offset = offsetof(struct reshape_attr, target),
      .count = 1 },
    { .name = NULL },
};

#define ATTR_STRUCT struct axis_attr
static const struct attr_field flatten_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct transpose_attr
static const struct attr_field transpose_fields[] = {
    FIELD(ATTR_INT, order, SHAPE_DIMS, 0, SHAPE_DIMS - 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool reshape_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                          struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct shape *target = &attr->reshape.target;
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    struct shape y = *target;
    int64_t known = 1, count = shape_count(in[0]);
    int infer = -1;
    bool fits = y.rank >= 0 && y.rank <= SHAPE_DIMS;
    for (int i = 0; fits && i < y.rank; i++) {
        if (y.dim[i] == 0)
            y.dim[i] = i < in[0]->rank ? in[0]->dim[i] : -2;
        if (y.dim[i] == -1 && infer < 0)
            infer = i;
        else if (y.dim[i] < 1 || y.dim[i] > count / known)
            fits = false;
        else
            known *= y.dim[i];
    }
    if (fits && infer >= 0)
        y.dim[infer] = count / known;
    if (!fits || (infer >= 0 ? known * y.dim[infer] : known) != count)
        return err_set(err, ERR_FORMAT, "%s cannot take the shape %s", shape_text(in[0], a),
                       target->rank >= 0 && target->rank <= SHAPE_DIMS ? shape_text(target, b)
                                                                       : "(too many axes)");
    *out = y;
    return true;
}

static bool flatten_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                          struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct shape *x = in[0];
    int64_t axis = attr->axis.axis < 0 ? attr->axis.axis + x->rank : attr->axis.axis;
    char text[SHAPE_TEXT];
    if (axis < 0 || axis > x->rank)
        return err_set(err, ERR_FORMAT, "axis %lld of %s", (long long)attr->axis.axis,
                       shape_text(x, text));
    *out = SHAPE(shape_span(x, 0, (int)axis), shape_span(x, (int)axis, x->rank));
    return true;
}

static bool transpose_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                            struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct transpose_attr *a = &attr->transpose;
    const struct shape *x = in[0];
    unsigned seen = 0;
    for (int i = 0; i < x->rank && a->rank == x->rank; i++)
        seen |= 1u << a->order[i];
    if (a->rank != x->rank || seen != (1u << x->rank) - 1)
        return err_set(err, ERR_FORMAT, "the order does not name each of the %d axes once",
                       x->rank);
    *out = *x;
    for (int i = 0; i < x->rank; i++)
        out->dim[i] = x->dim[a->order[i]];
    return true;
}

const struct op op_reshape = {
    .kind = OP_RESHAPE,
    .name = "reshape",
    .onnx = "Reshape",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = reshape_fields,
    .shape = reshape_shape,
};

const struct op op_flatten = {
    .kind = OP_FLATTEN,
    .name = "flatten",
    .onnx = "Flatten",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = flatten_fields,
    .shape = flatten_shape,
};

const struct op op_transpose = {
    .kind = OP_TRANSPOSE,
    .name = "transpose",
    .onnx = "Transpose",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = transpose_fields,
    .shape = transpose_shape,
};
