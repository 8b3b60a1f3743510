/* test_net_direct.c: our direct convolutions against the sum in double: odd sizes, maps of one
 * pixel, channels that fill no block, any kernel, stride, padding and dilation, batches, bias,
 * residual and ReLU; the same bits for any number of threads; in a plan against oneDNN's. Run a
 * second time with oneDNN, and so the plans, limited to AVX2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/kernels/direct_conv.h"
#include "net/graph/transform.h"
#include "tests/unit/support/convs.h"

struct tensors {
    float *x, *weight, *bias, *residual, *y; /* bias and residual may be NULL */
};

static double error_of(const struct direct_conv *c, const struct tensors *t)
{
    struct conv_result result = { .batch = c->batch,
                                  .in_channels = c->in_channels,
                                  .out_channels = c->out_channels,
                                  .height = c->height,
                                  .width = c->width,
                                  .out_height = c->out_height,
                                  .out_width = c->out_width,
                                  .kernel = { c->kernel[0], c->kernel[1] },
                                  .stride = { c->stride[0], c->stride[1] },
                                  .dilation = { c->dilation[0], c->dilation[1] },
                                  .pad = { c->pad[0], c->pad[1] },
                                  .lanes = c->lanes,
                                  .relu = c->relu,
                                  .x = t->x,
                                  .weight = t->weight,
                                  .y = t->y,
                                  .bias = t->bias,
                                  .residual = t->residual };
    return convs_error(&result);
}

static struct direct_conv draw_conv(struct rng *rng, enum simd level, int i)
{
    struct direct_conv c = { .level = level,
                             .batch = i == 0 ? 17 : 1 + (int64_t)rng_between(rng, 0, 4),
                             .in_channels = 1 + (int64_t)rng_between(rng, 0, i % 7 ? 60 : 600),
                             .out_channels = 1 + (int64_t)rng_between(rng, 0, 150),
                             .height = 1 + (int64_t)rng_between(rng, 0, 20),
                             .width = 1 + (int64_t)rng_between(rng, 0, 20),
                             .relu = i % 4 < 2,
                             .threads = 1 };
    for (int k = 0; k < 2; k++) {
        bool plain = i % 2 == 0; /* 1 x 1 */
        c.kernel[k] = plain ? 1 : 1 + (int64_t)rng_between(rng, 0, i % 3 ? 3 : 7);
        c.stride[k] = i % 4 == 0 ? 1 : 1 + (int64_t)rng_between(rng, 0, 2);
        c.dilation[k] = 1 + (int64_t)rng_between(rng, 0, 2);
        c.pad[k] = plain ? 0 : (int64_t)rng_between(rng, 0, 3);
        int64_t reach = c.dilation[k] * (c.kernel[k] - 1) + 1;
        int64_t *in = k ? &c.width : &c.height, *out = k ? &c.out_width : &c.out_height;
        if (*in + 2 * c.pad[k] < reach)
            *in = reach;
        *out = (*in + 2 * c.pad[k] - reach) / c.stride[k] + 1;
    }
    return c;
}

static void run(struct direct_conv c, const struct tensors *t, const float *residual, float *y)
{
    direct_conv_plan(&c);
    float *weights = convs_floats(c.weight_floats), *scratch = convs_floats(c.scratch_floats);
    direct_conv_weights(&c, t->weight, t->bias, weights);
    struct direct_work work = { &c, weights, residual, y };
    direct_conv_run(&work, 1, t->x, scratch);
    free(weights), free(scratch);
}

static void check_level(enum simd level)
{
    struct rng rng = rng_new(23, 3, (uint64_t)level);
    for (int i = 0; i < 36; i++) {
        struct direct_conv c = draw_conv(&rng, level, i);
        direct_conv_plan(&c);
        int64_t pixels = c.out_height * c.out_width;
        size_t out = (size_t)(c.batch * c.out_blocks * c.lanes * pixels);
        struct tensors t = {
            convs_drawn_blocked(&rng, c.batch, c.in_channels, c.height * c.width, c.lanes),
            convs_drawn(&rng, c.out_channels * c.in_channels * c.kernel[0] * c.kernel[1]),
            i % 3 ? convs_drawn(&rng, c.out_channels) : NULL,
            i % 5 > 2 ? convs_drawn_blocked(&rng, c.batch, c.out_channels, pixels, c.lanes) : NULL,
            convs_floats(out)
        };
        run(c, &t, t.residual, t.y);
        double error = error_of(&c, &t); /* of floats that are summed one after another */
        double terms = (double)(c.in_channels * c.kernel[0] * c.kernel[1]);
        if (!(error < 1e-6 + 2e-7 * sqrt(terms)))
            fail_msg("level %d, shape %d: off by %g", (int)level, i, error);
        float *other = convs_floats(out);
        for (c.threads = 2; c.threads <= 5; c.threads++) {
            run(c, &t, t.residual, other);
            assert_memory_equal(other, t.y, out * sizeof(float));
        }
        if (t.residual) { /* which may be the output */
            run(c, &t, t.residual, t.residual);
            assert_memory_equal(t.residual, t.y, out * sizeof(float));
        }
        free(t.x), free(t.weight), free(t.bias), free(t.residual), free(t.y), free(other);
    }
}

static void agrees_with_the_sum_in_double(void **state)
{
    (void)state;
    convs_each_level(direct_conv_available, check_level);
}

#define TOGETHER 3

/* Convolutions of one input, of 5, 70 and 130 outputs. */
static void check_together(enum simd level, int64_t side)
{
    struct rng rng = rng_new(24, 3, (uint64_t)level);
    struct direct_conv conv[TOGETHER];
    struct direct_work works[TOGETHER];
    float *expected[TOGETHER], *x = NULL;
    for (int threads = 1; threads <= 5; threads++)
        for (int i = 0; i < TOGETHER; i++) {
            conv[i] = (struct direct_conv){ .level = level,
                                            .batch = 2,
                                            .in_channels = 40,
                                            .out_channels = 5 + 65 * i,
                                            .height = side,
                                            .width = side,
                                            .out_height = side,
                                            .out_width = side,
                                            .kernel = { 1, 1 },
                                            .stride = { 1, 1 },
                                            .dilation = { 1, 1 },
                                            .relu = i == 1,
                                            .threads = threads };
            direct_conv_plan(&conv[i]);
            size_t out = (size_t)(2 * side * side * conv[i].out_blocks * conv[i].lanes);
            if (threads == 1) {
                x = x ? x : convs_drawn_blocked(&rng, 2, 40, side * side, conv[i].lanes);
                float *weight = convs_drawn(&rng, conv[i].out_channels * 40),
                      *u = convs_floats(conv[i].weight_floats);
                direct_conv_weights(&conv[i], weight, NULL, u);
                works[i] = (struct direct_work){ &conv[i], u, NULL, convs_floats(out) };
                expected[i] = convs_floats(out);
                struct direct_work alone = { &conv[i], u, NULL, expected[i] };
                direct_conv_run(&alone, 1, x, NULL);
                free(weight);
            }
            if (i + 1 < TOGETHER)
                continue;
            direct_conv_join(conv, TOGETHER);
            direct_conv_run(works, TOGETHER, x, NULL);
            for (int k = 0; k < TOGETHER; k++) {
                size_t floats_out = (size_t)(2 * side * side * conv[k].out_blocks * conv[k].lanes);
                assert_memory_equal(works[k].y, expected[k], floats_out * sizeof(float));
                memset(works[k].y, 1, floats_out * sizeof(float));
            }
        }
    for (int i = 0; i < TOGETHER; i++)
        free((void *)works[i].weights), free(works[i].y), free(expected[i]);
    free(x);
}

static void check_small_and_large(enum simd level)
{
    check_together(level, 3);
    check_together(level, 40);
}

static void convolutions_together_are_those_alone(void **state)
{
    (void)state;
    convs_each_level(direct_conv_available, check_small_and_large);
}

static const struct plan_options plan_kinds[] = {
    { .threads = 1, .direct = true }, { .threads = 1 }, { .threads = 2 }, { .threads = 3 }
};

static void a_plan_agrees_with_oneDNN(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = graph_new("narrow");
    value_id x = graph_input(g, "input", SHAPE(2, 32, 58, 60));
    x = graph_relu(g, graph_conv(g, x, "a", 48, true, conv_square(3, 2, 1)));
    value_id b = graph_conv(g, x, "b", 40, false, conv_square(1, 1, 0));
    value_id c = graph_relu(g, graph_conv(g, b, "c", 32, true, conv_square(3, 1, 1)));
    value_id d = graph_relu(g, graph_conv(g, x, "d", 128, true, conv_square(1, 1, 0)));
    graph_output(g, "features", graph_concat(g, (value_id[]){ d, b, c }, 3, 1));
    if (!graph_ok(g, &err) || !graph_initialize(g, 9, &err))
        fail_msg("%s", err.text);
    convs_compare_plans(g, plan_kinds, 3, NULL);
    graph_free(g);
}

/* What the plans' own kernels are called: those of this processor, if it has any. */
static const char *expected_level(void)
{
    if (!direct_conv_available(SIMD_AVX2))
        return NULL;
    return direct_conv_available(SIMD_AVX512) && !getenv("DNNL_MAX_CPU_ISA") ? "avx512" : "avx2";
}

static void has_kernels(const struct graph *g, const char *const *names, int n)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    char *text = NULL, name[64];
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    if (!plan_new(g, &plan_kinds[1], &plan, &err))
        fail_msg("%s", err.text);
    plan_print(plan, stream);
    assert_int_equal(fclose(stream), 0);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, " %s direct %s ", names[i], expected_level());
        if (!strstr(text, name))
            fail_msg("no '%s' in\n%s", name, text);
    }
    plan_free(plan);
    free(text);
}

/* One image with small maps, which our kernels take on every processor that they know. */
static void a_plan_of_small_maps_takes_them(void **state)
{
    static const char *const names[] = { "conv 3x3 s2", "2 conv 1x1", "conv 1x3",
                                         "conv 3x1",    "conv 1x1",   "max pool + conv 1x1",
                                         "conv 1x1 s2" };
    (void)state;
    struct err err = { 0 };
    struct conv_attr wide = conv_square(1, 1, 0), tall = wide;
    wide.kernel[1] = tall.kernel[0] = 3;
    wide.pad[1] = wide.pad[3] = tall.pad[0] = tall.pad[2] = 1;
    struct graph *g = graph_new("small");
    value_id x = graph_input(g, "input", SHAPE(1, 32, 15, 16));
    x = graph_relu(g, graph_conv(g, x, "a", 48, true, conv_square(3, 2, 1)));
    value_id b = graph_conv(g, x, "b", 40, false, conv_square(1, 1, 0));
    value_id c = graph_relu(g, graph_conv(g, x, "c", 136, true, conv_square(1, 1, 0)));
    value_id d = graph_relu(g, graph_conv(g, b, "d", 72, true, wide));
    value_id e = graph_relu(g, graph_conv(g, d, "e", 48, true, tall));
    value_id f = graph_add(g, x, graph_conv(g, e, "f", 48, true, conv_square(1, 1, 0)));
    value_id pooled = graph_max_pool(g, x, pool_square(3, 1, 1));
    value_id h = graph_conv(g, pooled, "h", 32, true, conv_square(1, 1, 0));
    graph_output(g, "all", graph_concat(g, (value_id[]){ c, f, h }, 3, 1));
    graph_output(g, "half", graph_conv(g, c, "half", 100, true, conv_square(1, 2, 0)));
    if (!graph_ok(g, &err) || !graph_initialize(g, 13, &err))
        fail_msg("%s", err.text);
    convs_compare_plans(g, plan_kinds, 4, NULL);
    int n = (int)(sizeof names / sizeof *names);
    if (expected_level()) /* strided 1 x 1 with AVX2 only, as some processors want it */
        has_kernels(g, names, strcmp(expected_level(), "avx2") == 0 ? n : n - 1);
    graph_free(g);
}

/* The same numbers as weights of two shapes, in plans that share what they made of them. */
static void weights_of_other_shapes_are_not_shared(void **state)
{
    (void)state;
    static const int64_t kernels[2] = { 1, 2 }, channels[2] = { 128, 32 };
    struct err err = { 0 };
    struct graph *graphs[2];
    struct plan *plans[2][2];
    struct plan_weights *weights = plan_weights_new();
    for (int i = 0; i < 2; i++) {
        struct graph *g = graphs[i] = graph_new("shape");
        value_id x = graph_input(g, "input", SHAPE(1, channels[i], 7, 8));
        x = graph_conv(g, x, "conv", 48, false, conv_square(kernels[i], 1, 0));
        graph_output(g, "out", x);
        if (!graph_ok(g, &err) || !graph_initialize(g, 14, &err))
            fail_msg("%s", err.text);
    }
    struct value *first = &graphs[0]->values[graphs[0]->nodes[0].inputs[1]];
    struct value *second = &graphs[1]->values[graphs[1]->nodes[0].inputs[1]];
    buffer_release(second->data);
    second->data = buffer_share(first->data);
    for (int i = 0; i < 2; i++)
        for (int shared = 0; shared < 2; shared++) {
            struct plan_options options = { .threads = 1, .weights = shared ? weights : NULL };
            if (!plan_new(graphs[i], &options, &plans[i][shared], &err))
                fail_msg("%s", err.text);
            for (int64_t k = 0; k < channels[i] * 7 * 8; k++)
                plan_input(plans[i][shared], 0)[k] = (float)(k % 13) - 6;
            if (!plan_forward(plans[i][shared], &err))
                fail_msg("%s", err.text);
        }
    for (int i = 0; i < 2; i++) {
        int64_t count = shape_count(graph_shape(graphs[i], graphs[i]->outputs[0].value));
        assert_memory_equal(plan_output(plans[i][0], 0), plan_output(plans[i][1], 0),
                            (size_t)count * sizeof(float));
    }
    for (int i = 0; i < 2; i++)
        plan_free(plans[i][0]), plan_free(plans[i][1]), graph_free(graphs[i]);
    plan_weights_free(weights);
}

/* Poolings of stride 1 and 2: made by the convolution that follows, whose threads part the rows.
 * One that something else reads stays. */
static int check_poolings(struct shape shape)
{
    struct err err = { 0 };
    struct graph *g = graph_new("pooled");
    int steps[4];
    value_id input = graph_input(g, "input", shape);
    value_id x = graph_conv(g, input, "first", 32, true, conv_square(3, 1, 1));
    value_id a = graph_max_pool(g, x, pool_square(3, 1, 1));
    graph_output(g, "a", graph_conv(g, a, "conv_a", 40, true, conv_square(1, 1, 0)));
    value_id b = graph_max_pool(g, x, pool_square(3, 2, 1));
    graph_output(g, "b", graph_conv(g, b, "conv_b", 128, true, conv_square(1, 1, 0)));
    value_id c = graph_max_pool(g, x, pool_square(3, 2, 0));
    graph_output(g, "c", graph_conv(g, c, "conv_c", 32, true, conv_square(1, 1, 0)));
    graph_output(g, "pooled", c);
    if (!graph_ok(g, &err) || !graph_initialize(g, 10, &err))
        fail_msg("%s", err.text);
    convs_compare_plans(g, plan_kinds, 4, steps);
    graph_free(g);
    return steps[0] - steps[1];
}

static void a_pooling_is_made_with_the_convolution(void **state)
{
    (void)state;
    check_poolings(SHAPE(2, 32, 57, 43));
    int fewer = check_poolings(SHAPE(1, 32, 13, 14));
    if (expected_level())
        assert_int_equal(fewer, 2);
}

/* A convolution is added to its own input, or to what the pooling before it reads: then the sum
 * must not be written over it. */
static void the_residual_may_be_the_input(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = graph_new("added to itself"), *fused = NULL;
    value_id x = graph_input(g, "input", SHAPE(2, 32, 57, 43));
    x = graph_conv(g, x, "first", 64, true, conv_square(3, 1, 1));
    x = graph_relu(g, graph_add(g, x, graph_conv(g, x, "a", 64, true, conv_square(1, 1, 0))));
    x = graph_relu(g, graph_add(g, x, graph_conv(g, x, "b", 64, true, conv_square(3, 1, 1))));
    value_id pooled = graph_max_pool(g, x, pool_square(3, 1, 1));
    x = graph_add(g, x, graph_conv(g, pooled, "c", 64, true, conv_square(1, 1, 0)));
    value_id half = graph_conv(g, x, "half", 32, true, conv_square(1, 1, 0));
    value_id both = graph_concat(g, (value_id[]){ half, graph_relu(g, half) }, 2, 1);
    x = graph_add(g, both, graph_conv(g, half, "d", 64, true, conv_square(1, 1, 0)));
    graph_output(g, "y", graph_conv(g, x, "last", 32, true, conv_square(1, 1, 0)));
    if (!graph_ok(g, &err) || !graph_initialize(g, 11, &err) ||
        !transform_fuse(g, NULL, 0, &fused, &err))
        fail_msg("%s", err.text);
    convs_compare_plans(fused, plan_kinds, 4, NULL);
    graph_free(fused), graph_free(g);
}

/* 1 x 1 convolutions that pad the end only give larger maps: alone, beside others of the same
 * input, behind a pooling. */
static void padding_may_be_at_the_end_only(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = graph_new("padded at the end");
    struct conv_attr padded = conv_square(1, 1, 0);
    padded.pad[2] = 1, padded.pad[3] = 2;
    value_id x = graph_input(g, "input", SHAPE(2, 32, 20, 21));
    x = graph_conv(g, x, "first", 32, true, conv_square(3, 1, 1));
    graph_output(g, "a", graph_conv(g, x, "conv_a", 48, true, conv_square(1, 1, 0)));
    graph_output(g, "b", graph_conv(g, x, "conv_b", 48, true, padded));
    x = graph_max_pool(g, x, pool_square(3, 1, 1));
    graph_output(g, "c", graph_conv(g, x, "conv_c", 48, true, padded));
    if (!graph_ok(g, &err) || !graph_initialize(g, 12, &err))
        fail_msg("%s", err.text);
    convs_compare_plans(g, plan_kinds, 4, NULL);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_sum_in_double),
        cmocka_unit_test(convolutions_together_are_those_alone),
        cmocka_unit_test(a_plan_agrees_with_oneDNN),
        cmocka_unit_test(a_plan_of_small_maps_takes_them),
        cmocka_unit_test(weights_of_other_shapes_are_not_shared),
        cmocka_unit_test(a_pooling_is_made_with_the_convolution),
        cmocka_unit_test(the_residual_may_be_the_input),
        cmocka_unit_test(padding_may_be_at_the_end_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
