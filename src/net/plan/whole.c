/* whole.c: the ordinary execution: the whole graph at once, as one tape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/plan/execution.h"
#include "net/plan/tape.h"

struct whole {
    struct plan plan;
    struct tape tape;
};

static struct tape *tape_of(struct plan *plan)
{
    return &((struct whole *)plan)->tape;
}

const struct tape *plan_tape(const struct plan *plan)
{
    return plan->ops == &plan_whole ? &((const struct whole *)plan)->tape : NULL;
}

static void whole_free(struct plan *plan)
{
    tape_free(tape_of(plan));
    free(plan);
}

/* Into how many segments the forward pass is cut; 1: nothing is recomputed. */
static bool choose_segments(const struct tape *tape, int *segments, struct err *err)
{
    const struct plan_options *options = &tape->options;
    *segments = 1;
    if (options->saving != SAVING_RECOMPUTE || options->mode == PLAN_INFER)
        return true;
    size_t bytes;
    if (options->arena_budget)
        return tape_fit(tape, options->arena_budget, segments, &bytes, err);
    *segments = (int)ceil(sqrt((double)tape->graph->n_nodes));
    return true;
}

static bool whole_make(const struct graph *graph, const struct plan_options *options,
                       struct plan **out, struct err *err)
{
    struct whole *whole = calloc(1, sizeof *whole);
    int segments;
    if (!whole)
        return err_memory(err, graph->name);
    if (!tape_begin(&whole->tape, graph, options, err) ||
        !choose_segments(&whole->tape, &segments, err) ||
        !tape_finish(&whole->tape, segments, err)) {
        whole_free(&whole->plan);
        return false;
    }
    *out = &whole->plan;
    return true;
}

bool whole_estimate(const struct graph *graph, const struct plan_options *options,
                    struct plan_estimate *out, struct err *err)
{
    struct tape tape;
    bool fit = options->saving == SAVING_RECOMPUTE && options->mode != PLAN_INFER &&
               options->arena_budget > 0;
    bool ok = tape_begin(&tape, graph, options, err);
    if (ok && fit)
        ok = tape_fit(&tape, options->arena_budget, &out->segments, &out->arena, err);
    else if (ok)
        ok = choose_segments(&tape, &out->segments, err) &&
             tape_estimate(&tape, out->segments, &out->arena, err);
    out->plan = ok ? tape_own_bytes(&tape, true) + tape_jit_bytes(&tape) : 0;
    for (int i = 0; ok && i < tape.n_slots; i++)
        out->plan += tape.slots[i].home == SLOT_WEIGHTS ? tape.slots[i].bytes : 0;
    tape_free(&tape);
    return ok;
}

static bool whole_forward(struct plan *plan, struct err *err)
{
    struct tape *tape = tape_of(plan);
    return tape_run(tape, 0, tape->begin_backward, PHASE_FORWARD, err);
}

static bool whole_forward_until(struct plan *plan, value_id value, struct err *err)
{
    struct tape *tape = tape_of(plan);
    return tape_run(tape, 0, tape->values[value].ready, PHASE_FORWARD, err);
}

static bool whole_backward(struct plan *plan, struct err *err)
{
    struct tape *tape = tape_of(plan);
    memset(tape->squares, 0, (size_t)tape->units * sizeof *tape->squares);
    return tape_run(tape, tape->begin_backward, tape->n_steps, PHASE_BACKWARD, err);
}

static bool whole_join(struct plan *plan, const double *factors, struct err *err)
{
    struct tape *tape = tape_of(plan);
    memcpy(tape->factors, factors, (size_t)tape->units * sizeof *factors);
    return tape_run(tape, tape->begin_backward, tape->n_steps, PHASE_JOIN, err);
}

static const double *whole_unit_squares(const struct plan *plan)
{
    return plan_tape(plan)->squares;
}

static bool whole_is_joined(const struct plan *plan, value_id parameter)
{
    return plan_tape(plan)->values[parameter].joined;
}

static bool whole_backward_half(struct plan *plan, enum plan_half half, struct err *err)
{
    struct tape *tape = tape_of(plan);
    if (!tape->options.split_backward)
        return err_set(err, ERR_USAGE,
                       "%s: the halves of a backward pass run apart only with split_backward",
                       plan->graph->name);
    return half == PLAN_HALF_INPUTS
               ? tape_run(tape, tape->begin_backward, tape->begin_weights, PHASE_BACKWARD, err)
               : tape_run(tape, tape->begin_weights, tape->n_steps, PHASE_BACKWARD, err);
}

static void whole_on_step(struct plan *plan, plan_step_hook hook, void *arg)
{
    struct tape *tape = tape_of(plan);
    tape->step_hook = hook, tape->step_arg = arg;
}

static void whole_hold_statistics(struct plan *plan, bool hold)
{
    tape_of(plan)->hold = hold;
}

static bool whole_refresh(struct plan *plan, struct err *err)
{
    struct tape *tape = tape_of(plan);
    return tape_run(tape, 0, tape->n_steps, PHASE_PREPARE, err);
}

static void whole_set_random(struct plan *plan, struct plan_random random)
{
    tape_of(plan)->random = random;
}

static float *whole_input(struct plan *plan, int i)
{
    const struct tape *tape = tape_of(plan);
    const struct value_state *state = &tape->values[tape->graph->inputs[i].value];
    return (float *)(void *)tape->slots[native_slot(state)].at;
}

static const float *whole_output(const struct plan *plan, int i)
{
    const struct tape *tape = plan_tape(plan);
    const struct value_state *state = &tape->values[tape->graph->outputs[i].value];
    return (const float *)(const void *)tape->slots[state->slot[LAYOUT_PLAIN][DTYPE_FLOAT32]].at;
}

static float *whole_output_gradient(struct plan *plan, int i)
{
    const struct tape *tape = tape_of(plan);
    return (float *)(void *)tape->slots[tape->outputs[i]].at;
}

static float *whole_gradients(struct plan *plan, int64_t *count)
{
    *count = tape_of(plan)->n_gradients;
    return tape_of(plan)->gradients;
}

static float *whole_parameter_gradient(struct plan *plan, value_id parameter)
{
    const struct tape *tape = tape_of(plan);
    int64_t offset = tape->values[parameter].grad_offset;
    return offset < 0 ? NULL : tape->gradients + offset;
}

static void whole_on_gradient(struct plan *plan, plan_gradient_hook hook, void *arg)
{
    struct tape *tape = tape_of(plan);
    tape->hook = hook, tape->hook_arg = arg;
}

static bool whole_activation(struct plan *plan, value_id value, bool gradient, float *out,
                             struct err *err)
{
    return tape_read(tape_of(plan), value, gradient, out, err);
}

static struct plan_memory whole_memory(const struct plan *plan)
{
    return tape_memory(plan_tape(plan));
}

static int whole_steps(const struct plan *plan)
{
    return tape_steps(plan_tape(plan));
}

static void whole_print(const struct plan *plan, FILE *stream)
{
    tape_print(plan_tape(plan), stream);
}

static value_id value_at(const struct tape *tape, enum plan_port port, int i)
{
    const struct graph *graph = tape->graph;
    return port == PLAN_PORT_INPUT ? graph->inputs[i].value : graph->outputs[i].value;
}

static struct plan_end whole_end(const struct plan *plan, enum plan_port port, int i)
{
    const struct tape *tape = plan_tape(plan);
    value_id value = value_at(tape, port, i);
    enum layout layout = tape->values[value].native.layout;
    return (struct plan_end){ layout, layout_bytes(tape, graph_shape(tape->graph, value), layout) };
}

static void whole_move(struct plan *plan, enum plan_port port, int i, void *at)
{
    struct tape *tape = tape_of(plan);
    const struct value_state *state = &tape->values[value_at(tape, port, i)];
    tape_move(tape, state->slot[state->native.layout][DTYPE_FLOAT32], at);
}

const struct plan_ops plan_whole = {
    .name = "whole",
    .make = whole_make,
    .free = whole_free,
    .input = whole_input,
    .output = whole_output,
    .forward = whole_forward,
    .memory = whole_memory,
    .steps = whole_steps,
    .print = whole_print,
    .forward_until = whole_forward_until,
    .refresh = whole_refresh,
    .activation = whole_activation,
    .set_random = whole_set_random,
    .on_step = whole_on_step,
    .hold_statistics = whole_hold_statistics,
    .backward = whole_backward,
    .backward_half = whole_backward_half,
    .output_gradient = whole_output_gradient,
    .gradients = whole_gradients,
    .parameter_gradient = whole_parameter_gradient,
    .on_gradient = whole_on_gradient,
    .unit_squares = whole_unit_squares,
    .is_joined = whole_is_joined,
    .join = whole_join,
    .tape = plan_tape,
    .end = whole_end,
    .move = whole_move,
};
