/* test_net_samples.c: a plan that runs every sample alone has all options of a plan of one sample:
 * how activations are kept, how much memory they may use, and which kernels are allowed. It trains
 * as any other plan does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/plan/plan.h"
#include "support/golden.h"

#define SIDE 48

static struct graph *network(int64_t batch)
{
    struct graph *g = graph_new("samples");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(batch, 3, SIDE, SIDE));
    x = graph_relu(g, graph_conv(g, x, "conv1", 64, true, conv_square(3, 1, 1)));
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
        x = graph_gelu(g, graph_conv(g, x, names[i], 64, true, conv_square(3, 1, 1)));
    }
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "logits", graph_linear(g, x, "fc", 2, true));
    if (!graph_ok(g, &err) || !graph_allocate(g, &err) || !graph_initialize(g, 1, &err))
        fail_msg("%s", err.text);
    return g;
}

static bool give_gradient(void *arg, int64_t sample, const float *const *outputs,
                          float *const *gradients, struct err *err)
{
    (void)arg, (void)sample, (void)outputs, (void)err;
    gradients[0][0] = 1, gradients[0][1] = -1;
    return true;
}

static bool ignore(void *arg, int64_t sample, const float *gradients, int64_t count,
                   struct err *err)
{
    (void)arg, (void)sample, (void)gradients, (void)count, (void)err;
    return true;
}

static struct plan *plan_of(const struct graph *g, const struct plan_options *options)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    if (!plan_new(g, options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

/* Every step, its kernel and the memory; of a plan of single samples without its first line. */
static char *text_of(const struct plan *plan, bool per_sample)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    plan_print(plan, stream);
    fclose(stream);
    if (per_sample) {
        const char *rest = strchr(text, '\n');
        assert_non_null(rest);
        memmove(text, rest + 1, strlen(rest));
    }
    return text;
}

/* The plan of a single sample is one that is made for one image with these options, and another
 * than the one that is made without them. */
static void judge(int64_t images, struct plan_options options, const struct plan_options *without)
{
    struct err err = { 0 };
    struct graph *batch = network(images), *one = network(1);
    struct plan *own = plan_of(one, &options), *other = plan_of(one, without);
    options.per_sample = true;
    struct plan *plan = plan_of(batch, &options);
    struct plan_samples samples = { give_gradient, ignore, NULL };
    memset(plan_input(plan, 0), 0, sizeof(float) * (size_t)images * 3 * SIDE * SIDE);
    if (!plan_sample_gradients(plan, &samples, &err))
        fail_msg("%s", err.text);
    char *of_each = text_of(plan, true), *of_own = text_of(own, false),
         *of_other = text_of(other, false);
    assert_string_not_equal(of_own, of_other); /* else the option could not be seen */
    assert_string_equal(of_each, of_own);
    free(of_each), free(of_own), free(of_other);
    plan_free(plan), plan_free(own), plan_free(other);
    graph_free(batch), graph_free(one);
}

static const struct plan_options plain = { .mode = PLAN_TUNE, .threads = 1 };

static void saving_is_inherited(void **state)
{
    (void)state;
    struct plan_options options = plain;
    options.saving = SAVING_HALF;
    judge(2, options, &plain);
    options.saving = SAVING_RECOMPUTE;
    judge(2, options, &plain);
}

/* A budget that needs recomputation, but less of it than is done without one. */
static void the_budget_is_inherited(void **state)
{
    (void)state;
    struct plan_options options = plain, without = plain;
    struct graph *one = network(1);
    struct plan *all = plan_of(one, &plain);
    options.saving = without.saving = SAVING_RECOMPUTE;
    options.arena_budget = plan_memory(all).arena * 9 / 10;
    plan_free(all);
    graph_free(one);
    judge(1, options, &plain);
    judge(1, options, &without);
}

static void direct_is_inherited(void **state)
{
    (void)state;
    struct plan_options options = plain;
    options.direct = true;
    judge(2, options, &plain);
}

static void fast_is_inherited(void **state)
{
    (void)state;
    struct plan_options options = plain;
    options.fast = true;
    judge(2, options, &plain);
}

static void count_calls(void *arg, value_id parameter, float *gradient, int64_t count)
{
    (void)parameter, (void)gradient, (void)count;
    ++*(int *)arg;
}

/* One training step of a batch: outputs and the sum of the gradients; the hook for each parameter
 * is called once. */
static void train_step(struct plan *plan, const struct graph *g, int64_t images)
{
    struct err err = { 0 };
    int calls = 0, learnt = 0;
    float *x = plan_input(plan, 0), *d = plan_output_gradient(plan, 0);
    for (int64_t i = 0; i < images * 3 * SIDE * SIDE; i++)
        x[i] = (float)((i * 7919) % 1001) / 500 - 1;
    for (int64_t i = 0; i < images * 2; i++)
        d[i] = (float)(i + 1);
    for (int32_t i = 0; i < g->n_values; i++)
        learnt += g->values[i].kind == VALUE_PARAMETER;
    plan_on_gradient(plan, count_calls, &calls);
    plan_zero_gradients(plan);
    if (!plan_forward(plan, &err) || !plan_backward(plan, &err))
        fail_msg("%s", err.text);
    assert_int_equal(calls, learnt);
}

static void it_trains_as_any_other_plan(void **state)
{
    (void)state;
    enum { IMAGES = 3 };
    struct graph *g = network(IMAGES);
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1 };
    struct plan *whole = plan_of(g, &options);
    options.per_sample = true;
    struct plan *each = plan_of(g, &options);
    train_step(whole, g, IMAGES), train_step(each, g, IMAGES);
    int64_t n, m;
    const float *a = plan_gradients(whole, &n), *b = plan_gradients(each, &m);
    assert_int_equal(n, m);
    assert_true(relative_error(plan_output(each, 0), plan_output(whole, 0), IMAGES * 2) < 1e-6);
    assert_true(relative_error(b, a, n) < 1e-5);
    assert_true(plan_memory(each).arena < plan_memory(whole).arena);
    value_id weight = graph_find(g, "fc.weight");
    assert_ptr_equal(plan_parameter_gradient(each, weight) - b,
                     plan_parameter_gradient(whole, weight) - a);
    plan_free(whole), plan_free(each);
    graph_free(g);
}

static void what_it_lacks_is_refused_by_name(void **state)
{
    (void)state;
    struct graph *g = network(2);
    struct err err = { 0 };
    float y[4];
    value_id logits = g->outputs[0].value;
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1, .per_sample = true };
    struct plan *plan = plan_of(g, &options);
    assert_false(plan_activation(plan, logits, y, &err));
    assert_string_equal(err.text,
                        "samples: plan_activation is not available in a plan of kind per_sample");
    assert_false(plan_forward_until(plan, logits, &err));
    plan_free(plan);
    options.keep = &logits, options.n_keep = 1;
    assert_false(plan_new(g, &options, &plan, &err));
    assert_null(plan);
    options = (struct plan_options){ .mode = PLAN_INFER, .threads = 1, .per_sample = true };
    assert_false(plan_new(g, &options, &plan, &err));
    assert_non_null(strstr(err.text, "PLAN_TRAIN"));
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saving_is_inherited),
        cmocka_unit_test(the_budget_is_inherited),
        cmocka_unit_test(direct_is_inherited),
        cmocka_unit_test(fast_is_inherited),
        cmocka_unit_test(it_trains_as_any_other_plan),
        cmocka_unit_test(what_it_lacks_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
