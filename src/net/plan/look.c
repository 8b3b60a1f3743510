/* plan_look.c: looking into a plan: activations and gradients in plain order, memory, text, and
 * per-sample gradients. */
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "net/kernels/peak.h"
#include "net/plan/step.h"
#include "net/plan/by_image.h"
#include "net/graph/transform.h"

/* [N, C/b, H, W, b] -> [N, C, H, W] */
static void unblock(const struct shape *shape, int block, const float *from, float *to)
{
    int64_t channels = shape->dim[1], pixels = shape->dim[2] * shape->dim[3];
    int64_t blocks = ceil_div(channels, block);
    for (int64_t n = 0; n < shape->dim[0]; n++)
        for (int64_t c = 0; c < channels; c++) {
            const float *in = from + (n * blocks + c / block) * pixels * block + c % block;
            float *out = to + (n * channels + c) * pixels;
            for (int64_t p = 0; p < pixels; p++)
                out[p] = in[p * block];
        }
}

static bool read_value(const struct plan *plan, value_id value, int slot, float *out,
                       struct err *err)
{
    const struct value_state *state = &plan->values[value];
    const struct shape *shape = graph_shape(plan->graph, value);
    const char *name = plan->graph->values[value].name;
    if (slot == NO_SLOT)
        return err_set(err, ERR_USAGE, "%s: this plan does not compute it", name);
    if (!state->keep && !plan->options.no_sharing)
        return err_set(err, ERR_USAGE, "%s: not kept; name it in plan_options.keep", name);
    const float *at = (const float *)(const void *)plan->slots[slot].at;
    if (state->native == LAYOUT_BLOCKED)
        unblock(shape, plan->block, at, out);
    else
        memcpy(out, at, (size_t)shape_count(shape) * sizeof *out);
    return true;
}

static bool is_readable(const struct plan *plan, value_id value, struct err *err)
{
    if (value < 0 || value >= plan->graph->n_values)
        return err_set(err, ERR_USAGE, "%s: no such value", plan->graph->name);
    return !plan->images || err_set(err, ERR_USAGE, "%s: not kept; make the plan without by_image",
                                    plan->graph->values[value].name);
}

bool plan_activation(struct plan *plan, value_id value, float *out, struct err *err)
{
    if (!is_readable(plan, value, err))
        return false;
    const struct value_state *state = &plan->values[value];
    return read_value(plan, value, state->slot[state->native], out, err);
}

bool plan_activation_gradient(struct plan *plan, value_id value, float *out, struct err *err)
{
    if (!is_readable(plan, value, err))
        return false;
    return read_value(plan, value, plan->values[value].gradient, out, err);
}

struct plan_memory plan_memory(const struct plan *plan)
{
    if (plan->images)
        return plan_images_memory(plan->images);
    return (struct plan_memory){ plan->arena_bytes,    plan->arena_lent,
                                 plan->unshared_bytes, plan->weights_bytes,
                                 plan->shared_bytes,   (size_t)plan->n_gradients * sizeof(float) };
}

int plan_steps(const struct plan *plan)
{
    if (plan->images)
        return plan_images_steps(plan->images);
    int count = 0;
    for (int i = 0; i < plan->n_steps; i++)
        count += !plan->steps[i].dropped;
    return count;
}

/* The output of the step's node, "-" for other steps. */
static const char *shape_of_step(const struct plan *plan, const struct step *step,
                                 char text[SHAPE_TEXT])
{
    if (step->node < 0)
        return "-";
    return shape_text(graph_shape(plan->graph, plan->graph->nodes[step->node].output), text);
}

static void print_step(const struct plan *plan, int i, double peak_gflops, FILE *stream)
{
    static const char *const phases[] = { "prepare", "forward", "backward" };
    const struct step *step = &plan->steps[i];
    char shape[SHAPE_TEXT];
    size_t written = 0;
    for (int k = 0; k < step->n_slots; k++)
        if (step->slot[k] != NO_SLOT && (step->access[k] & ACCESS_WRITE))
            written += plan->slots[step->slot[k]].bytes;
    fprintf(stream, "%5d %-8s %-28s %-40s %-20s %9.1f KB", i, phases[step->phase],
            step->node < 0 ? "-" : plan->graph->nodes[step->node].name, step->kernel,
            shape_of_step(plan, step, shape), (double)written / 1024);
    if (step->runs)
        fprintf(stream, " %9.3f ms", step->seconds * 1e3);
    if (step->runs && step->flops > 0) {
        double gflops = step->flops / step->seconds / 1e9;
        fprintf(stream, " %8.1f GFLOP/s", gflops);
        if (peak_gflops > 0)
            fprintf(stream, " %5.1f %%", 100 * gflops / peak_gflops);
    }
    fputc('\n', stream);
}

void plan_print(const struct plan *plan, FILE *stream)
{
    if (plan->images) {
        plan_images_print(plan->images, stream);
        return;
    }
    static const char *const modes[] = { "infer", "train", "tune" };
    double total_s = 0, flops = 0;
    double peak = plan->options.profile ? peak_gflops(plan->options.threads) : 0;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];
        if (step->dropped)
            continue;
        print_step(plan, i, peak, stream);
        if (step->phase != PHASE_PREPARE && step->runs)
            total_s += step->seconds, flops += step->flops;
    }
    struct plan_memory m = plan_memory(plan);
    fprintf(stream,
            "%s, %d threads, %d steps; arena %.1f MB (%.1f MB without sharing), weights %.1f MB, "
            "gradients %.1f MB",
            modes[plan->options.mode], plan->options.threads, plan_steps(plan),
            (double)m.arena / 1e6, (double)m.unshared / 1e6, (double)m.weights / 1e6,
            (double)m.gradients / 1e6);
    if (total_s > 0)
        fprintf(stream, "; %.3f ms, %.1f of %.1f GFLOP/s", total_s * 1e3, flops / total_s / 1e9,
                peak);
    fputc('\n', stream);
}

static bool couples_samples(const struct plan *plan)
{
    for (int32_t i = 0; i < plan->graph->n_nodes; i++)
        if (plan->graph->nodes[i].op->kind == OP_BATCH_NORM && plan->options.mode == PLAN_TRAIN)
            return true;
    return false;
}

/* The same network at batch 1, on the same parameters. */
static bool make_single(struct plan *plan, struct err *err)
{
    struct graph *graph = NULL;
    struct plan_options options = plan->options;
    options.keep = NULL, options.n_keep = 0; /* nobody looks into it */
    if (plan->single)
        return true;
    if (!transform_resize(plan->graph, 1, 0, 0, &graph, err))
        return false;
    if (!plan_new(graph, &options, &plan->single, err)) {
        graph_free(graph);
        return false;
    }
    plan->single->own_graph = graph;
    return true;
}

static bool one_sample(struct plan *plan, const struct plan_samples *samples, int64_t sample,
                       const float **outputs, float **gradients, struct err *err)
{
    struct plan *single = plan->single;
    const struct graph *graph = single->graph;
    int64_t count;
    for (int i = 0; i < graph->n_inputs; i++) {
        int64_t size = shape_count(graph_shape(graph, graph->inputs[i].value));
        memcpy(plan_input(single, i), plan_input(plan, i) + sample * size,
               (size_t)size * sizeof(float));
    }
    plan_set_random(single, plan->random.seed, plan->random.first_sample + (uint64_t)sample);
    plan_zero_gradients(single);
    if (!plan_forward(single, err))
        return false;
    for (int i = 0; i < graph->n_outputs; i++) {
        outputs[i] = plan_output(single, i);
        gradients[i] = plan_output_gradient(single, i);
    }
    if (!samples->loss(samples->arg, sample, outputs, gradients, err) ||
        !plan_backward(single, err))
        return false;
    const float *gradient = plan_gradients(single, &count);
    return samples->sample(samples->arg, sample, gradient, count, err);
}

bool plan_sample_gradients(struct plan *plan, const struct plan_samples *samples, struct err *err)
{
    const struct graph *graph = plan->graph;
    if (plan->options.mode == PLAN_INFER || couples_samples(plan))
        return err_set(err, ERR_USAGE,
                       "%s: per-sample gradients need a training plan without batch norm",
                       graph->name);
    if (!make_single(plan, err))
        return false;
    const float **outputs = calloc((size_t)graph->n_outputs, sizeof *outputs);
    float **gradients = calloc((size_t)graph->n_outputs, sizeof *gradients);
    bool ok = outputs && gradients;
    if (!ok)
        err_memory(err, graph->name);
    int64_t batch = graph_shape(graph, graph->inputs[0].value)->dim[0];
    for (int64_t i = 0; i < batch && ok; i++)
        ok = one_sample(plan, samples, i, outputs, gradients, err);
    free(outputs), free(gradients);
    return ok;
}
