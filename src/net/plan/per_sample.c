/* per_sample.c: an execution for training: every sample of a batch runs forward and backward alone,
 * so the gradient of each is known (plan_sample_gradients), and activations of only one are in
 * memory. One plan of the same graph at batch 1 does the work and has all options of the batch. */
#include <stdlib.h>
#include <string.h>
#include "net/graph/transform.h"
#include "net/plan/execution.h"

struct per_sample {
    struct plan plan;
    struct graph *graph; /* at batch 1 */
    struct plan *single;
    int64_t batch;
    float *memory; /* of the following, one after another */
    bool lent;
    size_t bytes;
    float **inputs;           /* [n_inputs]: the whole batch */
    float **outputs;          /* [n_outputs] */
    float **output_gradients; /* [n_outputs] */
    const float **one_output; /* [n_outputs]: of the single plan */
    float **one_gradient;     /* [n_outputs] */
    struct plan_random random;
    plan_gradient_hook hook;
    void *hook_arg;
};

static struct per_sample *of(struct plan *plan)
{
    return (struct per_sample *)plan;
}

static const struct per_sample *of_const(const struct plan *plan)
{
    return (const struct per_sample *)plan;
}

static void per_sample_free(struct plan *plan)
{
    struct per_sample *all = of(plan);
    plan_free(all->single);
    graph_free(all->graph);
    if (!all->lent)
        free(all->memory);
    free(all->inputs), free(all->outputs), free(all->output_gradients);
    free(all->one_output), free(all->one_gradient);
    free(all);
}

/* Of one sample. */
static int64_t port_floats(const struct per_sample *all, enum plan_port port, int i)
{
    const struct graph *one = all->graph;
    return shape_count(
        graph_shape(one, port == PLAN_PORT_INPUT ? one->inputs[i].value : one->outputs[i].value));
}

/* Every input and output must have the samples as its first axis, and batch norm must not join
 * them. */
static bool is_separable(const struct graph *graph, const struct plan_options *options,
                         const struct per_sample *all, struct err *err)
{
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (options->mode == PLAN_TRAIN && !options->norm_frozen &&
            graph->nodes[i].op->kind == OP_BATCH_NORM)
            return err_set(err, ERR_USAGE,
                           "%s: batch norm couples the samples of a batch; per-sample gradients "
                           "need a network without it, or PLAN_TUNE",
                           graph->name);
    for (int i = 0; i < graph->n_inputs; i++)
        if (shape_count(graph_shape(graph, graph->inputs[i].value)) !=
            all->batch * port_floats(all, PLAN_PORT_INPUT, i))
            return err_set(err, ERR_USAGE, "%s: input %s does not have one row per sample",
                           graph->name, graph->inputs[i].name);
    for (int i = 0; i < graph->n_outputs; i++)
        if (shape_count(graph_shape(graph, graph->outputs[i].value)) !=
            all->batch * port_floats(all, PLAN_PORT_OUTPUT, i))
            return err_set(err, ERR_USAGE, "%s: output %s does not have one row per sample",
                           graph->name, graph->outputs[i].name);
    return true;
}

static bool check_options(const struct graph *graph, const struct plan_options *options,
                          struct err *err)
{
    if (options->mode == PLAN_INFER)
        return err_set(err, ERR_USAGE, "%s: per-sample gradients need PLAN_TRAIN or PLAN_TUNE",
                       graph->name);
    return options->n_keep == 0 ||
           err_set(err, ERR_USAGE, "%s: a plan of kind per_sample keeps no values", graph->name);
}

static size_t row_bytes(const struct per_sample *all, enum plan_port port, int i)
{
    return loan_bytes((size_t)(all->batch * port_floats(all, port, i)) * sizeof(float));
}

/* The inputs, outputs and output gradients of the batch, in one piece of memory. */
static bool make_rows(struct per_sample *all, struct loan *loan, struct err *err)
{
    size_t n_in = (size_t)all->graph->n_inputs, n_out = (size_t)all->graph->n_outputs;
    for (size_t i = 0; i < n_in; i++)
        all->bytes += row_bytes(all, PLAN_PORT_INPUT, (int)i);
    for (size_t i = 0; i < n_out; i++)
        all->bytes += 2 * row_bytes(all, PLAN_PORT_OUTPUT, (int)i);
    all->inputs = calloc(n_in + 1, sizeof *all->inputs);
    all->outputs = calloc(n_out, sizeof *all->outputs);
    all->output_gradients = calloc(n_out, sizeof *all->output_gradients);
    all->one_output = calloc(n_out, sizeof *all->one_output);
    all->one_gradient = calloc(n_out, sizeof *all->one_gradient);
    all->memory = loan_take(loan, all->bytes);
    all->lent = all->memory != NULL;
    if (!all->lent) {
        all->memory = aligned_alloc(LOAN_ALIGNMENT, all->bytes);
        if (all->memory)
            memset(all->memory, 0, all->bytes);
    }
    if (!all->inputs || !all->outputs || !all->output_gradients || !all->one_output ||
        !all->one_gradient || !all->memory)
        return err_memory(err, all->graph->name);
    float *at = all->memory;
    for (size_t i = 0; i < n_in; i++) {
        all->inputs[i] = at;
        at += row_bytes(all, PLAN_PORT_INPUT, (int)i) / sizeof(float);
    }
    for (size_t i = 0; i < n_out; i++) {
        size_t floats = row_bytes(all, PLAN_PORT_OUTPUT, (int)i) / sizeof(float);
        all->outputs[i] = at, all->output_gradients[i] = at + floats;
        at += 2 * floats;
    }
    return true;
}

static bool make_single(struct per_sample *all, struct plan_options options, struct err *err)
{
    struct loan loan = loan_of(&options);
    options.per_sample = false;
    if (!make_rows(all, &loan, err) || !loan_plan(&loan, all->graph, &options, &all->single, err))
        return false;
    for (int i = 0; i < all->graph->n_outputs; i++) {
        all->one_output[i] = plan_output(all->single, i);
        all->one_gradient[i] = plan_output_gradient(all->single, i);
    }
    return true;
}

static bool per_sample_make(const struct graph *graph, const struct plan_options *options,
                            struct plan **out, struct err *err)
{
    if (!options->per_sample)
        return true;
    if (!check_options(graph, options, err))
        return false;
    struct per_sample *all = calloc(1, sizeof *all);
    if (!all)
        return err_memory(err, graph->name);
    all->batch = graph->n_inputs > 0 ? graph_shape(graph, graph->inputs[0].value)->dim[0] : 1;
    if (!transform_resize(graph, 1, 0, 0, &all->graph, err) ||
        !is_separable(graph, options, all, err) || !make_single(all, *options, err)) {
        per_sample_free(&all->plan);
        return false;
    }
    *out = &all->plan;
    return true;
}

/* Sample i, alone, as far as its outputs. */
static bool forward_one(struct per_sample *all, int64_t sample, struct err *err)
{
    for (int i = 0; i < all->graph->n_inputs; i++) {
        int64_t floats = port_floats(all, PLAN_PORT_INPUT, i);
        memcpy(plan_input(all->single, i), all->inputs[i] + sample * floats,
               (size_t)floats * sizeof(float));
    }
    plan_set_random(all->single, all->random.seed, all->random.first_sample + (uint64_t)sample);
    return plan_forward(all->single, err);
}

static bool per_sample_forward(struct plan *plan, struct err *err)
{
    struct per_sample *all = of(plan);
    for (int64_t s = 0; s < all->batch; s++) {
        if (!forward_one(all, s, err))
            return false;
        for (int i = 0; i < all->graph->n_outputs; i++) {
            int64_t floats = port_floats(all, PLAN_PORT_OUTPUT, i);
            memcpy(all->outputs[i] + s * floats, all->one_output[i],
                   (size_t)floats * sizeof(float));
        }
    }
    return true;
}

/* The activations of a sample are gone, unless it is the last one: they are computed again, with
 * the same random numbers. */
static bool per_sample_backward(struct plan *plan, struct err *err)
{
    struct per_sample *all = of(plan);
    bool ok = true;
    for (int64_t s = all->batch - 1; s >= 0 && ok; s--) {
        ok = s == all->batch - 1 || forward_one(all, s, err);
        for (int i = 0; i < all->graph->n_outputs; i++) {
            int64_t floats = port_floats(all, PLAN_PORT_OUTPUT, i);
            memcpy(all->one_gradient[i], all->output_gradients[i] + s * floats,
                   (size_t)floats * sizeof(float));
        }
        plan_on_gradient(all->single, s == 0 ? all->hook : NULL, all->hook_arg);
        ok = ok && plan_backward(all->single, err);
    }
    return ok;
}

static bool per_sample_gradients_of_each(struct plan *plan, const struct plan_samples *samples,
                                         struct err *err)
{
    struct per_sample *all = of(plan);
    plan_on_gradient(all->single, NULL, NULL);
    for (int64_t s = 0; s < all->batch; s++) {
        int64_t count;
        plan_zero_gradients(all->single);
        if (!forward_one(all, s, err) ||
            !samples->loss(samples->arg, s, all->one_output, all->one_gradient, err) ||
            !plan_backward(all->single, err))
            return false;
        const float *gradient = plan_gradients(all->single, &count);
        if (!samples->sample(samples->arg, s, gradient, count, err))
            return false;
    }
    return true;
}

static float *per_sample_input(struct plan *plan, int i)
{
    return of(plan)->inputs[i];
}

static const float *per_sample_output(const struct plan *plan, int i)
{
    return of_const(plan)->outputs[i];
}

static float *per_sample_output_gradient(struct plan *plan, int i)
{
    return of(plan)->output_gradients[i];
}

static float *per_sample_gradients(struct plan *plan, int64_t *count)
{
    return plan_gradients(of(plan)->single, count);
}

/* transform_resize keeps the values of a graph, so that they have the same ids. */
static float *per_sample_parameter_gradient(struct plan *plan, value_id parameter)
{
    return plan_parameter_gradient(of(plan)->single, parameter);
}

static void per_sample_set_random(struct plan *plan, struct plan_random random)
{
    of(plan)->random = random;
}

static void per_sample_on_gradient(struct plan *plan, plan_gradient_hook hook, void *arg)
{
    of(plan)->hook = hook, of(plan)->hook_arg = arg;
}

static bool per_sample_refresh(struct plan *plan, struct err *err)
{
    return plan_refresh(of(plan)->single, err);
}

static struct plan_memory per_sample_memory(const struct plan *plan)
{
    const struct per_sample *all = of_const(plan);
    struct plan_memory sum = { .arena = all->bytes, .lent = all->lent, .unshared = all->bytes };
    plan_memory_add(&sum, all->single);
    return sum;
}

static int per_sample_steps(const struct plan *plan)
{
    return plan_steps(of_const(plan)->single);
}

static void per_sample_print(const struct plan *plan, FILE *stream)
{
    fprintf(stream, "each of %lld samples separately:\n", (long long)of_const(plan)->batch);
    plan_print(of_const(plan)->single, stream);
}

const struct plan_ops plan_per_sample = {
    .name = "per_sample",
    .make = per_sample_make,
    .free = per_sample_free,
    .input = per_sample_input,
    .output = per_sample_output,
    .forward = per_sample_forward,
    .memory = per_sample_memory,
    .steps = per_sample_steps,
    .print = per_sample_print,
    .refresh = per_sample_refresh,
    .set_random = per_sample_set_random,
    .backward = per_sample_backward,
    .output_gradient = per_sample_output_gradient,
    .gradients = per_sample_gradients,
    .parameter_gradient = per_sample_parameter_gradient,
    .on_gradient = per_sample_on_gradient,
    .sample_gradients = per_sample_gradients_of_each,
};
