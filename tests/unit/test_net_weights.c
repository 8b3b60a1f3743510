/* test_net_weights.c: transformed weights that plans share: made once for several image sizes and
 * threads, freed with the last plan, the same outputs as without sharing; and a budget for them,
 * beyond which layers are direct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/kernels/winograd_conv.h"
#include "net/plan/plan.h"
#include "net/graph/transform.h"

#define CHANNELS 48
#define LAYERS 3

static struct graph *network(void)
{
    static const char *const names[LAYERS] = { "a", "b", "c" };
    struct graph *g = graph_new("three");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(1, CHANNELS, 40, 40));
    for (int i = 0; i < LAYERS; i++)
        x = graph_relu(g, graph_conv(g, x, names[i], CHANNELS, true, conv_square(3, 1, 1)));
    graph_output(g, "out", x);
    if (!graph_ok(g, &err) || !graph_initialize(g, 3, &err))
        fail_msg("%s", err.text);
    return g;
}

/* The network for images of this height, fused. */
static struct graph *at_height(const struct graph *g, int64_t height)
{
    struct graph *sized = NULL, *fused = NULL;
    struct err err = { 0 };
    if (!transform_resize(g, 1, height, 40, &sized, &err) ||
        !transform_fuse(sized, NULL, 0, &fused, &err))
        fail_msg("%s", err.text);
    graph_free(sized);
    return fused;
}

static struct plan *plan_of(const struct graph *g, struct plan_options options)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    options.threads = 1;
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void run(struct plan *plan, const struct graph *g)
{
    struct rng rng = rng_new(1, 2, 3);
    struct err err = { 0 };
    int64_t count = shape_count(graph_shape(g, g->inputs[0].value));
    for (int64_t i = 0; i < count; i++)
        plan_input(plan, 0)[i] = (float)rng_normal(&rng);
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
}

static void same_output(const struct plan *a, const struct plan *b, const struct graph *g)
{
    size_t bytes = sizeof(float) * (size_t)shape_count(graph_shape(g, g->outputs[0].value));
    assert_memory_equal(plan_output(a, 0), plan_output(b, 0), bytes);
}

static void plans_of_other_sizes_share(void **state)
{
    (void)state;
    if (!winograd_conv_available(SIMD_AVX2))
        skip();
    struct graph *g = network(), *one = at_height(g, 40), *other = at_height(g, 72);
    struct plan_weights *weights = plan_weights_new();
    struct plan_options shared = { .weights = weights, .winograd_tile = 4 };
    struct plan_options own = { .winograd_tile = 4 };
    struct plan *a = plan_of(one, shared), *b = plan_of(other, shared);
    struct plan *a_own = plan_of(one, own), *b_own = plan_of(other, own);
    size_t least = (size_t)LAYERS * 36 * CHANNELS * CHANNELS * sizeof(float);
    assert_true(plan_memory(a).shared >= least);
    assert_int_equal(plan_memory(a).shared, plan_memory(b).shared);
    assert_int_equal(plan_weights_bytes(weights), plan_memory(a).shared);
    assert_true(plan_memory(a).weights < least && plan_memory(a_own).weights >= least);
    run(a, one), run(b, other), run(a_own, one), run(b_own, other);
    same_output(a, a_own, one), same_output(b, b_own, other);
    plan_free(a), plan_free(a_own);
    graph_free(one); /* what the weights were made from stays with those that are left */
    assert_int_equal(plan_weights_bytes(weights), plan_memory(b).shared);
    run(b, other);
    same_output(b, b_own, other);
    plan_free(b);
    assert_int_equal(plan_weights_bytes(weights), 0);
    plan_free(b_own);
    plan_weights_free(weights);
    graph_free(other), graph_free(g);
}

/* One of several threads that make plans of all sizes again and again. */
struct maker {
    pthread_t thread;
    const struct graph *graphs[2];
    const struct plan *expected[2];
    struct plan_weights *weights;
    bool same;
};

static void *make_plans(void *arg)
{
    struct maker *m = arg;
    m->same = true;
    for (int i = 0; i < 12; i++) {
        const struct graph *g = m->graphs[i % 2];
        struct plan *plan = plan_of(g, (struct plan_options){ .weights = m->weights });
        run(plan, g);
        m->same =
            m->same &&
            memcmp(plan_output(plan, 0), plan_output(m->expected[i % 2], 0),
                   sizeof(float) * (size_t)shape_count(graph_shape(g, g->outputs[0].value))) == 0;
        plan_free(plan);
    }
    return NULL;
}

static void threads_share(void **state)
{
    (void)state;
    struct graph *g = network(), *graphs[2] = { at_height(g, 40), at_height(g, 24) };
    struct plan *expected[2];
    struct plan_weights *weights = plan_weights_new();
    struct maker makers[3];
    for (int i = 0; i < 2; i++) {
        expected[i] = plan_of(graphs[i], (struct plan_options){ 0 });
        run(expected[i], graphs[i]);
    }
    for (int i = 0; i < 3; i++) {
        makers[i] = (struct maker){ .graphs = { graphs[0], graphs[1] },
                                    .expected = { expected[0], expected[1] },
                                    .weights = weights };
        assert_int_equal(pthread_create(&makers[i].thread, NULL, make_plans, &makers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(makers[i].thread, NULL);
        assert_true(makers[i].same);
    }
    assert_int_equal(plan_weights_bytes(weights), 0);
    for (int i = 0; i < 2; i++)
        plan_free(expected[i]), graph_free(graphs[i]);
    plan_weights_free(weights);
    graph_free(g);
}

static void a_budget_bounds_them(void **state)
{
    (void)state;
    if (!winograd_conv_available(SIMD_AVX2))
        skip();
    struct graph *g = network(), *one = at_height(g, 40);
    struct plan_weights *weights = plan_weights_new();
    struct plan_options options = { .weights = weights, .winograd_tile = 4 };
    struct plan *all = plan_of(one, options);
    size_t layer = plan_memory(all).shared / LAYERS;
    plan_free(all);
    options.weights_budget = 1;
    struct plan *none = plan_of(one, options);
    size_t direct_layer = plan_memory(none).shared / LAYERS;
    for (size_t layers = 1; layers <= LAYERS; layers++) {
        options.weights_budget = layers * layer;
        struct plan *some = plan_of(one, options);
        assert_int_equal(plan_memory(some).shared,
                         layers * layer + (LAYERS - layers) * direct_layer);
        plan_free(some);
    }
    struct plan *direct = plan_of(one, (struct plan_options){ .direct = true });
    assert_true(direct_layer < layer / 2);
    run(none, one), run(direct, one);
    same_output(none, direct, one);
    plan_free(none), plan_free(direct);
    plan_weights_free(weights);
    graph_free(one), graph_free(g);
}

/* In training too: the same bits as weights that are transformed in every run, once new parameters
 * have been applied; until then layers compute with the old ones. */
static void training_applies_parameters_on_refresh(void **state)
{
    (void)state;
    struct graph *one = network();
    struct plan_weights *weights = plan_weights_new();
    struct plan_options own = { .mode = PLAN_TRAIN };
    struct plan_options shared = { .mode = PLAN_TRAIN, .weights = weights };
    struct plan *plans[3] = { plan_of(one, own), plan_of(one, shared), plan_of(one, shared) };
    size_t bytes = sizeof(float) * (size_t)shape_count(graph_shape(one, one->outputs[0].value));
    for (int round = 0; round < 3; round++) {
        int64_t count = 0, n;
        for (int i = 0; i < 3; i++) {
            run(plans[i], one);
            for (size_t k = 0; k < bytes / sizeof(float); k++)
                plan_output_gradient(plans[i], 0)[k] = (float)(k % 7) - 3;
            plan_zero_gradients(plans[i]);
            assert_true(plan_backward(plans[i], NULL));
        }
        const float *expected = plan_gradients(plans[0], &count);
        for (int i = 1; i < 3; i++) {
            same_output(plans[i], plans[0], one);
            assert_memory_equal(plan_gradients(plans[i], &n), expected,
                                (size_t)count * sizeof *expected);
        }
        for (value_id v = 0; v < one->n_values; v++)
            for (int64_t k = 0;
                 graph_is_parameter(one, v) && k < shape_count(&one->values[v].shape); k++)
                graph_data(one, v)[k] *= 1.25f;
        run(plans[0], one), run(plans[1], one);
        if (winograd_conv_available(SIMD_AVX2))
            assert_memory_not_equal(plan_output(plans[0], 0), plan_output(plans[1], 0), bytes);
        assert_true(plan_refresh(plans[1], NULL) && plan_refresh(plans[2], NULL));
    }
    for (int i = 0; i < 3; i++)
        plan_free(plans[i]);
    plan_weights_free(weights);
    graph_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_other_sizes_share),
        cmocka_unit_test(threads_share),
        cmocka_unit_test(training_applies_parameters_on_refresh),
        cmocka_unit_test(a_budget_bounds_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
