/* plan.c: the functions of plan.h: a plan is made by the first execution of the table that accepts
 * the graph and the options, and everything else is a call through its struct plan_ops. */
#include "net/plan/plan.h"
#include <string.h>
#include "net/plan/execution.h"

/* In the order in which they are asked; the last one accepts everything. */
static const struct plan_ops *const executions[] = { &plan_standardized, &plan_stream,
                                                     &plan_per_sample, &plan_by_image,
                                                     &plan_whole };

/* Every input must have the rows of all units. */
static bool check_units(const struct graph *graph, const struct plan_options *options,
                        struct err *err)
{
    if (options->units <= 1)
        return true;
    if (options->mode == PLAN_INFER || options->split_backward)
        return err_set(err, ERR_USAGE,
                       "%s: gradients of units need a backward pass, which cannot be split",
                       graph->name);
    for (int i = 0; i < graph->n_inputs; i++) {
        const struct shape *shape = graph_shape(graph, graph->inputs[i].value);
        if (shape->rank < 1 || shape->dim[0] < 1 || shape->dim[0] % options->units)
            return err_set(err, ERR_USAGE, "%s: the rows of input %s are not those of %lld units",
                           graph->name, graph->inputs[i].name, (long long)options->units);
    }
    return true;
}

static bool check_options(const struct graph *graph, const struct plan_options *options,
                          struct err *err)
{
    if (options->threads < 1)
        return err_set(err, ERR_USAGE, "%s: a plan needs at least one thread", graph->name);
    if (options->winograd_tile < 0 || options->winograd_tile > 6 || options->winograd_tile % 2)
        return err_set(err, ERR_USAGE, "%s: Winograd tiles are 2, 4 or 6", graph->name);
    if (options->mode != PLAN_INFER && options->split_backward &&
        options->saving == SAVING_RECOMPUTE)
        return err_set(err, ERR_USAGE, "%s: a backward pass with recomputation cannot be split",
                       graph->name);
    for (int g = 0; g < PEER_GROUPS; g++) {
        const struct plan_peers *peers = options->peers[g];
        if (peers && (peers->rank < 0 || peers->rank >= peers->size))
            return err_set(err, ERR_USAGE, "%s: no peer has rank %d in a group of %d", graph->name,
                           peers->rank, peers->size);
    }
    for (int i = 0; i < options->n_keep; i++)
        if (options->keep[i] < 0 || options->keep[i] >= graph->n_values)
            return err_set(err, ERR_USAGE, "%s: a value to keep is not in the graph", graph->name);
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph_is_parameter(graph, i) && !graph->values[i].data)
            return err_set(err, ERR_MISSING,
                           "%s: has no values yet; load or initialise the weights",
                           graph->values[i].name);
    return check_units(graph, options, err) && graph_ok(graph, err);
}

bool plan_new(const struct graph *graph, const struct plan_options *options, struct plan **out,
              struct err *err)
{
    *out = NULL;
    if (!check_options(graph, options, err))
        return false;
    for (size_t i = 0; !*out && i < sizeof executions / sizeof *executions; i++) {
        if (!executions[i]->make(graph, options, out, err))
            return false;
        if (*out) {
            (*out)->ops = executions[i];
            (*out)->graph = graph;
            (*out)->mode = options->mode;
            (*out)->units = options->units > 1 ? options->units : 1;
        }
    }
    const struct plan_ops *ops = (*out)->ops;
    const char *lacks = NULL;
    if (options->mode != PLAN_INFER && options->split_backward && !ops->backward_half)
        lacks = "split_backward";
    if (options->units > 1 && !ops->join)
        lacks = "units";
    if (!lacks)
        return true;
    err_set(err, ERR_USAGE, "%s: %s is not available in a plan of kind %s", graph->name, lacks,
            ops->name);
    plan_free(*out);
    *out = NULL;
    return false;
}

bool plan_estimate(const struct graph *graph, const struct plan_options *options,
                   struct plan_estimate *out, struct err *err)
{
    return check_options(graph, options, err) && whole_estimate(graph, options, out, err);
}

void plan_free(struct plan *plan)
{
    if (plan)
        plan->ops->free(plan);
}

/* What an execution does not have is refused here, for all of them. */
static bool has(const struct plan *plan, bool available, const char *what, struct err *err)
{
    return available || err_set(err, ERR_USAGE, "%s: %s is not available in a plan of kind %s",
                                plan->graph->name, what, plan->ops->name);
}

static bool can_go_back(const struct plan *plan)
{
    return plan->mode != PLAN_INFER && plan->ops->backward;
}

static bool has_backward(const struct plan *plan, const char *what, struct err *err)
{
    if (plan->mode == PLAN_INFER)
        return err_set(err, ERR_USAGE, "%s: a plan for inference has no backward pass",
                       plan->graph->name);
    return has(plan, plan->ops->backward, what, err);
}

static bool has_value(const struct plan *plan, value_id value, struct err *err)
{
    return (value >= 0 && value < plan->graph->n_values) ||
           err_set(err, ERR_USAGE, "%s: no such value", plan->graph->name);
}

float *plan_input(struct plan *plan, int i)
{
    return plan->ops->input(plan, i);
}

const float *plan_output(const struct plan *plan, int i)
{
    return plan->ops->output(plan, i);
}

bool plan_forward(struct plan *plan, struct err *err)
{
    return plan->ops->forward(plan, err);
}

bool plan_forward_until(struct plan *plan, value_id value, struct err *err)
{
    return has_value(plan, value, err) &&
           has(plan, plan->ops->forward_until, "plan_forward_until", err) &&
           plan->ops->forward_until(plan, value, err);
}

void plan_set_random(struct plan *plan, uint64_t seed, uint64_t first_sample)
{
    if (plan->ops->set_random)
        plan->ops->set_random(plan, (struct plan_random){ seed, first_sample });
}

bool plan_refresh(struct plan *plan, struct err *err)
{
    return has(plan, plan->ops->refresh, "plan_refresh", err) && plan->ops->refresh(plan, err);
}

float *plan_output_gradient(struct plan *plan, int i)
{
    return can_go_back(plan) ? plan->ops->output_gradient(plan, i) : NULL;
}

bool plan_backward(struct plan *plan, struct err *err)
{
    return has_backward(plan, "plan_backward", err) && plan->ops->backward(plan, err);
}

bool plan_backward_inputs(struct plan *plan, struct err *err)
{
    return has_backward(plan, "plan_backward_inputs", err) &&
           has(plan, plan->ops->backward_half, "plan_backward_inputs", err) &&
           plan->ops->backward_half(plan, PLAN_HALF_INPUTS, err);
}

bool plan_backward_weights(struct plan *plan, struct err *err)
{
    return has_backward(plan, "plan_backward_weights", err) &&
           has(plan, plan->ops->backward_half, "plan_backward_weights", err) &&
           plan->ops->backward_half(plan, PLAN_HALF_WEIGHTS, err);
}

float *plan_gradients(struct plan *plan, int64_t *count)
{
    *count = 0;
    return can_go_back(plan) ? plan->ops->gradients(plan, count) : NULL;
}

void plan_zero_gradients(struct plan *plan)
{
    int64_t count;
    float *gradients = plan_gradients(plan, &count);
    if (gradients)
        memset(gradients, 0, (size_t)(plan->units * count) * sizeof *gradients);
}

float *plan_parameter_gradient(struct plan *plan, value_id parameter)
{
    return can_go_back(plan) ? plan->ops->parameter_gradient(plan, parameter) : NULL;
}

void plan_on_gradient(struct plan *plan, plan_gradient_hook hook, void *arg)
{
    if (can_go_back(plan))
        plan->ops->on_gradient(plan, hook, arg);
}

void plan_on_step(struct plan *plan, plan_step_hook hook, void *arg)
{
    if (plan->ops->on_step)
        plan->ops->on_step(plan, hook, arg);
}

void plan_hold_statistics(struct plan *plan, bool hold)
{
    if (plan->ops->hold_statistics)
        plan->ops->hold_statistics(plan, hold);
}

bool plan_sample_gradients(struct plan *plan, const struct plan_samples *samples, struct err *err)
{
    return has_backward(plan, "plan_sample_gradients", err) &&
           has(plan, plan->ops->sample_gradients, "plan_sample_gradients", err) &&
           plan->ops->sample_gradients(plan, samples, err);
}

const double *plan_unit_squares(const struct plan *plan)
{
    return plan->ops->unit_squares ? plan->ops->unit_squares(plan) : NULL;
}

bool plan_is_joined(const struct plan *plan, value_id parameter)
{
    return plan->ops->is_joined && plan->ops->is_joined(plan, parameter);
}

bool plan_join_units(struct plan *plan, const double *factors, struct err *err)
{
    return has_backward(plan, "plan_join_units", err) &&
           has(plan, plan->ops->join, "plan_join_units", err) &&
           plan->ops->join(plan, factors, err);
}

bool plan_activation(struct plan *plan, value_id value, float *out, struct err *err)
{
    return has_value(plan, value, err) &&
           has(plan, plan->ops->activation, "plan_activation", err) &&
           plan->ops->activation(plan, value, false, out, err);
}

bool plan_activation_gradient(struct plan *plan, value_id value, float *out, struct err *err)
{
    return has_value(plan, value, err) &&
           has(plan, plan->ops->activation, "plan_activation_gradient", err) &&
           plan->ops->activation(plan, value, true, out, err);
}

struct plan_memory plan_memory(const struct plan *plan)
{
    return plan->ops->memory(plan);
}

bool plan_streamed(const struct plan *plan, struct plan_streamed *out)
{
    return plan->ops->streamed && plan->ops->streamed(plan, out);
}

int plan_steps(const struct plan *plan)
{
    return plan->ops->steps(plan);
}

void plan_print(const struct plan *plan, FILE *stream)
{
    plan->ops->print(plan, stream);
}

bool plan_end(const struct plan *plan, enum plan_port port, int i, struct plan_end *out,
              struct err *err)
{
    if (!has(plan, plan->ops->end, "plan_end", err))
        return false;
    *out = plan->ops->end(plan, port, i);
    return true;
}

bool plan_move(struct plan *plan, enum plan_port port, int i, void *at, struct err *err)
{
    if (!has(plan, plan->ops->move, "plan_move", err))
        return false;
    plan->ops->move(plan, port, i, at);
    return true;
}
