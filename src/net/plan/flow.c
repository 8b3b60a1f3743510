/* flow.c: the slots of a graph's values and their gradients while a plan is made: requesting an
 * input in a form adds the reorder and the conversion it needs, and contributions to a gradient
 * (always floats) are summed. */
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
    return pn->tape->values[pn->node->inputs[i]].native.layout;
}

enum layout out_layout(const struct plan_node *pn)
{
    return pn->tape->values[pn->node->output].native.layout;
}

const struct storage *in_storage(const struct plan_node *pn, int i)
{
    return &pn->tape->graph->values[pn->node->inputs[i]].storage;
}

enum layout in_layout_whole(const struct plan_node *pn, int i)
{
    return layout_is_whole(pn->tape, in_shape(pn, i)) ? in_layout(pn, i) : LAYOUT_PLAIN;
}

/* A slot with what is in `from`, whose layout it has, as stored numbers or as floats. */
static int rewritten(struct tape *tape, value_id value, int from, struct form form, struct err *err)
{
    const struct value *v = &tape->graph->values[value];
    bool back = form.dtype == DTYPE_FLOAT32;
    int to = slot_new(tape, form_bytes(tape, &v->shape, form));
    return step_convert(tape, &v->storage, back, from, to, err) ? to : NO_SLOT;
}

/* The way from one form to another is over floats: only they are reordered. */
static int converted(struct tape *tape, value_id value, struct form form, struct err *err)
{
    const struct shape *shape = graph_shape(tape->graph, value);
    const struct form native = tape->values[value].native;
    int from = native_slot(&tape->values[value]);
    if (native.dtype == form.dtype && layout_is_same(tape, shape))
        return from;
    if (form.dtype != DTYPE_FLOAT32)
        return rewritten(tape, value, value_slot(tape, value, FLOATS(form.layout), err), form, err);
    if (native.layout == form.layout)
        return rewritten(tape, value, from, form, err);
    return step_reorder(tape, shape, value_slot(tape, value, FLOATS(native.layout), err),
                        native.layout, form.layout, err);
}

/* The forward steps of the node that makes a value, once more, in the backward pass. */
static bool make_again(struct tape *tape, value_id value, struct err *err)
{
    const struct node *node = graph_maker(tape->graph, value);
    int32_t planning = tape->planning, i = (int32_t)(node - tape->graph->nodes);
    struct plan_node pn = { tape, node, &tape->nodes[i] };
    tape->planning = i;
    bool ok = node->op->forward(&pn, err);
    tape->planning = planning;
    return ok;
}

int value_slot(struct tape *tape, value_id value, struct form form, struct err *err)
{
    if (tape->values[value].again && native_slot(&tape->values[value]) == NO_SLOT &&
        !make_again(tape, value, err))
        return NO_SLOT;
    if (tape->values[value].slot[form.layout][form.dtype] == NO_SLOT)
        tape->values[value].slot[form.layout][form.dtype] = converted(tape, value, form, err);
    return tape->values[value].slot[form.layout][form.dtype];
}

int in_slot(struct plan_node *pn, int i, enum layout layout, struct err *err)
{
    return value_slot(pn->tape, pn->node->inputs[i], FLOATS(layout), err);
}

int in_stored(struct plan_node *pn, int i, enum layout layout, struct err *err)
{
    struct form form = { layout, in_storage(pn, i)->dtype };
    return value_slot(pn->tape, pn->node->inputs[i], form, err);
}

int out_value(struct plan_node *pn, enum layout layout, struct err *err)
{
    return value_slot(pn->tape, pn->node->output, FLOATS(layout), err);
}

int out_stored(struct plan_node *pn, struct form form)
{
    int slot = slot_new(pn->tape, form_bytes(pn->tape, out_shape(pn), form));
    out_is(pn, slot, form);
    return slot;
}

int out_slot(struct plan_node *pn, enum layout layout)
{
    return out_stored(pn, FLOATS(layout));
}

void out_is(struct plan_node *pn, int slot, struct form form)
{
    struct value_state *state = &pn->tape->values[pn->node->output];
    state->native = form;
    state->slot[form.layout][form.dtype] = slot;
}

bool wants_gradient(const struct plan_node *pn, int i)
{
    return has_input(pn, i) && pn->tape->values[pn->node->inputs[i]].wants_gradient;
}

int out_gradient(struct plan_node *pn, enum layout layout, struct err *err)
{
    const struct value_state *state = &pn->tape->values[pn->node->output];
    return step_reorder(pn->tape, out_shape(pn), state->gradient, state->native.layout, layout,
                        err);
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
    slot = step_reorder(tape, in_shape(pn, i), slot, layout, state->native.layout, err);
    if (slot == NO_SLOT)
        return err_memory(err, pn->node->name);
    if (state->grad_slot != NO_SLOT)
        return plan_units_joined(pn, err) &&
               step_sum(tape, state->grad_slot, slot, state->grad_slot, err);
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
