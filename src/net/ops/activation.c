/* activation.c: functions of one element. */
#include "net/kernels/elementwise.h"
#include "net/plan/lower.h"
#include "net/ops/ops.h"

static const struct attr_field leaky_fields[] = {
    { .name = "slope",
      .type = ATTR_REAL,
      .offset = offsetof(struct leaky_attr, slope),
      .count = 1,
      .min = -1e6,
      .max = 1e6 },
    { .name = NULL },
};

static const struct attr_field gelu_fields[] = {
    { .name = "tanh_form",
      .type = ATTR_BOOL,
      .offset = offsetof(struct gelu_attr, tanh_form),
      .count = 1,
      .min = 0,
      .max = 1 },
    { .name = NULL },
};

struct row {
    enum elementwise kind;
    int64_t count;
    struct elementwise_args args;
    int threads;
};

static bool run_row(const struct step *step, struct err *err)
{
    (void)err;
    const struct row *r = step->state;
    bool two = step->n_slots > 2;
    elementwise_run(r->kind, r->count, step->at[0], two ? step->at[1] : NULL, step->at[two ? 2 : 1],
                    r->args, r->threads);
    return true;
}

static struct row row_of(const struct plan_node *pn, enum elementwise kind, enum layout layout)
{
    return (struct row){
        kind,
        layout_count(pn->tape, out_shape(pn), layout),
        { .alpha = kind == EW_LEAKY || kind == EW_LEAKY_BACK ? pn->node->attr.leaky.slope : 0 },
        pn->tape->options.threads
    };
}

static bool rectify_forward(struct plan_node *pn, enum elementwise kind, struct err *err)
{
    enum layout layout = in_layout(pn, 0);
    struct row r = row_of(pn, kind, layout);
    struct step_spec spec = { pn->node->op->name, run_row, &r, sizeof r, 0 };
    int x = in_slot(pn, 0, layout, err), y = out_slot(pn, layout);
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, y, ACCESS_WRITE, err))
        return false;
    step_in_place(step, 0, -1, 1);
    return true;
}

/* dy and, for relu, the output, else the input -> dx */
static bool rectify_backward(struct plan_node *pn, enum elementwise kind, struct err *err)
{
    enum layout layout = out_layout(pn);
    struct row r = row_of(pn, kind, layout);
    struct step_spec spec = { pn->node->op->name, run_row, &r, sizeof r, 0 };
    if (!wants_gradient(pn, 0))
        return true;
    int other = kind == EW_RELU_BACK ? out_value(pn, layout, err) : in_slot(pn, 0, layout, err);
    int dy = out_gradient(pn, layout, err), dx = gradient_slot(pn, 0, layout);
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, dy, ACCESS_READ, err) ||
        !step_use(step, other, ACCESS_READ, err) || !step_use(step, dx, ACCESS_WRITE, err))
        return false;
    step_in_place(step, 0, 1, 2);
    return gradient_add(pn, 0, dx, layout, err);
}

/* On the stored numbers: the result is one of them, or 0, which can be stored too. */
static bool relu_stored(struct plan_node *pn, enum layout layout, struct err *err)
{
    const struct storage *storage = in_storage(pn, 0);
    enum stored kind = storage->dtype == DTYPE_INT8 ? STORED_RELU_INT8 : STORED_RELU_BFLOAT16;
    int x = in_stored(pn, 0, layout, err);
    int y = out_stored(pn, (struct form){ layout, storage->dtype });
    struct step *step = step_stored(pn->tape, kind, storage, x, y, err);
    if (step)
        step_in_place(step, 0, -1, 1);
    return step != NULL;
}

static bool relu_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = in_layout(pn, 0);
    if (pn->state->fused) {
        out_is(pn, in_slot(pn, 0, layout, err), FLOATS(layout));
        return true;
    }
    if (in_storage(pn, 0)->dtype != DTYPE_FLOAT32)
        return relu_stored(pn, layout, err);
    return rectify_forward(pn, EW_RELU, err);
}

static bool relu_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    if (pn->state->fused)
        return gradient_add(pn, 0, out_gradient(pn, layout, err), layout, err);
    return rectify_backward(pn, EW_RELU_BACK, err);
}

/* The same bits whether or not it is done by the norm before it. */
static bool silu_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = in_layout(pn, 0);
    if (!pn->state->fused)
        return rectify_forward(pn, EW_SILU, err);
    out_is(pn, in_slot(pn, 0, layout, err), FLOATS(layout));
    return true;
}

static bool silu_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    if (pn->state->fused)
        return gradient_add(pn, 0, out_gradient(pn, layout, err), layout, err);
    return rectify_backward(pn, EW_SILU_BACK, err);
}

static bool leaky_forward(struct plan_node *pn, struct err *err)
{
    return rectify_forward(pn, EW_LEAKY, err);
}

static bool leaky_backward(struct plan_node *pn, struct err *err)
{
    return rectify_backward(pn, EW_LEAKY_BACK, err);
}

#define ACTIVATION(kind_, name_, onnx_, fields_, forward_, backward_)                              \
    {                                                                                              \
        .kind = kind_, .name = name_, .onnx = onnx_, .min_inputs = 1, .max_inputs = 1,             \
        .fields = fields_, .shape = shape_same, .forward = forward_, .backward = backward_         \
    }

const struct op op_relu = {
    .kind = OP_RELU,
    .name = "relu",
    .onnx = "Relu",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = shape_same,
    .storage = storage_same,
    .forward = relu_forward,
    .backward = relu_backward,
};
const struct op op_leaky_relu = ACTIVATION(OP_LEAKY_RELU, "leaky_relu", "LeakyRelu", leaky_fields,
                                           leaky_forward, leaky_backward);
const struct op op_silu = ACTIVATION(OP_SILU, "silu", NULL, NULL, silu_forward, silu_backward);
const struct op op_gelu = ACTIVATION(OP_GELU, "gelu", NULL, gelu_fields, lower_activation_forward,
                                     lower_activation_backward);
const struct op op_sigmoid = ACTIVATION(OP_SIGMOID, "sigmoid", "Sigmoid", NULL,
                                        lower_activation_forward, lower_activation_backward);
const struct op op_tanh =
    ACTIVATION(OP_TANH, "tanh", "Tanh", NULL, lower_activation_forward, lower_activation_backward);
