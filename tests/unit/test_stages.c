/* test_stages.c: the stages of a network, run one after another, compute what the whole network
 * does: outputs, gradients, running statistics; at random cuts of every family of the zoo. Also
 * what they send, the parameters that they hold, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/plan/plan.h"
#include "net/stages/stages.h"
#include "net/zoo/zoo.h"

#define SEED 29

static size_t count_of(const struct graph *graph, value_id value)
{
    return (size_t)shape_count(graph_shape(graph, value));
}

static void fill(float *to, size_t n, uint64_t stream)
{
    for (size_t i = 0; i < n; i++) {
        struct rng rng = rng_new(SEED, stream, i);
        to[i] = (float)(rng_uniform(&rng) - 0.5);
    }
}

/* Inputs and gradients of outputs are the same wherever a port of this name is. */
static uint64_t stream_of(const char *name)
{
    return rng_hash(name) | 1;
}

/* Uniform weights of He's variance; graph_initialize takes seconds for large networks. */
static void draw_weights(struct graph *graph)
{
    struct err err = { 0 };
    uint64_t drawn = SEED;
    assert_true(graph_allocate(graph, &err));
    for (value_id v = 0; v < graph->n_values; v++) {
        if (!graph_is_parameter(graph, v))
            continue;
        const struct value *value = &graph->values[v];
        int64_t n = shape_count(&value->shape);
        bool constant = value->init.kind == INIT_CONSTANT;
        float scale = value->shape.rank > 1
                          ? sqrtf(6 / (float)shape_span(&value->shape, 1, value->shape.rank))
                          : 0.1f;
        for (int64_t i = 0; i < n; i++) {
            drawn = drawn * 6364136223846793005u + 1442695040888963407u;
            float uniform = (float)(int32_t)(drawn >> 32) / 2147483648.0f;
            graph_data(graph, v)[i] = constant ? value->init.a : scale * uniform;
        }
    }
}

static struct graph *network(const char *name, struct zoo_options options)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    if (!zoo_build(name, &options, &graph, &err))
        fail_msg("%s", err.text);
    draw_weights(graph);
    return graph;
}

/* --- a graph and its stages, run --- */

struct runner {
    struct stages stages;
    struct plan *plans[STAGES_MOST];
};

static struct plan *plan_of(const struct graph *graph, enum plan_mode mode, bool input_gradients)
{
    struct plan_options options = { .mode = mode,
                                    .threads = 2,
                                    .input_gradients = mode != PLAN_INFER && input_gradients };
    struct plan *plan = NULL;
    struct err err = { 0 };
    if (!plan_new(graph, &options, &plan, &err))
        fail_msg("%s", err.text);
    plan_zero_gradients(plan);
    plan_set_random(plan, SEED, 0);
    return plan;
}

static void runner_new(const struct graph *graph, const int32_t *begin, int n, enum plan_mode mode,
                       struct runner *out)
{
    struct err err = { 0 };
    if (!stages_new(graph, begin, n, &out->stages, &err))
        fail_msg("%s", err.text);
    for (int s = 0; s < n; s++)
        out->plans[s] = plan_of(out->stages.graphs[s], mode, s > 0);
}

static void runner_free(struct runner *runner)
{
    for (int s = 0; s < runner->stages.n; s++)
        plan_free(runner->plans[s]);
    stages_free(&runner->stages);
}

/* Inputs that are the whole network's. */
static void feed(const struct graph *whole, const struct graph *graph, struct plan *plan)
{
    for (int i = 0; i < graph->n_inputs; i++) {
        value_id value = graph->inputs[i].value;
        for (int k = 0; k < whole->n_inputs; k++)
            if (strcmp(whole->inputs[k].name, graph->inputs[i].name) == 0)
                fill(plan_input(plan, i), count_of(graph, value), stream_of(graph->inputs[i].name));
    }
}

/* Gradients of outputs that are the whole network's; 0 of others. */
static void ask(const struct graph *whole, const struct graph *graph, struct plan *plan)
{
    for (int i = 0; i < graph->n_outputs; i++) {
        size_t n = count_of(graph, graph->outputs[i].value);
        float *to = plan_output_gradient(plan, i);
        memset(to, 0, n * sizeof *to);
        for (int k = 0; k < whole->n_outputs; k++)
            if (strcmp(whole->outputs[k].name, graph->outputs[i].name) == 0)
                fill(to, n, stream_of(graph->outputs[i].name));
    }
}

static void run_forward(const struct graph *whole, struct runner *runner)
{
    const struct stages *stages = &runner->stages;
    struct err err = { 0 };
    for (int s = 0; s < stages->n; s++) {
        feed(whole, stages->graphs[s], runner->plans[s]);
        for (int e = 0; e < stages->n_edges; e++) {
            const struct stage_edge *edge = &stages->edges[e];
            if (edge->to == s)
                memcpy(plan_input(runner->plans[s], edge->input),
                       plan_output(runner->plans[edge->from], edge->output), edge->bytes);
        }
        if (!plan_forward(runner->plans[s], &err))
            fail_msg("%s", err.text);
    }
}

static void run_backward(const struct graph *whole, struct runner *runner)
{
    const struct stages *stages = &runner->stages;
    struct err err = { 0 };
    for (int s = 0; s < stages->n; s++)
        ask(whole, stages->graphs[s], runner->plans[s]);
    for (int s = stages->n - 1; s >= 0; s--) {
        const struct graph *graph = stages->graphs[s];
        if (!plan_backward(runner->plans[s], &err))
            fail_msg("%s", err.text);
        for (int e = 0; e < stages->n_edges; e++) {
            const struct stage_edge *edge = &stages->edges[e];
            if (edge->to != s)
                continue;
            float *sum = plan_output_gradient(runner->plans[edge->from], edge->output);
            float *one = malloc(edge->bytes);
            assert_non_null(one);
            if (!plan_activation_gradient(runner->plans[s], graph->inputs[edge->input].value, one,
                                          &err))
                fail_msg("%s", err.text);
            for (size_t i = 0; i < edge->bytes / sizeof *one; i++)
                sum[i] += one[i];
            free(one);
        }
    }
}

/* --- compared --- */

/* Largest difference, in parts of the largest number; 0: the same bits. */
static double distance(const float *a, const float *b, size_t n)
{
    double most = 0, scale = 0;
    if (memcmp(a, b, n * sizeof *a) == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - b[i]));
        scale = fmax(scale, fabs((double)b[i]));
    }
    return most > 0 ? most / scale : 0;
}

static double compare_outputs(const struct graph *whole, struct plan *plan,
                              const struct runner *runner)
{
    int found = 0;
    double most = 0;
    for (int s = 0; s < runner->stages.n; s++) {
        const struct graph *graph = runner->stages.graphs[s];
        for (int i = 0; i < graph->n_outputs; i++)
            for (int k = 0; k < whole->n_outputs; k++)
                if (strcmp(whole->outputs[k].name, graph->outputs[i].name) == 0) {
                    most =
                        fmax(most, distance(plan_output(runner->plans[s], i), plan_output(plan, k),
                                            count_of(graph, graph->outputs[i].value)));
                    found++;
                }
    }
    assert_int_equal(found, whole->n_outputs);
    return most;
}

/* All parameters, each in one stage; of each network in parts of the largest gradient of the
 * parameter. */
static double compare_gradients(const struct graph *whole, struct plan *plan,
                                const struct runner *runner)
{
    int64_t count = 0;
    double most = 0;
    for (int s = 0; s < runner->stages.n; s++) {
        const struct graph *graph = runner->stages.graphs[s];
        for (value_id v = 0; v < graph->n_values; v++) {
            if (graph->values[v].kind != VALUE_PARAMETER)
                continue;
            value_id same = graph_find(whole, graph->values[v].name);
            most = fmax(most, distance(plan_parameter_gradient(runner->plans[s], v),
                                       plan_parameter_gradient(plan, same), count_of(graph, v)));
            count += (int64_t)count_of(graph, v);
        }
    }
    assert_int_equal(count, graph_parameter_count(whole));
    return most;
}

/* Random places, strictly ascending. */
static void draw_cuts(const struct graph *graph, int n, uint64_t draw, int32_t *begin)
{
    struct rng rng = rng_new(SEED, 77, draw);
    begin[0] = 0, begin[n] = graph->n_nodes;
    for (int s = 1; s < n; s++) {
        int32_t room = graph->n_nodes - (n - s) - begin[s - 1]; /* one node each behind it */
        int32_t step = 1 + (int32_t)(rng_uniform(&rng) * 2 * room / (n - s + 1));
        begin[s] = begin[s - 1] + (step < room ? step : room);
    }
}

/* --- bits and digits --- */

/* The running statistics of a graph, one after another; restored with `restore`. */
static void statistics(const struct graph *graph, float *floats, bool restore)
{
    for (value_id v = 0; v < graph->n_values; v++) {
        size_t n = count_of(graph, v);
        if (graph->values[v].kind != VALUE_BUFFER)
            continue;
        if (restore)
            memcpy(graph_data(graph, v), floats, n * sizeof *floats);
        else
            memcpy(floats, graph_data(graph, v), n * sizeof *floats);
        floats += n;
    }
}

static float *statistics_room(const struct graph *graph, size_t *bytes)
{
    size_t n = 0;
    for (value_id v = 0; v < graph->n_values; v++)
        n += graph->values[v].kind == VALUE_BUFFER ? count_of(graph, v) : 0;
    float *floats = malloc((n + 1) * sizeof *floats);
    assert_non_null(floats);
    *bytes = n * sizeof *floats;
    return floats;
}

struct measured {
    double outputs, gradients, statistics;
};

/* One forward and backward pass of the whole and of its stages, from the same statistics. */
static struct measured measure(const struct graph *graph, const int32_t *begin, int n,
                               enum plan_mode mode)
{
    struct measured found = { 0 };
    struct err err = { 0 };
    struct runner runner;
    size_t bytes = 0;
    float *before = statistics_room(graph, &bytes), *after = statistics_room(graph, &bytes),
          *then = statistics_room(graph, &bytes);
    statistics(graph, before, false);
    struct plan *plan = plan_of(graph, mode, false);
    feed(graph, graph, plan);
    assert_true(plan_forward(plan, &err));
    statistics(graph, after, false);
    statistics(graph, before, true);
    runner_new(graph, begin, n, mode, &runner);
    run_forward(graph, &runner);
    statistics(graph, then, false);
    statistics(graph, before, true);
    found.outputs = compare_outputs(graph, plan, &runner);
    found.statistics = distance(then, after, bytes / sizeof *then);
    if (mode != PLAN_INFER) {
        ask(graph, graph, plan);
        assert_true(plan_backward(plan, &err));
        run_backward(graph, &runner);
        found.gradients = compare_gradients(graph, plan, &runner);
    }
    plan_free(plan);
    runner_free(&runner);
    free(before), free(after), free(then);
    return found;
}

/* Random cuts of a network of each family. Bits are those of the whole network, but where a value
 * has three readers or more and not all in the stage that makes it: the gradients of the readers in
 * one stage are summed before those of another are added. */
struct family {
    const char *name;
    struct zoo_options options;
    int draws;
};

static bool sums_differ(const struct graph *graph, const struct stages *stages)
{
    for (int a = 0; a < stages->n_edges; a++) {
        const struct stage_edge *edge = &stages->edges[a];
        const struct graph *from = stages->graphs[edge->from];
        const char *name = from->values[from->outputs[edge->output].value].name;
        if (graph_users(graph, graph_find(graph, name)) > 2)
            return true;
    }
    return false;
}

static void check_cut(const struct graph *graph, const int32_t *begin, int n, enum plan_mode mode)
{
    struct stages stages;
    struct err err = { 0 };
    if (!stages_new(graph, begin, n, &stages, &err))
        fail_msg("%s", err.text);
    bool differ = sums_differ(graph, &stages);
    stages_free(&stages);
    struct measured found = measure(graph, begin, n, mode);
    bool same = found.outputs == 0 && found.statistics == 0 &&
                (differ ? found.gradients < 3e-5 : found.gradients == 0);
    if (!same)
        fail_msg("%s: %d stages, first %s | %s, mode %d: outputs %.2g, gradients %.2g, "
                 "statistics %.2g, %d",
                 graph->name, n, graph->nodes[begin[1] - 1].name, graph->nodes[begin[1]].name,
                 (int)mode, found.outputs, found.gradients, found.statistics, differ);
}

static void check_family(const struct family *family)
{
    struct graph *graph = network(family->name, family->options);
    for (int draw = 0; draw < family->draws; draw++) {
        int32_t begin[STAGES_MOST + 1];
        int n = 2 + draw % 4;
        draw_cuts(graph, n, (uint64_t)draw, begin);
        check_cut(graph, begin, n, PLAN_TRAIN);
        if (draw % 2)
            check_cut(graph, begin, n, draw % 4 == 1 ? PLAN_INFER : PLAN_TUNE);
    }
    graph_free(graph);
}

static void random_cuts(void **state)
{
    (void)state;
    static const struct family families[] = {
        { "resnet18", { .batch = 2, .height = 32, .width = 32, .classes = 5 }, 4 },
        { "resnet50", { .batch = 2, .height = 32, .width = 32, .classes = 5 }, 2 },
        { "resnet110_v2", { .batch = 2, .height = 16, .width = 16, .classes = 5 }, 5 },
        { "googlenet",
          { .batch = 2, .height = 64, .width = 64, .classes = 5, .auxiliary = true },
          4 },
        { "densenet121", { .batch = 2, .height = 32, .width = 32, .classes = 5 }, 3 },
        { "vit_small_patch16_224", { .batch = 2, .height = 32, .width = 32, .classes = 5 }, 2 },
        { "unet_small", { .batch = 2, .height = 16, .width = 16 }, 4 },
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        check_family(&families[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
