/* convert.c: numbers rounded to what a storage can hold, and kept so: bfloat16, or int8 with a
 * scale. The gradient passes through the rounding as if it were not there; where int8 saturates it
 * is 0, as in PyTorch's fake_quantize_per_tensor_affine. */
#include "net/kernels/elementwise.h"
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

static bool convert_forward(struct plan_node *pn, struct err *err)
{
    const struct storage *to = &pn->node->attr.convert;
    struct form form = { in_layout(pn, 0), to->dtype };
    bool stored = storage_equal(to, in_storage(pn, 0));
    if (!stored && to->dtype != DTYPE_FLOAT32) {
        int x = in_slot(pn, 0, form.layout, err);
        return step_convert(pn->tape, to, false, x, out_stored(pn, form), err) != NULL;
    }
    int x = stored ? in_stored(pn, 0, form.layout, err) : in_slot(pn, 0, form.layout, err);
    out_is(pn, x, form);
    return x != NO_SLOT || err_memory(err, pn->node->name);
}

struct within {
    int64_t count;
    struct elementwise_args range;
    int threads;
};

static bool run_within(const struct step *step, struct err *err)
{
    (void)err;
    const struct within *w = step->state;
    elementwise_run(EW_WITHIN_BACK, w->count, step->at[0], step->at[1], step->at[2], w->range,
                    w->threads);
    return true;
}

/* dy where x is in the range of int8 */
static int masked(struct plan_node *pn, int dy, enum layout layout, struct err *err)
{
    const struct storage *to = &pn->node->attr.convert;
    struct within w = { .count = layout_count(pn->tape, in_shape(pn, 0), layout),
                        .threads = pn->tape->options.threads };
    stored_range(stored_scale_of(to), &w.range.alpha, &w.range.beta);
    struct step_spec spec = { "convert back", run_within, &w, sizeof w, 0 };
    int x = in_slot(pn, 0, layout, err), dx = gradient_slot(pn, 0, layout);
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, dy, ACCESS_READ, err) || !step_use(step, x, ACCESS_READ, err) ||
        !step_use(step, dx, ACCESS_WRITE, err))
        return NO_SLOT;
    step_in_place(step, 0, 1, 2);
    return dx;
}

static bool convert_backward(struct plan_node *pn, struct err *err)
{
    if (!wants_gradient(pn, 0))
        return true;
    enum layout layout = out_layout(pn);
    int dx = out_gradient(pn, layout, err);
    if (pn->node->attr.convert.dtype == DTYPE_INT8)
        dx = masked(pn, dx, layout, err);
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
