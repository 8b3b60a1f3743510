/* denoiser_time.c: a training step of a diffusion U-Net: forward, the gradient of a squared error,
 * backward; without the optimizer.
 *
 *     denoiser_time NETWORK PX BATCH THREADS REPEATS [--infer] [--recompute] [--prepared] [--plan]
 *                   [--write FILE]
 *
 * Inputs and weights are drawn. Prints one JSON object: seconds of the fastest step, parameters and
 * the peak of the process's memory. --infer: forward only, as in sampling. --prepared:
 * weights are transformed once for all steps. --plan: every kernel and
 * its time instead. --write: weights, inputs, output and gradients as safetensors, for a peer to
 * compare with. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/rng.h"
#include "base/room.h"
#include "net/model/safetensors.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"

struct bench {
    const char *network, *file; /* file NULL: none */
    int64_t px, batch, repeats;
    int threads;
    bool infer, recompute, prepared, print;
};

static bool parse(int argc, char **argv, struct bench *out, struct err *err)
{
    if (argc < 6)
        return err_set(err, ERR_USAGE,
                       "NETWORK PX BATCH THREADS REPEATS [--infer] [--recompute] [--prepared] "
                       "[--plan] [--write FILE]");
    *out = (struct bench){ .network = argv[1],
                           .px = strtol(argv[2], NULL, 10),
                           .batch = strtol(argv[3], NULL, 10),
                           .threads = (int)strtol(argv[4], NULL, 10),
                           .repeats = strtol(argv[5], NULL, 10) };
    for (int i = 6; i < argc; i++) {
        out->infer = out->infer || strcmp(argv[i], "--infer") == 0;
        out->recompute = out->recompute || strcmp(argv[i], "--recompute") == 0;
        out->prepared = out->prepared || strcmp(argv[i], "--prepared") == 0;
        out->print = out->print || strcmp(argv[i], "--plan") == 0;
        if (strcmp(argv[i], "--write") == 0 && i + 1 < argc)
            out->file = argv[i + 1];
    }
    return true;
}

static void draw(float *out, int64_t n, double scale, uint64_t stream)
{
    struct rng rng = rng_new(1, stream, 0);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(rng_normal(&rng) * scale);
}

/* Also what would begin at zero, so that every layer counts. */
static void draw_parameters(struct graph *graph)
{
    for (value_id v = 0; v < graph->n_values; v++) {
        const struct shape *shape = &graph->values[v].shape;
        if (graph->values[v].kind == VALUE_PARAMETER)
            draw(graph_data(graph, v), shape_count(shape),
                 shape->rank > 1 ? 1 / sqrt((double)shape_span(shape, 1, shape->rank)) : 1,
                 (uint64_t)v + 10);
    }
}

static bool step(struct plan *plan, const struct graph *graph, bool infer, struct err *err)
{
    int64_t n = shape_count(graph_shape(graph, graph->outputs[0].value));
    plan_zero_gradients(plan);
    if (!plan_forward(plan, err))
        return false;
    const float *output = plan_output(plan, 0);
    float *gradient = plan_output_gradient(plan, 0);
    for (int64_t i = 0; !infer && i < n; i++)
        gradient[i] = 2 * (output[i] - 1) / (float)n;
    return infer || plan_backward(plan, err);
}

struct sources {
    struct safetensors_source *at;
    char (*names)[128];
    size_t n;
};

static void add(struct sources *s, const char *prefix, const char *name, const struct shape *shape,
                const float *data)
{
    snprintf(s->names[s->n], sizeof *s->names, "%s%s", prefix, name);
    s->at[s->n] = (struct safetensors_source){ s->names[s->n], *shape, data };
    s->n++;
}

static bool write_tensors(struct plan *plan, const struct graph *graph, const char *path,
                          struct err *err)
{
    size_t room = (size_t)(2 * graph->n_values + 8);
    struct sources s = { calloc(room, sizeof *s.at), calloc(room, sizeof *s.names), 0 };
    bool ok = (s.at && s.names) || err_memory(err, path);
    for (value_id v = 0; ok && v < graph->n_values; v++) {
        const struct value *value = &graph->values[v];
        if (value->kind != VALUE_PARAMETER)
            continue;
        add(&s, "weight:", value->name, &value->shape, graph_data(graph, v));
        add(&s, "gradient:", value->name, &value->shape, plan_parameter_gradient(plan, v));
    }
    for (int i = 0; ok && i < graph->n_inputs; i++)
        add(&s, "", graph->inputs[i].name, graph_shape(graph, graph->inputs[i].value),
            plan_input(plan, i));
    if (ok)
        add(&s, "", graph->outputs[0].name, graph_shape(graph, graph->outputs[0].value),
            plan_output(plan, 0));
    ok = ok && safetensors_write(path, s.at, s.n, NULL, 0, err);
    free(s.at), free(s.names);
    return ok;
}

static bool measure(const struct bench *b, const struct graph *graph, struct plan *plan,
                    struct err *err)
{
    double best = 0;
    for (int i = 0; i < graph->n_inputs; i++)
        draw(plan_input(plan, i), shape_count(graph_shape(graph, graph->inputs[i].value)), 1,
             (uint64_t)i);
    for (int64_t i = 0; i < b->repeats; i++) {
        double began = clock_monotonic_s();
        if (!step(plan, graph, b->infer, err))
            return false;
        double seconds = clock_monotonic_s() - began;
        best = i == 0 || seconds < best ? seconds : best;
    }
    if (b->print)
        plan_print(plan, stdout);
    else
        printf("{\"seconds\": %.6f, \"parameters\": %lld, \"peak_mb\": %.0f}\n", best,
               (long long)graph_parameter_count(graph), (double)room_peak() / 1e6);
    return !b->file || write_tensors(plan, graph, b->file, err);
}

static bool run(int argc, char **argv, struct err *err)
{
    struct bench b = { 0 };
    if (!parse(argc, argv, &b, err))
        return false;
    struct zoo_options options = {
        .batch = b.batch, .height = b.px, .width = b.px, .conditions = 2
    };
    struct plan_options how = { .mode = b.infer ? PLAN_INFER : PLAN_TRAIN,
                                .threads = b.threads,
                                .saving = b.recompute ? SAVING_RECOMPUTE : SAVING_ALL,
                                .weights = b.prepared ? plan_weights_new() : NULL,
                                .profile = b.print };
    struct graph *graph = NULL;
    struct plan *plan = NULL;
    bool ok = (!b.prepared || how.weights || err_memory(err, "weights")) &&
              zoo_build(b.network, &options, &graph, err) && graph_initialize(graph, 1, err);
    if (ok)
        draw_parameters(graph);
    ok = ok && plan_new(graph, &how, &plan, err) && measure(&b, graph, plan, err);
    plan_free(plan);
    plan_weights_free(how.weights);
    graph_free(graph);
    return ok;
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    bool ok = run(argc, argv, &err);
    if (!ok)
        fprintf(stderr, "%s: %s\n", argv[0], err.text);
    return ok ? 0 : 1;
}
