/* join.c: tensors put together and taken apart: concat, slice, pad and crop, repetition. */
#include "net/ops/ops.h"

static const char *const pad_modes[] = { "zero", "reflect", "replicate", NULL };

#define ATTR_STRUCT struct axis_attr
static const struct attr_field concat_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct slice_attr
static const struct attr_field slice_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    FIELD(ATTR_INT, begin, 1, -1e19, 1e19),
    FIELD(ATTR_INT, end, 1, -1e19, 1e19),
    FIELD(ATTR_INT, step, 1, 1, ATTR_LIMIT),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct pad_attr
static const struct attr_field pad_fields[] = {
    FIELD(ATTR_INT, pad, SIDES, -ATTR_LIMIT, ATTR_LIMIT),
    { .name = "mode",
      .type = ATTR_CHOICE,
      .offset = offsetof(struct pad_attr, mode),
      .count = 1,
      .min = PAD_ZERO,
      .max = PAD_REPLICATE,
      .choices = pad_modes },
    FIELD(ATTR_REAL, value, 1, -1e30, 1e30),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool concat_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    int axis = axis_of(attr->axis.axis, in[0]->rank);
    if (axis < 0)
        return err_set(err, ERR_FORMAT, "axis %lld of %s", (long long)attr->axis.axis,
                       shape_text(in[0], a));
    *out = *in[0];
    for (int i = 1; i < n_inputs; i++) {
        struct shape other = *in[i];
        if (other.rank == out->rank)
            other.dim[axis] = out->dim[axis];
        if (!shape_equal(&other, out))
            return err_set(err, ERR_FORMAT, "%s and %s cannot be joined along axis %d",
                           shape_text(in[0], a), shape_text(in[i], b), axis);
        out->dim[axis] += in[i]->dim[axis];
    }
    return true;
}

static void slice_complete(union attr *attr)
{
    complete_ones(&attr->slice.step, 1);
}

static bool slice_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                        struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct slice_attr *a = &attr->slice;
    char text[SHAPE_TEXT];
    int64_t begin, end;
    int axis = slice_range(a, in[0], &begin, &end);
    if (axis < 0 || begin >= end)
        return err_set(err, ERR_FORMAT, "nothing of %s is left along axis %lld",
                       shape_text(in[0], text), (long long)a->axis);
    *out = *in[0];
    out->dim[axis] = (end - begin + a->step - 1) / a->step;
    return true;
}

static bool pad_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                      struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct pad_attr *a = &attr->pad;
    char text[SHAPE_TEXT];
    if (!shape_is_image(in[0], err))
        return false;
    *out = *in[0];
    for (int side = 0; side < SIDES; side++) {
        int64_t extent = in[0]->dim[2 + side % 2];
        if (a->mode == PAD_REFLECT && a->pad[side] >= extent)
            return err_set(err, ERR_FORMAT, "%lld px cannot be reflected at the border of %s",
                           (long long)a->pad[side], shape_text(in[0], text));
        if (a->pad[side] <= -extent)
            return err_set(err, ERR_FORMAT, "nothing of %s is left", shape_text(in[0], text));
        out->dim[2 + side % 2] += a->pad[side];
    }
    if (out->dim[2] < 1 || out->dim[3] < 1)
        return err_set(err, ERR_FORMAT, "nothing of %s is left", shape_text(in[0], text));
    return true;
}

static bool expand_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    char text[SHAPE_TEXT];
    if (in[0]->rank < 1 || in[0]->dim[0] != 1 || in[1]->rank < 1)
        return err_set(err, ERR_FORMAT, "the input is %s; [1, ..] is needed",
                       shape_text(in[0], text));
    *out = *in[0];
    out->dim[0] = in[1]->dim[0];
    return true;
}

const struct op op_concat = {
    .kind = OP_CONCAT,
    .name = "concat",
    .onnx = "Concat",
    .min_inputs = 1,
    .max_inputs = 4096,
    .fields = concat_fields,
    .shape = concat_shape,
};

const struct op op_slice = {
    .kind = OP_SLICE,
    .name = "slice",
    .onnx = "Slice",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = slice_fields,
    .complete = slice_complete,
    .shape = slice_shape,
};

const struct op op_pad = {
    .kind = OP_PAD,
    .name = "pad",
    .onnx = "Pad",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = pad_fields,
    .shape = pad_shape,
};

const struct op op_expand_batch = {
    .kind = OP_EXPAND_BATCH,
    .name = "expand_batch",
    .onnx = NULL,
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = expand_shape,
};
