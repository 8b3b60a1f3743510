/* test_optimizer.c: optimisers, clipping, averages and schedules against PyTorch
 * (tests/golden/train_ops.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "support/golden_train.h"
#include "train/optimizer.h"
#include "train/schedule.h"

#define STEPS 10
#define WEIGHTS 42
#define BIASES 7
#define COUNT (WEIGHTS + BIASES)

/* w [6, 7] and b [7] with a buffer between them, which no optimiser may touch. */
static struct graph *small_graph(const struct golden *golden)
{
    struct err err = { 0 };
    struct graph *graph = graph_new("small");
    value_id x = graph_input(graph, "x", SHAPE(1, 6));
    value_id w = graph_parameter(graph, "w", SHAPE(6, 7));
    value_id kept = graph_buffer(graph, "kept", SHAPE(3));
    value_id b = graph_parameter(graph, "b", SHAPE(7));
    x = graph_matmul(graph, x, w, (struct matmul_attr){ .scale = 1 });
    graph_output(graph, "y", graph_add(graph, x, b));
    if (!graph_ok(graph, &err) || !graph_allocate(graph, &err))
        fail_msg("%s", err.text);
    memcpy(graph_data(graph, w), golden_find(golden, "start/w")->data, WEIGHTS * sizeof(float));
    memcpy(graph_data(graph, b), golden_find(golden, "start/b")->data, BIASES * sizeof(float));
    for (int i = 0; i < 3; i++)
        graph_data(graph, kept)[i] = (float)i;
    assert_int_equal(graph_parameter_count(graph), COUNT);
    return graph;
}

static void gradients_of(const struct golden *golden, int step, float out[COUNT])
{
    memcpy(out, golden_find(golden, "grad/%d/w", step)->data, WEIGHTS * sizeof(float));
    memcpy(out + WEIGHTS, golden_find(golden, "grad/%d/b", step)->data, BIASES * sizeof(float));
}

static double precise(const struct golden *golden, const char *name)
{
    const struct golden_tensor *t = golden_find(golden, "%s", name);
    assert_non_null(t);
    return (double)t->data[0] + (double)t->data[1];
}

static void assert_weights(const struct graph *graph, const struct golden *golden, const char *name)
{
    static const char *const parts[] = { "w", "b" };
    for (int i = 0; i < 2; i++) {
        const struct golden_tensor *want = golden_find(golden, "%s/%s", name, parts[i]);
        assert_non_null(want);
        double error = relative_error(graph_data(graph, graph_find(graph, parts[i])), want->data,
                                      shape_count(&want->shape));
        if (!(error < 1e-6))
            fail_msg("%s/%s: relative error %g", name, parts[i], error);
    }
    for (int i = 0; i < 3; i++)
        assert_true(graph_data(graph, graph_find(graph, "kept"))[i] == (float)i);
}

struct optimizer_case {
    const char *name;
    struct optimizer_options options;
    double rate;
    int n_arrays;
};

static const struct optimizer_case cases[] = {
    { "sgd", { .kind = OPTIMIZER_SGD }, 0.1, 0 },
    { "momentum", { .kind = OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 5e-4 }, 0.05, 1 },
    { "nesterov",
      { .kind = OPTIMIZER_SGD, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-2 },
      0.05,
      1 },
    { "rates", { .kind = OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 1e-2 }, 0, 1 },
    { "adam",
      { .kind = OPTIMIZER_ADAM,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .weight_decay = 1e-2 },
      0.5,
      2 },
    { "adamw",
      { .kind = OPTIMIZER_ADAMW,
        .beta1 = 0.8,
        .beta2 = 0.99,
        .epsilon = 1e-6,
        .weight_decay = 5e-2 },
      0.5,
      2 },
    { "lars",
      { .kind = OPTIMIZER_LARS, .momentum = 0.9, .weight_decay = 1e-2, .trust = 1e-2 },
      2,
      1 },
    { "lars_bare", { .kind = OPTIMIZER_LARS, .trust = 1e-2 }, 2, 1 },
};
#define N_CASES ((int)(sizeof cases / sizeof *cases))

static double rate_of(const struct optimizer_case *c, int step)
{
    return c->rate > 0 ? c->rate : 0.1 / (1 + step);
}

static struct optimizer *begin(struct graph *graph, const struct optimizer_case *c, int threads)
{
    struct err err = { 0 };
    struct optimizer *optimizer = NULL;
    struct optimizer_options options = c->options;
    options.threads = threads;
    if (!optimizer_new(graph, &options, &optimizer, &err))
        fail_msg("%s", err.text);
    return optimizer;
}

static void ten_steps_are_as_in_pytorch(void **state)
{
    const struct golden *golden = *state;
    float gradients[COUNT], kept[COUNT];
    for (int i = 0; i < N_CASES; i++) {
        struct graph *graph = small_graph(golden);
        struct optimizer *optimizer = begin(graph, &cases[i], 1);
        assert_int_equal(optimizer_n_arrays(optimizer), cases[i].n_arrays);
        for (int step = 0; step < STEPS; step++) {
            gradients_of(golden, step, gradients);
            memcpy(kept, gradients, sizeof kept);
            optimizer_step(optimizer, gradients, rate_of(&cases[i], step));
            assert_memory_equal(gradients, kept, sizeof kept);
        }
        assert_int_equal(optimizer_steps(optimizer), STEPS);
        assert_weights(graph, golden, cases[i].name);
        optimizer_free(optimizer), graph_free(graph);
    }
}

/* The state taken out after half the way and put into a new optimizer: the same bits. */
static void a_resumed_run_is_the_same(void **state)
{
    const struct golden *golden = *state;
    float gradients[COUNT];
    for (int i = 0; i < N_CASES; i++) {
        struct graph *whole = small_graph(golden), *halves = small_graph(golden);
        struct optimizer *a = begin(whole, &cases[i], 1), *b = begin(halves, &cases[i], 1);
        for (int step = 0; step < STEPS; step++) {
            gradients_of(golden, step, gradients);
            if (step == STEPS / 2) {
                struct optimizer *next = begin(halves, &cases[i], 1);
                for (int k = 0; k < optimizer_n_arrays(b); k++) {
                    struct state_array from = optimizer_array(b, k), to = optimizer_array(next, k);
                    assert_string_equal(from.name, to.name);
                    assert_int_equal(from.count, COUNT);
                    memcpy(to.data, from.data, COUNT * sizeof(float));
                }
                optimizer_set_steps(next, optimizer_steps(b));
                optimizer_free(b);
                b = next;
            }
            optimizer_step(a, gradients, rate_of(&cases[i], step));
            optimizer_step(b, gradients, rate_of(&cases[i], step));
        }
        for (value_id v = 0; v < whole->n_values; v++)
            if (graph_is_parameter(whole, v))
                assert_memory_equal(graph_data(whole, v), graph_data(halves, v),
                                    (size_t)shape_count(graph_shape(whole, v)) * sizeof(float));
        optimizer_free(a), optimizer_free(b), graph_free(whole), graph_free(halves);
    }
}

static struct graph *large_graph(void)
{
    struct err err = { 0 };
    struct graph *graph = graph_new("large");
    value_id x = graph_input(graph, "x", SHAPE(1, 301));
    x = graph_linear(graph, x, "first", 257, true);
    graph_output(graph, "y", graph_linear(graph, x, "second", 3, true));
    if (!graph_ok(graph, &err) || !graph_initialize(graph, 3, &err))
        fail_msg("%s", err.text);
    return graph;
}

static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        struct graph *graphs[2] = { large_graph(), large_graph() };
        int64_t count = graph_parameter_count(graphs[0]);
        float *gradients = malloc((size_t)count * sizeof *gradients);
        for (int k = 0; k < 2; k++) {
            struct optimizer *optimizer = begin(graphs[k], &cases[i], k == 0 ? 1 : 3);
            for (int step = 0; step < 3; step++) {
                struct rng rng = rng_new(1, 2, (uint64_t)step);
                for (int64_t g = 0; g < count; g++)
                    gradients[g] = (float)rng_normal(&rng);
                optimizer_step(optimizer, gradients, 0.01);
            }
            optimizer_free(optimizer);
        }
        for (value_id v = 0; v < graphs[0]->n_values; v++)
            if (graph_is_parameter(graphs[0], v))
                assert_memory_equal(graph_data(graphs[0], v), graph_data(graphs[1], v),
                                    (size_t)shape_count(graph_shape(graphs[0], v)) * sizeof(float));
        free(gradients);
        graph_free(graphs[0]), graph_free(graphs[1]);
    }
}

static void clipping_is_as_in_pytorch(void **state)
{
    const struct golden *golden = *state;
    const struct optimizer_case c = { "clip", { .momentum = 0.9 }, 0.1, 1 };
    struct graph *graph = small_graph(golden);
    struct optimizer *optimizer = begin(graph, &c, 1);
    float gradients[COUNT];
    for (int step = 0; step < STEPS; step++) {
        char name[32];
        snprintf(name, sizeof name, "clip/norm/%d", step);
        gradients_of(golden, step, gradients);
        double norm = optimizer_norm(gradients, COUNT, 1), want = precise(golden, name);
        assert_true(fabs(norm - want) < 1e-12 * want);
        optimizer_clip(gradients, COUNT, norm, 1.5, 1);
        optimizer_step(optimizer, gradients, 0.1);
    }
    assert_weights(graph, golden, "clip");
    optimizer_free(optimizer), graph_free(graph);
}

static void norms_do_not_depend_on_threads(void **state)
{
    (void)state;
    static const int64_t counts[] = { 0, 1, 7, 8, 4095, 4097, 300001, 3000003 };
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        int64_t n = counts[k];
        float *x = malloc((size_t)(n + 1) * sizeof *x);
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] = (float)((double)((i * 7919) % 1013) / 506 - 1);
            sum += (double)x[i] * (double)x[i];
        }
        double one = optimizer_norm(x, n, 1), three = optimizer_norm(x, n, 3);
        assert_true(one == three);
        assert_true(fabs(one - sqrt(sum)) <= 1e-12 * sqrt(sum));
        if (n > 8) {
            x[n / 2] = INFINITY;
            assert_true(!isfinite(optimizer_norm(x, n, 2)));
            x[n / 2] = NAN;
            assert_true(!isfinite(optimizer_norm(x, n, 2)));
        }
        free(x);
    }
}

static void averages_follow_the_weights(void **state)
{
    const struct golden *golden = *state;
    const struct optimizer_case c = { "ema", { .momentum = 0.9 }, 0.1, 1 };
    struct err err = { 0 };
    struct graph *graph = small_graph(golden);
    struct optimizer *optimizer = begin(graph, &c, 1);
    struct ema *ema = NULL;
    float gradients[COUNT];
    assert_true(ema_new(graph, 0.4, 2, &ema, &err));
    assert_int_equal(ema_n_arrays(ema), 3);
    for (int step = 0; step < STEPS; step++) {
        gradients_of(golden, step, gradients);
        optimizer_step(optimizer, gradients, 0.1);
        ema_update(ema);
    }
    assert_int_equal(ema_updates(ema), STEPS);
    assert_string_equal(ema_array(ema, 0).name, "w");
    assert_weights(graph, golden, "ema");
    ema_swap(ema);
    assert_weights(graph, golden, "ema/ema");
    ema_swap(ema);
    assert_weights(graph, golden, "ema");
    ema_free(ema), optimizer_free(optimizer), graph_free(graph);
}

static void assert_rates(const struct golden *golden, const char *name,
                         const struct schedule_options *options, double epochs_per_step)
{
    const struct golden_tensor *want = golden_find(golden, "schedule/%s", name);
    struct schedule_state state;
    schedule_begin(&state);
    assert_non_null(want);
    for (int64_t i = 0; i < want->shape.dim[0]; i++) {
        double rate = schedule_rate(options, &state, (double)i * epochs_per_step);
        if (!(fabs(rate - (double)want->data[i]) < 1e-6 * (double)want->data[i] + 1e-9))
            fail_msg("%s[%d]: %.9g, want %.9g", name, (int)i, rate, (double)want->data[i]);
    }
}

static void schedules_are_as_in_pytorch(void **state)
{
    const struct golden *golden = *state;
    struct schedule_options step = {
        .kind = SCHEDULE_STEP, .learning_rate = 0.4, .step_epochs = 7, .factor = 0.1
    };
    assert_rates(golden, "step", &step, 1);
    struct schedule_options cosine = {
        .kind = SCHEDULE_COSINE, .learning_rate = 0.4, .min_learning_rate = 0.004, .epochs = 30
    };
    assert_rates(golden, "cosine", &cosine, 1);
    /* Steps within an epoch: 4 a piece. */
    struct schedule_options warm = { .kind = SCHEDULE_CONSTANT,
                                     .learning_rate = 0.4,
                                     .warmup_epochs = 2.5 };
    assert_rates(golden, "warm", &warm, 0.25);
    struct schedule_options both = {
        .kind = SCHEDULE_COSINE, .learning_rate = 0.4, .epochs = 7.5, .warmup_epochs = 2.5
    };
    assert_rates(golden, "warm_cosine", &both, 0.25);
}

static void a_rate_never_falls_below_the_least(void **state)
{
    (void)state;
    struct schedule_state nothing;
    schedule_begin(&nothing);
    struct schedule_options step = { .kind = SCHEDULE_STEP,
                                     .learning_rate = 1,
                                     .min_learning_rate = 0.05,
                                     .step_epochs = 1,
                                     .factor = 0.1 };
    assert_true(fabs(schedule_rate(&step, &nothing, 1.5) - 0.1) < 1e-12);
    assert_true(fabs(schedule_rate(&step, &nothing, 2) - 0.05) < 1e-12);
    struct schedule_options cosine = {
        .kind = SCHEDULE_COSINE, .learning_rate = 1, .min_learning_rate = 0.05, .epochs = 10
    };
    assert_true(fabs(schedule_rate(&cosine, &nothing, 12) - 0.05) < 1e-12);
}

static void plateaus_are_as_in_pytorch(void **state)
{
    const struct golden *golden = *state;
    const struct golden_tensor *values = golden_find(golden, "plateau/values");
    const struct golden_tensor *rates = golden_find(golden, "plateau/rates");
    struct schedule_options options = { .kind = SCHEDULE_PLATEAU,
                                        .learning_rate = 0.4,
                                        .factor = 0.5,
                                        .patience = 2,
                                        .min_improvement = 1e-3 };
    struct schedule_state s;
    double before = 0.4;
    schedule_begin(&s);
    for (int64_t i = 0; i < values->shape.dim[0]; i++) {
        struct schedule_verdict verdict = schedule_judge(&options, &s, i, (double)values->data[i]);
        double rate = schedule_rate(&options, &s, (double)i + 1);
        assert_true(fabs(rate - (double)rates->data[i]) < 1e-6);
        assert_int_equal(verdict.reduce, rate < before);
        assert_false(verdict.stop);
        before = rate;
    }
    assert_true(before < 0.1);
    assert_int_equal(s.best_epoch, 18);
    assert_true(s.best == (double)values->data[18]);
}

static void a_run_that_does_not_improve_ends(void **state)
{
    (void)state;
    struct schedule_options options = { .kind = SCHEDULE_CONSTANT,
                                        .learning_rate = 1,
                                        .stop_patience = 2 };
    struct schedule_state s;
    static const double values[] = { NAN, 0.5, 0.6, NAN, 0.6, 0.7, 0.7, 0.1, 0.2 };
    static const bool bests[] = { 0, 1, 1, 0, 0, 1, 0, 0, 0 };
    schedule_begin(&s);
    for (int i = 0; i < 9; i++) {
        struct schedule_verdict verdict = schedule_judge(&options, &s, i, values[i]);
        assert_int_equal(verdict.best, bests[i]);
        assert_int_equal(verdict.stop, i == 8);
        assert_false(verdict.reduce);
    }
    options = (struct schedule_options){
        .kind = SCHEDULE_PLATEAU, .learning_rate = 1, .min_learning_rate = 0.2, .factor = 0.1
    };
    schedule_begin(&s);
    assert_true(schedule_judge(&options, &s, 0, 1).best);
    assert_true(schedule_judge(&options, &s, 1, 1).reduce);
    assert_true(fabs(schedule_rate(&options, &s, 2) - 0.2) < 1e-12);
    struct schedule_verdict last = schedule_judge(&options, &s, 2, 1);
    assert_true(last.stop && !last.reduce);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_steps_are_as_in_pytorch),
        cmocka_unit_test(a_resumed_run_is_the_same),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(clipping_is_as_in_pytorch),
        cmocka_unit_test(norms_do_not_depend_on_threads),
        cmocka_unit_test(averages_follow_the_weights),
        cmocka_unit_test(schedules_are_as_in_pytorch),
        cmocka_unit_test(a_rate_never_falls_below_the_least),
        cmocka_unit_test(plateaus_are_as_in_pytorch),
        cmocka_unit_test(a_run_that_does_not_improve_ends),
    };
    return cmocka_run_group_tests(tests, golden_train_open, golden_train_close);
}
