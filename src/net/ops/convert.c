/* convert.c: numbers rounded to what a storage can hold, and kept so: bfloat16, or int8 with a
 * scale. The gradient passes through the rounding as if it were not there; where int8 saturates it
 * is 0, as in PyTorch's fake_quantize_per_tensor_affine. */
#include "net/kernels/stored.h"
#include "net/ops/ops.h"
#include "net/plan/step.h"

#define ATTR_STRUCT struct storage
static const struct attr_field fields[] = {
    { .name = "dtype",
      .type = ATTR_CHOICE,
      .offset = offsetof(struct storage, dtype),
      .count = 1,
      .min = DTYPE_FLOAT32,
      .max = DTYPE_INT8,
      .choices = dtype_names },
    FIELD(ATTR_REAL, scale, 1, 0, STORED_SCALE_MAX),
    FIELD(ATTR_INT, zero_point, 1, INT8_MIN, INT8_MAX),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool convert_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                          struct shape *out, struct err *err)
{
    const struct storage *to = &attr->convert;
    if (to->dtype == DTYPE_INT8 && to->scale < STORED_SCALE_MIN)
        return err_set(err, ERR_FORMAT, "the scale of int8 is %g; it must be at least %g",
                       (double)to->scale, (double)STORED_SCALE_MIN);
    if (to->dtype != DTYPE_INT8 && (to->scale != 0 || to->zero_point != 0))
        return err_set(err, ERR_FORMAT, "%s has neither a scale nor a zero point",
                       dtype_names[to->dtype]);
    return shape_same(attr, in, n_inputs, out, err);
}

static struct storage convert_storage(const union attr *attr, const struct storage *x)
{
    (void)x;
    return attr->convert;
}

/* For the backward pass: where x is in the range of int8. */
static bool note_within(struct plan_node *pn, int x, enum layout layout, struct err *err)
{
    const struct storage *to = &pn->node->attr.convert;
    int within = slot_new(pn->tape, (size_t)layout_count(pn->tape, in_shape(pn, 0), layout));
    pn->state->slot[0] = within;
    return step_stored(pn->tape, STORED_WITHIN_INT8, to, x, within, err) != NULL;
}

static bool convert_forward(struct plan_node *pn, struct err *err)
{
    const struct storage *to = &pn->node->attr.convert;
    struct form form = { in_layout(pn, 0), to->dtype };
    if (storage_equal(to, in_storage(pn, 0)) || to->dtype == DTYPE_FLOAT32) {
        int x = value_slot(pn->tape, pn->node->inputs[0], form, err);
        out_is(pn, x, form);
        return x != NO_SLOT || err_memory(err, pn->node->name);
    }
    int x = in_slot(pn, 0, form.layout, err);
    if (to->dtype == DTYPE_INT8 && wants_gradient(pn, 0) && !note_within(pn, x, form.layout, err))
        return false;
    return step_convert(pn->tape, to, false, x, out_stored(pn, form), err) != NULL;
}

struct gradient_row {
    int64_t count;
    int threads;
};

static bool run_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct gradient_row *r = step->state;
    stored_within(r->count, step->at[0], step->at[1], step->at[2], r->threads);
    return true;
}

/* dy where x was in the range of int8 */
static int back_within(struct plan_node *pn, int dy, enum layout layout, struct err *err)
{
    struct gradient_row r = { layout_count(pn->tape, in_shape(pn, 0), layout),
                              pn->tape->options.threads };
    struct step_spec spec = { "convert back", run_back, &r, sizeof r, 0 };
    int dx = gradient_slot(pn, 0, layout);
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, dy, ACCESS_READ, err) ||
        !step_use(step, pn->state->slot[0], ACCESS_READ, err) ||
        !step_use(step, dx, ACCESS_WRITE, err))
        return NO_SLOT;
    step_in_place(step, 0, -1, 2);
    return dx;
}

static bool convert_backward(struct plan_node *pn, struct err *err)
{
    const struct storage *to = &pn->node->attr.convert;
    if (!wants_gradient(pn, 0))
        return true;
    enum layout layout = out_layout(pn);
    int dx = out_gradient(pn, layout, err);
    if (to->dtype == DTYPE_INT8 && !storage_equal(to, in_storage(pn, 0)))
        dx = back_within(pn, dx, layout, err);
    return gradient_add(pn, 0, dx, layout, err);
}

const struct op op_convert = {
    .kind = OP_CONVERT,
    .name = "convert",
    .onnx = NULL,
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = convert_shape,
    .storage = convert_storage,
    .forward = convert_forward,
    .backward = convert_backward,
};
