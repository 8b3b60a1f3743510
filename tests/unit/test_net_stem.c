/* test_net_stem.c: our kernel for the 7 x 7 first layer against the direct sum in double: odd
 * sizes, small images, any padding, channels that fill no block, batches, bias and ReLU, values
 * with outliers; the same bits for any number of threads; in a plan against the direct plan, also
 * with max pooling in the same step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/kernels/stem_conv.h"
#include "net/plan.h"
#include "net/transform.h"

/* Filled with NaN, so that what is not written shows. */
static float *floats(size_t count)
{
    void *at = NULL;
    if (posix_memalign(&at, 64, (count + 1) * sizeof(float)) != 0)
        abort();
    memset(at, 0xff, (count + 1) * sizeof(float));
    return at;
}

/* Mostly small, now and then large, as activations and weights are. */
static float draw(struct rng *rng)
{
    double x = rng_normal(rng);
    return (float)(rng_between(rng, 0, 1) < 0.01 ? 20 * x : x);
}

static float *drawn(struct rng *rng, int64_t count)
{
    float *values = floats((size_t)count);
    for (int64_t i = 0; i < count; i++)
        values[i] = draw(rng);
    return values;
}

/* One output without activation; *size is the root of the sum of its squared terms. */
static double direct(const struct stem_conv *c, const float *x, const float *weight, double bias,
                     int64_t n, int64_t o, int64_t row, int64_t column, double *size)
{
    double sum = bias, squares = bias * bias;
    for (int64_t i = 0; i < 3 * 7 * 7; i++) {
        int64_t channel = i / 49, y = 2 * row + i / 7 % 7 - c->pad_top;
        int64_t at = 2 * column + i % 7 - c->pad_left;
        if (y < 0 || y >= c->height || at < 0 || at >= c->width)
            continue;
        double term = (double)weight[o * 147 + i] *
                      (double)x[((n * 3 + channel) * c->height + y) * c->width + at];
        sum += term, squares += term * term;
    }
    *size = sqrt(squares);
    return sum;
}

/* The largest error of any output, in units of the largest size. */
static double error_of(const struct stem_conv *c, const float *x, const float *weight,
                       const float *bias, const float *y)
{
    double worst = 0, largest = 0;
    int64_t channels = c->out_blocks * c->lanes, pixels = c->out_height * c->out_width;
    for (int64_t i = 0; i < c->batch * channels * pixels; i++) {
        int64_t n = i / (channels * pixels), o = i / pixels % channels, p = i % pixels;
        float got = y[((n * c->out_blocks + o / c->lanes) * pixels + p) * c->lanes + o % c->lanes];
        if (o >= c->out_channels) { /* what fills the block */
            assert_true(got == 0);
            continue;
        }
        double size, sum = direct(c, x, weight, bias ? (double)bias[o] : 0, n, o, p / c->out_width,
                                  p % c->out_width, &size);
        double error = fabs((double)got - (c->relu && sum < 0 ? 0 : sum));
        worst = error <= worst ? worst : error; /* NaN: worst of all */
        largest = fmax(largest, size);
    }
    return worst / largest;
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
    float *weights = floats(c.weight_floats), *scratch = floats(c.scratch_floats);
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
        float *x = drawn(&rng, c.batch * 3 * c.height * c.width);
        float *weight = drawn(&rng, c.out_channels * 147);
        float *bias = i % 3 ? drawn(&rng, c.out_channels) : NULL;
        float *y = floats((size_t)out), *other = floats((size_t)out);
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
    for (int level = SIMD_AVX2; level < SIMD_LEVELS; level++)
        if (stem_conv_available((enum simd)level))
            check_level((enum simd)level);
        else
            print_message("level %d is not on this processor: skipped\n", level);
}

/* The features of one image batch by several plans; those of our kernels, with pooling in the same
 * step or (no_sharing) in another one, on one thread or two, are the same bits. */
static void check_plans(int64_t height, int64_t width, const struct pool_attr *pool)
{
    static const struct plan_options options[] = { { .threads = 1, .direct = true },
                                                   { .threads = 1 },
                                                   { .threads = 2 },
                                                   { .threads = 1, .no_sharing = true } };
    struct err err = { 0 };
    struct graph *g = graph_new("stem");
    struct plan *plans[4] = { NULL };
    struct rng rng = rng_new(8, 8, 9);
    value_id x = graph_input(g, "input", SHAPE(2, 3, height, width));
    x = graph_relu(g, graph_conv(g, x, "a", 40, true, conv_square(7, 2, 3)));
    graph_output(g, "features", pool ? graph_max_pool(g, x, *pool) : x);
    struct graph *fused = NULL;
    if (!graph_ok(g, &err) || !graph_initialize(g, 9, &err) ||
        !transform_for_inference(g, NULL, 0, &fused, &err))
        fail_msg("%s", err.text);
    int64_t in = shape_count(graph_shape(fused, fused->inputs[0].value));
    int64_t out = shape_count(graph_shape(fused, fused->outputs[0].value));
    double worst = 0, largest = 0;
    for (int i = 0; i < 4; i++) {
        assert_true(plan_new(fused, &options[i], &plans[i], &err));
        for (int64_t k = 0; k < in; k++)
            plan_input(plans[i], 0)[k] = i ? plan_input(plans[0], 0)[k] : (float)rng_normal(&rng);
        assert_true(plan_forward(plans[i], &err));
    }
    const float *direct_y = plan_output(plans[0], 0), *y = plan_output(plans[1], 0);
    for (int64_t k = 0; k < out; k++) {
        worst = fmax(worst, fabs((double)direct_y[k] - (double)y[k]));
        largest = fmax(largest, fabs((double)direct_y[k]));
    }
    if (!(worst < 2e-6 * largest))
        fail_msg("%lldx%lld, pooling %d: off by %g of %g", (long long)height, (long long)width,
                 pool ? (int)pool->kernel[0] : 0, worst, largest);
    for (int i = 2; i < 4; i++)
        assert_memory_equal(y, plan_output(plans[i], 0), (size_t)out * sizeof(float));
    if (pool && pool->dilation[0] < 2 && stem_conv_available(SIMD_AVX2)) /* it is joined */
        assert_true(plan_steps(plans[1]) < plan_steps(plans[3]));
    for (int i = 0; i < 4; i++)
        plan_free(plans[i]);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_direct_sum),
        cmocka_unit_test(a_plan_agrees_with_the_direct_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
