/* test_net_saving.c: plans that keep less between the passes: recomputation gives the same bits as
 * a plain plan (outputs, gradients, running statistics, with dropout), within a budget if one is
 * given; bfloat16 gives nearly the same gradients; both need less memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/trained_net.h"

struct saving_case {
    const char *network;
    int64_t side, batch;
    double at_most; /* of the plain plan's arena */
};

static void recomputation_gives_the_same_bits(void **state)
{
    (void)state;
    static const struct saving_case cases[] = {
        { "resnet110_v2", 32, 2, 0.6 }, { "googlenet", 112, 4, 0.8 },
        { "densenet121", 64, 3, 0.8 },  { "scan_tiny", 224, 3, 0.9 },
        { "unet_small", 32, 2, 0.95 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct saving_case *c = &cases[i];
        struct trained_net plain =
            trained_net(c->network, c->side, c->batch, (struct plan_options){ .threads = 1 });
        struct trained_net saved =
            trained_net(c->network, c->side, c->batch,
                        (struct plan_options){ .threads = 1, .saving = SAVING_RECOMPUTE });
        assert_trained_same(&plain, &saved);
        double part = (double)saved.memory.arena / (double)plain.memory.arena;
        print_message("%s: %.1f -> %.1f MB\n", c->network, (double)plain.memory.arena / 1e6,
                      (double)saved.memory.arena / 1e6);
        if (part > c->at_most)
            fail_msg("%s: %.2f of the memory", c->network, part);
        trained_net_free(&plain), trained_net_free(&saved);
    }
}

static void a_budget_is_kept_or_refused(void **state)
{
    (void)state;
    struct trained_net plain =
        trained_net("googlenet", 112, 4, (struct plan_options){ .threads = 1 });
    size_t budget = plain.memory.arena * 85 / 100;
    struct trained_net saved = trained_net(
        "googlenet", 112, 4,
        (struct plan_options){ .threads = 1, .saving = SAVING_RECOMPUTE, .arena_budget = budget });
    assert_true(saved.memory.arena <= budget);
    assert_trained_same(&plain, &saved);
    trained_net_free(&plain), trained_net_free(&saved);

    struct err err = { 0 };
    struct graph *g = NULL;
    struct plan *plan = NULL;
    struct plan_options tight = {
        .mode = PLAN_TRAIN, .threads = 1, .saving = SAVING_RECOMPUTE, .arena_budget = 1 << 20
    };
    struct zoo_options zoo = { .batch = 4, .height = 128, .width = 128 };
    assert_true(zoo_build("googlenet", &zoo, &g, &err) && graph_initialize(g, 3, &err));
    assert_false(plan_new(g, &tight, &plan, &err));
    assert_non_null(strstr(err.text, "1 MB are allowed"));
    graph_free(g);
}

static double relative(const float *a, const float *b, int64_t n)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / size);
}

static void bfloat16_changes_gradients_little(void **state)
{
    (void)state;
    static const struct saving_case cases[] = { { "resnet110_v2", 32, 2, 0.8 },
                                                { "googlenet", 112, 4, 0.9 },
                                                { "scan_tiny", 224, 4, 0.9 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct saving_case *c = &cases[i];
        struct trained_net plain =
            trained_net(c->network, c->side, c->batch, (struct plan_options){ .threads = 1 });
        struct trained_net saved =
            trained_net(c->network, c->side, c->batch,
                        (struct plan_options){ .threads = 1, .saving = SAVING_HALF });
        assert_memory_equal(plain.outputs, saved.outputs, sizeof plain.outputs);
        assert_memory_equal(plain.buffers, saved.buffers, (size_t)plain.n_buffers * sizeof(float));
        double error = relative(saved.gradients, plain.gradients, plain.n_gradients);
        double part = (double)saved.memory.arena / (double)plain.memory.arena;
        print_message("%s: gradients differ by %.2g; %.1f -> %.1f MB\n", c->network, error,
                      (double)plain.memory.arena / 1e6, (double)saved.memory.arena / 1e6);
        assert_true(error > 0); /* else nothing was rounded */
        assert_true(error < 0.01);
        assert_true(part < c->at_most);
        trained_net_free(&plain), trained_net_free(&saved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recomputation_gives_the_same_bits),
        cmocka_unit_test(a_budget_is_kept_or_refused),
        cmocka_unit_test(bfloat16_changes_gradients_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
