/* test_net_stem.c: our kernel for the 7 x 7 first layer against the direct sum in double: odd
 * sizes, small images, any padding, channels that fill no block, batches, bias and ReLU, values
 * with outliers; the same bits for any number of threads; in a plan against the direct plan, also
 * with max pooling in the same step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "net/kernels/stem_conv.h"
#include "net/graph/transform.h"
#include "tests/unit/support/convs.h"

static double error_of(const struct stem_conv *c, const float *x, const float *weight,
                       const float *bias, const float *y)
{
    struct conv_result result = { .batch = c->batch,
                                  .in_channels = STEM_CHANNELS,
                                  .out_channels = c->out_channels,
                                  .height = c->height,
                                  .width = c->width,
                                  .out_height = c->out_height,
                                  .out_width = c->out_width,
                                  .kernel = { STEM_KERNEL, STEM_KERNEL },
                                  .stride = { STEM_STRIDE, STEM_STRIDE },
                                  .dilation = { 1, 1 },
                                  .pad = { c->pad_top, c->pad_left },
                                  .lanes = c->lanes,
                                  .plain = true,
                                  .relu = c->relu,
                                  .x = x,
                                  .weight = weight,
                                  .y = y,
                                  .bias = bias };
    return convs_error(&result);
}

static struct stem_conv draw_conv(struct rng *rng, enum simd level, int i)
{
    struct stem_conv c = { .level = level,
                           .batch = i == 0 ? 17 : 1 + (int64_t)rng_between(rng, 0, 4),
                           .out_channels = 1 + (int64_t)rng_between(rng, 0, 70),
                           .height = 1 + (int64_t)rng_between(rng, 0, i == 0 ? 9 : 40),
                           .width = 1 + (int64_t)rng_between(rng, 0, i % 5 == 4 ? 400 : 40),
                           .pad_top = (int64_t)rng_between(rng, 0, 5),
                           .pad_left = (int64_t)rng_between(rng, 0, 5),
                           .relu = rng_between(rng, 0, 1) < 0.5,
                           .threads = 1 };
    /* The padding behind is what makes the last window fit, and up to one more. */
    int64_t after = (int64_t)rng_between(rng, 0, 5);
    c.out_height = (c.height + c.pad_top + after - 7 + 8) / 2 - 3;
    c.out_width = (c.width + c.pad_left + after - 7 + 8) / 2 - 3;
    c.out_height = c.out_height < 1 ? 1 : c.out_height;
    c.out_width = c.out_width < 1 ? 1 : c.out_width;
    return c;
}

static void run(struct stem_conv c, const float *x, const float *weight, const float *bias,
                float *y)
{
    stem_conv_plan(&c);
    float *weights = convs_floats(c.weight_floats), *scratch = convs_floats(c.scratch_floats);
    stem_conv_weights(&c, weight, bias, weights);
    stem_conv_run(&c, weights, x, y, scratch);
    free(weights), free(scratch);
}

static void check_level(enum simd level)
{
    struct rng rng = rng_new(21, 3, (uint64_t)level);
    for (int i = 0; i < 40; i++) {
        struct stem_conv c = draw_conv(&rng, level, i);
        stem_conv_plan(&c);
        int64_t out = c.batch * c.out_blocks * c.lanes * c.out_height * c.out_width;
        float *x = convs_drawn(&rng, c.batch * 3 * c.height * c.width);
        float *weight = convs_drawn(&rng, c.out_channels * 147);
        float *bias = i % 3 ? convs_drawn(&rng, c.out_channels) : NULL;
        float *y = convs_floats((size_t)out), *other = convs_floats((size_t)out);
        run(c, x, weight, bias, y);
        double error = error_of(&c, x, weight, bias, y);
        if (!(error < 2e-6))
            fail_msg("level %d %lldx%lldx%lld -> %lld, pad %lld %lld: off by %g", (int)level,
                     (long long)c.batch, (long long)c.height, (long long)c.width,
                     (long long)c.out_channels, (long long)c.pad_top, (long long)c.pad_left, error);
        for (c.threads = 2; c.threads <= 3; c.threads++) {
            run(c, x, weight, bias, other);
            assert_memory_equal(other, y, (size_t)out * sizeof(float));
        }
        free(x), free(weight), free(bias), free(y), free(other);
    }
}

static void agrees_with_the_direct_sum(void **state)
{
    (void)state;
    convs_each_level(stem_conv_available, check_level);
}

/* With pooling in the same step or (no_sharing) in another one. */
static void check_plans(int64_t height, int64_t width, const struct pool_attr *pool)
{
    static const struct plan_options options[] = { { .threads = 1, .direct = true },
                                                   { .threads = 1 },
                                                   { .threads = 2 },
                                                   { .threads = 1, .no_sharing = true } };
    struct err err = { 0 };
    struct graph *g = graph_new("stem");
    int steps[4];
    value_id x = graph_input(g, "input", SHAPE(2, 3, height, width));
    x = graph_relu(g, graph_conv(g, x, "a", 40, true, conv_square(7, 2, 3)));
    graph_output(g, "features", pool ? graph_max_pool(g, x, *pool) : x);
    struct graph *fused = NULL;
    if (!graph_ok(g, &err) || !graph_initialize(g, 9, &err) ||
        !transform_for_inference(g, NULL, 0, &fused, &err))
        fail_msg("%s", err.text);
    convs_compare_plans(fused, options, 4, steps);
    if (pool && pool->dilation[0] < 2 && stem_conv_available(SIMD_AVX2)) /* it is joined */
        assert_true(steps[1] < steps[3]);
    graph_free(g), graph_free(fused);
}

static void a_plan_agrees_with_the_direct_plan(void **state)
{
    (void)state;
    struct pool_attr pools[] = { pool_square(3, 2, 1), pool_square(3, 2, 0), pool_square(2, 2, 0),
                                 pool_square(3, 1, 1), pool_square(1, 3, 0), pool_square(3, 2, 1) };
    pools[1].ceil_mode = true;
    pools[5].dilation[0] = 3;
    check_plans(61, 75, NULL);
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        check_plans(61, 75, &pools[i]);
        check_plans(20, 13, &pools[i]);
    }
}

static void it_can_be_trained(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = graph_new("stem");
    value_id x = graph_input(g, "input", SHAPE(2, 3, 61, 75));
    x = graph_relu(g, graph_conv(g, x, "a", 40, true, conv_square(7, 2, 3)));
    x = graph_max_pool(g, x, pool_square(3, 2, 1));
    graph_output(g, "features", graph_conv(g, x, "b", 20, false, conv_square(1, 1, 0)));
    if (!graph_ok(g, &err) || !graph_initialize(g, 9, &err))
        fail_msg("%s", err.text);
    convs_compare_gradients(g);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_direct_sum),
        cmocka_unit_test(a_plan_agrees_with_the_direct_plan),
        cmocka_unit_test(it_can_be_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
