/* conv.c: convolution and transposed convolution of images. */
#include "net/plan/lower.h"
#include "net/ops/ops.h"

static const char *const activations[] = { "none", "relu", "silu", "gelu", NULL };

#define ATTR_STRUCT struct conv_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_INT, kernel, 2, 1, ATTR_LIMIT),
    FIELD(ATTR_INT, stride, 2, 1, ATTR_LIMIT),
    FIELD(ATTR_INT, pad, SIDES, 0, ATTR_LIMIT),
    FIELD(ATTR_INT, dilation, 2, 1, ATTR_LIMIT),
    FIELD(ATTR_INT, groups, 1, 1, ATTR_LIMIT),
    FIELD(ATTR_INT, output_pad, 2, 0, ATTR_LIMIT),
    { .name = "activation",
      .type = ATTR_CHOICE,
      .offset = offsetof(struct conv_attr, activation),
      .count = 1,
      .min = ACT_NONE,
      .max = ACT_GELU,
      .choices = activations },
    { .name = NULL },
};
#undef ATTR_STRUCT

static void complete(union attr *attr)
{
    complete_ones(attr->conv.stride, 2);
    complete_ones(attr->conv.dilation, 2);
    complete_ones(&attr->conv.groups, 1);
}

/* Weight and bias against the input; a transposed convolution has its outputs where another has its
 * inputs. */
static bool check_inputs(const struct conv_attr *a, const struct shape *const *in, int n_inputs,
                         bool transposed, int64_t *outputs, struct err *err)
{
    const struct shape *x = in[0], *weight = in[1];
    char text[SHAPE_TEXT];
    if (!shape_is_image(x, err))
        return false;
    if (weight->rank != 4 || weight->dim[2] != a->kernel[0] || weight->dim[3] != a->kernel[1])
        return err_set(err, ERR_FORMAT, "the weight is %s; the kernel is %lld x %lld",
                       shape_text(weight, text), (long long)a->kernel[0], (long long)a->kernel[1]);
    int64_t whole = weight->dim[0], parts = weight->dim[1] * a->groups;
    if ((transposed ? whole : parts) != x->dim[1] || whole % a->groups)
        return err_set(err, ERR_FORMAT,
                       "the weight is %s with %lld groups; the input has %lld channels",
                       shape_text(weight, text), (long long)a->groups, (long long)x->dim[1]);
    *outputs = transposed ? parts : whole;
    return n_inputs <= 2 || !in[2] || shape_is_vector(in[2], *outputs, "bias", err);
}

/* x [N, C, H, W], weight [O, C/groups, kh, kw] -> [N, O, H', W'] */
static bool conv_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                       struct shape *out, struct err *err)
{
    const struct conv_attr *a = &attr->conv;
    const struct shape *x = in[0];
    char text[SHAPE_TEXT];
    int64_t outputs;
    if (!check_inputs(a, in, n_inputs, false, &outputs, err))
        return false;
    struct shape y = { 4, { x->dim[0], outputs } };
    for (int i = 0; i < 2; i++) {
        y.dim[2 + i] = window_extent(x->dim[2 + i], a->kernel[i], a->stride[i], a->pad[i],
                                     a->pad[2 + i], a->dilation[i], false);
        if (y.dim[2 + i] < 1)
            return err_set(err, ERR_FORMAT, "the input is %s; the kernel does not fit into it",
                           shape_text(x, text));
    }
    if (n_inputs > 3 && in[3] && !shape_equal(in[3], &y))
        return err_set(err, ERR_FORMAT, "the residual is %s; the output has a different shape",
                       shape_text(in[3], text));
    *out = y;
    return true;
}

/* x [N, C, H, W], weight [C, O/groups, kh, kw] -> [N, O, H', W'] */
static bool transpose_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                            struct shape *out, struct err *err)
{
    const struct conv_attr *a = &attr->conv;
    const struct shape *x = in[0];
    char text[SHAPE_TEXT];
    int64_t outputs;
    if (!check_inputs(a, in, n_inputs, true, &outputs, err))
        return false;
    if (a->activation != ACT_NONE)
        return err_set(err, ERR_FORMAT,
                       "an activation cannot be fused to a transposed convolution");
    struct shape y = { 4, { x->dim[0], outputs } };
    for (int i = 0; i < 2; i++) {
        if (a->output_pad[i] >= a->stride[i] && a->output_pad[i] >= a->dilation[i])
            return err_set(err, ERR_FORMAT, "output_pad must be below the stride or the dilation");
        y.dim[2 + i] = (x->dim[2 + i] - 1) * a->stride[i] - a->pad[i] - a->pad[2 + i] +
                       a->dilation[i] * (a->kernel[i] - 1) + a->output_pad[i] + 1;
        if (y.dim[2 + i] < 1)
            return err_set(err, ERR_FORMAT, "the input is %s; the output would be empty",
                           shape_text(x, text));
    }
    *out = y;
    return true;
}

const struct op op_conv = {
    .kind = OP_CONV,
    .name = "conv",
    .onnx = "Conv",
    .min_inputs = 2,
    .max_inputs = 4,
    .optional = 1u << 2 | 1u << 3,
    .fields = fields,
    .complete = complete,
    .shape = conv_shape,
    .forward = lower_conv_forward,
    .backward = lower_conv_backward,
};

const struct op op_conv_transpose = {
    .kind = OP_CONV_TRANSPOSE,
    .name = "conv_transpose",
    .onnx = "ConvTranspose",
    .min_inputs = 2,
    .max_inputs = 3,
    .optional = 1u << 2,
    .fields = fields,
    .complete = complete,
    .shape = transpose_shape,
    .forward = lower_conv_forward,
    .backward = lower_conv_backward,
};
