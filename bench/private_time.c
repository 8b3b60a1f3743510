/* private_time.c: a step of private training of a diffusion U-Net, or of a classifier with group
 * norm: every unit forward and backward, its gradient clipped, the sum with noise; without the
 * optimizer.
 *
 *     private_time NETWORK PX UNITS COPIES THREADS REPEATS
 *
 * Inputs and weights are drawn. Prints one JSON object: seconds of the fastest step; the least
 * processor seconds (which other work on the machine hardly changes) of a unit in a step and of the
 * noise; parameters, and the peak of the process's memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/rng.h"
#include "base/room.h"
#include "net/graph/transform.h"
#include "net/zoo/zoo.h"
#include "privacy/noise.h"
#include "train/clipped.h"

/* Processor seconds of this process so far. */
static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void draw(float *out, int64_t n, uint64_t stream)
{
    struct rng rng = rng_new(1, stream, 0);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)rng_normal(&rng);
}

static bool make(int argc, char **argv, struct graph **graph, struct clipped_options *options,
                 struct err *err)
{
    if (argc != 7)
        return err_set(err, ERR_USAGE, "NETWORK PX UNITS COPIES THREADS REPEATS");
    int64_t px = strtol(argv[2], NULL, 10);
    bool unet = strncmp(argv[1], "unet", 4) == 0;
    struct zoo_options network = {
        .batch = 1, .height = px, .width = px, .conditions = unet ? 2 : 0
    };
    struct graph *plain = NULL;
    *options = (struct clipped_options){ .copies = strtol(argv[4], NULL, 10),
                                         .step_units = strtol(argv[3], NULL, 10),
                                         .clip = 1,
                                         .threads = (int)strtol(argv[5], NULL, 10),
                                         .plan.mode = PLAN_TRAIN };
    if (!zoo_build(argv[1], &network, &plain, err))
        return false;
    bool ok = unet ? graph_copy(plain, graph, err) : transform_norm(plain, NORM_GROUP, graph, err);
    graph_free(plain);
    ok = ok && graph_initialize(*graph, 1, err);
    for (value_id v = 0; ok && v < (*graph)->n_values; v++) /* also what starts at zero */
        if ((*graph)->values[v].kind == VALUE_PARAMETER)
            draw(graph_data(*graph, v), shape_count(&(*graph)->values[v].shape), (uint64_t)v + 10);
    return ok;
}

/* Noise on the sum, as a step of the trainer adds it. */
static void finish(const struct secret *secret, float *sum, int64_t count, int64_t units,
                   int threads)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < count; i += 8192)
        noise_add(secret, 0, i, i + 8192 < count ? 8192 : count - i, 1, 1 / (double)units, sum + i);
}

/* A step; the gradient is that of the squared distance of all outputs from 1. */
static bool step(struct clipped *clipped, const struct secret *secret, int64_t units, float *sum,
                 double *noise_s, struct err *err)
{
    const struct graph *graph = clipped_graph(clipped);
    int64_t n = shape_count(graph_shape(graph, graph->outputs[0].value));
    int slots = clipped_slots(clipped);
    bool ok = clipped_refresh(clipped, err);
    memset(sum, 0, (size_t)graph_parameter_count(graph) * sizeof *sum);
    for (int64_t at = 0; ok && at < units; at += slots) {
        int many = units - at < slots ? (int)(units - at) : slots;
        ok = clipped_forward(clipped, many, err);
        for (int s = 0; s < many; s++) {
            const float *output = clipped_output(clipped, s, 0);
            float *gradient = clipped_output_gradient(clipped, s, 0);
            for (int64_t i = 0; i < n; i++)
                gradient[i] = 2 * (output[i] - 1) / (float)n;
        }
        ok = ok && clipped_backward(clipped, many, sum, NULL, err);
    }
    double began = cpu_s();
    finish(secret, sum, graph_parameter_count(graph), units, slots);
    *noise_s = cpu_s() - began;
    return ok;
}

static bool run(int argc, char **argv, struct err *err)
{
    struct graph *graph = NULL;
    struct clipped *clipped = NULL;
    struct clipped_options options;
    struct secret secret;
    float *sum = NULL;
    double best = 0, noise_s = 0, least_noise_s = 0, unit_s = 0;
    bool ok = secret_draw(&secret, err) && make(argc, argv, &graph, &options, err) &&
              clipped_new(graph, &options, &clipped, err) &&
              ((sum = calloc((size_t)graph_parameter_count(graph), sizeof *sum)) ||
               err_memory(err, "gradients"));
    for (int s = 0; ok && s < clipped_slots(clipped); s++)
        for (int i = 0; i < graph->n_inputs; i++)
            draw(clipped_input(clipped, s, i),
                 shape_count(
                     graph_shape(clipped_graph(clipped), clipped_graph(clipped)->inputs[i].value)),
                 (uint64_t)(i + 4 * s));
    for (long i = 0; ok && i < strtol(argv[6], NULL, 10); i++) {
        double began = clock_monotonic_s(), cpu = cpu_s();
        int64_t units = strtol(argv[3], NULL, 10);
        ok = step(clipped, &secret, units, sum, &noise_s, err);
        double seconds = clock_monotonic_s() - began;
        double used_s = (cpu_s() - cpu - noise_s) / (double)units;
        best = i == 0 || seconds < best ? seconds : best;
        unit_s = i == 0 || used_s < unit_s ? used_s : unit_s;
        least_noise_s = i == 0 || noise_s < least_noise_s ? noise_s : least_noise_s;
    }
    if (ok)
        printf("{\"seconds\": %.6f, \"unit_cpu_s\": %.6f, \"noise_cpu_s\": %.6f, \"parameters\": "
               "%lld, \"peak_mb\": %.0f}\n",
               best, unit_s, least_noise_s, (long long)graph_parameter_count(graph),
               (double)room_peak() / 1e6);
    clipped_free(clipped);
    graph_free(graph);
    free(sum);
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
