/* lrn.c: local response normalisation across channels. */
#include "net/kernels/lrn.h"
#include "net/plan/step.h"
#include "net/ops/ops.h"

#define ATTR_STRUCT struct lrn_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_INT, size, 1, 1, ATTR_LIMIT),
    FIELD(ATTR_REAL, alpha, 1, 0, 1e6),
    FIELD(ATTR_REAL, beta, 1, 0, 1e3),
    FIELD(ATTR_REAL, bias, 1, 0, 1e6),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool lrn_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                      struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    *out = *in[0];
    return shape_is_image(in[0], err);
}

static struct lrn lrn_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0);
    const struct lrn_attr *a = &pn->node->attr.lrn;
    return (struct lrn){ a->size,
                         a->alpha,
                         a->beta,
                         a->bias,
                         x->dim[0],
                         x->dim[1],
                         x->dim[2] * x->dim[3],
                         pn->tape->options.threads };
}

static bool run_lrn(const struct step *step, struct err *err)
{
    (void)err;
    lrn_run(step->state, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_lrn_back(const struct step *step, struct err *err)
{
    (void)err;
    lrn_back(step->state, step->at[0], step->at[1], step->at[2], step->at[3]);
    return true;
}

static bool lrn_forward(struct plan_node *pn, struct err *err)
{
    struct lrn l = lrn_of(pn);
    struct step_spec spec = { "lrn", run_lrn, &l, sizeof l, 0 };
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), y = out_slot(pn, LAYOUT_PLAIN);
    pn->state->slot[0] = slot_new(pn->tape, layout_bytes(pn->tape, in_shape(pn, 0), LAYOUT_PLAIN));
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, x, ACCESS_READ, err) && step_use(step, y, ACCESS_WRITE, err) &&
           step_use(step, pn->state->slot[0], ACCESS_WRITE, err);
}

static bool lrn_backward(struct plan_node *pn, struct err *err)
{
    struct lrn l = lrn_of(pn);
    struct step_spec spec = { "lrn back", run_lrn_back, &l, sizeof l, 0 };
    if (!wants_gradient(pn, 0))
        return true;
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), dy = out_gradient(pn, LAYOUT_PLAIN, err);
    int dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, x, ACCESS_READ, err) &&
           step_use(step, pn->state->slot[0], ACCESS_READ, err) &&
           step_use(step, dy, ACCESS_READ, err) && step_use(step, dx, ACCESS_WRITE, err) &&
           gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

const struct op op_lrn = {
    .kind = OP_LRN,
    .name = "lrn",
    .onnx = "LRN",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = lrn_shape,
    .forward = lrn_forward,
    .backward = lrn_backward,
};
