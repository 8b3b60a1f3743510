/* carry.c: one tile of an image with cells of its neighbours, which whoever runs the tiles gives
 * and whose gradients it takes (struct plan_carry; net/stream). */
#include "net/ops/ops.h"
#include "net/plan/step.h"

#define ATTR_STRUCT struct carry_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_INT, index, 1, 0, ATTR_LIMIT),
    FIELD(ATTR_INT, extent, 2, 1, ATTR_LIMIT),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool carry_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                        struct shape *out, struct err *err)
{
    (void)n_inputs;
    if (!shape_is_image(in[0], err))
        return false;
    *out = *in[0];
    for (int i = 0; i < 2; i++)
        out->dim[2 + i] = attr->carry.extent[i];
    return true;
}

struct carrying {
    struct plan_carry carry;
    int index;
};

static bool run_carry(const struct step *step, struct err *err)
{
    (void)err;
    const struct carrying *c = step->state;
    c->carry.forward(c->carry.arg, c->index, step->at[0], step->at[1]);
    return true;
}

static bool run_carry_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct carrying *c = step->state;
    c->carry.backward(c->carry.arg, c->index, step->at[0], step->at[1]);
    return true;
}

static bool add_carry(struct plan_node *pn, bool back, int from, int to, struct err *err)
{
    const struct plan_carry *carry = pn->tape->options.carry;
    if (!carry)
        return err_set(err, ERR_USAGE, "it can only run as part of a streamed network");
    struct carrying c = { *carry, (int)pn->node->attr.carry.index };
    struct step_spec spec = { back ? "carry back" : "carry", back ? run_carry_back : run_carry, &c,
                              sizeof c, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, from, ACCESS_READ, err) || !step_use(step, to, ACCESS_WRITE, err))
        return false;
    step->talks = true; /* to other tiles: once in a pass */
    return true;
}

static bool carry_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = carry_layout(pn->tape, in_shape(pn, 0));
    int x = in_slot(pn, 0, layout, err);
    return add_carry(pn, false, x, out_slot(pn, layout), err);
}

static bool carry_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, layout, err), dx = gradient_slot(pn, 0, layout);
    return add_carry(pn, true, dy, dx, err) && gradient_add(pn, 0, dx, layout, err);
}

const struct op op_carry = {
    .kind = OP_CARRY,
    .name = "carry",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = carry_shape,
    .forward = carry_forward,
    .backward = carry_backward,
};
