/* linear.c: linear layers and products of matrices. */
#include "net/plan/lower.h"
#include "net/ops/ops.h"

static const char *const activations[] = { "none", "relu", "silu", "gelu", NULL };

static const struct attr_field linear_fields[] = {
    { .name = "activation",
      .type = ATTR_CHOICE,
      .offset = offsetof(struct linear_attr, activation),
      .count = 1,
      .min = ACT_NONE,
      .max = ACT_GELU,
      .choices = activations },
    { .name = NULL },
};

#define ATTR_STRUCT struct matmul_attr
static const struct attr_field matmul_fields[] = {
    FIELD(ATTR_BOOL, transpose_a, 1, 0, 1),
    FIELD(ATTR_BOOL, transpose_b, 1, 0, 1),
    FIELD(ATTR_REAL, scale, 1, -1e30, 1e30),
    { .name = NULL },
};
#undef ATTR_STRUCT

static void matmul_complete(union attr *attr)
{
    if (attr->matmul.scale == 0)
        attr->matmul.scale = 1;
}

/* x [.., C], weight [O, C], [bias O], [residual [.., O]] -> [.., O] */
static bool linear_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)attr;
    const struct shape *x = in[0], *weight = in[1];
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    if (x->rank < 1 || weight->rank != 2 || x->dim[x->rank - 1] != weight->dim[1])
        return err_set(err, ERR_FORMAT, "the weight is %s; it does not match the input %s",
                       shape_text(weight, text), shape_text(x, other));
    if (n_inputs > 2 && in[2] && !shape_is_vector(in[2], weight->dim[0], "bias", err))
        return false;
    *out = *x;
    out->dim[x->rank - 1] = weight->dim[0];
    if (n_inputs > 3 && in[3] && !shape_equal(in[3], out))
        return err_set(err, ERR_FORMAT, "the residual is %s, the output %s",
                       shape_text(in[3], text), shape_text(out, other));
    return true;
}

/* a [.., M, K], b [.., K, N] -> [.., M, N] */
static bool matmul_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct shape *a = in[0], *b = in[1];
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    int ta = attr->matmul.transpose_a, tb = attr->matmul.transpose_b;
    struct shape outer_a = *a, outer_b = *b, y;
    outer_a.rank -= 2, outer_b.rank -= 2;
    bool fits = a->rank >= 2 && b->rank >= 2 &&
                a->dim[a->rank - 1 - ta] == b->dim[b->rank - 2 + tb] &&
                shape_broadcast(&outer_a, &outer_b, &y);
    if (!fits)
        return err_set(err, ERR_FORMAT, "%s and %s cannot be multiplied", shape_text(a, text),
                       shape_text(b, other));
    y.dim[y.rank++] = a->dim[a->rank - 2 + ta];
    y.dim[y.rank++] = b->dim[b->rank - 1 - tb];
    *out = y;
    return true;
}

const struct op op_linear = {
    .kind = OP_LINEAR,
    .name = "linear",
    .onnx = "Gemm",
    .min_inputs = 2,
    .max_inputs = 4,
    .optional = 1u << 2 | 1u << 3,
    .fields = linear_fields,
    .shape = linear_shape,
    .forward = lower_linear_forward,
    .backward = lower_linear_backward,
};

const struct op op_matmul = {
    .kind = OP_MATMUL,
    .name = "matmul",
    .onnx = "MatMul",
    .min_inputs = 2,
    .max_inputs = 2,
    .fields = matmul_fields,
    .complete = matmul_complete,
    .shape = matmul_shape,
    .forward = lower_matmul_forward,
    .backward = lower_matmul_backward,
};
