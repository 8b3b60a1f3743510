/* test_net_images.c: batches whose first layers run image by image, against plans of the whole
 * batch: scores, numbers of threads that do and do not divide the batch, memory from the caller,
 * errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/plan/plan.h"
#include "support/golden.h"

#define CLASSES 5
#define MOST_IMAGES 7

static void fill(float *to, int64_t n, uint64_t stream, float scale)
{
    struct rng rng = rng_new(1, stream, 0);
    for (int64_t i = 0; i < n; i++)
        to[i] = scale * (float)rng_between(&rng, -1, 1);
}

static void draw_weights(struct graph *g)
{
    struct err err = { 0 };
    if (!graph_ok(g, &err) || !graph_allocate(g, &err))
        fail_msg("%s", err.text);
    for (int32_t i = 0; i < g->n_values; i++)
        if (graph_is_parameter(g, i))
            fill(graph_data(g, i), shape_count(graph_shape(g, i)), (uint64_t)i, 0.2f);
}

/* Two branches that are joined, a pooling, a residual sum; then maps of few pixels. 24 channels: no
 * whole blocks. Without `maps` it has none of many pixels. */
static struct graph *network(int64_t batch, bool maps)
{
    struct graph *g = graph_new("two parts");
    int64_t side = maps ? 66 : 18;
    value_id x = graph_input(g, "input", SHAPE(batch, 3, side, side - 3));
    x = graph_relu(g, graph_conv(g, x, "stem", 16, true, conv_square(3, 2, 1)));
    value_id a = graph_relu(g, graph_conv(g, x, "a", 24, true, conv_square(1, 1, 0)));
    value_id b = graph_relu(g, graph_conv(g, x, "b", 32, true, conv_square(3, 1, 1)));
    x = graph_concat(g, (value_id[]){ a, b }, 2, 1);
    x = graph_add(g, x, graph_conv(g, x, "c", 56, true, conv_square(3, 1, 1)));
    x = graph_max_pool(g, x, pool_square(3, 2, 1));
    x = graph_relu(g, graph_conv(g, x, "small", 32, true, conv_square(3, 1, 1)));
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "logits", graph_linear(g, x, "fc", CLASSES, true));
    draw_weights(g);
    return g;
}

static struct plan *plan_of(const struct graph *g, struct plan_options options)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    options.mode = PLAN_INFER;
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    fill(plan_input(plan, 0), shape_count(graph_shape(g, g->inputs[0].value)), 1000, 1);
    return plan;
}

static void run(struct plan *plan)
{
    struct err err = { 0 };
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
}

static void scores_are_those_of_the_whole_batch(void **state)
{
    (void)state;
    for (int64_t batch = 2; batch <= MOST_IMAGES; batch++) {
        struct graph *g = network(batch, true);
        float one_thread[MOST_IMAGES * CLASSES];
        int64_t n = batch * CLASSES;
        struct plan *whole = plan_of(g, (struct plan_options){ .threads = 1 });
        run(whole);
        for (int threads = 1; threads <= 3; threads++) {
            struct plan *plan =
                plan_of(g, (struct plan_options){ .threads = threads, .by_image = true });
            assert_true(plan_memory(plan).arena != plan_memory(whole).arena); /* it is parted */
            for (int twice = 0; twice < 2; twice++) {
                run(plan);
                assert_true(relative_error(plan_output(plan, 0), plan_output(whole, 0), n) < 1e-5);
            }
            if (threads == 1)
                memcpy(one_thread, plan_output(plan, 0), (size_t)n * sizeof(float));
            assert_true(relative_error(plan_output(plan, 0), one_thread, n) < 1e-6);
            plan_free(plan);
        }
        plan_free(whole);
        graph_free(g);
    }
}

static void memory_may_be_lent(void **state)
{
    (void)state;
    struct graph *g = network(5, true);
    struct plan *own = plan_of(g, (struct plan_options){ .threads = 2, .by_image = true });
    size_t bytes = plan_memory(own).arena;
    run(own);
    for (int fits = 0; fits < 2; fits++) {
        size_t room = fits ? (bytes / 64 + 64) * 64 : bytes / 128 * 64;
        void *arena = aligned_alloc(64, room);
        struct plan *lent =
            plan_of(g, (struct plan_options){
                           .threads = 2, .by_image = true, .arena = arena, .arena_room = room });
        assert_int_equal(plan_memory(lent).lent, fits);
        assert_int_equal(plan_memory(lent).arena, bytes);
        run(lent);
        assert_memory_equal(plan_output(lent, 0), plan_output(own, 0), 5 * CLASSES * sizeof(float));
        plan_free(lent);
        free(arena);
    }
    plan_free(own);
    graph_free(g);
}

/* Another plan's output is in lent memory until a plan runs there, not until one is made. */
static void making_a_plan_leaves_lent_memory(void **state)
{
    (void)state;
    struct graph *g = network(3, true);
    struct plan_options options = { .threads = 1, .by_image = true, .mode = PLAN_INFER };
    struct plan *own = plan_of(g, options), *plan = NULL;
    options.arena_room = (plan_memory(own).arena + 63) / 64 * 64;
    options.arena = aligned_alloc(64, options.arena_room);
    memset(options.arena, 7, options.arena_room);
    char *before = malloc(options.arena_room);
    memcpy(before, options.arena, options.arena_room);
    for (int parted = 0; parted < 2; parted++) {
        options.by_image = parted;
        assert_true(plan_new(g, &options, &plan, NULL));
        assert_memory_equal(before, options.arena, options.arena_room);
        plan_free(plan);
    }
    plan_free(own);
    free(before), free(options.arena);
    graph_free(g);
}

static void transformed_weights_are_held_once(void **state)
{
    (void)state;
    struct graph *g = network(4, true);
    struct plan_weights *weights = plan_weights_new();
    struct plan_options options = { .threads = 1, .by_image = true, .weights = weights };
    struct plan *one = plan_of(g, options);
    size_t bytes = plan_weights_bytes(weights);
    options.threads = 2;
    struct plan *two = plan_of(g, options);
    assert_int_equal(plan_weights_bytes(weights), bytes);
    assert_int_equal(plan_memory(two).shared, plan_memory(one).shared);
    plan_free(one), plan_free(two);
    plan_weights_free(weights);
    graph_free(g);
}

static void what_lies_inside_is_refused(void **state)
{
    (void)state;
    struct graph *g = network(4, true);
    struct err err = { 0 };
    float y[4 * CLASSES];
    struct plan *plan = plan_of(g, (struct plan_options){ .threads = 1, .by_image = true });
    value_id logits = g->outputs[0].value;
    assert_false(plan_activation(plan, logits, y, &err));
    assert_non_null(strstr(err.text, "by_image"));
    assert_false(plan_forward_until(plan, logits, &err));
    assert_false(plan_refresh(plan, &err));
    assert_null(plan_parameter_gradient(plan, graph_find(g, "fc.weight")));
    plan_free(plan);
    graph_free(g);
}

static void values_to_keep_are_kept(void **state)
{
    (void)state;
    struct graph *g = network(4, true);
    struct err err = { 0 };
    value_id small = graph_find(g, "small");
    float *y = calloc((size_t)shape_count(graph_shape(g, small)), sizeof *y);
    struct plan *plan = plan_of(
        g, (struct plan_options){ .threads = 1, .by_image = true, .keep = &small, .n_keep = 1 });
    run(plan);
    assert_true(y && plan_activation(plan, small, y, &err));
    plan_free(plan);
    free(y);
    graph_free(g);
}

static void one_image_or_small_maps_are_not_parted(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        struct graph *g = network(small ? 4 : 1, !small);
        struct err err = { 0 };
        float y[4 * CLASSES];
        struct plan *plan = plan_of(g, (struct plan_options){ .threads = 2, .by_image = true });
        run(plan);
        assert_true(plan_activation(plan, g->outputs[0].value, y, &err));
        plan_free(plan);
        graph_free(g);
    }
}

/* A plan by image against one of the whole batch, all outputs, of networks that are not parted. */
static void check_whole(struct graph *g)
{
    struct err err = { 0 };
    draw_weights(g);
    struct plan *whole = plan_of(g, (struct plan_options){ .threads = 1 });
    struct plan *plan = plan_of(g, (struct plan_options){ .threads = 2, .by_image = true });
    run(whole), run(plan);
    for (int i = 0; i < g->n_outputs; i++) {
        int64_t n = shape_count(graph_shape(g, g->outputs[i].value));
        assert_true(relative_error(plan_output(plan, i), plan_output(whole, i), n) < 1e-5);
    }
    assert_true(plan_refresh(plan, &err)); /* refused where images run by themselves */
    plan_free(whole), plan_free(plan);
    graph_free(g);
}

/* Outputs among the first layers: the value behind them, one before it, one beside it. */
static void outputs_may_be_anywhere(void **state)
{
    (void)state;
    for (int where = 0; where < 3; where++) {
        struct graph *g = graph_new("outputs");
        value_id x = graph_input(g, "input", SHAPE(3, 3, 40, 40));
        value_id a = graph_relu(g, graph_conv(g, x, "a", 16, true, conv_square(3, 1, 1)));
        value_id beside = graph_conv(g, a, "beside", 5, true, conv_square(1, 1, 0));
        value_id b = graph_relu(g, graph_conv(g, a, "b", 32, true, conv_square(3, 1, 1)));
        x = graph_conv(g, b, "small", 32, true, conv_square(3, 2, 1));
        x = graph_flatten(g, graph_global_average_pool(g, x));
        graph_output(g, "early", where == 0 ? b : where == 1 ? a : beside);
        graph_output(g, "logits", graph_linear(g, x, "fc", CLASSES, true));
        check_whole(g);
    }
}

/* Images that are not independent of their place in the batch. */
static void batches_that_are_joined_are_not_parted(void **state)
{
    (void)state;
    struct graph *own = graph_new("a sum of its own for each image");
    value_id y = graph_input(own, "input", SHAPE(3, 3, 40, 40));
    y = graph_conv(own, y, "a", 16, true, conv_square(3, 1, 1));
    y = graph_relu(own, graph_add(own, y, graph_parameter(own, "own", SHAPE(3, 16, 1, 1))));
    y = graph_flatten(own, graph_global_average_pool(own, y));
    graph_output(own, "logits", graph_linear(own, y, "fc", CLASSES, true));
    check_whole(own);
    struct graph *g = graph_new("twice as many");
    value_id x = graph_input(g, "input", SHAPE(3, 3, 40, 40));
    value_id a = graph_conv(g, x, "a", 16, true, conv_square(3, 1, 1));
    value_id b = graph_conv(g, x, "b", 16, true, conv_square(3, 1, 1));
    x = graph_relu(g, graph_concat(g, (value_id[]){ a, b }, 2, 0));
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "logits", graph_linear(g, x, "fc", CLASSES, true));
    check_whole(g);
}

/* What plan_memory tells is enough to lend, also where the images fill no whole line. */
static void memory_as_told_suffices(void **state)
{
    (void)state;
    struct graph *g = network(3, true);
    struct plan *own = plan_of(g, (struct plan_options){ .threads = 2, .by_image = true });
    size_t room = plan_memory(own).arena;
    void *arena = aligned_alloc(64, (room + 63) / 64 * 64);
    struct plan *lent =
        plan_of(g, (struct plan_options){
                       .threads = 2, .by_image = true, .arena = arena, .arena_room = room });
    assert_true(plan_memory(lent).lent);
    plan_free(own), plan_free(lent);
    free(arena);
    graph_free(g);
}

static size_t weights_of(const struct graph *g, struct plan_options options)
{
    struct plan *plan = plan_of(g, options);
    size_t bytes = plan_memory(plan).weights;
    plan_free(plan);
    return bytes;
}

/* The bound of transformed weights is for both parts together. */
static void both_parts_share_the_budget(void **state)
{
    (void)state;
    struct graph *g = network(4, true);
    struct plan_options options = { .threads = 1, .winograd_tile = 6, .by_image = true };
    struct plan_options direct = { .threads = 1, .direct = true, .by_image = true };
    size_t all = weights_of(g, options), least = weights_of(g, direct);
    options.weights_budget = all / 4 * 3;
    if (all > 2 * least) /* the processor has Winograd kernels */
        assert_in_range(weights_of(g, options), least, options.weights_budget);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_the_whole_batch),
        cmocka_unit_test(memory_may_be_lent),
        cmocka_unit_test(making_a_plan_leaves_lent_memory),
        cmocka_unit_test(transformed_weights_are_held_once),
        cmocka_unit_test(what_lies_inside_is_refused),
        cmocka_unit_test(values_to_keep_are_kept),
        cmocka_unit_test(one_image_or_small_maps_are_not_parted),
        cmocka_unit_test(outputs_may_be_anywhere),
        cmocka_unit_test(batches_that_are_joined_are_not_parted),
        cmocka_unit_test(memory_as_told_suffices),
        cmocka_unit_test(both_parts_share_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
