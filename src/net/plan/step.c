/* step.c: slots and steps as they are collected while a plan is made. */
#include "net/plan/step.h"
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/divide.h"
#include "net/kernels/elementwise.h"

int slot_new(struct tape *tape, size_t bytes)
{
    if (!array_grow(&tape->slots, &tape->room_slots, tape->n_slots + 1, sizeof *tape->slots, "plan",
                    NULL))
        return NO_SLOT;
    tape->slots[tape->n_slots] =
        (struct slot){ .bytes = bytes, .first = -1, .last = -1, .root = tape->n_slots };
    return tape->n_slots++;
}

int slot_outside(struct tape *tape, void *at, size_t bytes)
{
    int slot = slot_new(tape, bytes);
    if (slot != NO_SLOT) {
        tape->slots[slot].home = SLOT_OUTSIDE;
        tape->slots[slot].at = at;
    }
    return slot;
}

int slot_view(struct tape *tape, int slot, size_t offset, size_t bytes)
{
    int view = slot == NO_SLOT ? NO_SLOT : slot_new(tape, bytes);
    if (view != NO_SLOT)
        tape->slots[view].root = slot, tape->slots[view].offset = offset;
    return view;
}

int slot_root(const struct tape *tape, int slot)
{
    while (tape->slots[slot].root != slot)
        slot = tape->slots[slot].root;
    return slot;
}

size_t slot_offset(const struct tape *tape, int slot)
{
    size_t offset = 0;
    while (tape->slots[slot].root != slot) {
        offset += tape->slots[slot].offset;
        slot = tape->slots[slot].root;
    }
    return offset;
}

bool layout_is_whole(const struct tape *tape, const struct shape *shape)
{
    return shape->rank == 4 && shape->dim[1] % tape->block == 0;
}

bool layout_is_same(const struct tape *tape, const struct shape *shape)
{
    /* One pixel with whole blocks lies the same way in both. */
    return shape->rank == 4 && shape->dim[2] * shape->dim[3] == 1 && layout_is_whole(tape, shape);
}

enum layout carry_layout(const struct tape *tape, const struct shape *shape)
{
    return shape->dim[1] >= tape->block ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
}

void layout_extents(const struct tape *tape, const struct shape *shape, enum layout layout,
                    int64_t extents[5])
{
    for (int i = 0; i < 5; i++)
        extents[i] = 1;
    if (layout == LAYOUT_BLOCKED) {
        for (int i = 0; i < 4; i++)
            extents[i] = shape->dim[i];
        extents[1] = ceil_div(shape->dim[1], tape->block);
        extents[4] = tape->block;
        return;
    }
    int lead = shape->rank < 4 ? 4 - shape->rank : 0;
    for (int i = 0; i < shape->rank; i++)
        if (i + lead < 4)
            extents[i + lead] = shape->dim[i];
        else
            extents[3] *= shape->dim[i];
}

int64_t layout_count(const struct tape *tape, const struct shape *shape, enum layout layout)
{
    int64_t extents[5], count = 1;
    layout_extents(tape, shape, layout, extents);
    for (int i = 0; i < 5; i++)
        count *= extents[i];
    return count;
}

size_t form_bytes(const struct tape *tape, const struct shape *shape, struct form form)
{
    return (size_t)layout_count(tape, shape, form.layout) * dtype_bytes(form.dtype);
}

size_t layout_bytes(const struct tape *tape, const struct shape *shape, enum layout layout)
{
    return form_bytes(tape, shape, FLOATS(layout));
}

struct step *step_add(struct tape *tape, const struct step_spec *spec, struct err *err)
{
    bool ok = array_grow(&tape->steps, &tape->room_steps, tape->n_steps + 1, sizeof *tape->steps,
                         spec->kernel, NULL);
    void *state = ok ? malloc(spec->state_size + 1) : NULL;
    if (!state) {
        err_memory(err, spec->kernel);
        return NULL;
    }
    if (spec->state_size)
        memcpy(state, spec->state, spec->state_size);
    struct step *step = &tape->steps[tape->n_steps++];
    *step = (struct step){ .kernel = spec->kernel,
                           .node = tape->planning,
                           .phase = tape->phase,
                           .run = spec->run,
                           .state = state,
                           .from = -1,
                           .from_too = -1,
                           .to = -1,
                           .flops = spec->flops };
    return step;
}

void step_use_optional(struct step *step, int slot, enum access access)
{
    step->slot[step->n_slots] = slot;
    step->access[step->n_slots++] = access;
}

bool step_use(struct step *step, int slot, enum access access, struct err *err)
{
    if (slot == NO_SLOT)
        return err_memory(err, step->kernel);
    step_use_optional(step, slot, access);
    return true;
}

void step_in_place(struct step *step, int from, int from_too, int to)
{
    step->sharing = SHARING_IN_PLACE;
    step->from = from, step->from_too = from_too, step->to = to;
}

/* --- units --- */

int64_t unit_rows(const struct plan_node *pn, int64_t rows)
{
    return rows / pn->tape->units;
}

static bool is_gradient(const struct tape *tape, int slot)
{
    for (int32_t i = 0; i < tape->graph->n_values; i++)
        if (tape->values[i].grad_slot == slot)
            return true;
    return false;
}

void step_each_unit(struct tape *tape, struct step *step, uint32_t apart)
{
    step->units = tape->units;
    for (int k = 0; k < step->n_slots; k++) {
        int slot = step->slot[k];
        if (slot == NO_SLOT)
            continue;
        if (apart & 1u << k)
            step->unit_bytes[k] = tape->slots[slot].bytes / (size_t)step->units;
        else if (is_gradient(tape, slot))
            step->unit_bytes[k] = (size_t)tape->n_gradients * sizeof(float);
    }
}

bool plan_units_joined(const struct plan_node *pn, struct err *err)
{
    return pn->tape->units == 1 ||
           err_set(err, ERR_USAGE, "the gradients of its parameters cannot be kept apart by unit");
}

bool prepares_once(const struct tape *tape, value_id weight)
{
    return (tape->options.mode == PLAN_INFER || tape->options.weights) &&
           graph_is_parameter(tape->graph, weight);
}

struct copy_state {
    size_t offset, bytes;
};

/* The same numbers may be weights of several shapes (a linear layer that became a convolution), and
 * a weight may be used with several biases. */
static uint64_t weights_key(const struct plan_node *pn, const struct step_layout *layout)
{
    const uint64_t spread = 0x9e3779b97f4a7c15; /* of no meaning: odd, and its bits are mixed */
    const struct shape *weight = in_shape(pn, 1);
    uint64_t key = layout->key;
    for (int i = 0; i < weight->rank; i++)
        key = key * spread + (uint64_t)weight->dim[i];
    if (layout->with_bias && has_input(pn, 2))
        key ^= (uint64_t)(uintptr_t)pn->tape->graph->values[pn->node->inputs[2]].data << 8;
    return key;
}

bool step_pair_back(struct plan_node *pn, const struct step_spec *spec, int scratch,
                    struct err *err)
{
    int read[3], d[2];
    if (!wants_gradient(pn, 0) && !wants_gradient(pn, 1))
        return true;
    for (int i = 0; i < 2; i++)
        read[i] = in_slot(pn, i, LAYOUT_PLAIN, err);
    read[2] = out_gradient(pn, LAYOUT_PLAIN, err);
    for (int i = 0; i < 2; i++)
        d[i] = wants_gradient(pn, i) ? gradient_slot(pn, i, LAYOUT_PLAIN) : NO_SLOT;
    struct step *step = step_add(pn->tape, spec, err);
    for (int i = 0; i < 3; i++)
        if (!step || !step_use(step, read[i], ACCESS_READ, err))
            return false;
    for (int i = 0; i < 2; i++)
        step_use_optional(step, d[i], ACCESS_WRITE);
    step_use_optional(step, scratch, ACCESS_WRITE);
    for (int i = 0; i < 2; i++)
        if (d[i] != NO_SLOT && !gradient_add(pn, i, d[i], LAYOUT_PLAIN, err))
            return false;
    return true;
}

int step_prepare(struct plan_node *pn, const struct step_spec *spec,
                 const struct step_layout *layout, struct err *err)
{
    struct tape *tape = pn->tape;
    bool with_bias = layout->with_bias && has_input(pn, 2);
    int from = in_slot(pn, 1, LAYOUT_PLAIN, err), to = slot_new(tape, layout->bytes);
    int bias = with_bias ? in_slot(pn, 2, LAYOUT_PLAIN, err) : NO_SLOT;
    if (from == NO_SLOT || to == NO_SLOT || (with_bias && bias == NO_SLOT))
        return NO_SLOT;
    enum step_phase phase = tape->phase;
    if (prepares_once(tape, pn->node->inputs[1])) {
        struct slot *slot = &tape->slots[to];
        slot->home = SLOT_WEIGHTS;
        slot->source = tape->graph->values[pn->node->inputs[1]].data;
        slot->key = weights_key(pn, layout);
        tape->phase = PHASE_PREPARE;
    }
    struct step *step = step_add(tape, spec, err);
    tape->phase = phase;
    if (!step || !step_use(step, from, ACCESS_READ, err))
        return NO_SLOT;
    step_use_optional(step, bias, ACCESS_READ);
    return step_use(step, to, ACCESS_WRITE, err) ? to : NO_SLOT;
}

static bool run_copy(const struct step *step, struct err *err)
{
    (void)err;
    const struct copy_state *state = step->state;
    memcpy((char *)step->at[1] + state->offset, step->at[0], state->bytes);
    return true;
}

bool step_copy(struct tape *tape, int src, int dst, size_t copy_offset, size_t bytes,
               struct err *err)
{
    struct copy_state state = { copy_offset, bytes };
    struct step_spec spec = { "copy", run_copy, &state, sizeof state, 0 };
    struct step *step = step_add(tape, &spec, err);
    if (!step || !step_use(step, src, ACCESS_READ, err) || !step_use(step, dst, ACCESS_WRITE, err))
        return false;
    step->sharing = SHARING_COPY;
    step->from = 0, step->to = 1;
    step->copy_offset = copy_offset;
    return true;
}

struct sum_state {
    int64_t count;
    int threads;
};

static bool run_sum(const struct step *step, struct err *err)
{
    (void)err;
    const struct sum_state *state = step->state;
    elementwise_add(state->count, step->at[0], step->at[1], step->at[2], state->threads);
    return true;
}

bool step_sum(struct tape *tape, int a, int b, int dst, struct err *err)
{
    if (a == NO_SLOT || b == NO_SLOT || dst == NO_SLOT)
        return err_memory(err, "sum");
    struct sum_state state = { (int64_t)(tape->slots[dst].bytes / sizeof(float)),
                               tape->options.threads };
    struct step_spec spec = { "sum", run_sum, &state, sizeof state, 0 };
    struct step *step = step_add(tape, &spec, err);
    if (!step)
        return false;
    step_use_optional(step, a, ACCESS_READ);
    step_use_optional(step, b, ACCESS_READ);
    step_use_optional(step, dst, ACCESS_WRITE);
    step_in_place(step, 0, 1, 2);
    return true;
}
