/* test_net_split.c: the backward pass in two halves gives the bits of one that is run at once, with
 * other passes in between; the inputs' gradients are there after the first half. Hooks: every
 * gradient is told once, when it is complete; after every step of a pass. Held running statistics.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/trained_net.h"

struct split_case {
    const char *network;
    int64_t side, batch;
    bool standardized; /* weights, in place of batch norm */
};

/* Every node that adds to gradients in its own way: residuals, attention, concatenation, transposed
 * convolutions, dropout, standardised weights. */
static const struct split_case cases[] = {
    { "resnet110_v2", 16, 2, false }, { "resnet18", 32, 3, false },
    { "unet_small", 16, 2, false },   { "densenet121", 32, 1, false },
    { "googlenet", 64, 2, false },    { "segment_unet", 32, 2, false },
    { "scan_tiny", 160, 2, false },   { "transformer_encoder", 0, 1, false },
    { "resnet18", 32, 2, true },
};

static void the_order_of_steps_changes_no_bits(void **state)
{
    (void)state;
    static const struct plan_options ways[] = {
        { .threads = 1 },
        { .threads = 2 },
        { .threads = 1, .saving = SAVING_HALF },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct split_case *c = &cases[i];
        if (c->standardized)
            continue;
        struct plan_options options = ways[i % 3];
        struct trained_net plain = trained_net(c->network, c->side, c->batch, options);
        options.split_backward = true;
        struct trained_net split = trained_net(c->network, c->side, c->batch, options);
        assert_trained_same(&plain, &split);
        print_message("%s: %.1f -> %.1f MB\n", c->network, (double)plain.memory.arena / 1e6,
                      (double)split.memory.arena / 1e6);
        trained_net_free(&plain), trained_net_free(&split);
    }
}

/* --- the halves apart --- */

static struct graph *network(const struct split_case *c)
{
    struct zoo_options zoo = {
        .batch = c->batch, .height = c->side, .width = c->side, .classes = 3
    };
    struct graph *g = NULL, *other = NULL;
    struct err err = { 0 };
    bool ok = zoo_build(c->network, &zoo, &g, &err);
    if (ok && c->standardized) {
        ok = transform_norm(g, NORM_WS, &other, &err);
        graph_free(g);
        g = other;
    }
    if (!ok || !graph_initialize(g, 3, &err))
        fail_msg("%s: %s", c->network, err.text);
    return g;
}

static struct plan *plan_of(const struct graph *g, struct plan_options options)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    options.mode = PLAN_TRAIN, options.input_gradients = true;
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void fill(float *at, int64_t count, uint64_t stream)
{
    struct rng rng = rng_new(5, stream, 0);
    for (int64_t i = 0; i < count; i++)
        at[i] = (float)rng_between(&rng, -1, 1);
}

static int64_t floats_of(const struct graph *g, value_id value)
{
    return shape_count(graph_shape(g, value));
}

static void go_forward(struct plan *plan, const struct graph *g, uint64_t batch)
{
    struct err err = { 0 };
    fill(plan_input(plan, 0), floats_of(g, g->inputs[0].value), batch);
    plan_set_random(plan, 7, batch * 100);
    assert_true(plan_forward(plan, &err));
    fill(plan_output_gradient(plan, 0), floats_of(g, g->outputs[0].value), 1000 + batch);
}

static float *input_gradient(struct plan *plan, const struct graph *g)
{
    value_id input = g->inputs[0].value;
    float *out = malloc((size_t)floats_of(g, input) * sizeof *out);
    struct err err = { 0 };
    assert_true(plan_activation_gradient(plan, input, out, &err));
    return out;
}

/* Two batches: forward, forward, back to the inputs of both, then the weights of both, with plans
 * that add to one sum, as in a pipeline. */
static void halves_run_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct graph *g = network(&cases[i]);
        size_t bytes = (size_t)graph_parameter_count(g) * sizeof(float);
        float *sum = calloc(1, bytes), *wanted = calloc(1, bytes), *inputs[2];
        size_t input_bytes = (size_t)floats_of(g, g->inputs[0].value) * sizeof(float);
        struct err err = { 0 };
        struct plan *whole = plan_of(g, (struct plan_options){ .threads = 1, .gradients = wanted });
        for (uint64_t b = 0; b < 2; b++) {
            go_forward(whole, g, b);
            assert_true(plan_backward(whole, &err));
            inputs[b] = input_gradient(whole, g);
        }
        struct plan_options options = { .threads = 1, .gradients = sum, .split_backward = true };
        struct plan *plans[2] = { plan_of(g, options), plan_of(g, options) };
        for (uint64_t b = 0; b < 2; b++)
            go_forward(plans[b], g, b);
        for (int b = 0; b < 2; b++) {
            assert_true(plan_backward_inputs(plans[b], &err));
            float *d = input_gradient(plans[b], g);
            assert_memory_equal(d, inputs[b], input_bytes);
            free(d);
        }
        assert_memory_not_equal(sum, wanted, bytes); /* else nothing was left for later */
        for (int b = 0; b < 2; b++)
            assert_true(plan_backward_weights(plans[b], &err));
        assert_memory_equal(sum, wanted, bytes);
        plan_free(whole), plan_free(plans[0]), plan_free(plans[1]);
        free(inputs[0]), free(inputs[1]), free(sum), free(wanted);
        graph_free(g);
    }
}

/* --- hooks --- */

struct told {
    struct plan *plan;
    int *times;      /* [values] */
    float **as_told; /* [values] */
    int steps;
};

static void note_gradient(void *arg, value_id parameter, float *gradient, int64_t count)
{
    struct told *told = arg;
    told->times[parameter]++;
    told->as_told[parameter] = malloc((size_t)count * sizeof(float) + 1);
    memcpy(told->as_told[parameter], gradient, (size_t)count * sizeof(float));
}

static void note_step(void *arg)
{
    ((struct told *)arg)->steps++;
}

static void gradients_are_told_once_and_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += 4) {
        struct graph *g = network(&cases[i]);
        struct plan *plan =
            plan_of(g, (struct plan_options){ .threads = 1, .split_backward = true });
        size_t n = (size_t)g->n_values;
        struct told told = { plan, calloc(n, sizeof(int)), calloc(n, sizeof(float *)), 0 };
        struct err err = { 0 };
        plan_on_gradient(plan, note_gradient, &told);
        plan_on_step(plan, note_step, &told);
        go_forward(plan, g, 0);
        int forward = told.steps;
        assert_true(forward > 0);
        assert_true(plan_backward_inputs(plan, &err));
        int inputs = told.steps;
        assert_true(inputs > forward);
        assert_true(plan_backward_weights(plan, &err));
        assert_true(told.steps > inputs);
        for (value_id v = 0; v < g->n_values; v++) {
            bool learnt = g->values[v].kind == VALUE_PARAMETER;
            assert_int_equal(told.times[v], learnt);
            if (learnt)
                assert_memory_equal(told.as_told[v], plan_parameter_gradient(plan, v),
                                    (size_t)floats_of(g, v) * sizeof(float));
            free(told.as_told[v]);
        }
        plan_on_step(plan, NULL, NULL);
        int before = told.steps;
        plan_on_gradient(plan, NULL, NULL);
        go_forward(plan, g, 1);
        assert_int_equal(told.steps, before);
        free(told.times), free(told.as_told);
        plan_free(plan);
        graph_free(g);
    }
}

/* A second forward pass on the same batch leaves the running statistics and gives the same floats.
 */
static void statistics_are_held(void **state)
{
    (void)state;
    struct graph *g = network(&cases[1]);
    struct plan *plan = plan_of(g, (struct plan_options){ .threads = 1 });
    value_id mean = graph_find(g, "bn1.running_mean");
    assert_true(mean != NO_VALUE);
    size_t bytes = (size_t)floats_of(g, mean) * sizeof(float);
    size_t out_bytes = (size_t)floats_of(g, g->outputs[0].value) * sizeof(float);
    float *first = malloc(bytes), *output = malloc(out_bytes);
    go_forward(plan, g, 0);
    memcpy(first, graph_data(g, mean), bytes);
    memcpy(output, plan_output(plan, 0), out_bytes);
    plan_hold_statistics(plan, true);
    go_forward(plan, g, 0);
    assert_memory_equal(graph_data(g, mean), first, bytes);
    assert_memory_equal(plan_output(plan, 0), output, out_bytes);
    plan_hold_statistics(plan, false);
    go_forward(plan, g, 0);
    assert_memory_not_equal(graph_data(g, mean), first, bytes);
    free(first), free(output);
    plan_free(plan);
    graph_free(g);
}

/* --- refused --- */

static void refuse(const struct graph *g, struct plan_options options, const char *why)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    options.mode = PLAN_TUNE, options.threads = 1, options.split_backward = true;
    assert_false(plan_new(g, &options, &plan, &err));
    assert_null(plan);
    if (!strstr(err.text, why))
        fail_msg("%s", err.text);
}

static void what_cannot_be_split_is_refused(void **state)
{
    (void)state;
    struct graph *g = network(&(struct split_case){ "resnet18", 64, 1, false });
    struct plan_stream stream = { .tile_px = 32 };
    refuse(g, (struct plan_options){ .saving = SAVING_RECOMPUTE }, "recomputation cannot be split");
    refuse(g, (struct plan_options){ .per_sample = true }, "not available in a plan of kind per_s");
    refuse(g, (struct plan_options){ .stream = &stream }, "not available in a plan of kind stream");
    struct plan *plan = plan_of(g, (struct plan_options){ .threads = 1 });
    struct err err = { 0 };
    assert_false(plan_backward_inputs(plan, &err));
    assert_non_null(strstr(err.text, "only with split_backward"));
    assert_false(plan_backward_weights(plan, &err));
    plan_free(plan);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_steps_changes_no_bits),
        cmocka_unit_test(halves_run_apart),
        cmocka_unit_test(gradients_are_told_once_and_complete),
        cmocka_unit_test(statistics_are_held),
        cmocka_unit_test(what_cannot_be_split_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
