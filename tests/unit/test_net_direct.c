/* test_net_direct.c: our direct convolutions against the sum in double: odd sizes, maps of one
 * pixel, channels that fill no block, any kernel, stride, padding and dilation, batches, bias,
 * residual and ReLU; the same bits for any number of threads; in a plan against oneDNN's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/kernels/direct_conv.h"
#include "net/plan.h"
#include "support/golden.h"

/* Filled with NaN, so that what is not written shows. */
static float *floats(size_t count)
{
    void *at = NULL;
    if (posix_memalign(&at, 64, (count + 1) * sizeof(float)) != 0)
        abort();
    memset(at, 0xff, (count + 1) * sizeof(float));
    return at;
}

static float *drawn(struct rng *rng, int64_t count)
{
    float *values = floats((size_t)count);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)rng_normal(rng);
    return values;
}

/* A blocked tensor; the channels that fill a block are 0. */
static float *drawn_blocked(struct rng *rng, int64_t batch, int64_t channels, int64_t pixels,
                            int64_t lanes)
{
    int64_t blocks = (channels + lanes - 1) / lanes;
    float *values = drawn(rng, batch * blocks * pixels * lanes);
    for (int64_t i = 0; i < batch * blocks * pixels * lanes; i++)
        if (i / (pixels * lanes) % blocks * lanes + i % lanes >= channels)
            values[i] = 0;
    return values;
}

struct tensors {
    float *x, *weight, *bias, *residual, *y; /* bias and residual may be NULL */
};

/* One output before the activation; *size is the root of the sum of its squared terms. */
static double direct(const struct direct_conv *c, const struct tensors *t, int64_t n, int64_t o,
                     int64_t pixel, double *size)
{
    int64_t taps = c->kernel[0] * c->kernel[1], in = c->height * c->width;
    double sum = t->bias ? (double)t->bias[o] : 0, squares = sum * sum;
    for (int64_t i = 0; i < c->in_channels * taps; i++) {
        int64_t channel = i / taps, row = i % taps / c->kernel[1], column = i % c->kernel[1];
        int64_t y = pixel / c->out_width * c->stride[0] + row * c->dilation[0] - c->pad[0];
        int64_t x = pixel % c->out_width * c->stride[1] + column * c->dilation[1] - c->pad[1];
        if (y < 0 || y >= c->height || x < 0 || x >= c->width)
            continue;
        int64_t at = ((n * c->in_blocks + channel / c->lanes) * in + y * c->width + x) * c->lanes +
                     channel % c->lanes;
        double term = (double)t->weight[o * c->in_channels * taps + i] * (double)t->x[at];
        sum += term, squares += term * term;
    }
    *size = sqrt(squares);
    return sum;
}

/* The largest error of any output, in units of the largest size. */
static double error_of(const struct direct_conv *c, const struct tensors *t)
{
    double worst = 0, largest = 0;
    int64_t pixels = c->out_height * c->out_width, channels = c->out_blocks * c->lanes;
    for (int64_t i = 0; i < c->batch * channels * pixels; i++) {
        int64_t n = i / (channels * pixels), o = i / pixels % channels, p = i % pixels;
        int64_t at = ((n * c->out_blocks + o / c->lanes) * pixels + p) * c->lanes + o % c->lanes;
        if (o >= c->out_channels) { /* what fills the block */
            assert_true(t->y[at] == 0);
            continue;
        }
        double size, sum = direct(c, t, n, o, p, &size);
        sum += t->residual ? (double)t->residual[at] : 0;
        double error = fabs((double)t->y[at] - (c->relu && sum < 0 ? 0 : sum));
        worst = error <= worst ? worst : error; /* NaN: worst of all */
        largest = fmax(largest, size);
    }
    return worst / largest;
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
        c.kernel[k] = plain ? 1 : 1 + (int64_t)rng_between(rng, 0, 3);
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
    float *weights = floats(c.weight_floats), *scratch = floats(c.scratch_floats);
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
            drawn_blocked(&rng, c.batch, c.in_channels, c.height * c.width, c.lanes),
            drawn(&rng, c.out_channels * c.in_channels * c.kernel[0] * c.kernel[1]),
            i % 3 ? drawn(&rng, c.out_channels) : NULL,
            i % 5 > 2 ? drawn_blocked(&rng, c.batch, c.out_channels, pixels, c.lanes) : NULL,
            floats(out)
        };
        run(c, &t, t.residual, t.y);
        double error = error_of(&c, &t); /* of floats that are summed one after another */
        double terms = (double)(c.in_channels * c.kernel[0] * c.kernel[1]);
        if (!(error < 1e-6 + 2e-7 * sqrt(terms)))
            fail_msg("level %d, shape %d: off by %g", (int)level, i, error);
        float *other = floats(out);
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
    for (int level = SIMD_AVX2; level < SIMD_LEVELS; level++)
        if (direct_conv_available((enum simd)level))
            check_level((enum simd)level);
        else
            print_message("level %d is not on this processor: skipped\n", level);
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
                x = x ? x : drawn_blocked(&rng, 2, 40, side * side, conv[i].lanes);
                float *weight = drawn(&rng, conv[i].out_channels * 40),
                      *u = floats(conv[i].weight_floats);
                direct_conv_weights(&conv[i], weight, NULL, u);
                works[i] = (struct direct_work){ &conv[i], u, NULL, floats(out) };
                expected[i] = floats(out);
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

static void convolutions_together_are_those_alone(void **state)
{
    (void)state;
    for (int level = SIMD_AVX2; level < SIMD_LEVELS; level++)
        if (direct_conv_available((enum simd)level)) {
            check_together((enum simd)level, 3);
            check_together((enum simd)level, 40);
        }
}

static void a_plan_agrees_with_oneDNN(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = graph_new("narrow");
    struct plan *plans[3] = { NULL };
    struct rng rng = rng_new(8, 8, 9);
    value_id x = graph_input(g, "input", SHAPE(2, 32, 58, 60));
    x = graph_relu(g, graph_conv(g, x, "a", 48, true, conv_square(3, 2, 1)));
    value_id b = graph_conv(g, x, "b", 40, false, conv_square(1, 1, 0));
    value_id c = graph_relu(g, graph_conv(g, b, "c", 32, true, conv_square(3, 1, 1)));
    value_id d = graph_relu(g, graph_conv(g, x, "d", 128, true, conv_square(1, 1, 0)));
    graph_output(g, "features", graph_concat(g, (value_id[]){ d, b, c }, 3, 1));
    if (!graph_ok(g, &err) || !graph_initialize(g, 9, &err))
        fail_msg("%s", err.text);
    int64_t in = shape_count(graph_shape(g, g->inputs[0].value));
    int64_t out = shape_count(graph_shape(g, g->outputs[0].value));
    double worst = 0, largest = 0;
    for (int i = 0; i < 3; i++) {
        struct plan_options options = { .threads = i ? i : 1, .direct = i == 0 };
        assert_true(plan_new(g, &options, &plans[i], &err));
        for (int64_t k = 0; k < in; k++)
            plan_input(plans[i], 0)[k] = i ? plan_input(plans[0], 0)[k] : (float)rng_normal(&rng);
        assert_true(plan_forward(plans[i], &err));
    }
    const float *expected = plan_output(plans[0], 0), *y = plan_output(plans[1], 0);
    for (int64_t k = 0; k < out; k++) {
        worst = fmax(worst, fabs((double)expected[k] - (double)y[k]));
        largest = fmax(largest, fabs((double)expected[k]));
    }
    assert_true(worst < 2e-6 * largest);
    assert_memory_equal(y, plan_output(plans[2], 0), (size_t)out * sizeof(float));
    for (int i = 0; i < 3; i++)
        plan_free(plans[i]);
    graph_free(g);
}

/* Poolings of stride 1 and 2, of two images: made by the convolution that follows, whose threads
 * part the rows. One that something else reads stays. */
static void a_pooling_is_made_with_the_convolution(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = graph_new("pooled");
    struct plan *plans[4] = { NULL };
    struct rng rng = rng_new(8, 8, 10);
    value_id input = graph_input(g, "input", SHAPE(2, 32, 57, 43));
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
    for (int i = 0; i < 4; i++) {
        struct plan_options options = { .threads = i ? i : 1, .direct = i == 0 };
        assert_true(plan_new(g, &options, &plans[i], &err));
        int64_t in = shape_count(graph_shape(g, input));
        for (int64_t k = 0; k < in; k++)
            plan_input(plans[i], 0)[k] = i ? plan_input(plans[0], 0)[k] : (float)rng_normal(&rng);
        assert_true(plan_forward(plans[i], &err));
        for (int o = 0; o < g->n_outputs; o++) {
            int64_t out = shape_count(graph_shape(g, g->outputs[o].value));
            const float *y = plan_output(plans[i], o);
            assert_true(relative_error(y, plan_output(plans[0], o), out) < 2e-6);
            if (i > 1)
                assert_memory_equal(y, plan_output(plans[1], o), (size_t)out * sizeof(float));
        }
    }
    if (direct_conv_available(SIMD_AVX512) && !getenv("DNNL_MAX_CPU_ISA"))
        assert_int_equal(plan_steps(plans[0]) - plan_steps(plans[1]), 2);
    for (int i = 0; i < 4; i++)
        plan_free(plans[i]);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_sum_in_double),
        cmocka_unit_test(convolutions_together_are_those_alone),
        cmocka_unit_test(a_plan_agrees_with_oneDNN),
        cmocka_unit_test(a_pooling_is_made_with_the_convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
