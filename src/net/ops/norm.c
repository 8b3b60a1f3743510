/* norm.c: batch, group, layer and root-mean-square normalisation. */
#include "net/plan/lower.h"
#include "net/kernels/normalize.h"
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
        return err_set(err, ERR_FORMAT, "weight and bias do not match the last %d axes of %s", axes,
                       shape_text(x, text));
    *out = *x;
    return true;
}

static struct normalize rows_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0);
    const struct norm_attr *a = &pn->node->attr.norm;
    struct normalize n = { .epsilon = a->epsilon,
                           .rms = pn->node->op->kind == OP_RMS_NORM,
                           .threads = pn->tape->options.threads };
    n.rows = shape_span(x, 0, x->rank - (int)a->axes);
    n.length = shape_span(x, x->rank - (int)a->axes, x->rank);
    return n;
}

static bool run_rows(const struct step *step, struct err *err)
{
    (void)err;
    normalize_run(step->state, step->at[0], step->at[1], step->at[2], step->at[3], step->at[4]);
    return true;
}

static bool rows_forward(struct plan_node *pn, struct err *err)
{
    struct normalize n = rows_of(pn);
    struct step_spec spec = { pn->node->op->name, run_rows, &n, sizeof n, 0 };
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), w = in_slot(pn, 1, LAYOUT_PLAIN, err);
    int b = n.rms ? NO_SLOT : in_slot(pn, 2, LAYOUT_PLAIN, err), y = out_slot(pn, LAYOUT_PLAIN);
    bool train = pn->tape->options.mode != PLAN_INFER;
    pn->state->slot[0] = train ? slot_new(pn->tape, (size_t)n.rows * 2 * sizeof(float)) : NO_SLOT;
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, w, ACCESS_READ, err))
        return false;
    step_use_optional(step, b, ACCESS_READ);
    if (!step_use(step, y, ACCESS_WRITE, err))
        return false;
    step_use_optional(step, pn->state->slot[0], ACCESS_WRITE);
    step_in_place(step, 0, -1, 3);
    return true;
}

static bool run_rows_back(const struct step *step, struct err *err)
{
    (void)err;
    normalize_back(step->state, step->at[0], step->at[1], step->at[2], step->at[3], step->at[4],
                   step->at[5], step->at[6]);
    return true;
}

static bool rows_backward(struct plan_node *pn, struct err *err)
{
    struct normalize n = rows_of(pn);
    n.rows = unit_rows(pn, n.rows);
    struct step_spec spec = { pn->node->op->name, run_rows_back, &n, sizeof n, 0 };
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), w = in_slot(pn, 1, LAYOUT_PLAIN, err);
    int dy = out_gradient(pn, LAYOUT_PLAIN, err);
    int dx = wants_gradient(pn, 0) ? gradient_slot(pn, 0, LAYOUT_PLAIN) : NO_SLOT;
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, w, ACCESS_READ, err) ||
        !step_use(step, pn->state->slot[0], ACCESS_READ, err) ||
        !step_use(step, dy, ACCESS_READ, err))
        return false;
    step_use_optional(step, dx, ACCESS_WRITE);
    step_use_optional(step, parameter_gradient_slot(pn, 1), ACCESS_BOTH);
    step_use_optional(step, n.rms ? NO_SLOT : parameter_gradient_slot(pn, 2), ACCESS_BOTH);
    step_in_place(step, 3, -1, 4);
    step_each_unit(pn->tape, step, 1u << 0 | 1u << 2 | 1u << 3 | 1u << 4);
    return dx == NO_SLOT || gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
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
    .forward = lower_batch_norm_forward,
    .backward = lower_batch_norm_backward,
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
    .forward = lower_group_norm_forward,
    .backward = lower_group_norm_backward,
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
    .forward = rows_forward,
    .backward = rows_backward,
};

const struct op op_rms_norm = {
    .kind = OP_RMS_NORM,
    .name = "rms_norm",
    .onnx = NULL,
    .min_inputs = 2,
    .max_inputs = 2,
    .fields = layer_fields,
    .complete = complete,
    .shape = layer_shape,
    .forward = rows_forward,
    .backward = rows_backward,
};
