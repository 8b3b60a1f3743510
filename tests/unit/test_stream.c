/* test_stream.c: a network that runs tile by tile gives the same outputs and the same gradients as
 * one that runs whole, to rounding: at any size of the image and of the tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"

/* The numbers of one step of training. */
struct result {
    float *outputs, *gradients;
    int64_t n_outputs, n_gradients;
};

static void result_free(struct result *r)
{
    free(r->outputs), free(r->gradients);
}

static void fill(float *at, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)((double)((seed + (uint64_t)i * 2654435761u) % 1000003u) / 500001.5 - 1);
}

static struct result run(const struct graph *graph, const struct plan_options *options)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    if (!plan_new(graph, options, &plan, &err))
        fail_msg("%s", err.text);
    struct result r = { 0 };
    fill(plan_input(plan, 0), shape_count(graph_shape(graph, graph->inputs[0].value)), 7);
    plan_zero_gradients(plan);
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
    r.n_outputs = shape_count(graph_shape(graph, graph->outputs[0].value));
    r.outputs = malloc((size_t)r.n_outputs * sizeof *r.outputs);
    memcpy(r.outputs, plan_output(plan, 0), (size_t)r.n_outputs * sizeof *r.outputs);
    fill(plan_output_gradient(plan, 0), r.n_outputs, 3);
    if (!plan_backward(plan, &err))
        fail_msg("%s", err.text);
    const float *gradients = plan_gradients(plan, &r.n_gradients);
    r.gradients = malloc((size_t)r.n_gradients * sizeof *r.gradients);
    memcpy(r.gradients, gradients, (size_t)r.n_gradients * sizeof *r.gradients);
    plan_free(plan);
    return r;
}

/* |a - b| / |b| */
static double distance(const float *a, const float *b, int64_t n)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(difference / size) : sqrt(difference);
}

static struct graph *sized(const char *name, int64_t height, int64_t width)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    struct zoo_options options = { .height = height, .width = width, .classes = 3 };
    if (!zoo_build(name, &options, &graph, &err) || !graph_initialize(graph, 1, &err))
        fail_msg("%s", err.text);
    return graph;
}

/* Each of these tile sizes, 0 at the end, against the whole. */
static void compare(const struct graph *graph, const int64_t *tiles_px, double tolerance)
{
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 2 };
    struct result whole = run(graph, &options);
    for (; *tiles_px; tiles_px++) {
        struct plan_stream stream = { .tile_px = *tiles_px };
        options.stream = &stream;
        struct result tiled = run(graph, &options);
        double out = distance(tiled.outputs, whole.outputs, whole.n_outputs);
        double gradient = distance(tiled.gradients, whole.gradients, whole.n_gradients);
        print_message("%s, %lld px: outputs differ by %.2g, gradients by %.2g\n", graph->name,
                      (long long)*tiles_px, out, gradient);
        assert_true(out < tolerance);
        assert_true(gradient < tolerance);
        result_free(&tiled);
    }
    result_free(&whole);
}

static void resnet_is_the_same(void **state)
{
    (void)state;
    struct graph *graph = sized("resnet18", 331, 259);
    compare(graph, (const int64_t[]){ 32, 96, 512, 0 }, 2e-6);
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
