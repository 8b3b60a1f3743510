/* plan.c: from a graph to steps, and running them. Nodes are planned in order, then (for training)
 * once more from the last to the first for the backward pass; plan_memory.c places the tensors. */
#include "net/plan/plan.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "net/plan/lower.h"
#include "net/plan/by_image.h"
#include "net/plan/weave.h"
#include "net/graph/transform.h"
#include "base/clock.h"

static bool trains(const struct plan *plan)
{
    return plan->options.mode != PLAN_INFER;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    plan_free(plan->single);
    plan_images_free(plan->images);
    for (int i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];
        if (step->borrowed)
            continue;
        if (step->destroy)
            step->destroy(step->state);
        else
            free(step->state);
    }
    for (int32_t i = 0; plan->nodes && i < plan->graph->n_nodes; i++)
        if (plan->nodes[i].hint)
            lower_forget(plan->nodes[i].hint);
    lower_close(plan);
    plan_release(plan);
    free(plan->steps), free(plan->slots), free(plan->values), free(plan->nodes);
    free(plan->outputs);
    free(plan->gradients);
    graph_free(plan->own_graph);
    free(plan);
}

static bool check_options(const struct graph *graph, const struct plan_options *options,
                          struct err *err)
{
    if (options->threads < 1)
        return err_set(err, ERR_USAGE, "%s: a plan needs at least one thread", graph->name);
    if (options->winograd_tile < 0 || options->winograd_tile > 6 || options->winograd_tile % 2)
        return err_set(err, ERR_USAGE, "%s: Winograd tiles are 2, 4 or 6", graph->name);
    for (int i = 0; i < options->n_keep; i++)
        if (options->keep[i] < 0 || options->keep[i] >= graph->n_values)
            return err_set(err, ERR_USAGE, "%s: a value to keep is not in the graph", graph->name);
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph_is_parameter(graph, i) && !graph->values[i].data)
            return err_set(err, ERR_MISSING,
                           "%s: has no values yet; load or initialise the weights",
                           graph->values[i].name);
    return graph_ok(graph, err);
}

/* Learnt parameters, one after another in the order of the graph. */
static bool allot_gradients(struct plan *plan, struct err *err)
{
    const struct graph *graph = plan->graph;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_PARAMETER) {
            plan->values[i].grad_offset = plan->n_gradients;
            plan->n_gradients += shape_count(&graph->values[i].shape);
        }
    plan->gradients = calloc((size_t)plan->n_gradients + 1, sizeof *plan->gradients);
    if (!plan->gradients)
        return err_memory(err, "gradients");
    for (int32_t i = 0; i < graph->n_values; i++) {
        struct value_state *state = &plan->values[i];
        if (state->grad_offset >= 0)
            state->grad_slot =
                slot_outside(plan, plan->gradients + state->grad_offset,
                             (size_t)shape_count(&graph->values[i].shape) * sizeof(float));
    }
    return true;
}

static bool begin_values(struct plan *plan, struct err *err)
{
    const struct graph *graph = plan->graph;
    for (int32_t i = 0; i < graph->n_values; i++) {
        struct value_state *state = &plan->values[i];
        *state = (struct value_state){ .slot = { NO_SLOT, NO_SLOT },
                                       .gradient = NO_SLOT,
                                       .grad_offset = -1,
                                       .grad_slot = NO_SLOT,
                                       .grad_last = -1 };
        const struct value *value = &graph->values[i];
        size_t bytes = (size_t)shape_count(&value->shape) * sizeof(float);
        if (graph_is_parameter(graph, i)) {
            state->slot[LAYOUT_PLAIN] = slot_outside(plan, buffer_data(value->data), bytes);
        } else if (value->kind == VALUE_INPUT) {
            bool blocked = plan->options.ends == PLAN_ENDS_BLOCKED_INPUTS;
            state->native = blocked ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
            state->slot[state->native] =
                slot_new(plan, layout_bytes(plan, &value->shape, state->native));
            state->keep = true;
        }
        state->wants_gradient =
            trains(plan) && (value->kind == VALUE_PARAMETER ||
                             (value->kind == VALUE_INPUT && plan->options.input_gradients));
    }
    for (int i = 0; i < plan->options.n_keep; i++) {
        plan->values[plan->options.keep[i]].keep = true;
        plan->values[plan->options.keep[i]].wants_gradient |= trains(plan);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        plan->values[graph->outputs[i].value].keep = true;
    return !trains(plan) || allot_gradients(plan, err);
}

static bool plan_one(struct plan *plan, int32_t i, bool backward, struct err *err)
{
    const struct node *node = &plan->graph->nodes[i];
    struct plan_node pn = { plan, node, &plan->nodes[i] };
    plan->planning = i;
    bool ok = backward ? node->op->backward(&pn, err) : node->op->forward(&pn, err);
    plan->planning = -1;
    if (!ok) {
        err_prefix(err, node->op->name);
        return err_prefix(err, node->name);
    }
    return true;
}

static bool plan_outputs(struct plan *plan, struct err *err)
{
    bool native = plan->options.ends == PLAN_ENDS_NATIVE_OUTPUTS;
    for (int i = 0; i < plan->graph->n_outputs && !native; i++) {
        value_id value = plan->graph->outputs[i].value;
        struct value_state *state = &plan->values[value];
        if (state->slot[LAYOUT_PLAIN] == NO_SLOT)
            state->slot[LAYOUT_PLAIN] =
                step_reorder(plan, graph_shape(plan->graph, value), state->slot[state->native],
                             state->native, LAYOUT_PLAIN, err);
        if (state->slot[LAYOUT_PLAIN] == NO_SLOT)
            return false;
    }
    return true;
}

static bool plan_forward_pass(struct plan *plan, struct err *err)
{
    const struct graph *graph = plan->graph;
    plan->phase = PHASE_FORWARD;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NO_VALUE && plan->values[node->inputs[k]].wants_gradient)
                plan->values[node->output].wants_gradient = true;
        if (!plan_one(plan, i, false, err))
            return false;
        plan->values[node->output].ready = plan->n_steps;
    }
    return plan_outputs(plan, err);
}

/* The backward pass starts from the gradients of the outputs. */
static bool begin_gradients(struct plan *plan, struct err *err)
{
    const struct graph *graph = plan->graph;
    for (int i = 0; i < graph->n_outputs; i++) {
        value_id value = graph->outputs[i].value;
        struct value_state *state = &plan->values[value];
        const struct shape *shape = graph_shape(graph, value);
        int slot = slot_new(plan, layout_bytes(plan, shape, LAYOUT_PLAIN));
        if (slot == NO_SLOT)
            return err_memory(err, "gradients");
        plan->slots[slot].home = SLOT_KEPT;
        plan->outputs[i] = slot;
        int native = step_reorder(plan, shape, slot, LAYOUT_PLAIN, state->native, err);
        if (native == NO_SLOT)
            return false;
        if (state->gradient == NO_SLOT) {
            state->gradient = native;
            continue;
        }
        int sum = slot_new(plan, plan->slots[native].bytes);
        if (!step_sum(plan, state->gradient, native, sum, err))
            return false;
        state->gradient = sum;
    }
    return true;
}

static bool plan_backward_pass(struct plan *plan, struct err *err)
{
    const struct graph *graph = plan->graph;
    plan->phase = PHASE_BACKWARD;
    if (!begin_gradients(plan, err))
        return false;
    for (int32_t i = graph->n_nodes - 1; i >= 0; i--) {
        const struct value_state *output = &plan->values[graph->nodes[i].output];
        if (output->wants_gradient && output->gradient != NO_SLOT && !plan_one(plan, i, true, err))
            return false;
    }
    return true;
}

static void keep_slot(struct plan *plan, int slot)
{
    if (slot == NO_SLOT)
        return;
    slot = slot_root(plan, slot);
    if (plan->slots[slot].home == SLOT_ARENA)
        plan->slots[slot].home = SLOT_KEPT;
}

static void keep_values(struct plan *plan)
{
    for (int32_t i = 0; i < plan->graph->n_values; i++) {
        const struct value_state *state = &plan->values[i];
        if (state->keep) {
            keep_slot(plan, state->slot[state->native]);
            keep_slot(plan, state->gradient);
        }
    }
    for (int i = 0; i < plan->graph->n_outputs; i++)
        keep_slot(plan, plan->values[plan->graph->outputs[i].value].slot[LAYOUT_PLAIN]);
}

/* When the gradient of each parameter is complete. */
static void find_last_additions(struct plan *plan)
{
    for (int32_t i = 0; i < plan->graph->n_values; i++) {
        struct value_state *state = &plan->values[i];
        for (int s = plan->n_steps - 1; state->grad_slot != NO_SLOT && s >= plan->begin_backward;
             s--) {
            const struct step *step = &plan->steps[s];
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

static bool build(struct plan *plan, int segments, struct err *err)
{
    if (!lower_open(plan, err) || !begin_values(plan, err) || !plan_forward_pass(plan, err))
        return false;
    plan->begin_backward = plan->n_steps;
    if (trains(plan) && !plan_backward_pass(plan, err))
        return false;
    keep_values(plan);
    if (trains(plan) && segments > 1 && !plan_recompute(plan, segments, err))
        return false;
    if (trains(plan) && plan->options.saving == SAVING_HALF && !plan_half(plan, err))
        return false;
    find_last_additions(plan);
    for (int32_t i = 0; i < plan->graph->n_nodes; i++)
        if (plan->nodes[i].hint) {
            lower_forget(plan->nodes[i].hint);
            plan->nodes[i].hint = NULL;
        }
    return plan_place(plan, err);
}

static bool make(const struct graph *graph, const struct plan_options *options, int segments,
                 struct plan **out, struct err *err)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return err_memory(err, graph->name);
    plan->graph = graph;
    plan->options = *options;
    plan->planning = -1;
    plan->values = calloc((size_t)graph->n_values + 1, sizeof *plan->values);
    plan->nodes = calloc((size_t)graph->n_nodes + 1, sizeof *plan->nodes);
    plan->outputs = calloc((size_t)graph->n_outputs + 1, sizeof *plan->outputs);
    int threads = omp_get_max_threads();
    omp_set_num_threads(options->threads);
    if (options->weights)
        plan_weights_lock(options->weights);
    bool ok = plan->values && plan->nodes && plan->outputs ? build(plan, segments, err)
                                                           : err_memory(err, graph->name);
    plan->options.keep = NULL; /* was the caller's, and has been noted */
    ok = ok && plan_refresh(plan, err);
    if (ok)
        plan_fill_shared(plan);
    if (options->weights)
        plan_weights_unlock(options->weights);
    omp_set_num_threads(threads);
    if (!ok) {
        plan_free(plan);
        return false;
    }
    *out = plan;
    return true;
}

/* The fewest segments that fit the budget. */
static bool make_within(const struct graph *graph, const struct plan_options *options,
                        struct plan **out, struct err *err)
{
    static const int tried[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 };
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        struct plan *plan = NULL;
        if (!make(graph, options, tried[i], &plan, err))
            return false;
        if (plan->arena_bytes <= options->arena_budget) {
            *out = plan;
            return true;
        }
        least = plan->arena_bytes < least ? plan->arena_bytes : least;
        plan_free(plan);
    }
    return err_set(err, ERR_MEMORY,
                   "%s: activations need %zu MB even when recomputed, but only %zu MB are allowed; "
                   "use a smaller batch or image",
                   graph->name, (least >> 20) + 1, options->arena_budget >> 20);
}

/* *out is NULL, with true returned, if the graph is not to be split. */
static bool make_by_image(const struct graph *graph, const struct plan_options *options,
                          struct plan **out, struct err *err)
{
    struct plan_images *images;
    *out = NULL;
    if (!plan_images_new(graph, options, &images, err))
        return false;
    if (!images)
        return true;
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        plan_images_free(images);
        return err_memory(err, graph->name);
    }
    plan->graph = graph, plan->options = *options, plan->images = images;
    *out = plan;
    return true;
}

bool plan_new(const struct graph *graph, const struct plan_options *options, struct plan **out,
              struct err *err)
{
    if (!check_options(graph, options, err))
        return false;
    if (options->by_image && options->mode == PLAN_INFER && options->n_keep == 0) {
        if (!make_by_image(graph, options, out, err))
            return false;
        if (*out)
            return true;
    }
    bool recompute = options->saving == SAVING_RECOMPUTE && options->mode != PLAN_INFER;
    if (recompute && options->arena_budget)
        return make_within(graph, options, out, err);
    int segments = recompute ? (int)ceil(sqrt((double)graph->n_nodes)) : 1;
    return make(graph, options, segments, out, err);
}

static void tell_gradients(const struct plan *plan, int step)
{
    for (int32_t i = 0; plan->hook && i < plan->graph->n_values; i++) {
        const struct value_state *state = &plan->values[i];
        if (state->grad_last == step)
            plan->hook(plan->hook_arg, i, plan->gradients + state->grad_offset,
                       shape_count(graph_shape(plan->graph, i)));
    }
}

/* On one thread the processor's time is taken, which other programs disturb less. */
static double clock_s(const struct plan *plan)
{
    struct timespec now;
    if (plan->options.threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
        return clock_monotonic_s();
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void note_time(struct step *step, double seconds)
{
    if (step->runs == 0 || seconds < step->seconds)
        step->seconds = seconds;
    step->runs++;
}

/* The reason keeps its kind; the layer and the kernel are put in front of it. */
static bool blame(const struct plan *plan, const struct step *step, const struct err *why,
                  struct err *err)
{
    const char *layer = step->node < 0 ? plan->graph->name : plan->graph->nodes[step->node].name;
    return err_set(err, why->kind, "%.200s: the kernel %.100s failed: %.600s", layer, step->kernel,
                   why->text);
}

static bool run_steps(struct plan *plan, int begin, int end, enum step_phase phase, struct err *err)
{
    int threads = omp_get_max_threads();
    bool ok = true;
    omp_set_num_threads(plan->options.threads);
    for (int i = begin; i < end && ok; i++) {
        struct step *step = &plan->steps[i];
        if (step->phase != phase || step->dropped)
            continue;
        double start = plan->options.profile ? clock_s(plan) : 0;
        struct err why = { 0 };
        ok = step->run(step, &why);
        if (plan->options.profile)
            note_time(step, clock_s(plan) - start);
        if (!ok)
            blame(plan, step, &why, err);
        if (phase == PHASE_BACKWARD && plan->hook)
            tell_gradients(plan, i);
    }
    omp_set_num_threads(threads);
    return ok;
}

/* What is inside a plan that runs image by image is nowhere for the whole batch. */
static bool check_whole(const struct plan *plan, struct err *err)
{
    return !plan->images ||
           err_set(err, ERR_USAGE, "%s: this needs a plan without by_image", plan->graph->name);
}

bool plan_refresh(struct plan *plan, struct err *err)
{
    if (!check_whole(plan, err))
        return false;
    return run_steps(plan, 0, plan->n_steps, PHASE_PREPARE, err);
}

bool plan_forward(struct plan *plan, struct err *err)
{
    if (plan->images)
        return plan_images_forward(plan->images, err);
    return run_steps(plan, 0, plan->begin_backward, PHASE_FORWARD, err);
}

bool plan_forward_until(struct plan *plan, value_id value, struct err *err)
{
    if (value < 0 || value >= plan->graph->n_values)
        return err_set(err, ERR_USAGE, "%s: no such value", plan->graph->name);
    if (!check_whole(plan, err))
        return false;
    return run_steps(plan, 0, plan->values[value].ready, PHASE_FORWARD, err);
}

bool plan_backward(struct plan *plan, struct err *err)
{
    if (!trains(plan))
        return err_set(err, ERR_USAGE, "%s: a plan for inference has no backward pass",
                       plan->graph->name);
    return run_steps(plan, plan->begin_backward, plan->n_steps, PHASE_BACKWARD, err);
}

void plan_set_random(struct plan *plan, uint64_t seed, uint64_t first_sample)
{
    plan->random = (struct plan_random){ seed, first_sample };
}

float *plan_input(struct plan *plan, int i)
{
    if (plan->images)
        return plan_images_input(plan->images);
    const struct value_state *state = &plan->values[plan->graph->inputs[i].value];
    return (float *)(void *)plan->slots[state->slot[state->native]].at;
}

const float *plan_output(const struct plan *plan, int i)
{
    if (plan->images)
        return plan_images_output(plan->images, i);
    const struct value_state *state = &plan->values[plan->graph->outputs[i].value];
    return (const float *)(const void *)plan->slots[state->slot[LAYOUT_PLAIN]].at;
}

float *plan_output_gradient(struct plan *plan, int i)
{
    return trains(plan) ? (float *)(void *)plan->slots[plan->outputs[i]].at : NULL;
}

float *plan_gradients(struct plan *plan, int64_t *count)
{
    *count = plan->n_gradients;
    return plan->gradients;
}

float *plan_parameter_gradient(struct plan *plan, value_id parameter)
{
    int64_t offset = plan->gradients ? plan->values[parameter].grad_offset : -1;
    return offset < 0 ? NULL : plan->gradients + offset;
}

void plan_zero_gradients(struct plan *plan)
{
    if (plan->gradients)
        memset(plan->gradients, 0, (size_t)plan->n_gradients * sizeof *plan->gradients);
}

void plan_on_gradient(struct plan *plan, plan_gradient_hook hook, void *arg)
{
    plan->hook = hook, plan->hook_arg = arg;
}
