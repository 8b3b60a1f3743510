/* test_net_plan.c: whole small networks as plans: against PyTorch (tests/golden/net_block.py) in
 * evaluation and training; shared memory against separate memory; threads; prefixes; kept
 * activations; hooks; dropout; per-sample gradients. */
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
#include "net/graph/transform.h"
#include "support/golden.h"

static struct golden golden;

static value_id block(struct graph *g, value_id x, const char *name, int64_t out, int64_t stride)
{
    char part[64];
#define PART(leaf) (snprintf(part, sizeof part, "%s.%s", name, leaf), part)
    value_id y = graph_conv(g, x, PART("conv1"), out, false, conv_square(3, stride, 1));
    y = graph_relu(g, graph_batch_norm(g, y, PART("bn1")));
    y = graph_conv(g, y, PART("conv2"), out, false, conv_square(3, 1, 1));
    y = graph_batch_norm(g, y, PART("bn2"));
    if (stride != 1) {
        x = graph_conv(g, x, PART("downsample.0"), out, false, conv_square(1, stride, 0));
        x = graph_batch_norm(g, x, PART("downsample.1"));
    }
#undef PART
    return graph_relu(g, graph_add(g, y, x));
}

static struct graph *network(int64_t batch)
{
    struct graph *g = graph_new("block");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(batch, 3, 37, 29));
    x = graph_conv(g, x, "conv1", 16, false, conv_square(5, 2, 2));
    x = graph_relu(g, graph_batch_norm(g, x, "bn1"));
    x = graph_max_pool(g, x, pool_square(3, 2, 1));
    x = block(g, x, "layer1", 16, 1);
    x = block(g, x, "layer2", 24, 2);
    value_id y = graph_conv(g, x, "branch", 8, true, conv_square(1, 1, 0));
    x = graph_concat(g, (value_id[]){ x, y }, 2, 1);
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "logits", graph_linear(g, x, "fc", 5, true));
    if (!graph_ok(g, &err) || !graph_allocate(g, &err))
        fail_msg("%s", err.text);
    for (int32_t i = 0; i < g->n_values; i++) {
        if (!graph_is_parameter(g, i))
            continue;
        const struct golden_tensor *t = golden_find(&golden, "w/%s", g->values[i].name);
        assert_non_null(t);
        assert_true(shape_equal(&t->shape, &g->values[i].shape));
        memcpy(graph_data(g, i), t->data, (size_t)shape_count(&t->shape) * sizeof(float));
    }
    return g;
}

static struct plan *plan_of(const struct graph *g, struct plan_options options)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    const struct golden_tensor *x = golden_find(&golden, "x");
    int64_t n = shape_count(graph_shape(g, g->inputs[0].value));
    if (n <= shape_count(&x->shape))
        memcpy(plan_input(plan, 0), x->data, (size_t)n * sizeof(float));
    return plan;
}

static void run(struct plan *plan)
{
    struct err err = { 0 };
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
}

static void step(struct plan *plan)
{
    struct err err = { 0 };
    const struct golden_tensor *g = golden_find(&golden, "g");
    run(plan);
    memcpy(plan_output_gradient(plan, 0), g->data, 15 * sizeof(float));
    if (!plan_backward(plan, &err))
        fail_msg("%s", err.text);
}

static void evaluation_agrees_with_pytorch(void **state)
{
    (void)state;
    struct graph *g = network(3);
    for (int tune = 0; tune < 2; tune++) {
        struct plan *plan = plan_of(
            g, (struct plan_options){ .mode = tune ? PLAN_TUNE : PLAN_INFER, .threads = 1 });
        run(plan);
        assert_true(relative_error(plan_output(plan, 0), golden_find(&golden, "eval")->data, 15) <
                    1e-5);
        plan_free(plan);
    }
    graph_free(g);
}

static void training_agrees_with_pytorch(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = network(3);
    struct plan *plan = plan_of(
        g, (struct plan_options){ .mode = PLAN_TRAIN, .threads = 2, .input_gradients = true });
    step(plan);
    assert_true(relative_error(plan_output(plan, 0), golden_find(&golden, "train")->data, 15) <
                1e-5);
    for (int32_t i = 0; i < g->n_values; i++) {
        const char *name = g->values[i].name;
        int64_t n = shape_count(graph_shape(g, i));
        const struct golden_tensor *d = golden_find(&golden, "d/%s", name);
        if (g->values[i].kind == VALUE_PARAMETER &&
            relative_error(plan_parameter_gradient(plan, i), d->data, n) > 1e-4)
            fail_msg("%s: gradient off by %g", name,
                     relative_error(plan_parameter_gradient(plan, i), d->data, n));
        if (g->values[i].kind == VALUE_BUFFER)
            assert_true(relative_error(graph_data(g, i),
                                       golden_find(&golden, "after/%s", name)->data, n) < 1e-5);
    }
    float dx[3 * 3 * 37 * 29];
    assert_true(plan_activation_gradient(plan, graph_find(g, "input"), dx, &err));
    assert_true(relative_error(dx, golden_find(&golden, "d/x")->data, 3 * 3 * 37 * 29) < 1e-4);
    plan_free(plan);
    graph_free(g);
}

static void shared_memory_corrupts_nothing(void **state)
{
    (void)state;
    struct graph *g = network(3);
    float *first = NULL;
    int64_t n;
    for (int variant = 0; variant < 3; variant++) {
        struct plan *plan = plan_of(g, (struct plan_options){ .mode = PLAN_TUNE,
                                                              .threads = 1,
                                                              .no_sharing = variant == 0,
                                                              .input_gradients = variant == 2 });
        for (int twice = 0; twice < 2; twice++) {
            plan_zero_gradients(plan);
            step(plan);
            const float *own = plan_gradients(plan, &n);
            if (!first)
                first = malloc((size_t)n * sizeof *first);
            if (variant < 2 && twice == 0) {
                assert_true(variant == 0 || relative_error(own, first, n) < 1e-6);
                memcpy(first, own, (size_t)n * sizeof *first);
            }
            assert_memory_equal(first, own, (size_t)n * sizeof *first);
        }
        struct plan_memory m = plan_memory(plan);
        assert_true(variant == 0 ? m.arena == m.unshared : m.arena * 10 < m.unshared * 9);
        plan_free(plan);
    }
    free(first);
    graph_free(g);
}

static void threads_do_not_change_a_forward_pass(void **state)
{
    (void)state;
    struct graph *g = network(3);
    for (int direct = 0; direct < 2; direct++) {
        float y[15];
        for (int threads = 1; threads <= 3; threads++) {
            struct plan *plan = plan_of(
                g,
                (struct plan_options){ .mode = PLAN_INFER, .threads = threads, .direct = direct });
            run(plan);
            if (threads == 1)
                memcpy(y, plan_output(plan, 0), sizeof y);
            if (direct)
                assert_memory_equal(y, plan_output(plan, 0), sizeof y);
            assert_true(relative_error(plan_output(plan, 0), y, 15) < 1e-6);
            plan_free(plan);
        }
    }
    graph_free(g);
}

static void gradients_add_up_until_they_are_zeroed(void **state)
{
    (void)state;
    struct graph *g = network(3);
    struct plan *plan = plan_of(g, (struct plan_options){ .mode = PLAN_TUNE, .threads = 1 });
    int64_t n;
    step(plan);
    float *gradients = plan_gradients(plan, &n), *once = malloc((size_t)n * sizeof *once);
    assert_int_equal(n, graph_parameter_count(g));
    memcpy(once, gradients, (size_t)n * sizeof *once);
    step(plan);
    for (int64_t i = 0; i < n; i++)
        once[i] *= 2;
    assert_true(relative_error(gradients, once, n) < 1e-6);
    free(once);
    plan_free(plan);
    graph_free(g);
}

static void values_are_kept_on_request(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = network(3);
    value_id wanted = graph_find(g, "layer1.conv2"), other = graph_find(g, "layer2.conv1");
    float a[3 * 16 * 10 * 8], b[3 * 16 * 10 * 8], c[3 * 24 * 5 * 4];
    for (int sharing = 0; sharing < 2; sharing++) {
        struct plan *plan = plan_of(g, (struct plan_options){ .mode = PLAN_TUNE,
                                                              .threads = 1,
                                                              .keep = &wanted,
                                                              .n_keep = 1,
                                                              .no_sharing = !sharing });
        float *to = sharing ? b : a, sum = 0;
        assert_true(plan_forward_until(plan, wanted, &err));
        assert_true(plan_activation(plan, wanted, to, &err));
        for (int i = 0; i < 15; i++)
            sum += fabsf(plan_output(plan, 0)[i]);
        assert_true(sum == 0); /* the rest was not run */
        step(plan);
        assert_true(plan_activation_gradient(plan, wanted, to, &err));
        assert_true(plan_activation(plan, other, c, &err) == !sharing);
        plan_free(plan);
    }
    assert_true(relative_error(b, a, 3 * 16 * 10 * 8) < 1e-6);
    graph_free(g);
}

struct heard {
    const struct graph *graph;
    struct plan *plan;
    int count;
    value_id last;
};

static void hear(void *arg, value_id parameter, float *gradient, int64_t count)
{
    struct heard *heard = arg;
    heard->count++;
    heard->last = parameter;
    assert_ptr_equal(gradient, plan_parameter_gradient(heard->plan, parameter));
    assert_int_equal(count, shape_count(graph_shape(heard->graph, parameter)));
}

static void gradients_are_announced_once(void **state)
{
    (void)state;
    struct graph *g = network(3);
    struct plan *plan = plan_of(g, (struct plan_options){ .mode = PLAN_TRAIN, .threads = 1 });
    struct heard heard = { .graph = g, .plan = plan };
    int parameters = 0;
    for (int32_t i = 0; i < g->n_values; i++)
        parameters += g->values[i].kind == VALUE_PARAMETER;
    plan_on_gradient(plan, hear, &heard);
    step(plan);
    assert_int_equal(heard.count, parameters);
    assert_int_equal(heard.last, graph_find(g, "conv1.weight"));
    plan_free(plan);
    graph_free(g);
}

static struct graph *with_dropout(int64_t batch)
{
    struct graph *g = graph_new("dropout");
    struct err err = { 0 };
    value_id x = graph_input(g, "x", SHAPE(batch, 1000));
    x = graph_dropout(g, x, 0.3f);
    graph_output(g, "y", x);
    assert_true(graph_ok(g, &err));
    return g;
}

static void dropout_is_keyed_by_sample(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *two = with_dropout(2), *one = with_dropout(1);
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 2, .input_gradients = true };
    struct plan *a = NULL, *b = NULL;
    assert_true(plan_new(two, &options, &a, &err) && plan_new(one, &options, &b, &err));
    float d[2000];
    int zeros = 0;
    for (int i = 0; i < 2000; i++)
        plan_input(a, 0)[i] = 1;
    memcpy(plan_input(b, 0), plan_input(a, 0), 1000 * sizeof(float));
    plan_set_random(a, 5, 10), plan_set_random(b, 5, 11);
    assert_true(plan_forward(a, &err) && plan_forward(b, &err));
    for (int i = 0; i < 2000; i++) {
        float y = plan_output(a, 0)[i];
        assert_true(y == 0 || fabsf(y - 1 / 0.7f) < 1e-6f);
        zeros += y == 0;
        plan_output_gradient(a, 0)[i] = 1;
    }
    assert_true(abs(zeros - 600) < 100);
    assert_memory_equal(plan_output(a, 0) + 1000, plan_output(b, 0), 1000 * sizeof(float));
    assert_true(plan_backward(a, &err));
    assert_true(plan_activation_gradient(a, 0, d, &err));
    assert_memory_equal(d, plan_output(a, 0), sizeof d);
    plan_free(a), plan_free(b);
    graph_free(two), graph_free(one);
}

struct collected {
    float *sum;
    int samples;
};

static bool give_gradient(void *arg, int64_t sample, const float *const *outputs,
                          float *const *gradients, struct err *err)
{
    (void)arg, (void)outputs, (void)err;
    memcpy(gradients[0], golden_find(&golden, "g")->data + sample * 5, 5 * sizeof(float));
    return true;
}

static bool collect(void *arg, int64_t sample, const float *gradients, int64_t count,
                    struct err *err)
{
    struct collected *c = arg;
    (void)sample, (void)err;
    c->samples++;
    for (int64_t i = 0; i < count; i++)
        c->sum[i] += gradients[i];
    return true;
}

static void sample_gradients_sum_to_the_batch_gradient(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = network(3);
    struct plan *plan = plan_of(g, (struct plan_options){ .mode = PLAN_TUNE, .threads = 1 });
    int64_t n;
    step(plan);
    const float *batch = plan_gradients(plan, &n);
    struct collected c = { calloc((size_t)n, sizeof(float)), 0 };
    struct plan_samples samples = { give_gradient, collect, &c };
    struct plan *each =
        plan_of(g, (struct plan_options){ .mode = PLAN_TUNE, .threads = 1, .per_sample = true });
    memcpy(plan_input(each, 0), plan_input(plan, 0),
           (size_t)shape_count(graph_shape(g, g->inputs[0].value)) * sizeof(float));
    assert_true(plan_sample_gradients(each, &samples, &err));
    assert_int_equal(c.samples, 3);
    assert_true(relative_error(c.sum, batch, n) < 1e-6);
    free(c.sum);
    assert_false(plan_sample_gradients(plan, &samples, &err));
    assert_non_null(strstr(err.text, "not available in a plan of kind whole"));
    plan_free(plan), plan_free(each);
    assert_false(
        plan_new(g, &(struct plan_options){ .mode = PLAN_TRAIN, .threads = 1, .per_sample = true },
                 &plan, &err));
    assert_non_null(strstr(err.text, "batch norm"));
    graph_free(g);
}

static void weights_are_taken_up_on_refresh(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = network(3);
    struct plan *plan = plan_of(g, (struct plan_options){ .mode = PLAN_INFER, .threads = 1 });
    for (int32_t i = 0; i < g->n_values; i++)
        if (graph_is_parameter(g, i) && strstr(g->values[i].name, "branch.weight"))
            memset(graph_data(g, i), 0, (size_t)shape_count(graph_shape(g, i)) * sizeof(float));
    assert_true(plan_refresh(plan, &err));
    run(plan);
    float y[15];
    memcpy(y, plan_output(plan, 0), sizeof y);
    plan_free(plan);
    plan = plan_of(g, (struct plan_options){ .mode = PLAN_INFER, .threads = 1 });
    run(plan);
    assert_memory_equal(y, plan_output(plan, 0), sizeof y);
    assert_true(relative_error(y, golden_find(&golden, "eval")->data, 15) > 1e-3);
    plan_free(plan);
    graph_free(g);
}

static void what_cannot_be_planned_is_said(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct plan *plan = NULL;
    struct graph *g = graph_new("empty");
    value_id x = graph_input(g, "x", SHAPE(1, 8));
    graph_output(g, "y", graph_linear(g, x, "fc", 2, true));
    assert_false(plan_new(g, &(struct plan_options){ .threads = 1 }, &plan, &err));
    assert_non_null(strstr(err.text, "fc.weight"));
    assert_true(graph_allocate(g, &err));
    assert_false(plan_new(g, &(struct plan_options){ .threads = 0 }, &plan, &err));
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_agrees_with_pytorch),
        cmocka_unit_test(training_agrees_with_pytorch),
        cmocka_unit_test(shared_memory_corrupts_nothing),
        cmocka_unit_test(threads_do_not_change_a_forward_pass),
        cmocka_unit_test(gradients_add_up_until_they_are_zeroed),
        cmocka_unit_test(values_are_kept_on_request),
        cmocka_unit_test(gradients_are_announced_once),
        cmocka_unit_test(dropout_is_keyed_by_sample),
        cmocka_unit_test(sample_gradients_sum_to_the_batch_gradient),
        cmocka_unit_test(weights_are_taken_up_on_refresh),
        cmocka_unit_test(what_cannot_be_planned_is_said),
    };
    golden_open(&golden, "tests/golden/net_block.bin");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    golden_close(&golden);
    return failed;
}
