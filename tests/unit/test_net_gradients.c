/* test_net_gradients.c: our own kernels for the backward pass against sums in double: gradients of
 * weights by direct sums, and batch norm; the same bits on any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/kernels/batch_norm.h"
#include "net/kernels/direct_gradient.h"
#include "net/kernels/pair_norm.h"
#include "support/convs.h"

static void *lines(size_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 64) / 64 * 64);
    assert_non_null(at);
    memset(at, 0xff, bytes); /* NaN */
    return at;
}

/* --- gradients of weights --- */

static double value_at(const struct direct_gradient *g, const float *x, int64_t image, int64_t c,
                       int64_t y, int64_t column)
{
    if (y < 0 || y >= g->height || column < 0 || column >= g->width)
        return 0;
    if (g->source == DIRECT_PLAIN)
        return (double)x[((image * g->in_channels + c) * g->height + y) * g->width + column];
    return (double)
        x[(((image * ((g->in_channels + g->lanes - 1) / g->lanes) + c / g->lanes) * g->height + y) *
               g->width +
           column) *
              g->lanes +
          c % g->lanes];
}

/* The gradient of one weight, and the root of its squared terms. */
static double weight_of(const struct direct_gradient *g, const float *x, const float *dy, int64_t o,
                        int64_t i, int64_t r, int64_t s, double *size)
{
    double sum = 0, square = 0;
    for (int64_t row = 0; row < g->batch * g->out_height; row++)
        for (int64_t column = 0; column < g->out_width; column++) {
            int64_t image = row / g->out_height, y = row % g->out_height;
            double a = value_at(g, x, image, i, y * g->stride[0] - g->pad[0] + r * g->dilation[0],
                                column * g->stride[1] - g->pad[1] + s * g->dilation[1]);
            double b = (double)
                dy[(((image * g->out_blocks + o / g->lanes) * g->out_height + y) * g->out_width +
                    column) *
                       g->lanes +
                   o % g->lanes];
            sum += a * b, square += a * b * a * b;
        }
    *size = sqrt(square);
    return sum;
}

static void run_on(struct direct_gradient g, int threads, const float *x, const float *dy,
                   float *weights, float *bias)
{
    g.threads = threads;
    direct_gradient_plan(&g);
    float *scratch = lines(g.scratch_floats * sizeof(float));
    direct_gradient_run(&g, x, dy, weights, bias, scratch);
    free(scratch);
}

static void check_gradient(struct direct_gradient g)
{
    struct rng rng = rng_new(3, (uint64_t)g.in_channels, (uint64_t)g.out_channels);
    g.threads = 1;
    direct_gradient_plan(&g);
    int64_t taps = g.kernel[0] * g.kernel[1], kw = g.kernel[1];
    int64_t n = g.out_channels * g.in_channels * taps;
    float *x = g.source == DIRECT_BLOCKED
                   ? convs_drawn_blocked(&rng, g.batch, g.in_channels, g.height * g.width, g.lanes)
                   : convs_drawn(&rng, g.batch * g.in_channels * g.height * g.width);
    float *dy =
        convs_drawn_blocked(&rng, g.batch, g.out_channels, g.out_height * g.out_width, g.lanes);
    float *one = calloc((size_t)(n + g.out_channels), sizeof *one);
    run_on(g, 1, x, dy, one, one + n);
    for (int64_t i = 0; i < n; i++) {
        double size, want = weight_of(&g, x, dy, i / taps / g.in_channels, i / taps % g.in_channels,
                                      i % taps / kw, i % taps % kw, &size);
        if (!(fabs((double)one[i] - want) <= 3e-6 * size + 1e-9))
            fail_msg("weight %lld: %g, not %g", (long long)i, (double)one[i], want);
    }
    for (int threads = 2; threads < 9; threads += 3) {
        float *other = calloc((size_t)(n + g.out_channels), sizeof *other);
        run_on(g, threads, x, dy, other, other + n);
        assert_memory_equal(one, other, (size_t)(n + g.out_channels) * sizeof *one);
        free(other);
    }
    free(x), free(dy), free(one);
}

static struct direct_gradient conv(enum simd level, enum direct_source source, int64_t in,
                                   int64_t out, int64_t side, int64_t kh, int64_t kw,
                                   int64_t stride, int64_t dilation, int64_t pad)
{
    struct direct_gradient g = { .level = level,
                                 .source = source,
                                 .batch = 3,
                                 .in_channels = in,
                                 .out_channels = out,
                                 .height = side,
                                 .width = side + 2,
                                 .kernel = { kh, kw },
                                 .stride = { stride, stride },
                                 .dilation = { dilation, dilation },
                                 .pad = { pad, pad } };
    g.out_height = (g.height + 2 * pad - dilation * (kh - 1) - 1) / stride + 1;
    g.out_width = (g.width + 2 * pad - dilation * (kw - 1) - 1) / stride + 1;
    return g;
}

static void check_level(enum simd level)
{
    check_gradient(conv(level, DIRECT_BLOCKED, 40, 70, 13, 1, 1, 1, 1, 0));
    check_gradient(conv(level, DIRECT_BLOCKED, 16, 16, 7, 1, 1, 1, 1, 0));
    check_gradient(conv(level, DIRECT_BLOCKED, 33, 20, 12, 1, 1, 2, 1, 0));
    check_gradient(conv(level, DIRECT_BLOCKED, 24, 40, 15, 3, 3, 2, 1, 1));
    check_gradient(conv(level, DIRECT_BLOCKED, 20, 18, 11, 1, 7, 1, 1, 3));
    check_gradient(conv(level, DIRECT_BLOCKED, 18, 34, 17, 5, 3, 1, 2, 2));
    check_gradient(conv(level, DIRECT_PLAIN, 3, 32, 29, 7, 7, 2, 1, 3));
    check_gradient(conv(level, DIRECT_PLAIN, 1, 10, 9, 3, 3, 3, 1, 0));
}

static void weights_by_direct_sums(void **state)
{
    (void)state;
    convs_each_level(direct_gradient_available, check_level);
}

/* --- norms from pairs of places --- */

/* Against the gradient itself. */
static void check_pairs(struct direct_gradient g)
{
    struct rng rng = rng_new(4, (uint64_t)g.in_channels, (uint64_t)g.out_channels);
    struct pair_norm pairs = { .level = g.level,
                               .in_channels = g.in_channels,
                               .out_channels = g.out_channels,
                               .height = g.height,
                               .width = g.width,
                               .out_height = g.out_height,
                               .out_width = g.out_width,
                               .kernel = { g.kernel[0], g.kernel[1] },
                               .dilation = { g.dilation[0], g.dilation[1] },
                               .pad = { g.pad[0], g.pad[1] } };
    g.batch = g.threads = 1;
    direct_gradient_plan(&g);
    int64_t n = g.out_channels * g.in_channels * g.kernel[0] * g.kernel[1];
    float *x = convs_drawn_blocked(&rng, 1, g.in_channels, g.height * g.width, g.lanes);
    float *dy = convs_drawn_blocked(&rng, 1, g.out_channels, g.out_height * g.out_width, g.lanes);
    float *weights = calloc((size_t)n, sizeof *weights);
    float *scratch = lines(pair_norm_scratch_floats(&pairs) * sizeof(float));
    run_on(g, 1, x, dy, weights, NULL);
    double want = 0, got = pair_norm_run(&pairs, x, dy, scratch);
    for (int64_t i = 0; i < n; i++)
        want += (double)weights[i] * (double)weights[i];
    if (!(got >= want * (1 - 2e-6) && got <= want * 1.0005)) /* the gradients are floats too */
        fail_msg("squared norm %.9g, not %.9g", got, want);
    dy[1] = NAN;
    assert_true(isnan(pair_norm_run(&pairs, x, dy, scratch)));
    free(x), free(dy), free(weights), free(scratch);
}

static void check_pairs_level(enum simd level)
{
    check_pairs(conv(level, DIRECT_BLOCKED, 64, 40, 8, 3, 3, 1, 1, 1));
    check_pairs(conv(level, DIRECT_BLOCKED, 33, 70, 5, 1, 1, 1, 1, 0));
    check_pairs(conv(level, DIRECT_BLOCKED, 20, 18, 9, 5, 3, 1, 2, 2));
    check_pairs(conv(level, DIRECT_BLOCKED, 24, 17, 7, 1, 7, 1, 1, 3));
    check_pairs(conv(level, DIRECT_BLOCKED, 16, 16, 1, 3, 3, 1, 1, 1));
}

static void pairs_give_the_norm(void **state)
{
    (void)state;
    convs_each_level(direct_gradient_available, check_pairs_level);
}

/* Of maps of 4 x 4 places; on all, terms of the norm cancel but for a few. */
enum pairs_of {
    PAIRS_DRAWN,
    PAIRS_BLANK,    /* x all but the same everywhere, dy adds up to about 0: behind a nearly blank
                       patch and before a group norm */
    PAIRS_CONSTANT, /* x and dy the same everywhere but for the sign of dy */
    PAIRS_OPPOSITE, /* dy: d, -d, 0 ..; x: a, a (1 + spread) .. */
    PAIRS_TINY,     /* products of dy are smaller than any float */
    PAIRS_KINDS
};
enum { PLACES = 16 };

static void draw_pairs(enum pairs_of kind, float spread, struct rng *rng, float x[PLACES],
                       float dy[PLACES])
{
    float all = (float)rng_normal(rng), d = (float)rng_normal(rng), mean = 0;
    float near = all * (1 + spread * (float)rng_normal(rng));
    for (int p = 0; p < PLACES; p++) {
        x[p] = (kind == PAIRS_CONSTANT ? all : 0) + (kind == PAIRS_OPPOSITE ? p ? near : all : 0);
        dy[p] = kind == PAIRS_CONSTANT ? p % 2 ? -d : d : p > 1 ? 0 : p ? -d : d;
        if (kind == PAIRS_TINY) {
            x[p] = 0x1p50f * (float)rng_normal(rng);
            dy[p] = 0x1p-75f * (float)rng_normal(rng);
        }
        if (kind == PAIRS_BLANK || kind == PAIRS_DRAWN) {
            x[p] = (kind == PAIRS_BLANK ? all : 0) + spread * (float)rng_normal(rng);
            dy[p] = (float)rng_normal(rng);
        }
        mean += dy[p] / PLACES;
    }
    for (int p = 0; p < PLACES && kind == PAIRS_BLANK; p++)
        dy[p] -= mean;
}

/* The squared norm in double of the gradient of a 1 x 1 convolution. */
static double norm_in_double(int64_t channels, int64_t lanes, const float *x, const float *dy)
{
    double want = 0;
    for (int64_t o = 0; o < channels; o++)
        for (int64_t i = 0; i < channels; i++) {
            const float *x_of = x + i / lanes * PLACES * lanes + i % lanes;
            const float *dy_of = dy + o / lanes * PLACES * lanes + o % lanes;
            double sum = 0;
            for (int64_t p = 0; p < PLACES; p++)
                sum += (double)x_of[p * lanes] * (double)dy_of[p * lanes];
            want += sum * sum;
        }
    return want;
}

static void check_kind(enum simd level, int64_t channels, enum pairs_of kind, float spread,
                       struct rng rng)
{
    struct pair_norm n = { .level = level, .in_channels = channels, .out_channels = channels };
    n.height = n.width = n.out_height = n.out_width = 4;
    n.kernel[0] = n.kernel[1] = n.dilation[0] = n.dilation[1] = 1;
    const int64_t lanes = level == SIMD_AVX512 ? 16 : 8, count = channels * PLACES;
    float *scratch = lines(pair_norm_scratch_floats(&n) * sizeof(float));
    float *x = lines((size_t)count * sizeof *x), *dy = lines((size_t)count * sizeof *dy);
    for (int64_t c = 0; c < channels; c++) {
        float of_x[PLACES], of_dy[PLACES];
        draw_pairs(kind, spread, &rng, of_x, of_dy);
        for (int64_t p = 0; p < PLACES; p++) {
            int64_t at = (c / lanes * PLACES + p) * lanes + c % lanes;
            x[at] = of_x[p], dy[at] = of_dy[p];
        }
    }
    double want = norm_in_double(channels, lanes, x, dy), got = pair_norm_run(&n, x, dy, scratch);
    if (!(got >= want))
        fail_msg("%lld channels, kind %d, spread %g: squared norm %.9g is below %.9g",
                 (long long)channels, (int)kind, (double)spread, got, want);
    if (kind == PAIRS_DRAWN && !(got < want * 1.0002))
        fail_msg("%lld channels: squared norm %.9g, not %.9g", (long long)channels, got, want);
    free(scratch), free(x), free(dy);
}

static void check_cancelling_level(enum simd level)
{
    for (int64_t channels = 64; channels <= 512; channels *= 2)
        for (uint64_t seed = 1; seed <= 3; seed++)
            for (int kind = 0; kind < PAIRS_KINDS; kind++)
                for (float spread = 1; spread > 1e-7f; spread /= 64)
                    check_kind(level, channels, (enum pairs_of)kind, spread,
                               rng_new(4, (uint64_t)channels, seed));
}

static void cancelling_norms_are_not_too_small(void **state)
{
    (void)state;
    convs_each_level(direct_gradient_available, check_cancelling_level);
}

/* --- batch norm --- */

static int64_t place(const struct batch_norm *b, int64_t image, int64_t channel, int64_t pixel)
{
    return ((image * b->blocks + channel / b->block) * b->area + pixel) * b->block +
           channel % b->block;
}

struct norm_arrays {
    float *x, *dy, *weight, *bias; /* given */
    float *y, *dx, *rows;          /* rows [4][channels]: mean, variance, dweight, dbias */
    uint16_t *passed;
};

static void run_norm(struct batch_norm b, int threads, bool keep, struct norm_arrays *a)
{
    b.threads = threads;
    void *scratch = lines(batch_norm_scratch(&b));
    uint16_t *passed = keep ? a->passed : NULL;
    float *mean = a->rows, *variance = mean + b.channels;
    batch_norm_run(&b, a->x, a->weight, a->bias, mean, variance, a->y, passed, scratch);
    batch_norm_back(&b, a->x, mean, variance, a->weight, a->bias, a->dy, passed, a->dx,
                    variance + b.channels, variance + 2 * b.channels, scratch);
    free(scratch);
}

static void near(double got, double want, double size)
{
    if (!(fabs(got - want) <= 2e-5 * (size + fabs(want))))
        fail_msg("%.9g, not %.9g", got, want);
}

/* One channel against sums in double. */
static void judge_channel(const struct batch_norm *b, const struct norm_arrays *a, int64_t c)
{
    double n = (double)(b->images * b->area), mean = 0, variance = 0, sum = 0, product = 0;
    const float *given = a->rows;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < b->images * b->area; i++) {
            double v = (double)a->x[place(b, i / b->area, c, i % b->area)];
            if (pass == 0)
                mean += v / n;
            else
                variance += (v - mean) * (v - mean) / n;
        }
    if (b->given)
        mean = (double)given[c], variance = (double)given[b->channels + c];
    double deviation = sqrt(variance + (double)b->epsilon);
    near((double)given[c], mean, fabs(mean) + deviation);
    near((double)given[b->channels + c], variance, variance + (double)b->epsilon);
    for (int64_t i = 0; i < b->images * b->area; i++) {
        int64_t at = place(b, i / b->area, c, i % b->area);
        double hat = ((double)a->x[at] - mean) / deviation;
        double y = hat * (double)a->weight[c] + (double)a->bias[c];
        near((double)a->y[at], b->relu && y < 0 ? 0 : y, 10 + fabs(mean) / deviation);
        double dy = b->relu && !(a->y[at] > 0) ? 0 : (double)a->dy[at];
        sum += dy, product += dy * hat;
    }
    near((double)a->rows[3 * b->channels + c], sum, n);
    near((double)a->rows[2 * b->channels + c], product, n);
    for (int64_t i = 0; i < b->images * b->area; i++) {
        int64_t at = place(b, i / b->area, c, i % b->area);
        double hat = ((double)a->x[at] - mean) / deviation;
        double dy = b->relu && !(a->y[at] > 0) ? 0 : (double)a->dy[at];
        double dx = b->given ? dy : dy - sum / n - hat * product / n;
        near((double)a->dx[at], dx * (double)a->weight[c] / deviation, 20 / deviation);
    }
}

static void check_norm(struct batch_norm b)
{
    struct rng rng = rng_new(9, (uint64_t)b.channels, (uint64_t)b.area);
    int64_t n = b.images * b.blocks * b.area * b.block;
    b.blocks = (b.channels + b.block - 1) / b.block;
    n = b.images * b.blocks * b.area * b.block;
    struct norm_arrays a = { .x = convs_drawn_blocked(&rng, b.images, b.channels, b.area, b.block),
                             .dy = convs_drawn_blocked(&rng, b.images, b.channels, b.area, b.block),
                             .weight = convs_drawn(&rng, b.channels),
                             .bias = convs_drawn(&rng, b.channels) };
    for (int64_t i = 0; i < b.images * b.area; i++) /* far from 0, and steady */
        a.x[place(&b, i / b.area, 0, i % b.area)] += 300;
    b.threads = 1;
    float *first = NULL;
    for (int kind = 0; kind < 5; kind++) {
        size_t floats = (size_t)(2 * n + 4 * b.channels);
        float *all = lines(floats * sizeof *all);
        a.y = all, a.dx = all + n, a.rows = all + 2 * n;
        a.passed = lines(batch_norm_passed_bytes(&b));
        for (int64_t c = 0; b.given && c < b.channels; c++)
            a.rows[c] = (float)c / 7, a.rows[b.channels + c] = 1 + (float)c / 5;
        run_norm(b, kind < 2 ? 1 : 2 * kind - 1, kind % 2, &a);
        for (int64_t c = 0; kind == 0 && c < b.channels; c++)
            judge_channel(&b, &a, c);
        if (first)
            assert_memory_equal(first, all, floats * sizeof *all);
        free(a.passed);
        if (first)
            free(all);
        else
            first = all;
    }
    free(first), free(a.x), free(a.dy), free(a.weight), free(a.bias);
}

static void batch_norm_as_in_double(void **state)
{
    (void)state;
    for (int level = SIMD_PORTABLE; level <= (int)simd_best(); level++)
        for (int kind = 0; kind < 12; kind++)
            check_norm((struct batch_norm){ .level = (enum simd)level,
                                            .images = 1 + kind % 4,
                                            .area = (int64_t[]){ 1, 49, 300, 2051 }[kind % 4],
                                            .block = (int64_t[]){ 16, 8, 1 }[kind % 3],
                                            .channels = 5 + 9 * (kind % 5),
                                            .epsilon = 1e-5f,
                                            .relu = kind % 2,
                                            .given = kind % 5 == 3 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_by_direct_sums),
        cmocka_unit_test(pairs_give_the_norm),
        cmocka_unit_test(cancelling_norms_are_not_too_small),
        cmocka_unit_test(batch_norm_as_in_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
