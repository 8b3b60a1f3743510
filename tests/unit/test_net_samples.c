/* test_net_samples.c: the plan that per-sample gradients are computed with has the options of the
 * original plan: how activations are kept, how much memory they may use, and which kernels are
 * allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "net/plan/step.h"
#include "net/plan/plan.h"

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

static bool same_plan(const struct plan *a, const struct plan *b)
{
    bool same = a->n_steps == b->n_steps && a->arena_bytes == b->arena_bytes;
    for (int i = 0; same && i < a->n_steps; i++)
        same = strcmp(a->steps[i].kernel, b->steps[i].kernel) == 0;
    return same;
}

/* The plan of a single sample is one that is made for one image with these options, and another
 * than the one that is made without them. */
static void judge(int64_t images, struct plan_options options, const struct plan_options *without)
{
    struct err err = { 0 };
    struct graph *batch = network(images), *one = network(1);
    struct plan *plan = plan_of(batch, &options), *own = plan_of(one, &options),
                *other = plan_of(one, without);
    struct plan_samples samples = { give_gradient, ignore, NULL };
    memset(plan_input(plan, 0), 0, sizeof(float) * (size_t)images * 3 * SIDE * SIDE);
    if (!plan_sample_gradients(plan, &samples, &err))
        fail_msg("%s", err.text);
    assert_non_null(plan->single);
    assert_false(same_plan(own, other)); /* else the option could not be seen */
    assert_true(same_plan(plan->single, own));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saving_is_inherited),
        cmocka_unit_test(the_budget_is_inherited),
        cmocka_unit_test(direct_is_inherited),
        cmocka_unit_test(fast_is_inherited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
