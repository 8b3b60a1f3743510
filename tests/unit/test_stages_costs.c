/* test_stages_costs.c: costs of layers, measured and counted; the memory of stages against that of
 * their plans; balanced cuts against all cuts there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/stages/costs.h"
#include "net/zoo/zoo.h"

static struct graph *network(const char *name, int64_t side)
{
    struct zoo_options options = { .batch = 1, .height = side, .width = side, .classes = 5 };
    struct graph *graph = NULL;
    struct err err = { 0 };
    if (!zoo_build(name, &options, &graph, &err) || !graph_allocate(graph, &err))
        fail_msg("%s", err.text);
    for (value_id v = 0; v < graph->n_values; v++)
        for (int64_t k = 0; graph_is_parameter(graph, v) && k < shape_count(graph_shape(graph, v));
             k++)
            graph_data(graph, v)[k] = graph->values[v].init.kind == INIT_CONSTANT
                                          ? graph->values[v].init.a
                                          : 0.01f * (float)(k % 7 - 3);
    return graph;
}

static struct node_cost *room_for_costs(const struct graph *graph)
{
    struct node_cost *costs = calloc((size_t)graph->n_nodes, sizeof *costs);
    assert_non_null(costs);
    return costs;
}

/* --- layers --- */

static void measured_layers(void **state)
{
    (void)state;
    struct graph *graph = network("resnet18", 64);
    struct node_cost *costs = room_for_costs(graph);
    struct costs_options options = { .threads = 1 };
    struct err err = { 0 };
    int64_t px = 0;
    if (!costs_measure(graph, &options, costs, &px, &err))
        fail_msg("%s", err.text);
    assert_int_equal(px, 64);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        bool conv = graph->nodes[i].op->kind == OP_CONV;
        assert_true(!conv || (costs[i].forward_s > 0 && costs[i].weights_s > 0));
        assert_true(costs[i].weights_s <= costs[i].backward_s);
        /* the image has no gradient: the first layer has those of its weights only */
        assert_true(!conv || i == 0 || costs[i].weights_s < costs[i].backward_s);
    }
    assert_true(costs[0].weights_s == costs[0].backward_s);
    float *mean = graph_data(graph, graph_find(graph, "bn1.running_mean"));
    for (int64_t k = 0; k < 64; k++)
        assert_true(mean[k] == 0); /* as it was */
    free(costs);
    graph_free(graph);
}

/* What does not fit is measured on smaller images; times grow with the work, memory is exact. */
static void measured_in_part(void **state)
{
    (void)state;
    struct graph *graph = network("resnet110_v2", 128);
    struct graph *small = NULL;
    struct node_cost *costs = room_for_costs(graph), *part = room_for_costs(graph);
    struct costs_options options = { .threads = 1, .room = 150000000, .least_px = 32 };
    struct err err = { 0 };
    int64_t px = 0;
    if (!costs_measure(graph, &options, costs, &px, &err))
        fail_msg("%s", err.text);
    assert_true(px == 64 || px == 48 || px == 32);
    assert_true(transform_resize(graph, 1, px, px, &small, &err));
    options.room = 0;
    assert_true(costs_measure(small, &options, part, &px, &err));
    double whole_s = 0, part_s = 0, kept = 0, part_kept = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        whole_s += costs[i].forward_s + costs[i].backward_s;
        part_s += part[i].forward_s + part[i].backward_s;
        kept += (double)costs[i].kept, part_kept += (double)part[i].kept;
    }
    double more = 128.0 * 128.0 / (double)(px * px);
    assert_true(whole_s > part_s * more / 3 && whole_s < part_s * more * 3); /* two measurements */
    assert_true(fabs(kept / part_kept / more - 1) < 0.05);
    options = (struct costs_options){ .threads = 1, .room = 1000000, .least_px = 64 };
    assert_false(costs_measure(graph, &options, costs, &px, &err));
    assert_non_null(strstr(err.text, "resnet110_v2: measuring its layers takes at least "));
    free(costs), free(part);
    graph_free(graph), graph_free(small);
}

static void counted_layers(void **state)
{
    (void)state;
    struct graph *graph = graph_new("two");
    struct node_cost costs[3];
    struct err err = { 0 };
    value_id x = graph_input(graph, "x", SHAPE(1, 3, 8, 8));
    x = graph_relu(graph, graph_conv(graph, x, "a", 4, false, conv_square(3, 1, 1)));
    graph_output(graph, "y", graph_conv(graph, x, "b", 4, false, conv_square(1, 1, 0)));
    assert_true(costs_count(graph, costs, &err));
    /* 4 * 8 * 8 outputs of 27 products, 4 (3 + 4) 64 bytes moved; no gradient of the image */
    assert_true(fabs(costs[0].forward_s - (256 * 27 / 3e10 + 1792 / 1e10)) < 1e-15);
    assert_true(fabs(costs[0].backward_s - costs[0].forward_s) < 1e-15);
    assert_true(fabs(costs[2].weights_s - 256 * 4 / 3e10) < 1e-15);
    assert_true(fabs(costs[2].backward_s - costs[2].forward_s - costs[2].weights_s) < 1e-15);
    assert_int_equal(costs[0].kept, 0);    /* neither relu nor its convolution needs it */
    assert_int_equal(costs[1].kept, 1024); /* both need it */
    assert_int_equal(costs[1].working, 2048);
    graph_free(graph);
}

/* --- stages --- */

static const struct wire fast = { 1e-6, 1e10 };

/* What a stage keeps is about the arena of its plan. */
static void memory_of_stages(void **state)
{
    (void)state;
    static const char *const names[] = { "resnet50", "resnet110_v2", "densenet121",
                                         "vit_small_patch16_224" };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct graph *graph = network(names[k], 96);
        struct node_cost *costs = room_for_costs(graph);
        struct costs_options once = { .threads = 1, .repeats = 1 };
        struct stage_cost found[4];
        struct stages stages;
        struct err err = { 0 };
        int32_t begin[STAGES_MOST + 1];
        int64_t px = 0;
        assert_true(costs_measure(graph, &once, costs, &px, &err));
        assert_true(costs_balance(graph, costs, 4, &fast, 0, begin, &err));
        assert_true(stages_new(graph, begin, 4, &stages, &err));
        costs_of_stages(&stages, costs, found);
        for (int s = 0; s < 4; s++) {
            struct plan_options options = { .mode = PLAN_TRAIN,
                                            .threads = 1,
                                            .input_gradients = s > 0 };
            struct plan_estimate plan;
            assert_true(plan_estimate(stages.graphs[s], &options, &plan, &err));
            double ratio = (double)found[s].kept / (double)plan.arena;
            if (ratio < 0.8 || ratio > 1.2)
                fail_msg("%s, stage %d: %zu bytes for %zu", names[k], s, found[s].kept, plan.arena);
        }
        stages_free(&stages);
        free(costs);
        graph_free(graph);
    }
}

/* A network with skips of all lengths, two readers in a row and a shared parameter. */
static struct graph *tangle(void)
{
    struct graph *g = graph_new("tangle");
    value_id x = graph_input(g, "x", SHAPE(1, 4, 6, 6));
    value_id a = graph_conv(g, x, "a", 4, false, conv_square(3, 1, 1));
    value_id b = graph_relu(g, a);
    value_id c = graph_conv(g, b, "c", 8, false, conv_square(3, 1, 1));
    value_id gain = graph_parameter(g, "gain", SHAPE(1));
    value_id d = graph_mul(g, graph_relu(g, c), gain);
    value_id e = graph_mul(g, graph_conv(g, d, "e", 8, false, conv_square(3, 1, 1)), gain);
    value_id f = graph_conv(g, graph_add(g, e, d), "f", 4, false, conv_square(1, 1, 0));
    f = graph_add(g, graph_add(g, f, b), a);
    graph_output(g, "y", graph_linear(g, graph_flatten(g, f), "y", 2, true));
    return g;
}

/* The slowest stage with what it sends, forward and back; from what stages_new made. */
static double slowest(const struct stages *stages, const struct node_cost *costs,
                      const struct wire *wire, double *most_kept)
{
    struct stage_cost found[STAGES_MOST];
    double most = 0;
    costs_of_stages(stages, costs, found);
    *most_kept = 0;
    for (int s = 0; s < stages->n; s++) {
        double seconds = found[s].forward_s + found[s].backward_s;
        bool sent[64] = { false };
        for (int e = 0; e < stages->n_edges; e++) {
            const struct stage_edge *edge = &stages->edges[e];
            bool counts = edge->to == s || (edge->from == s && !sent[edge->output]);
            if (edge->from == s)
                sent[edge->output] = true;
            seconds += counts ? wire->latency_s + (double)edge->bytes / wire->bytes_per_s : 0;
        }
        most = fmax(most, seconds);
        *most_kept = fmax(*most_kept, (double)found[s].kept);
    }
    return most;
}

/* All cuts into three: the fastest of those that keep no more than `memory`. */
static double fastest_of_all(const struct graph *graph, const struct node_cost *costs,
                             const struct wire *wire, double memory, double *least_kept)
{
    double best = INFINITY;
    *least_kept = INFINITY;
    for (int32_t i = 1; i < graph->n_nodes - 1; i++)
        for (int32_t j = i + 1; j < graph->n_nodes; j++) {
            int32_t begin[] = { 0, i, j, graph->n_nodes };
            struct stages stages;
            double kept = 0;
            bool acts = graph->nodes[i].op->kind == OP_RELU || graph->nodes[j].op->kind == OP_RELU;
            if (acts || !stages_new(graph, begin, 3, &stages, NULL))
                continue;
            double seconds = slowest(&stages, costs, wire, &kept);
            *least_kept = fmin(*least_kept, kept);
            if (kept <= memory)
                best = fmin(best, seconds);
            stages_free(&stages);
        }
    return best;
}

static void balanced_as_the_best_of_all(void **state)
{
    (void)state;
    static const struct wire wires[] = { { 0, 1e30 }, { 1e-4, 1e7 } };
    struct graph *graph = tangle();
    struct node_cost costs[32] = { 0 };
    struct err err = { 0 };
    assert_true(graph_ok(graph, &err));
    for (uint64_t draw = 0; draw < 40; draw++) {
        const struct wire *wire = &wires[draw % 2];
        struct rng rng = rng_new(5, 6, draw);
        int32_t begin[4];
        double kept = 0, least = 0;
        for (int32_t i = 0; i < graph->n_nodes; i++)
            costs[i] = (struct node_cost){ .forward_s = 1e-3 * rng_uniform(&rng),
                                           .backward_s = 2e-3 * rng_uniform(&rng),
                                           .kept = (size_t)(20000 * rng_uniform(&rng)),
                                           .working = (size_t)(20000 * rng_uniform(&rng)) };
        double best = fastest_of_all(graph, costs, wire, INFINITY, &least);
        struct stages stages;
        if (!costs_balance(graph, costs, 3, wire, 0, begin, &err) ||
            !stages_new(graph, begin, 3, &stages, &err))
            fail_msg("%s", err.text);
        assert_true(slowest(&stages, costs, wire, &kept) <= 1.01 * best * (1 + 1e-9));
        stages_free(&stages);
        /* in as little memory as possible */
        size_t tight = (size_t)least + 1;
        if (!costs_balance(graph, costs, 3, wire, tight, begin, &err) ||
            !stages_new(graph, begin, 3, &stages, &err))
            fail_msg("%s", err.text);
        slowest(&stages, costs, wire, &kept);
        assert_true(kept <= (double)tight);
        stages_free(&stages);
        assert_false(costs_balance(graph, costs, 3, wire, (size_t)least - 1, begin, &err));
        assert_non_null(strstr(err.text, "tangle: cut into 3 stages, one keeps at least "));
    }
    graph_free(graph);
}

static void refused(void **state)
{
    (void)state;
    struct graph *graph = tangle();
    struct node_cost costs[32] = { 0 };
    int32_t begin[STAGES_MOST + 1];
    struct err err = { 0 };
    assert_true(costs_count(graph, costs, &err));
    assert_false(costs_balance(graph, costs, 20, &fast, 0, begin, &err));
    assert_string_equal(err.text, "tangle: cannot be cut into 20 stages: it has 13 layers");
    assert_false(costs_balance(graph, costs, 65, &fast, 0, begin, &err));
    assert_string_equal(err.text, "tangle: cannot be cut into 65 stages; the most is 64");
    assert_false(costs_balance(graph, costs, 13, &fast, 0, begin, &err));
    assert_string_equal(err.text, "tangle: cannot be cut into 13 stages, only into 11");
    graph_free(graph);
}

/* Layers that a user names. */
static void refused_layers(void **state)
{
    (void)state;
    static const struct {
        const char *layers[2], *why;
    } cases[] = {
        { { "c", "relu" }, "tangle: no layer 'relu'; did you mean relu_1?" },
        { { "c", "x" }, "tangle: x is an input of the network: no stage can end there" },
        { { "c", "y" }, "tangle: no layer follows y: no stage can begin there" },
        { { "f", "c" },
          "tangle: f comes after c; name the last layers of stages in the order of "
          "the network" },
        { { "c", "c" }, "tangle: c and c are the same layer; a stage needs one at least" },
        { { "c", "e" },
          "tangle: stages 2 and 3 would share the parameter gain; cut so that all "
          "layers that use it are in one stage" },
    };
    struct graph *graph = tangle();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t begin[4];
        struct stages stages;
        struct err err = { 0 };
        assert_false(stages_at(graph, cases[i].layers, 2, begin, &err) &&
                     stages_new(graph, begin, 3, &stages, &err));
        assert_string_equal(err.text, cases[i].why);
    }
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured_layers),
        cmocka_unit_test(measured_in_part),
        cmocka_unit_test(counted_layers),
        cmocka_unit_test(memory_of_stages),
        cmocka_unit_test(balanced_as_the_best_of_all),
        cmocka_unit_test(refused),
        cmocka_unit_test(refused_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
