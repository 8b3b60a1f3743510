/* test_net_forms.c: values that a graph has stored as bfloat16 or int8: the op convert against
 * PyTorch (tests/golden/net_convert.py), forward and backward; kernels that know floats get exactly
 * the stored numbers, in plain and blocked layouts; views and relu work on what is stored; memory
 * is that of the stored numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/kernels/stored.h"
#include "net/plan/plan.h"
#include "support/golden.h"

#define BFLOAT16 ((struct storage){ .dtype = DTYPE_BFLOAT16 })
#define INT8(scale, zero_point) ((struct storage){ DTYPE_INT8, scale, zero_point })
#define FLOAT32 ((struct storage){ .dtype = DTYPE_FLOAT32 })

static void noise(float *x, int64_t n, uint64_t stream)
{
    struct rng rng = rng_new(4, stream, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
}

static int64_t count_of(const struct graph *g, value_id value)
{
    return shape_count(graph_shape(g, value));
}

/* The numbers that are stored for x. */
static void store(float *x, int64_t n, struct storage storage)
{
    bool whole = storage.dtype == DTYPE_INT8;
    struct stored_scale scale = { storage.scale, (int32_t)storage.zero_point };
    void *kept = malloc((size_t)n * 2);
    stored_run(whole ? STORED_TO_INT8 : STORED_TO_BFLOAT16, n, x, kept, scale, 1);
    stored_run(whole ? STORED_FROM_INT8 : STORED_FROM_BFLOAT16, n, kept, x, scale, 1);
    free(kept);
}

static struct plan *plan_of(struct graph *g, struct plan_options options)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    options.threads = options.threads ? options.threads : 1;
    bool constant = graph_find(g, "one") != NO_VALUE; /* which is not to be set again */
    if (!graph_ok(g, &err) || !(constant || graph_initialize(g, 3, &err)) ||
        !plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void forward(struct plan *plan)
{
    struct err err = { 0 };
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
}

static void assert_same(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(a[i] == b[i]))
            fail_msg("number %lld is %.9g, not %.9g", (long long)i, (double)a[i], (double)b[i]);
}

/* How often the plan's steps contain this text. */
static int steps_with(const struct plan *plan, const char *text)
{
    char *lines = NULL;
    size_t size = 0;
    int found = 0;
    FILE *stream = open_memstream(&lines, &size);
    plan_print(plan, stream);
    fclose(stream);
    for (const char *at = lines; (at = strstr(at, text)); at++)
        found++;
    free(lines);
    return found;
}

/* A convolution that changes nothing but makes the layout a blocked one. */
static value_id through_identity(struct graph *g, value_id x)
{
    int64_t channels = graph_shape(g, x)->dim[1];
    float *one = calloc((size_t)(channels * channels), sizeof *one);
    for (int64_t c = 0; c < channels; c++)
        one[c * (channels + 1)] = 1;
    value_id w = graph_constant(g, "one", SHAPE(channels, channels, 1, 1), one);
    free(one);
    return graph_node(g, OP_CONV, NULL, (value_id[]){ x, w }, 2,
                      &(union attr){ .conv = conv_square(1, 1, 0) });
}

static void check_golden(const struct golden *golden, const char *name, struct storage storage,
                         bool blocked, int threads)
{
    struct err err = { 0 };
    const struct golden_tensor *x = golden_find(golden, "%s/x0", name);
    const struct golden_tensor *gradient = golden_find(golden, "%s/g", name);
    int64_t n = shape_count(&x->shape);
    struct graph *g = graph_new(name);
    value_id in = graph_input(g, "x", x->shape);
    graph_output(g, "y", graph_convert(g, blocked ? through_identity(g, in) : in, storage));
    struct plan *plan = plan_of(
        g,
        (struct plan_options){ .mode = PLAN_TRAIN, .threads = threads, .input_gradients = true });
    float *dx = malloc((size_t)n * sizeof *dx);
    memcpy(plan_input(plan, 0), x->data, (size_t)n * sizeof(float));
    forward(plan);
    assert_same(plan_output(plan, 0), golden_find(golden, "%s/y", name)->data, n);
    memcpy(plan_output_gradient(plan, 0), gradient->data, (size_t)n * sizeof(float));
    assert_true(plan_backward(plan, &err) && plan_activation_gradient(plan, in, dx, &err));
    assert_same(dx, golden_find(golden, "%s/d0", name)->data, n);
    free(dx);
    plan_free(plan);
    graph_free(g);
}

static void convert_agrees_with_pytorch(void **state)
{
    (void)state;
    struct golden golden;
    golden_open(&golden, "tests/golden/net_convert.bin");
    for (int k = 0; k < 4; k++) {
        check_golden(&golden, "bfloat16", BFLOAT16, k & 1, 1 + k / 2);
        check_golden(&golden, "int8", INT8(0x1p-5f, 0), k & 1, 1 + k / 2);
        check_golden(&golden, "int8_offset", INT8(0x1p-5f, -40), k & 1, 1 + k / 2);
    }
    golden_close(&golden);
}

/* 20 channels: blocks are filled up with what must stand for 0. */
static void kernels_get_the_stored_numbers(void **state)
{
    (void)state;
    const struct storage kinds[] = { BFLOAT16, INT8(0.02f, 9) };
    for (int k = 0; k < 2; k++) {
        struct err err = { 0 };
        struct graph *g = graph_new("stored"), *plain = graph_new("plain");
        value_id x = graph_input(g, "x", SHAPE(2, 3, 9, 8));
        value_id y = graph_conv(g, x, "a", 20, true, conv_square(3, 1, 1));
        value_id kept[2] = { y, graph_convert(g, y, kinds[k]) };
        graph_output(g, "z", graph_conv(g, kept[1], "b", 8, true, conv_square(3, 1, 1)));
        struct plan *plan = plan_of(g, (struct plan_options){ .keep = kept, .n_keep = 2 });

        value_id u = graph_input(plain, "u", SHAPE(2, 20, 9, 8));
        graph_output(plain, "z", graph_conv(plain, u, "b", 8, true, conv_square(3, 1, 1)));
        struct plan *second = plan_of(plain, (struct plan_options){ 0 });

        float before[2 * 20 * 9 * 8], after[2 * 20 * 9 * 8];
        noise(plan_input(plan, 0), count_of(g, x), 1);
        forward(plan);
        assert_true(plan_activation(plan, kept[0], before, &err));
        assert_true(plan_activation(plan, kept[1], after, &err));
        store(before, count_of(g, y), kinds[k]);
        assert_same(after, before, count_of(g, y));
        memcpy(plan_input(second, 0), before, sizeof before);
        forward(second);
        assert_same(plan_output(plan, 0), plan_output(second, 0), 2 * 8 * 9 * 8);
        plan_free(plan), plan_free(second);
        graph_free(g), graph_free(plain);
    }
}

static void views_and_relu_work_on_stored_numbers(void **state)
{
    (void)state;
    const struct storage kinds[] = { BFLOAT16, INT8(0.02f, 9), INT8(0.1f, -128) };
    for (int k = 0; k < 6; k++) {
        struct storage storage = kinds[k / 2];
        struct graph *g = graph_new("views");
        value_id x = graph_input(g, "x", SHAPE(2, 20, 5, 4));
        value_id y = graph_convert(g, k & 1 ? through_identity(g, x) : x, storage);
        value_id r = graph_relu(g, y), flat = graph_flatten(g, r);
        value_id last = graph_reshape(g, flat, SHAPE(0, 8, -1));
        graph_output(g, "y", last);
        for (value_id v = y; v <= last; v++)
            assert_true(storage_equal(&g->values[v].storage, &storage));
        struct plan *plan = plan_of(g, (struct plan_options){ .threads = 2 });
        float want[2 * 20 * 5 * 4];
        noise(want, 800, 2);
        memcpy(plan_input(plan, 0), want, sizeof want);
        store(want, 800, storage);
        for (int i = 0; i < 800; i++)
            want[i] = want[i] > 0 ? want[i] : 0;
        forward(plan);
        assert_same(plan_output(plan, 0), want, 800);
        assert_int_equal(steps_with(plan, storage.dtype == DTYPE_INT8 ? "relu int8" : "relu bf"),
                         1);
        plan_free(plan);
        graph_free(g);
    }
}

/* x -> convert -> relu, and the output, which is floats. */
static size_t unshared_bytes(struct storage storage, int64_t count)
{
    struct graph *g = graph_new("bytes");
    value_id x = graph_input(g, "x", SHAPE(1, count));
    graph_output(g, "y", graph_relu(g, graph_convert(g, x, storage)));
    struct plan *plan = plan_of(g, (struct plan_options){ .no_sharing = true });
    size_t bytes = plan_memory(plan).unshared;
    plan_free(plan);
    graph_free(g);
    return bytes;
}

static void memory_is_that_of_the_stored_numbers(void **state)
{
    (void)state;
    size_t n = 4096;
    assert_int_equal(unshared_bytes(FLOAT32, (int64_t)n), 2 * 4 * n); /* the input is the value */
    assert_int_equal(unshared_bytes(BFLOAT16, (int64_t)n), 2 * 4 * n + 2 * 2 * n);
    assert_int_equal(unshared_bytes(INT8(0.1f, 0), (int64_t)n), 2 * 4 * n + 2 * n);
}

static void conversions_are_made_once(void **state)
{
    (void)state;
    struct graph *g = graph_new("once");
    value_id x = graph_input(g, "x", SHAPE(1, 16, 6, 6));
    value_id q = graph_convert(g, x, INT8(0.1f, 3));
    value_id same = graph_convert(g, q, INT8(0.1f, 3)); /* is stored so already */
    value_id floats = graph_convert(g, q, FLOAT32);
    value_id other = graph_convert(g, same, INT8(0.4f, 0));
    value_id sum = graph_add(g, graph_tanh(g, q), graph_sigmoid(g, floats));
    graph_output(g, "y", graph_add(g, sum, graph_scale(g, other, 2, 0)));
    graph_output(g, "q", q); /* an output that is stored, and read by others */
    struct plan *plan = plan_of(g, (struct plan_options){ 0 });
    assert_int_equal(steps_with(plan, " to int8"), 2);
    assert_int_equal(steps_with(plan, " from int8"), 3); /* q, same, other */
    float want[576];
    noise(want, 576, 5);
    memcpy(plan_input(plan, 0), want, sizeof want);
    forward(plan);
    store(want, 576, INT8(0.1f, 3));
    assert_same(plan_output(plan, 1), want, 576);
    plan_free(plan);
    graph_free(g);
}

/* Convolutions whose results are stored. */
static struct graph *deep(struct storage even, struct storage odd)
{
    struct graph *g = graph_new("deep");
    value_id x = graph_input(g, "x", SHAPE(2, 16, 24, 24));
    for (int i = 0; i < 24; i++) {
        char name[8];
        snprintf(name, sizeof name, "c%d", i);
        x = graph_conv(g, x, name, 16, true, conv_square(3, 1, 1));
        x = graph_convert(g, x, i % 2 ? odd : even);
    }
    x = graph_convert(g, graph_flatten(g, graph_global_average_pool(g, x)), odd);
    graph_output(g, "y", graph_linear(g, x, "fc", 4, true));
    return g;
}

struct trained {
    float *gradients;
    int64_t n;
    size_t arena;
};

static struct trained train(struct storage even, struct storage odd, enum plan_saving saving)
{
    struct err err = { 0 };
    struct graph *g = deep(even, odd);
    struct plan *plan = plan_of(g, (struct plan_options){ .mode = PLAN_TRAIN, .saving = saving });
    for (int step = 0; step < 2; step++) {
        noise(plan_input(plan, 0), 2 * 16 * 24 * 24, 6);
        forward(plan);
        noise(plan_output_gradient(plan, 0), 8, 7);
        plan_zero_gradients(plan);
        assert_true(plan_backward(plan, &err));
    }
    struct trained t = { .arena = plan_memory(plan).arena };
    const float *gradients = plan_gradients(plan, &t.n);
    t.gradients = malloc((size_t)t.n * sizeof(float));
    memcpy(t.gradients, gradients, (size_t)t.n * sizeof(float));
    plan_free(plan);
    graph_free(g);
    return t;
}

static void training_keeps_the_stored_numbers_only(void **state)
{
    (void)state;
    struct trained floats = train(FLOAT32, FLOAT32, SAVING_ALL);
    struct trained stored = train(BFLOAT16, BFLOAT16, SAVING_ALL);
    print_message("%zu -> %zu bytes\n", floats.arena, stored.arena);
    assert_true(stored.arena < floats.arena * 3 / 4);
    assert_true(relative_error(stored.gradients, floats.gradients, floats.n) < 0.02);
    /* nothing is left to round */
    struct trained half = train(BFLOAT16, BFLOAT16, SAVING_HALF);
    assert_memory_equal(stored.gradients, half.gradients, (size_t)half.n * sizeof(float));
    free(floats.gradients), free(stored.gradients), free(half.gradients);
}

static void recomputation_gives_the_same_bits(void **state)
{
    (void)state;
    struct trained floats = train(FLOAT32, FLOAT32, SAVING_ALL);
    struct trained stored = train(INT8(0.01f, 4), BFLOAT16, SAVING_ALL);
    struct trained again = train(INT8(0.01f, 4), BFLOAT16, SAVING_RECOMPUTE);
    assert_true(stored.arena < floats.arena * 3 / 4); /* a byte for the gradient of int8 */
    assert_true(again.arena < stored.arena);
    assert_memory_equal(stored.gradients, again.gradients, (size_t)again.n * sizeof(float));
    free(floats.gradients), free(stored.gradients), free(again.gradients);
}

static void image_by_image_is_the_same(void **state)
{
    (void)state;
    float want[4 * 6];
    for (int by_image = 0; by_image < 2; by_image++) {
        struct graph *g = graph_new("images");
        value_id x = graph_input(g, "x", SHAPE(4, 3, 64, 64));
        x = graph_relu(g, graph_conv(g, x, "a", 16, true, conv_square(3, 1, 1)));
        x = graph_max_pool(g, graph_relu(g, graph_conv(g, x, "b", 24, true, conv_square(3, 1, 1))),
                           pool_square(2, 2, 0));
        x = graph_convert(g, x, BFLOAT16);
        x = graph_global_average_pool(g, graph_conv(g, x, "c", 6, true, conv_square(3, 2, 1)));
        graph_output(g, "y", graph_flatten(g, x));
        struct plan *plan =
            plan_of(g, (struct plan_options){ .threads = 2, .by_image = by_image == 1 });
        assert_int_equal(steps_with(plan, "each of 4 images"), by_image);
        noise(plan_input(plan, 0), 4 * 3 * 64 * 64, 8);
        forward(plan);
        if (by_image)
            assert_true(relative_error(plan_output(plan, 0), want, 24) < 1e-4);
        else
            memcpy(want, plan_output(plan, 0), sizeof want);
        plan_free(plan);
        graph_free(g);
    }
}

static void graphs_know_what_is_stored(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *text = NULL;
    size_t size = 0;
    struct graph *g = graph_new("text"), *copy = NULL, *ready = NULL;
    value_id x =
        graph_conv(g, graph_input(g, "x", SHAPE(1, 3, 8, 8)), "c", 4, false, conv_square(3, 1, 1));
    x = graph_relu(g, graph_convert(g, graph_batch_norm(g, x, "bn"), INT8(0.25f, -3)));
    graph_output(g, "y", graph_convert(g, x, BFLOAT16));
    assert_true(graph_initialize(g, 1, &err) && transform_resize(g, 2, 16, 16, &copy, &err) &&
                transform_for_inference(copy, NULL, 0, &ready, &err));
    FILE *stream = open_memstream(&text, &size);
    graph_print(ready, stream);
    fclose(stream);
    assert_non_null(strstr(text, "[2, 4, 16, 16] int8 "));
    assert_non_null(strstr(text, " dtype=int8 scale=0.25 zero_point=-3\n"));
    assert_non_null(strstr(text, "[2, 4, 16, 16] bfloat16 "));
    assert_non_null(strstr(text, " dtype=bfloat16\n"));
    free(text);
    graph_free(g), graph_free(copy), graph_free(ready);
}

static void assert_refused(struct storage storage, const char *fact)
{
    struct err err = { 0 };
    struct graph *g = graph_new("bad");
    graph_output(g, "y", graph_convert(g, graph_input(g, "x", SHAPE(1, 4)), storage));
    assert_false(graph_ok(g, &err));
    assert_non_null(strstr(err.text, fact));
    graph_free(g);
}

static void impossible_storages_are_refused(void **state)
{
    (void)state;
    assert_refused(INT8(0, 0), "the scale of int8 is 0; it must be at least");
    assert_refused(INT8(-1, 0), "scale is -1");
    assert_refused(INT8(1, 128), "zero_point is 128");
    assert_refused((struct storage){ DTYPE_BFLOAT16, 1, 0 }, "bfloat16 has neither a scale");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convert_agrees_with_pytorch),
        cmocka_unit_test(kernels_get_the_stored_numbers),
        cmocka_unit_test(views_and_relu_work_on_stored_numbers),
        cmocka_unit_test(memory_is_that_of_the_stored_numbers),
        cmocka_unit_test(conversions_are_made_once),
        cmocka_unit_test(training_keeps_the_stored_numbers_only),
        cmocka_unit_test(recomputation_gives_the_same_bits),
        cmocka_unit_test(image_by_image_is_the_same),
        cmocka_unit_test(graphs_know_what_is_stored),
        cmocka_unit_test(impossible_storages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
