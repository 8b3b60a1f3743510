/* test_net_kernels.c: our own kernels, compiled for several instruction sets, produce the same
 * floats, and NaN and infinity propagate as in PyTorch; sums with strides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/kernels/elementwise.h"
#include "net/kernels/functions.h"
#include "net/kernels/pool.h"
#include "net/kernels/resample.h"
#include "net/kernels/strided.h"
#include "net/kernels/take.h"

#define SIDE 11
#define PLANES 3
#define MAX_INNER 16
#define IN (PLANES * SIDE * SIDE * MAX_INNER)

static void noise(float *x, int64_t n, uint64_t stream)
{
    struct rng rng = rng_new(1, stream, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
}

static void rows_are_the_same_on_all_levels(void **state)
{
    (void)state;
    float a[1003], b[1003], want[1003], out[1003];
    noise(a, 1003, 1), noise(b, 1003, 2);
    a[5] = NAN, a[6] = INFINITY, b[7] = -INFINITY, a[8] = -0.0f;
    struct elementwise_args args = { 0.3f, -0.2f };
    for (int kind = 0; kind < EW_KINDS; kind++) {
        elementwise_get((enum elementwise)kind, SIMD_PORTABLE)(1003, a, b, want, args);
        for (enum simd level = SIMD_AVX2; level <= simd_best(); level++) {
            elementwise_get((enum elementwise)kind, level)(1003, a, b, out, args);
            assert_memory_equal(out, want, sizeof out);
        }
        memcpy(out, a, sizeof a); /* in place, several threads */
        elementwise_run((enum elementwise)kind, 1003, out, b, out, args, 2);
        assert_memory_equal(out, want, sizeof out);
    }
    elementwise_run(EW_RELU, 1003, a, NULL, out, args, 1);
    assert_true(isnan(out[5]));
}

/* 3 x 3 with taps `step` px apart and one tap of padding before; as many as lie within. */
static void make_axis(struct pool_axis *axis, int stride, int step, int32_t tables[4][SIDE])
{
    *axis = (struct pool_axis){ .in = SIDE, .step = step, .taps = 3 };
    axis->begin = tables[0], axis->count = tables[1], axis->divisor = tables[2];
    axis->tap = tables[3];
    for (int start = -step; start + 2 * step < SIDE; start += stride, axis->out++) {
        int i = (int)axis->out;
        tables[0][i] = start < 0 ? start + step : start;
        tables[3][i] = start < 0;
        tables[1][i] = 3 - (start < 0);
        tables[2][i] = 3;
    }
}

static void pooling_is_the_same_on_all_levels(void **state)
{
    (void)state;
    static float x[IN], dx[2][IN], y[2][IN];
    static uint16_t index[2][IN];
    int32_t tables[4][SIDE];
    static const int64_t inners[] = { 1, 8, 16 };
    for (int k = 0; k < 18; k++) {
        struct pool_window w = { .planes = PLANES, .inner = inners[k % 3], .threads = 2 };
        make_axis(&w.axis[0], 1 + k / 3 % 2, 1 + k / 6, tables), w.axis[1] = w.axis[0];
        int64_t n_in = PLANES * SIDE * SIDE * w.inner;
        int64_t n_out = PLANES * w.axis[0].out * w.axis[1].out * w.inner;
        noise(x, n_in, 3);
        x[0] = NAN, x[1] = -INFINITY, x[(2 * SIDE + 3) * w.inner] = NAN;
        for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++) {
            int to = level != SIMD_PORTABLE;
            pool_max(&w, level, x, y[to], index[to]);
            pool_max_back(&w, level, y[to], index[to], dx[to]);
            assert_memory_equal(y[to], y[0], (size_t)n_out * sizeof(float));
            assert_memory_equal(index[to], index[0], (size_t)n_out * sizeof(uint16_t));
            assert_memory_equal(dx[to], dx[0], (size_t)n_in * sizeof(float));
            pool_max(&w, level, x, dx[1], NULL);
            assert_memory_equal(dx[1], y[0], (size_t)n_out * sizeof(float));
            assert_true(isnan(y[to][0]));
        }
        for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++) {
            int to = level != SIMD_PORTABLE;
            pool_mean(&w, level, x, y[to]);
            pool_mean_back(&w, level, y[to], dx[to]);
            assert_memory_equal(y[to], y[0], (size_t)n_out * sizeof(float));
            assert_memory_equal(dx[to], dx[0], (size_t)n_in * sizeof(float));
        }
    }
}

static void resampling_is_the_same_on_all_levels(void **state)
{
    (void)state;
    static float x[IN], dx[2][IN], y[2][4 * IN];
    int32_t near[2 * SIDE], far[2 * SIDE];
    float weight[2 * SIDE];
    for (int bilinear = 0; bilinear < 2; bilinear++) {
        struct resample r = { .planes = PLANES, .inner = 16, .fill = 0, .threads = 2 };
        struct resample_axis axis = { SIDE, 2 * SIDE, near, bilinear ? far : NULL,
                                      bilinear ? weight : NULL };
        if (bilinear)
            resample_bilinear_axis(&axis, 0.5, false);
        else
            resample_pad_axis(&axis, BORDER_REFLECT, 6);
        r.axis[0] = r.axis[1] = axis;
        noise(x, IN, 4);
        for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++) {
            int to = level != SIMD_PORTABLE;
            resample_run(&r, level, x, y[to]);
            resample_back(&r, level, y[to], dx[to]);
            assert_memory_equal(y[to], y[0], sizeof y[0]);
            assert_memory_equal(dx[to], dx[0], sizeof dx[0]);
        }
    }
}

/* Sums over axes 0 and 2 of [3, 4, 5, 6]. */
static void strided_sums_are_plain_sums(void **state)
{
    (void)state;
    float x[360], got[24];
    noise(x, 360, 5);
    struct strided s = { .rank = 4,
                         .extent = { 3, 4, 5, 6 },
                         .a = { 120, 30, 6, 1 },
                         .out = { 0, 6, 0, 1 },
                         .threads = 2 };
    strided_sum(&s, x, 0.5f, got);
    for (int c = 0; c < 4; c++)
        for (int k = 0; k < 6; k++) {
            double sum = 0;
            for (int n = 0; n < 3; n++)
                for (int h = 0; h < 5; h++)
                    sum += (double)x[((n * 4 + c) * 5 + h) * 6 + k];
            assert_true(fabs((double)got[c * 6 + k] - 0.5 * sum) < 1e-6);
        }
}

/* NaN is the largest, as in PyTorch; a gradient is shared by equal ones. */
static void maxima_and_their_gradients(void **state)
{
    (void)state;
    const float x[6] = { 1, 3, 3, NAN, -1, -INFINITY }, d[2] = { 4, 5 };
    float y[2], dx[6];
    struct strided s = {
        .rank = 2, .extent = { 2, 3 }, .a = { 3, 1 }, .out = { 1, 0 }, .threads = 2
    };
    strided_max(&s, x, y);
    assert_true(y[0] == 3 && isnan(y[1]));
    strided_max_back(&s, x, y, d, dx);
    assert_true(dx[0] == 0 && dx[1] == 2 && dx[2] == 2);
}

static void nan_becomes_a_number(void **state)
{
    (void)state;
    const float x[3] = { 1, NAN, -INFINITY }, dy[3] = { 2, 3, 4 };
    float y[3], dx[3];
    struct functions f = { ROW_FROM_NAN, 0.5f, 3, 1 };
    functions_run(&f, x, y);
    assert_true(y[0] == 1 && y[1] == 0.5f && y[2] == -INFINITY);
    functions_back(&f, dy, x, dx);
    assert_true(dx[0] == 2 && dx[1] == 0 && dx[2] == 4);
}

/* A place that is none of the axis, which a file cannot have, reads no other memory. */
static void places_stay_on_the_axis(void **state)
{
    (void)state;
    const float x[6] = { 0, 1, 2, 3, 4, 5 }, places[4] = { 2, -7, 1e30f, NAN };
    float y[8], dx[6];
    struct take t = { 2, 3, 1, 4, 2 };
    take_run(&t, x, places, y);
    assert_memory_equal(y, ((float[]){ 2, 0, 2, 0, 5, 3, 5, 3 }), sizeof y);
    take_back(&t, y, places, dx);
    assert_memory_equal(dx, ((float[]){ 0, 0, 4, 6, 0, 10 }), sizeof dx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_same_on_all_levels),
        cmocka_unit_test(pooling_is_the_same_on_all_levels),
        cmocka_unit_test(resampling_is_the_same_on_all_levels),
        cmocka_unit_test(strided_sums_are_plain_sums),
        cmocka_unit_test(maxima_and_their_gradients),
        cmocka_unit_test(nan_becomes_a_number),
        cmocka_unit_test(places_stay_on_the_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
