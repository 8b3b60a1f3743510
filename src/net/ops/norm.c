/* norm.c: batch, group and layer normalisation. */
#include "net/ops/ops.h"

#define ATTR_STRUCT struct norm_attr
static const struct attr_field batch_fields[] = {
    FIELD(ATTR_REAL, epsilon, 1, 0, 1e6),
    FIELD(ATTR_REAL, momentum, 1, 0, 1),
    { .name = NULL },
};
static const struct attr_field group_fields[] = {
    FIELD(ATTR_REAL, epsilon, 1, 0, 1e6),
    FIELD(ATTR_INT, groups, 1, 1, ATTR_LIMIT),
    { .name = NULL },
};
static const struct attr_field layer_fields[] = {
    FIELD(ATTR_REAL, epsilon, 1, 0, 1e6),
    FIELD(ATTR_INT, axes, 1, 1, SHAPE_DIMS),
    { .name = NULL },
};
#undef ATTR_STRUCT

static void complete(union attr *attr)
{
    complete_ones(&attr->norm.groups, 1);
    complete_ones(&attr->norm.axes, 1);
}

static bool channels_shape(const struct shape *const *in, int n_inputs, struct shape *out,
                           struct err *err)
{
    static const char *const names[] = { "input", "weight", "bias", "running_mean", "running_var" };
    const struct shape *x = in[0];
    char text[SHAPE_TEXT];
    if (x->rank < 2)
        return err_set(err, ERR_FORMAT, "the input is %s; [N, C, ..] is needed",
                       shape_text(x, text));
    for (int i = 1; i < n_inputs; i++)
        if (!shape_is_vector(in[i], x->dim[1], names[i], err))
            return false;
    *out = *x;
    return true;
}

static bool batch_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                        struct shape *out, struct err *err)
{
    (void)attr;
    return channels_shape(in, n_inputs, out, err);
}

static bool group_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                        struct shape *out, struct err *err)
{
    if (!channels_shape(in, n_inputs, out, err))
        return false;
    if (in[0]->dim[1] % attr->norm.groups)
        return err_set(err, ERR_FORMAT, "%lld channels cannot be split into %lld groups",
                       (long long)in[0]->dim[1], (long long)attr->norm.groups);
    return true;
}

static bool layer_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                        struct shape *out, struct err *err)
{
    const struct shape *x = in[0];
    char text[SHAPE_TEXT];
    int axes = (int)attr->norm.axes;
    bool fits = x->rank >= axes;
    for (int i = 1; fits && i < n_inputs; i++) {
        fits = in[i]->rank == axes;
        for (int k = 0; fits && k < axes; k++)
            fits = in[i]->dim[k] == x->dim[x->rank - axes + k];
    }
    if (!fits)
        return err_set(err, ERR_FORMAT, "weight and bias do not fit the last %d axes of %s", axes,
                       shape_text(x, text));
    *out = *x;
    return true;
}

const struct op op_batch_norm = {
    .kind = OP_BATCH_NORM,
    .name = "batch_norm",
    .onnx = "BatchNormalization",
    .min_inputs = 5,
    .max_inputs = 5,
    .fields = batch_fields,
    .complete = complete,
    .shape = batch_shape,
};

const struct op op_group_norm = {
    .kind = OP_GROUP_NORM,
    .name = "group_norm",
    .onnx = NULL,
    .min_inputs = 3,
    .max_inputs = 3,
    .fields = group_fields,
    .complete = complete,
    .shape = group_shape,
};

const struct op op_layer_norm = {
    .kind = OP_LAYER_NORM,
    .name = "layer_norm",
    .onnx = "LayerNormalization",
    .min_inputs = 3,
    .max_inputs = 3,
    .fields = layer_fields,
    .complete = complete,
    .shape = layer_shape,
};
