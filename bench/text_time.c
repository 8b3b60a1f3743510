/* text_time.c: a forward pass of an encoder of texts, as in prediction.
 *
 *     text_time NETWORK TOKENS BATCH THREADS REPEATS
 *
 * Weights and ids are drawn, no token is padding. Prints the milliseconds of the fastest pass. */
#include <stdio.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"

#define VOCABULARY 30522

/* ids [N, T] of "input"; "mask" is 1. */
static void fill_inputs(const struct graph *graph, struct plan *plan)
{
    struct rng rng = rng_new(1, 0, 0);
    for (int i = 0; i < graph->n_inputs; i++) {
        int64_t n = shape_count(graph_shape(graph, graph->inputs[i].value));
        float *at = plan_input(plan, i);
        for (int64_t k = 0; k < n; k++)
            at[k] = i == 0 ? (float)(int64_t)(rng_uniform(&rng) * VOCABULARY) : 1;
    }
}

static bool measure(const struct graph *graph, struct plan *plan, int64_t repeats, struct err *err)
{
    double best = 0;
    fill_inputs(graph, plan);
    for (int64_t i = 0; i <= repeats; i++) {
        double began = clock_monotonic_s();
        if (!plan_forward(plan, err))
            return false;
        double seconds = clock_monotonic_s() - began;
        best = i <= 1 || seconds < best ? seconds : best; /* the first is only to warm up */
    }
    printf("%.3f\n", 1e3 * best);
    return true;
}

static bool run(int argc, char **argv, struct err *err)
{
    if (argc != 6)
        return err_set(err, ERR_USAGE, "NETWORK TOKENS BATCH THREADS REPEATS");
    struct zoo_options options = { .height = strtol(argv[2], NULL, 10),
                                   .batch = strtol(argv[3], NULL, 10),
                                   .channels = VOCABULARY };
    struct plan_options how = { .mode = PLAN_INFER, .threads = (int)strtol(argv[4], NULL, 10) };
    struct graph *graph = NULL, *fused = NULL;
    struct plan *plan = NULL;
    bool ok = zoo_build(argv[1], &options, &graph, err) && graph_initialize(graph, 1, err) &&
              transform_for_inference(graph, NULL, 0, &fused, err) &&
              plan_new(fused, &how, &plan, err) &&
              measure(fused, plan, strtol(argv[5], NULL, 10), err);
    plan_free(plan);
    graph_free(fused);
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
