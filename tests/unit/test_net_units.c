/* test_net_units.c: plans whose batch is several units with gradients of their own (plan_options
 * units and join), against plans of one unit. */
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
#include "net/kernels/direct_gradient.h"
#include "net/plan/plan.h"

#define UNITS 4

/* Small maps of many channels, strides, norms, a linear layer; ROWS samples. */
static struct graph *network(int64_t rows)
{
    struct graph *g = graph_new("units");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(rows, 32, 8, 8));
    x = graph_relu(g, graph_conv(g, x, "first", 64, true, conv_square(1, 1, 0)));
    value_id y = graph_group_norm(g, x, "norm", 8, 1e-5f);
    y = graph_silu(g, graph_conv(g, y, "small", 64, true, conv_square(3, 1, 1)));
    x = graph_add(g, x, graph_conv(g, y, "smaller", 64, false, conv_square(3, 1, 1)));
    x = graph_relu(g, graph_conv(g, x, "down", 48, true, conv_square(3, 2, 1)));
    graph_output(g, "out", graph_linear(g, graph_flatten(g, x), "fc", 5, true));
    if (!graph_ok(g, &err) || !graph_initialize(g, 3, &err))
        fail_msg("%s", err.text);
    return g;
}

static struct plan *plan_of(const struct graph *g, struct plan_options options)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    options.mode = PLAN_TRAIN;
    options.threads = options.threads ? options.threads : 1;
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void draw(float *out, int64_t n, uint64_t stream)
{
    struct rng rng = rng_new(8, stream, 0);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)rng_normal(&rng);
}

static int64_t bad = -1; /* what becomes NaN in the inputs; -1: nothing */

/* Forward and backward of so many samples, from `first` on. */
static void run(struct plan *plan, const struct graph *g, int64_t first, int64_t rows)
{
    int64_t in = shape_count(graph_shape(g, g->inputs[0].value)) / rows;
    int64_t out = shape_count(graph_shape(g, g->outputs[0].value)) / rows;
    struct err err = { 0 };
    for (int64_t i = 0; i < rows; i++)
        draw(plan_input(plan, 0) + i * in, in, (uint64_t)(first + i));
    if (bad >= 0)
        plan_input(plan, 0)[bad] = NAN;
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < rows; i++)
        draw(plan_output_gradient(plan, 0) + i * out, out, (uint64_t)(100 + first + i));
    if (!plan_backward(plan, &err))
        fail_msg("%s", err.text);
}

/* The gradients of each unit of so many rows, in a plan of its own: [UNITS][count]. */
static float *alone(int64_t rows, int64_t *count)
{
    struct graph *g = network(rows);
    struct plan *plan = plan_of(g, (struct plan_options){ 0 });
    const float *gradients = plan_gradients(plan, count);
    float *all = malloc((size_t)(UNITS * *count) * sizeof *all);
    for (int64_t u = 0; u < UNITS; u++) {
        plan_zero_gradients(plan);
        run(plan, g, u * rows, rows);
        memcpy(all + u * *count, gradients, (size_t)*count * sizeof *all);
    }
    plan_free(plan);
    graph_free(g);
    return all;
}

static void near(const float *got, const double *want, int64_t n)
{
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(want[i]));
        worst = fmax(worst, fabs((double)got[i] - want[i]));
    }
    if (!(worst <= 1e-5 * largest))
        fail_msg("off by %g of %g", worst, largest);
}

/* Also the same bits on several threads. */
static void gradients_stay_apart(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows < 4; rows += 2) {
        int64_t count, same;
        float *expected = alone(rows, &count);
        struct graph *g = network(UNITS * rows);
        struct plan *one = plan_of(g, (struct plan_options){ .units = UNITS });
        struct plan *three = plan_of(g, (struct plan_options){ .units = UNITS, .threads = 3 });
        run(one, g, 0, UNITS * rows), run(three, g, 0, UNITS * rows);
        const float *got = plan_gradients(one, &same);
        assert_int_equal(same, count);
        assert_memory_equal(got, plan_gradients(three, &same),
                            (size_t)(UNITS * count) * sizeof *got);
        double *want = malloc((size_t)(UNITS * count) * sizeof *want);
        for (int64_t i = 0; i < UNITS * count; i++)
            want[i] = (double)expected[i];
        for (value_id v = 0; v < g->n_values; v++)
            assert_false(plan_is_joined(one, v));
        for (int64_t u = 0; u < UNITS; u++)
            near(got + u * count, want + u * count, count);
        plan_free(one), plan_free(three);
        graph_free(g);
        free(expected), free(want);
    }
}

/* The squared norm of a unit's gradients of the joined parameters or of the others; joined ones are
 * taken over into `sum`, times the factor. */
static double squares(const struct plan *plan, const struct graph *g, bool joined,
                      const float *gradients, double factor, double *sum)
{
    double squared = 0;
    int64_t at = 0;
    for (value_id v = 0; v < g->n_values; v++) {
        int64_t n = g->values[v].kind == VALUE_PARAMETER ? shape_count(&g->values[v].shape) : 0;
        for (int64_t i = at; i < at + n && plan_is_joined(plan, v) == joined; i++) {
            squared += (double)gradients[i] * (double)gradients[i];
            sum[i] += joined ? factor * (double)gradients[i] : 0;
        }
        at += n;
    }
    return squared;
}

/* One unit is not finite, and is left out. */
static void some_are_joined(void **state)
{
    (void)state;
    if (!direct_gradient_available(SIMD_AVX2))
        skip();
    const double factors[UNITS] = { 0.5, 1, 0, 0.125 };
    int64_t count;
    float *expected = alone(1, &count);
    struct graph *g = network(UNITS);
    struct plan_options options = { .units = UNITS, .join = true };
    struct plan *plan = plan_of(g, options);
    double *sum = calloc((size_t)count, sizeof *sum);
    int n_joined = 0;
    for (value_id v = 0; v < g->n_values; v++)
        n_joined += plan_is_joined(plan, v);
    assert_int_equal(n_joined, 2); /* small, smaller */
    run(plan, g, 0, UNITS);
    for (int u = 0; u < UNITS; u++) {
        double want = squares(plan, g, true, expected + u * count, factors[u], sum);
        double over = plan_unit_squares(plan)[u] / want - 1; /* see pair_norm.h */
        if (!(over > -1e-6 && over < 1e-3))
            fail_msg("squared norm of unit %d too large by %g", u, over);
    }
    int64_t n, in = shape_count(graph_shape(g, g->inputs[0].value)) / UNITS;
    plan_zero_gradients(plan);
    bad = 2 * in + 7;
    run(plan, g, 0, UNITS);
    assert_true(isnan(plan_unit_squares(plan)[2]));
    assert_true(plan_join_units(plan, factors, NULL));
    const float *got = plan_gradients(plan, &n);
    float *joined = calloc((size_t)count, sizeof *joined);
    for (int64_t i = 0; i < count; i++)
        joined[i] = sum[i] != 0 ? got[i] : 0;
    near(joined, sum, count);
    plan_free(plan);
    graph_free(g);
    free(sum), free(joined), free(expected);
    bad = -1;
}

static void refuse(const struct graph *g, struct plan_options options, const char *text)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    options.threads = 1;
    options.units = UNITS;
    assert_false(plan_new(g, &options, &plan, &err));
    if (!strstr(err.text, text))
        fail_msg("%s", err.text);
}

static void what_joins_units_is_refused(void **state)
{
    (void)state;
    struct graph *g = network(UNITS), *placed = graph_new("places"), *random = graph_new("random");
    struct err err = { 0 };
    struct plan_options train = { .mode = PLAN_TRAIN };
    refuse(g, (struct plan_options){ .mode = PLAN_INFER }, "need a backward pass");
    refuse(g, (struct plan_options){ .mode = PLAN_TRAIN, .split_backward = true },
           "cannot be split");
    refuse(g, (struct plan_options){ .mode = PLAN_TRAIN, .per_sample = true },
           "the rows of input input are not those of 4 units");
    value_id x = graph_input(placed, "input", SHAPE(UNITS, 3, 4));
    value_id places = graph_parameter(placed, "places", SHAPE(1, 3, 4));
    graph_output(placed, "out", graph_add(placed, x, places));
    assert_true(graph_ok(placed, &err) && graph_initialize(placed, 1, &err));
    refuse(placed, train, "cannot be kept apart by unit");
    x = graph_linear(random, graph_input(random, "input", SHAPE(UNITS, 6)), "fc", 4, true);
    graph_output(random, "out", graph_dropout(random, x, 0.5f));
    assert_true(graph_ok(random, &err) && graph_initialize(random, 1, &err));
    refuse(random, train, "cannot be kept apart by unit");
    graph_free(g), graph_free(placed), graph_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_stay_apart),
        cmocka_unit_test(some_are_joined),
        cmocka_unit_test(what_joins_units_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
