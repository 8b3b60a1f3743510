/* flow.c: the slots of a graph's values and their gradients while a plan is made: requesting an
 * input in a layout adds the reorder it needs, and contributions to a gradient are summed. */
#include "net/plan/step.h"

const struct shape *in_shape(const struct plan_node *pn, int i)
{
    return graph_shape(pn->tape->graph, pn->node->inputs[i]);
}

const struct shape *out_shape(const struct plan_node *pn)
{
    return graph_shape(pn->tape->graph, pn->node->output);
}

bool has_input(const struct plan_node *pn, int i)
{
    return i < pn->node->n_inputs && pn->node->inputs[i] != NO_VALUE;
}

enum layout in_layout(const struct plan_node *pn, int i)
{
    return pn->tape->values[pn->node->inputs[i]].native;
}

enum layout in_layout_whole(const struct plan_node *pn, int i)
{
    return layout_is_whole(pn->tape, in_shape(pn, i)) ? in_layout(pn, i) : LAYOUT_PLAIN;
}

static int value_slot(struct tape *tape, value_id value, enum layout layout, struct err *err)
{
    struct value_state *state = &tape->values[value];
    if (state->slot[layout] == NO_SLOT)
        state->slot[layout] = step_reorder(tape, graph_shape(tape->graph, value),
                                           state->slot[state->native], state->native, layout, err);
    return state->slot[layout];
}

int in_slot(struct plan_node *pn, int i, enum layout layout, struct err *err)
{
    return value_slot(pn->tape, pn->node->inputs[i], layout, err);
}

int out_value(struct plan_node *pn, enum layout layout, struct err *err)
{
    return value_slot(pn->tape, pn->node->output, layout, err);
}

int out_slot(struct plan_node *pn, enum layout layout)
{
    int slot = slot_new(pn->tape, layout_bytes(pn->tape, out_shape(pn), layout));
    out_is(pn, slot, layout);
    return slot;
}

void out_is(struct plan_node *pn, int slot, enum layout layout)
{
    struct value_state *state = &pn->tape->values[pn->node->output];
    state->native = layout;
    state->slot[layout] = slot;
}

bool wants_gradient(const struct plan_node *pn, int i)
{
    return has_input(pn, i) && pn->tape->values[pn->node->inputs[i]].wants_gradient;
}

int out_gradient(struct plan_node *pn, enum layout layout, struct err *err)
{
    const struct value_state *state = &pn->tape->values[pn->node->output];
    return step_reorder(pn->tape, out_shape(pn), state->gradient, state->native, layout, err);
}

int gradient_slot(struct plan_node *pn, int i, enum layout layout)
{
    return slot_new(pn->tape, layout_bytes(pn->tape, in_shape(pn, i), layout));
}

int parameter_gradient_slot(const struct plan_node *pn, int i)
{
    return pn->tape->values[pn->node->inputs[i]].grad_slot;
}

bool gradient_add(struct plan_node *pn, int i, int slot, enum layout layout, struct err *err)
{
    struct tape *tape = pn->tape;
    struct value_state *state = &tape->values[pn->node->inputs[i]];
    slot = step_reorder(tape, in_shape(pn, i), slot, layout, state->native, err);
    if (slot == NO_SLOT)
        return err_memory(err, pn->node->name);
    if (state->grad_slot != NO_SLOT)
        return step_sum(tape, state->grad_slot, slot, state->grad_slot, err);
    if (state->gradient == NO_SLOT) {
        state->gradient = slot;
        return true;
    }
    int sum = slot_new(tape, tape->slots[slot].bytes);
    if (!step_sum(tape, state->gradient, slot, sum, err))
        return false;
    state->gradient = sum;
    return true;
}
