/* test_net_group_norm.c: group normalisation with the activation behind it, against the same in
 * double: plain and blocked, groups narrower and wider than a block and across blocks, channels
 * that do not fill a block; any number of threads and every instruction set give the same bits. In
 * a network: that the activation is joined with it changes no bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/kernels/group_norm.h"
#include "net/plan/plan.h"

struct norm_case {
    int64_t images, channels, groups, area, block;
    double mean; /* of x */
};

static const struct norm_case cases[] = {
    { 2, 32, 8, 35, 16, 0 },    /* 4 groups in a block */
    { 3, 32, 2, 64, 16, 0 },    /* a block for a group */
    { 2, 48, 8, 9, 16, 1 },     /* 6 channels: across blocks */
    { 1, 96, 2, 130, 16, 0 },   /* 3 blocks for a group */
    { 2, 20, 5, 33, 16, 2 },    /* padding */
    { 2, 24, 3, 17, 8, 0 },     /* */
    { 2, 21, 3, 11, 8, 0 },     /* padding, across blocks */
    { 2, 14, 7, 37, 1, 0 },     /* plain */
    { 2, 12, 3, 1, 1, 0 },      /* one pixel */
    { 1, 16, 4, 5000, 16, 300 } /* a mean far from 0 */
};

struct tensors {
    int64_t count; /* with padding */
    float *x, *dy, *weight, *bias;
    float *y, *dx, *dweight, *dbias, *stats;
};

static float *floats(int64_t n)
{
    return calloc((size_t)n, sizeof(float));
}

static int64_t blocks_of(const struct norm_case *c)
{
    return (c->channels + c->block - 1) / c->block;
}

static int64_t place(const struct norm_case *c, int64_t image, int64_t channel, int64_t i)
{
    return ((image * blocks_of(c) + channel / c->block) * c->area + i) * c->block +
           channel % c->block;
}

static struct tensors draw(const struct norm_case *c)
{
    struct rng rng = rng_new(3, (uint64_t)c->channels, (uint64_t)c->area);
    int64_t n = c->images * blocks_of(c) * c->area * c->block;
    struct tensors t = { n,
                         floats(n),
                         floats(n),
                         floats(c->channels),
                         floats(c->channels),
                         floats(n),
                         floats(n),
                         floats(c->channels),
                         floats(c->channels),
                         floats(c->images * c->groups * 2) };
    for (int64_t k = 0; k < c->channels; k++) {
        t.weight[k] = (float)rng_between(&rng, -2, 2), t.bias[k] = (float)rng_between(&rng, -3, 3);
        for (int64_t image = 0; image < c->images; image++)
            for (int64_t i = 0; i < c->area; i++) {
                t.x[place(c, image, k, i)] = (float)(c->mean + rng_normal(&rng));
                t.dy[place(c, image, k, i)] = (float)rng_normal(&rng);
            }
    }
    return t;
}

static void release(struct tensors *t)
{
    free(t->x), free(t->dy), free(t->weight), free(t->bias), free(t->stats);
    free(t->y), free(t->dx), free(t->dweight), free(t->dbias);
}

static void run(const struct norm_case *c, enum group_norm_then then, enum simd level, int threads,
                struct tensors *t)
{
    struct group_norm g = { level,    threads,     c->images, blocks_of(c), c->area,
                            c->block, c->channels, c->groups, 1e-5f,        then };
    void *scratch = malloc(group_norm_scratch(&g));
    memset(t->dweight, 0, (size_t)c->channels * sizeof(float));
    memset(t->dbias, 0, (size_t)c->channels * sizeof(float));
    group_norm_run(&g, t->x, t->weight, t->bias, t->y, t->stats, scratch);
    memcpy(t->dx, t->dy, (size_t)t->count * sizeof(float)); /* in place */
    group_norm_back(&g, t->x, t->weight, t->bias, t->stats, t->dx, t->dx, t->dweight, t->dbias,
                    scratch);
    free(scratch);
}

/* z -> y, and the slope there. */
static double activate(enum group_norm_then then, double z, double *slope)
{
    double s = 1 / (1 + exp(-z));
    *slope = then == GROUP_NORM_THEN_SILU ? s * (1 + z * (1 - s)) : 1;
    if (then == GROUP_NORM_THEN_RELU)
        *slope = z > 0;
    return then == GROUP_NORM_THEN_SILU ? z * s : then == GROUP_NORM_THEN_RELU ? fmax(z, 0) : z;
}

struct wanted {
    double *y, *dx, *dweight, *dbias;
};

/* One group of one image, by the definition. */
static void one_group(const struct norm_case *c, enum group_norm_then then, const struct tensors *t,
                      int64_t image, int64_t group, struct wanted *w)
{
    int64_t parts = c->channels / c->groups, first = group * parts;
    double n = (double)(parts * c->area), mean = 0, variance = 0, sum = 0, product = 0;
    for (int64_t i = 0; i < parts * c->area; i++)
        mean += (double)t->x[place(c, image, first + i / c->area, i % c->area)] / n;
    for (int64_t i = 0; i < parts * c->area; i++)
        variance +=
            pow((double)t->x[place(c, image, first + i / c->area, i % c->area)] - mean, 2) / n;
    double scale = 1 / sqrt(variance + (double)1e-5f);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < parts * c->area; i++) {
            int64_t k = first + i / c->area, at = place(c, image, k, i % c->area);
            double hat = ((double)t->x[at] - mean) * scale, weight = (double)t->weight[k], slope;
            w->y[at] = activate(then, hat * weight + (double)t->bias[k], &slope);
            double dz = (double)t->dy[at] * slope;
            if (pass == 0) {
                sum += dz * weight, product += dz * weight * hat;
                w->dbias[k] += dz, w->dweight[k] += dz * hat;
            } else {
                w->dx[at] = scale * (dz * weight - sum / n - hat * product / n);
            }
        }
}

static double error_of(const float *a, const double *b, int64_t n)
{
    double most = 1e-30, error = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(b[i]));
        error =
            fabs((double)a[i] - b[i]) > error || isnan(a[i]) ? fabs((double)a[i] - b[i]) : error;
    }
    return error / most;
}

static void check_case(const struct norm_case *c, enum group_norm_then then)
{
    struct tensors t = draw(c);
    struct wanted w = { calloc((size_t)t.count, 8), calloc((size_t)t.count, 8),
                        calloc((size_t)c->channels, 8), calloc((size_t)c->channels, 8) };
    for (int64_t i = 0; i < c->images * c->groups; i++)
        one_group(c, then, &t, i / c->groups, i % c->groups, &w);
    run(c, then, simd_best(), 1, &t);
    /* far from 0 the floats of x themselves have few digits left behind the mean */
    double bound = c->mean > 100 ? 3e-5 : 2e-6;
    assert_true(error_of(t.y, w.y, t.count) < bound);
    assert_true(error_of(t.dx, w.dx, t.count) < bound);
    assert_true(error_of(t.dweight, w.dweight, c->channels) < bound);
    assert_true(error_of(t.dbias, w.dbias, c->channels) < bound);
    free(w.y), free(w.dx), free(w.dweight), free(w.dbias);
    release(&t);
}

static void agrees_with_double(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (enum group_norm_then then = 0; then <= GROUP_NORM_THEN_SILU; then++)
            check_case(&cases[i], then);
}

static void assert_same(const struct norm_case *c, const struct tensors *a, const struct tensors *b)
{
    assert_memory_equal(a->y, b->y, (size_t)a->count * sizeof(float));
    assert_memory_equal(a->dx, b->dx, (size_t)a->count * sizeof(float));
    assert_memory_equal(a->dweight, b->dweight, (size_t)c->channels * sizeof(float));
    assert_memory_equal(a->dbias, b->dbias, (size_t)c->channels * sizeof(float));
}

static void threads_and_levels_change_no_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (enum simd level = 0; level <= simd_best(); level++)
            for (int threads = 1; threads <= 3; threads += 2) {
                struct tensors one = draw(&cases[i]), other = draw(&cases[i]);
                run(&cases[i], GROUP_NORM_THEN_SILU, simd_best(), 1, &one);
                run(&cases[i], GROUP_NORM_THEN_SILU, level, threads, &other);
                assert_same(&cases[i], &one, &other);
                release(&one), release(&other);
            }
}

static void large_and_no_numbers(void **state)
{
    (void)state;
    const struct norm_case c = { 1, 16, 16, 4, 16, 0 };
    struct tensors t = draw(&c);
    for (int i = 0; i < 16; i++)
        t.weight[i] = 1000, t.bias[i] = i % 2 ? 1000 : -1000;
    t.x[0] = NAN;
    run(&c, GROUP_NORM_THEN_SILU, simd_best(), 1, &t);
    assert_true(isnan(t.y[0]) && isnan(t.y[16])); /* of its channel; no other */
    for (int64_t i = 0; i < t.count; i++)
        assert_true(i % 16 == 0 || (isfinite(t.y[i]) && isfinite(t.dx[i]) && t.y[i] > -0.3f));
    release(&t);
}

/* --- in a network --- */

/* conv, group norm, activation, conv */
static struct graph *small_network(int64_t channels, int64_t groups, bool silu)
{
    struct graph *g = graph_new("small");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(3, 4, 7, 6));
    x = graph_conv(g, x, "a", channels, true, conv_square(3, 1, 1));
    x = graph_group_norm(g, x, "norm", groups, 1e-5f);
    x = silu ? graph_silu(g, x) : graph_relu(g, x);
    graph_output(g, "y", graph_conv(g, x, "b", 5, true, conv_square(3, 1, 1)));
    if (!graph_ok(g, &err) || !graph_initialize(g, 4, &err))
        fail_msg("%s", err.text);
    return g;
}

/* The output (5 x 3 x 7 x 6 floats) and behind it, unless it is inference, all gradients. */
static float *step(const struct graph *g, struct plan_options options, int64_t *count, int *steps)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    int64_t n = 3 * 5 * 7 * 6, n_gradients = 0;
    struct rng rng = rng_new(9, 0, 0);
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 3 * 4 * 7 * 6; i++)
        plan_input(plan, 0)[i] = (float)rng_normal(&rng);
    plan_zero_gradients(plan);
    assert_true(plan_forward(plan, &err));
    for (int64_t i = 0; options.mode != PLAN_INFER && i < n; i++)
        plan_output_gradient(plan, 0)[i] = (float)rng_normal(&rng);
    assert_true(options.mode == PLAN_INFER || plan_backward(plan, &err));
    const float *gradients = plan_gradients(plan, &n_gradients);
    float *all = malloc((size_t)(n + n_gradients) * sizeof *all);
    memcpy(all, plan_output(plan, 0), (size_t)n * sizeof *all);
    if (gradients)
        memcpy(all + n, gradients, (size_t)n_gradients * sizeof *all);
    *count = n + n_gradients, *steps = plan_steps(plan);
    plan_free(plan);
    return all;
}

static void assert_near(const float *a, const float *b, int64_t n, double tolerance)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)b[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance * most))
            fail_msg("float %lld of %lld is %g, not %g", (long long)i, (long long)n, (double)a[i],
                     (double)b[i]);
}

static void ways_agree(int64_t channels, int64_t groups, bool silu)
{
    static const struct plan_options same[] = {
        { .mode = PLAN_TRAIN, .threads = 3 },
        { .mode = PLAN_TRAIN, .threads = 1, .saving = SAVING_RECOMPUTE },
        { .mode = PLAN_TRAIN, .threads = 1, .split_backward = true },
        { .mode = PLAN_TRAIN, .threads = 1, .no_sharing = true }, /* not joined */
    };
    struct graph *g = small_network(channels, groups, silu);
    int64_t n, other_n;
    int steps, other_steps;
    float *one = step(g, (struct plan_options){ .mode = PLAN_TRAIN, .threads = 1 }, &n, &steps);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        float *other = step(g, same[i], &other_n, &other_steps);
        assert_memory_equal(one, other, (size_t)n * sizeof *one);
        assert_true(!same[i].no_sharing || other_steps > steps);
        free(other);
    }
    static const struct plan_options near[] = {
        { .mode = PLAN_TRAIN, .threads = 1, .per_sample = true },
        { .mode = PLAN_INFER, .threads = 2 },
    };
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        float *other = step(g, near[i], &other_n, &other_steps);
        assert_near(other, one, near[i].mode == PLAN_INFER ? 3 * 5 * 7 * 6 : n, 3e-6);
        free(other);
    }
    free(one);
    graph_free(g);
}

static void joined_in_a_network(void **state)
{
    (void)state;
    for (int silu = 0; silu < 2; silu++) {
        ways_agree(32, 8, silu);
        ways_agree(48, 8, silu);
        ways_agree(20, 5, silu);
        ways_agree(6, 3, silu);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_double),
        cmocka_unit_test(threads_and_levels_change_no_bits),
        cmocka_unit_test(large_and_no_numbers),
        cmocka_unit_test(joined_in_a_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
