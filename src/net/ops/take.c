/* take.c: x and a list of places along one of its axes -> what is there, in the order of the list.
 */
#include "net/kernels/take.h"
#include "net/plan/step.h"
#include "net/ops/ops.h"

#define ATTR_STRUCT struct axis_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool take_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                       struct shape *out, struct err *err)
{
    (void)n_inputs;
    int axis = axis_of(attr->axis.axis, in[0]->rank);
    char text[SHAPE_TEXT];
    if (axis < 0)
        return no_axis(attr->axis.axis, in[0]->rank, err);
    if (in[1]->rank != 1)
        return err_set(err, ERR_FORMAT, "the places are %s; a list is needed",
                       shape_text(in[1], text));
    *out = *in[0];
    out->dim[axis] = in[1]->dim[0];
    return true;
}

static struct take take_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0);
    int axis = axis_of(pn->node->attr.axis.axis, x->rank);
    return (struct take){ shape_span(x, 0, axis), x->dim[axis], shape_span(x, axis + 1, x->rank),
                          in_shape(pn, 1)->dim[0], pn->tape->options.threads };
}

static bool run_take(const struct step *step, struct err *err)
{
    (void)err;
    take_run(step->state, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_take_back(const struct step *step, struct err *err)
{
    (void)err;
    take_back(step->state, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool add_take(struct plan_node *pn, const char *name,
                     bool (*run)(const struct step *, struct err *), int from, int to,
                     struct err *err)
{
    struct take t = take_of(pn);
    struct step_spec spec = { name, run, &t, sizeof t, 0 };
    int places = in_slot(pn, 1, LAYOUT_PLAIN, err);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, from, ACCESS_READ, err) &&
           step_use(step, places, ACCESS_READ, err) && step_use(step, to, ACCESS_WRITE, err);
}

static bool take_forward(struct plan_node *pn, struct err *err)
{
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err);
    return add_take(pn, "take", run_take, x, out_slot(pn, LAYOUT_PLAIN), err);
}

/* The places have no gradient: it is 0 wherever there is one. */
static bool take_backward(struct plan_node *pn, struct err *err)
{
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, LAYOUT_PLAIN, err), dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    return add_take(pn, "take back", run_take_back, dy, dx, err) &&
           gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

const struct op op_take = {
    .kind = OP_TAKE,
    .name = "take",
    .onnx = NULL,
    .min_inputs = 2,
    .max_inputs = 2,
    .fields = fields,
    .shape = take_shape,
    .forward = take_forward,
    .backward = take_backward,
};
