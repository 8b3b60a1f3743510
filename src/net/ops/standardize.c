/* standardize.c: the weight of a convolution with mean 0 and a fixed sum of squares for every
 * output channel, times a learnt gain: in place of batch norm, where there are no batches. */
#include "net/kernels/standardize.h"
#include "net/plan/step.h"
#include "net/ops/ops.h"

#define ATTR_STRUCT struct norm_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_REAL, epsilon, 1, 0, 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool standardize_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                              struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    *out = *in[0];
    if (in[0]->rank < 2)
        return err_set(err, ERR_FORMAT, "a weight with one row for each output is needed");
    return shape_is_vector(in[1], in[0]->dim[0], "gain", err);
}

static struct standardize rows_of(const struct plan_node *pn)
{
    const struct shape *w = in_shape(pn, 0);
    return (struct standardize){ w->dim[0], shape_span(w, 1, w->rank), pn->node->attr.norm.epsilon,
                                 pn->tape->options.threads };
}

static bool run_forward(const struct step *step, struct err *err)
{
    (void)err;
    standardize_run(step->state, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_backward(const struct step *step, struct err *err)
{
    (void)err;
    standardize_back(step->state, step->at[0], step->at[1], step->at[2], step->at[3], step->at[4]);
    return true;
}

static bool standardize_forward(struct plan_node *pn, struct err *err)
{
    struct standardize s = rows_of(pn);
    struct step_spec spec = { "standardize", run_forward, &s, sizeof s, 0 };
    int w = in_slot(pn, 0, LAYOUT_PLAIN, err), gain = in_slot(pn, 1, LAYOUT_PLAIN, err);
    int y = out_slot(pn, LAYOUT_PLAIN);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, w, ACCESS_READ, err) && step_use(step, gain, ACCESS_READ, err) &&
           step_use(step, y, ACCESS_WRITE, err);
}

static bool standardize_backward(struct plan_node *pn, struct err *err)
{
    struct standardize s = rows_of(pn);
    struct step_spec spec = { "standardize back", run_backward, &s, sizeof s, 0 };
    return step_pair_back(pn, &spec, NO_SLOT, err);
}

const struct op op_standardize = {
    .kind = OP_STANDARDIZE,
    .name = "standardize",
    .onnx = NULL,
    .min_inputs = 2,
    .max_inputs = 2,
    .fields = fields,
    .shape = standardize_shape,
    .forward = standardize_forward,
    .backward = standardize_backward,
};
