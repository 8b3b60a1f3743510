/* test_net_winograd.c: our Winograd convolutions against the direct sum in double: odd sizes, maps
 * of one pixel, channels that fill no block, padding, dilation, batches, bias, residual and ReLU,
 * values with outliers; the same bits for any number of threads; in a plan against the direct plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/kernels/winograd_gradient.h"
#include "net/graph/transform.h"
#include "tests/unit/support/convs.h"

struct tensors {
    float *x, *weight, *bias, *residual, *y; /* x, residual, y: blocked */
};

/* Where channel c, row y and column x of an image lie in a blocked tensor. */
static size_t at(const struct winograd_conv *w, int64_t blocks, int64_t height, int64_t width,
                 int64_t n, int64_t c, int64_t y, int64_t x)
{
    return (size_t)((((n * blocks + c / w->lanes) * height + y) * width + x) * w->lanes +
                    c % w->lanes);
}

static struct tensors tensors_of(const struct winograd_conv *w, struct rng *rng)
{
    int64_t out = w->out_height * w->out_width, weights = w->out_channels * w->in_channels * 9;
    struct tensors t = { convs_drawn_blocked(rng, w->batch, w->in_channels, w->height * w->width,
                                             w->lanes),
                         convs_drawn(rng, weights), convs_drawn(rng, w->out_channels),
                         convs_drawn_blocked(rng, w->batch, w->out_channels, out, w->lanes),
                         convs_floats((size_t)(w->batch * w->out_blocks * w->lanes * out)) };
    for (int64_t i = 0; i < weights; i++)
        t.weight[i] *= 0.1f;
    return t;
}

static void tensors_free(struct tensors *t)
{
    free(t->x), free(t->weight), free(t->bias), free(t->residual), free(t->y);
}

static void run(struct winograd_conv w, int tile, bool turned, bool with_bias, bool with_residual,
                const struct tensors *t, float *y)
{
    winograd_conv_plan(&w, tile);
    float *weights = convs_floats(w.weight_floats), *scratch = convs_floats(w.scratch_floats);
    winograd_conv_weights(&w, t->weight, turned, weights);
    winograd_conv_run(&w, weights, t->x, with_bias ? t->bias : NULL,
                      with_residual ? t->residual : NULL, y, scratch);
    free(weights), free(scratch);
}

static double error_of(const struct winograd_conv *w, const struct tensors *t, bool turned,
                       bool with_bias, bool with_residual)
{
    struct conv_result result = { .batch = w->batch,
                                  .in_channels = w->in_channels,
                                  .out_channels = w->out_channels,
                                  .height = w->height,
                                  .width = w->width,
                                  .out_height = w->out_height,
                                  .out_width = w->out_width,
                                  .kernel = { 3, 3 },
                                  .stride = { 1, 1 },
                                  .dilation = { w->dilation, w->dilation },
                                  .pad = { w->pad_top, w->pad_left },
                                  .lanes = w->lanes,
                                  .turned = turned,
                                  .relu = w->relu,
                                  .x = t->x,
                                  .weight = t->weight,
                                  .y = t->y,
                                  .bias = with_bias ? t->bias : NULL,
                                  .residual = with_residual ? t->residual : NULL };
    return convs_error(&result);
}

static struct winograd_conv draw_conv(struct rng *rng, enum simd level)
{
    int64_t dilation = (int64_t)rng_between(rng, 1, 4.999);
    int64_t pad = (int64_t)rng_between(rng, 0, (double)dilation + 1.999);
    int64_t least = 2 * dilation + 1 - 2 * pad > 1 ? 2 * dilation + 1 - 2 * pad : 1;
    struct winograd_conv w = { .level = level,
                               .batch = (int64_t)rng_between(rng, 1, 3.999),
                               .in_channels = (int64_t)rng_between(rng, 1, 40),
                               .out_channels = (int64_t)rng_between(rng, 1, 70),
                               .height = least + (int64_t)rng_between(rng, 0, 17),
                               .width = least + (int64_t)rng_between(rng, 0, 17),
                               .pad_top = pad,
                               .pad_left = pad,
                               .dilation = dilation,
                               .relu = rng_between(rng, 0, 1) < 0.5,
                               .threads = 1 };
    w.out_height = w.height + 2 * pad - 2 * dilation;
    w.out_width = w.width + 2 * pad - 2 * dilation;
    return w;
}

static void check_level(enum simd level)
{
    struct rng rng = rng_new(17, 3, (uint64_t)level);
    for (int i = 0; i < 60; i++) {
        struct winograd_conv w = draw_conv(&rng, level);
        if (i == 0)
            w.batch = 17, w.height = w.width = 5, w.dilation = 1, w.pad_top = w.pad_left = 1,
            w.out_height = w.out_width = 5;
        if (i % 10 == 9)
            w.out_channels = 200; /* enough for six threads to divide */
        int tile = 2 + i % 3 * 2;
        bool with_bias = i % 4 > 0, with_residual = i % 5 > 2, turned = i % 7 == 6;
        winograd_conv_plan(&w, tile);
        struct tensors t = tensors_of(&w, &rng);
        run(w, tile, turned, with_bias, with_residual, &t, t.y);
        double error = error_of(&w, &t, turned, with_bias, with_residual);
        if (!(error < (tile == 6 ? 2e-5 : tile == 4 ? 6e-6 : 2e-6)))
            fail_msg("level %d F%d %lldx%lldx%lldx%lld -> %lld, pad %lld, dilation %lld: off by %g",
                     (int)level, tile, (long long)w.batch, (long long)w.in_channels,
                     (long long)w.height, (long long)w.width, (long long)w.out_channels,
                     (long long)w.pad_top, (long long)w.dilation, error);
        size_t bytes =
            sizeof(float) * (size_t)(w.batch * w.out_blocks * w.lanes * w.out_height * w.out_width);
        float *other = convs_floats(bytes / sizeof(float));
        for (w.threads = 2; w.threads <= 6; w.threads += w.threads < 3 ? 1 : 3) {
            run(w, tile, turned, with_bias, with_residual, &t, other);
            assert_memory_equal(other, t.y, bytes);
        }
        free(other);
        tensors_free(&t);
    }
}

static void agrees_with_the_direct_sum(void **state)
{
    (void)state;
    convs_each_level(winograd_conv_available, check_level);
}

/* Every number of outputs that the last row and column of tiles may have. */
static void check_ends(enum simd level)
{
    struct rng rng = rng_new(19, 3, (uint64_t)level);
    for (int i = 0; i < 2 * 8 * 8; i++) {
        int tile = i / 64 ? 4 : 2;
        struct winograd_conv w = draw_conv(&rng, level);
        w.in_channels = 20, w.dilation = w.pad_top = w.pad_left = 1;
        w.height = w.out_height = i % 8 + 1, w.width = w.out_width = i / 8 % 8 + 1;
        winograd_conv_plan(&w, tile);
        assert_int_equal(w.end_rows, (w.out_height - 1) % tile + 1);
        assert_int_equal(w.end_columns, (w.out_width - 1) % tile + 1);
        struct tensors t = tensors_of(&w, &rng);
        run(w, tile, false, true, i % 2, &t, t.y);
        double error = error_of(&w, &t, false, true, i % 2);
        if (!(error < (tile == 4 ? 6e-6 : 2e-6)))
            fail_msg("level %d F%d %lldx%lld: off by %g", (int)level, tile, (long long)w.height,
                     (long long)w.width, error);
        tensors_free(&t);
    }
}

static void the_last_tiles_make_what_is_there(void **state)
{
    (void)state;
    convs_each_level(winograd_conv_available, check_ends);
}

/* Large maps take large tiles, few tiles with many weights small ones; for any number of threads.
 */
static void tiles_fit_the_layer(void **state)
{
    (void)state;
    if (!winograd_conv_available(SIMD_AVX2))
        skip();
    for (int threads = 1; threads <= 3; threads++) {
        struct winograd_conv large = { .level = SIMD_AVX2,
                                       .batch = 1,
                                       .in_channels = 64,
                                       .out_channels = 192,
                                       .height = 112,
                                       .width = 112,
                                       .out_height = 112,
                                       .out_width = 112,
                                       .pad_top = 1,
                                       .pad_left = 1,
                                       .dilation = 1,
                                       .threads = threads };
        struct winograd_conv small = large;
        small.in_channels = small.out_channels = 512;
        small.height = small.width = small.out_height = small.out_width = 7;
        double cost = winograd_conv_plan(&large, 0);
        assert_int_equal(large.tile, 4);
        assert_true(cost < winograd_conv_direct_cost(&large));
        winograd_conv_plan(&small, 0);
        assert_int_equal(small.tile, 2);
        large.fast = true;
        winograd_conv_plan(&large, 0);
        assert_int_equal(large.tile, 6);
    }
}

static void residual_may_be_the_output(void **state)
{
    (void)state;
    if (!winograd_conv_available(SIMD_AVX2))
        skip();
    struct rng rng = rng_new(4, 4, 4);
    struct winograd_conv w = draw_conv(&rng, SIMD_AVX2);
    winograd_conv_plan(&w, 4);
    struct tensors t = tensors_of(&w, &rng);
    run(w, 4, false, true, true, &t, t.y);
    size_t count = (size_t)(w.batch * w.out_blocks * w.lanes * w.out_height * w.out_width);
    float *in_place = t.residual, *apart = t.y;
    run(w, 4, false, true, true, &t, in_place);
    assert_memory_equal(in_place, apart, count * sizeof(float));
    tensors_free(&t);
}

/* The gradient by weights and bias; y is the gradient by the outputs. */
static void run_gradient(struct winograd_gradient g, const struct tensors *t, float *weights,
                         float *bias)
{
    winograd_gradient_plan(&g);
    float *scratch = convs_floats(g.scratch_floats);
    winograd_gradient_run(&g, t->x, t->residual, weights, bias, scratch);
    free(scratch);
}

/* One tap of the gradient in double; *size is the root of the sum of its squared terms. */
static double direct_gradient(const struct winograd_conv *w, const struct tensors *t, int64_t k,
                              int64_t c, int tap, double *size)
{
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < w->batch; n++) {
        const float *in = t->x + at(w, w->in_blocks, w->height, w->width, n, c, 0, 0);
        const float *out = t->residual;
        out += at(w, w->out_blocks, w->out_height, w->out_width, n, k, 0, 0);
        for (int64_t y = 0; y < w->out_height; y++)
            for (int64_t x = 0; x < w->out_width; x++) {
                int64_t row = y - w->pad_top + tap / 3 * w->dilation;
                int64_t column = x - w->pad_left + tap % 3 * w->dilation;
                if (row < 0 || row >= w->height || column < 0 || column >= w->width)
                    continue;
                double term = (double)in[(row * w->width + column) * w->lanes] *
                              (double)out[(y * w->out_width + x) * w->lanes];
                sum += term, squares += term * term;
            }
    }
    *size = sqrt(squares);
    return sum;
}

static double gradient_error(const struct winograd_conv *w, const struct tensors *t,
                             const float *weights, const float *bias)
{
    double worst = 0, scale = 1, size;
    for (int64_t i = 0; i < w->out_channels * w->in_channels * 9; i++) {
        int64_t k = i / 9 / w->in_channels, c = i / 9 % w->in_channels;
        double expected = direct_gradient(w, t, k, c, (int)(i % 9), &size);
        worst = fmax(worst, fabs(expected + 1 - (double)weights[i])); /* it adds to ones */
        scale = fmax(scale, size);
    }
    for (int64_t k = 0; k < w->out_channels; k++) {
        double expected = 1;
        for (int64_t i = 0; i < w->batch * w->out_height * w->out_width; i++)
            expected += (double)t->residual[at(w, w->out_blocks, w->out_height, w->out_width,
                                               i / w->out_width / w->out_height, k,
                                               i / w->out_width % w->out_height, i % w->out_width)];
        worst = fmax(worst, fabs(expected - (double)bias[k]));
    }
    return worst / scale;
}

static void check_gradient(enum simd level, struct rng *rng, int i)
{
    struct winograd_gradient g = { .conv = draw_conv(rng, level) };
    struct winograd_conv *w = &g.conv;
    if (i % 4 == 0) /* several blocks of tiles, more chunks than one */
        w->batch = 5, w->in_channels = 80, w->out_channels = 150;
    winograd_gradient_plan(&g);
    size_t count = (size_t)(w->out_channels * w->in_channels * 9);
    size_t outputs = (size_t)w->out_channels;
    struct tensors t = tensors_of(w, rng);
    float *weights[3], *bias[3];
    for (int run = 0; run < 3; run++) {
        weights[run] = convs_floats(count), bias[run] = convs_floats(outputs);
        for (size_t k = 0; k < count; k++)
            weights[run][k] = 1;
        for (size_t k = 0; k < outputs; k++)
            bias[run][k] = 1;
        w->threads = run + 1;
        run_gradient(g, &t, weights[run], bias[run]);
    }
    double error = gradient_error(w, &t, weights[0], bias[0]);
    if (!(error < 6e-6))
        fail_msg("level %d %lldx%lldx%lldx%lld -> %lld, pad %lld, dilation %lld: off by %g",
                 (int)level, (long long)w->batch, (long long)w->in_channels, (long long)w->height,
                 (long long)w->width, (long long)w->out_channels, (long long)w->pad_top,
                 (long long)w->dilation, error);
    for (int run = 0; run < 3; run++) {
        assert_memory_equal(weights[run], weights[0], count * sizeof(float));
        assert_memory_equal(bias[run], bias[0], outputs * sizeof(float));
    }
    for (int run = 0; run < 3; run++)
        free(weights[run]), free(bias[run]);
    tensors_free(&t);
}

static void gradients_agree_with_the_direct_sum(void **state)
{
    (void)state;
    for (int level = SIMD_AVX2; level < SIMD_LEVELS; level++) {
        struct rng rng = rng_new(18, 3, (uint64_t)level);
        for (int i = 0; i < 12 && winograd_conv_available((enum simd)level); i++)
            check_gradient((enum simd)level, &rng, i);
    }
}

/* How many tiles are worked on at a time depends on the cache; results must not. */
static void blocks_do_not_change_gradients(void **state)
{
    (void)state;
    if (!winograd_conv_available(SIMD_AVX2))
        skip();
    struct rng rng = rng_new(20, 3, 1);
    struct winograd_gradient g = { .conv = draw_conv(&rng, SIMD_AVX2) };
    struct winograd_conv *w = &g.conv;
    w->batch = 8, w->in_channels = 80, w->out_channels = 150;
    w->dilation = w->pad_top = w->pad_left = 1;
    w->height = w->width = w->out_height = w->out_width = 7;
    winograd_gradient_plan(&g);
    struct tensors t = tensors_of(w, &rng);
    size_t count = (size_t)(w->out_channels * w->in_channels * 9);
    size_t chunks = (size_t)(g.chunks_in * g.chunks_out) * g.chunk_floats;
    float *weights[2], *scratch = convs_floats(g.scratch_floats + chunks);
    for (int i = 0; i < 2; i++) {
        weights[i] = convs_floats(count);
        memset(weights[i], 0, count * sizeof(float));
        g.blocks = i ? 3 : 1;
        winograd_gradient_run(&g, t.x, t.residual, weights[i], NULL, scratch);
    }
    assert_memory_equal(weights[1], weights[0], count * sizeof(float));
    free(weights[0]), free(weights[1]), free(scratch);
    tensors_free(&t);
}

static struct graph *network(void)
{
    struct graph *g = graph_new("dilated");
    struct err err = { 0 };
    struct conv_attr dilated = conv_square(3, 1, 2);
    dilated.dilation[0] = dilated.dilation[1] = 2;
    value_id x = graph_input(g, "input", SHAPE(3, 3, 45, 51));
    x = graph_relu(g, graph_conv(g, x, "a", 48, true, conv_square(3, 2, 1)));
    value_id y = graph_relu(g, graph_conv(g, x, "b", 72, true, conv_square(3, 1, 1)));
    y = graph_conv(g, y, "c", 48, false, dilated);
    x = graph_relu(g, graph_add(g, x, y));
    x = graph_conv(g, x, "d", 40, true, conv_square(3, 1, 0));
    graph_output(g, "logits", x);
    if (!graph_ok(g, &err) || !graph_initialize(g, 9, &err))
        fail_msg("%s", err.text);
    return g;
}

static void a_plan_agrees_with_the_direct_plan(void **state)
{
    (void)state;
    static const struct plan_options options[] = {
        { .threads = 1, .direct = true }, { .threads = 1 }, { .threads = 2 }, { .threads = 3 }
    };
    struct err err = { 0 };
    struct graph *g = network(), *fused = NULL;
    assert_true(transform_for_inference(g, NULL, 0, &fused, &err));
    convs_compare_plans(fused, options, 4, NULL);
    graph_free(g), graph_free(fused);
}

static void gradients_agree_with_the_direct_plan(void **state)
{
    (void)state;
    struct graph *g = network();
    convs_compare_gradients(g);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_direct_sum),
        cmocka_unit_test(the_last_tiles_make_what_is_there),
        cmocka_unit_test(tiles_fit_the_layer),
        cmocka_unit_test(residual_may_be_the_output),
        cmocka_unit_test(gradients_agree_with_the_direct_sum),
        cmocka_unit_test(blocks_do_not_change_gradients),
        cmocka_unit_test(a_plan_agrees_with_the_direct_plan),
        cmocka_unit_test(gradients_agree_with_the_direct_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
