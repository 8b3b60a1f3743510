/* tape.c: from a graph to the steps of a tape. Nodes are planned in order, then (for training) once
 * more from the last to the first for the backward pass; memory.c places the tensors. */
#include "net/plan/tape.h"
#include <omp.h>
#include <stdlib.h>
#include "net/plan/lower.h"

static bool trains(const struct tape *tape)
{
    return tape->options.mode != PLAN_INFER;
}

static size_t gradient_bytes(const struct tape *tape)
{
    return (size_t)(tape->units * tape->n_gradients) * sizeof(float);
}

void tape_free(struct tape *tape)
{
    for (int i = 0; i < tape->n_steps; i++) {
        struct step *step = &tape->steps[i];
        if (step->borrowed)
            continue;
        if (step->destroy)
            step->destroy(step->state);
        else
            free(step->state);
    }
    for (int32_t i = 0; tape->nodes && i < tape->graph->n_nodes; i++)
        if (tape->nodes[i].hint)
            lower_forget(tape->nodes[i].hint);
    lower_close(tape);
    tape_release(tape);
    free(tape->steps), free(tape->slots), free(tape->values), free(tape->nodes);
    free(tape->outputs), free(tape->squares), free(tape->factors);
    if (!tape->gradients_lent)
        memory_return((char *)tape->gradients, gradient_bytes(tape));
}

/* Learnt parameters, one after another in the order of the graph. */
static bool allot_gradients(struct tape *tape, struct err *err)
{
    const struct graph *graph = tape->graph;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_PARAMETER) {
            tape->values[i].grad_offset = tape->n_gradients;
            tape->n_gradients += shape_count(&graph->values[i].shape);
        }
    tape->gradients_lent = tape->options.gradients != NULL;
    tape->gradients = tape->gradients_lent ? tape->options.gradients
                                           : (float *)(void *)memory_reserve(gradient_bytes(tape));
    tape->squares = calloc((size_t)tape->units, sizeof *tape->squares);
    tape->factors = calloc((size_t)tape->units, sizeof *tape->factors);
    if (!tape->gradients || !tape->squares || !tape->factors)
        return err_memory(err, "gradients");
    for (int32_t i = 0; i < graph->n_values; i++) {
        struct value_state *state = &tape->values[i];
        if (state->grad_offset >= 0)
            state->grad_slot =
                slot_outside(tape, tape->gradients + state->grad_offset,
                             (size_t)shape_count(&graph->values[i].shape) * sizeof(float));
    }
    return true;
}

static bool begin_values(struct tape *tape, struct err *err)
{
    const struct graph *graph = tape->graph;
    for (int32_t i = 0; i < graph->n_values; i++) {
        struct value_state *state = &tape->values[i];
        *state = (struct value_state){
            .gradient = NO_SLOT, .grad_offset = -1, .grad_slot = NO_SLOT, .grad_last = -1
        };
        for (int k = 0; k < LAYOUTS * DTYPES; k++)
            state->slot[k / DTYPES][k % DTYPES] = NO_SLOT;
        const struct value *value = &graph->values[i];
        size_t bytes = (size_t)shape_count(&value->shape) * sizeof(float);
        if (graph_is_parameter(graph, i)) {
            state->slot[LAYOUT_PLAIN][DTYPE_FLOAT32] =
                slot_outside(tape, buffer_data(value->data), bytes);
        } else if (value->kind == VALUE_INPUT) {
            bool blocked = tape->options.ends == PLAN_ENDS_BLOCKED_INPUTS;
            state->native = FLOATS(blocked ? LAYOUT_BLOCKED : LAYOUT_PLAIN);
            state->slot[state->native.layout][DTYPE_FLOAT32] =
                slot_new(tape, form_bytes(tape, &value->shape, state->native));
            state->keep = true;
        }
        state->wants_gradient =
            trains(tape) && (value->kind == VALUE_PARAMETER ||
                             (value->kind == VALUE_INPUT && tape->options.input_gradients));
    }
    for (int i = 0; i < tape->options.n_keep; i++) {
        tape->values[tape->options.keep[i]].keep = true;
        tape->values[tape->options.keep[i]].wants_gradient |= trains(tape);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        tape->values[graph->outputs[i].value].keep = true;
    return !trains(tape) || allot_gradients(tape, err);
}

static bool plan_one(struct tape *tape, int32_t i, bool backward, struct err *err)
{
    const struct node *node = &tape->graph->nodes[i];
    struct plan_node pn = { tape, node, &tape->nodes[i] };
    tape->planning = i;
    bool ok = backward ? node->op->backward(&pn, err) : node->op->forward(&pn, err);
    tape->planning = -1;
    if (!ok) {
        err_prefix(err, node->op->name);
        return err_prefix(err, node->name);
    }
    return true;
}

/* Outputs are floats. */
static bool plan_outputs(struct tape *tape, struct err *err)
{
    bool native = tape->options.ends == PLAN_ENDS_NATIVE_OUTPUTS;
    for (int i = 0; i < tape->graph->n_outputs; i++) {
        value_id value = tape->graph->outputs[i].value;
        struct form form = FLOATS(native ? tape->values[value].native.layout : LAYOUT_PLAIN);
        if (value_slot(tape, value, form, err) == NO_SLOT)
            return false;
    }
    return true;
}

static bool plan_forward_pass(struct tape *tape, struct err *err)
{
    const struct graph *graph = tape->graph;
    tape->phase = PHASE_FORWARD;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NO_VALUE && tape->values[node->inputs[k]].wants_gradient)
                tape->values[node->output].wants_gradient = true;
        if (!plan_one(tape, i, false, err))
            return false;
        tape->values[node->output].ready = tape->n_steps;
    }
    return plan_outputs(tape, err);
}

/* The backward pass starts from the gradients of the outputs. */
static bool begin_gradients(struct tape *tape, struct err *err)
{
    const struct graph *graph = tape->graph;
    for (int i = 0; i < graph->n_outputs; i++) {
        value_id value = graph->outputs[i].value;
        struct value_state *state = &tape->values[value];
        const struct shape *shape = graph_shape(graph, value);
        int slot = slot_new(tape, layout_bytes(tape, shape, LAYOUT_PLAIN));
        if (slot == NO_SLOT)
            return err_memory(err, "gradients");
        tape->slots[slot].home = SLOT_KEPT;
        tape->outputs[i] = slot;
        int native = step_reorder(tape, shape, slot, LAYOUT_PLAIN, state->native.layout, err);
        if (native == NO_SLOT)
            return false;
        if (state->gradient == NO_SLOT) {
            state->gradient = native;
            continue;
        }
        int sum = slot_new(tape, tape->slots[native].bytes);
        if (!step_sum(tape, state->gradient, native, sum, err))
            return false;
        state->gradient = sum;
    }
    return true;
}

/* What is gathered again in the backward pass is not kept for it. */
static void forget_gathered(struct tape *tape)
{
    for (int32_t i = 0; i < tape->graph->n_nodes; i++) {
        const struct node *node = &tape->graph->nodes[i];
        struct value_state *state = &tape->values[node->output];
        if (node->op->kind != OP_ALL_GATHER || !node->attr.all_gather.again || state->keep)
            continue;
        state->again = true;
        for (int k = 0; k < LAYOUTS * DTYPES; k++)
            state->slot[k / DTYPES][k % DTYPES] = NO_SLOT;
    }
}

/* Floats that the forward pass made of stored numbers are not kept for the backward pass, which
 * makes them again where it needs them. */
static void forget_restored(struct tape *tape)
{
    for (int32_t i = 0; i < tape->graph->n_values; i++) {
        struct value_state *state = &tape->values[i];
        for (int k = 0; k < LAYOUTS && state->native.dtype != DTYPE_FLOAT32 && !state->keep; k++)
            state->slot[k][DTYPE_FLOAT32] = NO_SLOT;
    }
}

static bool plan_backward_pass(struct tape *tape, struct err *err)
{
    const struct graph *graph = tape->graph;
    tape->phase = PHASE_BACKWARD;
    forget_restored(tape);
    forget_gathered(tape);
    if (!begin_gradients(tape, err))
        return false;
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--) {
        const struct value_state *output = &tape->values[graph->nodes[i].output];
        if (output->wants_gradient && output->gradient != NO_SLOT && !plan_one(tape, i, true, err))
            return false;
    }
    return true;
}

static void keep_slot(struct tape *tape, int slot)
{
    if (slot == NO_SLOT)
        return;
    slot = slot_root(tape, slot);
    if (tape->slots[slot].home == SLOT_ARENA)
        tape->slots[slot].home = SLOT_KEPT;
}

static void keep_values(struct tape *tape)
{
    for (int32_t i = 0; i < tape->graph->n_values; i++) {
        const struct value_state *state = &tape->values[i];
        if (state->keep) {
            keep_slot(tape, native_slot(state));
            keep_slot(tape, state->gradient);
        }
    }
    for (int i = 0; i < tape->graph->n_outputs; i++)
        for (int k = 0; k < LAYOUTS; k++)
            keep_slot(tape, tape->values[tape->graph->outputs[i].value].slot[k][DTYPE_FLOAT32]);
}

/* When the gradient of each parameter is complete. */
static void find_last_additions(struct tape *tape)
{
    for (int32_t i = 0; i < tape->graph->n_values; i++) {
        struct value_state *state = &tape->values[i];
        for (int s = tape->n_steps - 1; state->grad_slot != NO_SLOT && s >= tape->begin_backward;
             s--) {
            const struct step *step = &tape->steps[s];
            bool touches = false;
            for (int k = 0; k < step->n_slots; k++)
                touches = touches || step->slot[k] == state->grad_slot;
            if (touches) {
                state->grad_last = s;
                break;
            }
        }
    }
}

static void forget_hints(struct tape *tape)
{
    for (int32_t i = 0; i < tape->graph->n_nodes; i++)
        if (tape->nodes[i].hint) {
            lower_forget(tape->nodes[i].hint);
            tape->nodes[i].hint = NULL;
        }
}

static bool build(struct tape *tape, struct err *err)
{
    if (!lower_open(tape, err) || !begin_values(tape, err) || !plan_forward_pass(tape, err))
        return false;
    tape->begin_backward = tape->n_steps;
    if (trains(tape) && !plan_backward_pass(tape, err))
        return false;
    if (tape->units > 1 && !tape_join_last(tape, err))
        return false;
    keep_values(tape);
    forget_hints(tape);
    if (trains(tape) && tape->options.split_backward)
        return tape_split(tape, err);
    if (trains(tape) && !tape->options.wait_for_sums && !tape_overlap(tape, err))
        return false;
    return !trains(tape) || !tape->options.profile || tape_mark_weights(tape, err);
}

bool tape_begin(struct tape *tape, const struct graph *graph, const struct plan_options *options,
                struct err *err)
{
    *tape = (struct tape){ .graph = graph, .options = *options, .planning = -1 };
    tape->units = options->units > 1 ? options->units : 1;
    tape->values = calloc((size_t)graph->n_values + 1, sizeof *tape->values);
    tape->nodes = calloc((size_t)graph->n_nodes + 1, sizeof *tape->nodes);
    tape->outputs = calloc((size_t)graph->n_outputs + 1, sizeof *tape->outputs);
    int threads = omp_get_max_threads();
    omp_set_num_threads(options->threads);
    bool ok = tape->values && tape->nodes && tape->outputs ? build(tape, err)
                                                           : err_memory(err, graph->name);
    tape->options.keep = NULL; /* was the caller's, and has been noted */
    omp_set_num_threads(threads);
    return ok;
}

/* Steps that save memory, addresses, weights in the kernels' layouts. */
static bool finish(struct tape *tape, int segments, struct err *err)
{
    if (trains(tape) && segments > 1 && !tape_recompute(tape, segments, err))
        return false;
    if (trains(tape) && tape->options.saving == SAVING_HALF && !tape_half(tape, err))
        return false;
    find_last_additions(tape);
    for (tape->begin_weights = tape->begin_backward; tape->begin_weights < tape->n_steps;
         tape->begin_weights++)
        if (tape->options.split_backward && tape->steps[tape->begin_weights].only_weights)
            break;
    if (!tape_place(tape, err) || !tape_run(tape, 0, tape->n_steps, PHASE_PREPARE, err))
        return false;
    tape_fill_shared(tape);
    return true;
}

bool tape_finish(struct tape *tape, int segments, struct err *err)
{
    struct plan_weights *weights = tape->options.weights;
    int threads = omp_get_max_threads();
    omp_set_num_threads(tape->options.threads);
    if (weights)
        plan_weights_lock(weights);
    bool ok = finish(tape, segments, err);
    if (weights)
        plan_weights_unlock(weights);
    omp_set_num_threads(threads);
    return ok;
}
