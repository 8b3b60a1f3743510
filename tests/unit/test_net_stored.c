/* test_net_stored.c: numbers in fewer bits than a float: all instruction sets give the bits of the
 * plain definition, on any number of threads; int8 is what ONNX Runtime computes
 * (tests/golden/net_stored.py); what is stored twice stays the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/kernels/stored.h"
#include "support/golden.h"

#define COUNT 50021 /* several pieces, and the last one is not full */

static const struct stored_scale scales[] = {
    { 0.1f, 0 }, { 0.037f, 5 },           { 1.0f / 3, 127 },
    { 2, -128 }, { STORED_SCALE_MIN, 1 }, { STORED_SCALE_MAX, -1 }
};
#define N_SCALES (sizeof scales / sizeof *scales)

/* Numbers of the size that the scale stores, their ties, and what is far outside. */
static void fill(float *x, int64_t n, struct stored_scale scale)
{
    struct rng rng = rng_new(9, 1, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng) * 80 * scale.scale;
    for (int64_t i = 0; i < 600; i++)
        x[i] = ((float)i - 299.5f) * scale.scale;
    x[600] = INFINITY, x[601] = -INFINITY, x[602] = NAN, x[603] = -0.0f, x[604] = 1e-40f;
    x[605] = 3e38f, x[606] = -3e38f, x[607] = -NAN;
}

static uint16_t plain_bfloat16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40);
    uint32_t below = bits & 0xffff, upper = bits >> 16;
    return (uint16_t)(upper + (below > 0x8000 || (below == 0x8000 && upper % 2 == 1)));
}

static int8_t plain_int8(float x, struct stored_scale scale)
{
    double q = nearbyint((double)(x / scale.scale)) + scale.zero_point;
    return (int8_t)(!(q > INT8_MIN) ? INT8_MIN : q > INT8_MAX ? INT8_MAX : q);
}

/* The bits of `want` on every level, and on two threads. */
static void check(enum stored kind, const void *from, const void *want, size_t bytes,
                  struct stored_scale scale)
{
    void *got = malloc(bytes);
    for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++) {
        memset(got, 0x55, bytes);
        stored_get(kind, level)(COUNT, from, got, scale);
        assert_memory_equal(got, want, bytes);
    }
    for (int threads = 1; threads < 4; threads++) {
        memset(got, 0x55, bytes);
        stored_run(kind, COUNT, from, got, scale, threads);
        assert_memory_equal(got, want, bytes);
    }
    free(got);
}

static void bfloat16_is_the_nearest(void **state)
{
    (void)state;
    static float x[COUNT], back[COUNT];
    static uint16_t want[COUNT];
    fill(x, COUNT, scales[0]);
    x[700] = 1.00390625f, x[701] = 1.01171875f, x[702] = 3.4e38f; /* ties; beyond the greatest */
    for (int i = 0; i < COUNT; i++) {
        want[i] = plain_bfloat16(x[i]);
        uint32_t bits = (uint32_t)want[i] << 16;
        memcpy(back + i, &bits, sizeof bits);
    }
    assert_int_equal(want[700], 0x3f80);
    assert_int_equal(want[701], 0x3f82);
    assert_true(isinf(back[702]) && isnan(back[602]));
    check(STORED_TO_BFLOAT16, x, want, sizeof want, scales[0]);
    check(STORED_FROM_BFLOAT16, want, back, sizeof back, scales[0]);
    check(STORED_TO_BFLOAT16, back, want, sizeof want, scales[0]); /* nothing is left to round */
}

static void int8_is_the_nearest(void **state)
{
    (void)state;
    static float x[COUNT], back[COUNT];
    static int8_t want[COUNT];
    for (size_t s = 0; s < N_SCALES; s++) {
        fill(x, COUNT, scales[s]);
        for (int i = 0; i < COUNT; i++) {
            want[i] = plain_int8(x[i], scales[s]);
            back[i] = (float)(want[i] - scales[s].zero_point) * scales[s].scale;
        }
        check(STORED_TO_INT8, x, want, sizeof want, scales[s]);
        check(STORED_FROM_INT8, want, back, sizeof back, scales[s]);
        check(STORED_TO_INT8, back, want, sizeof want, scales[s]);
    }
}

static void relu_of_stored_numbers(void **state)
{
    (void)state;
    static float x[COUNT];
    static int8_t q[COUNT], want[COUNT];
    static uint16_t h[COUNT], upper[COUNT];
    for (size_t s = 0; s < N_SCALES; s++) {
        fill(x, COUNT, scales[s]);
        for (int i = 0; i < COUNT; i++) {
            q[i] = plain_int8(x[i], scales[s]), h[i] = plain_bfloat16(x[i]);
            want[i] = q[i] > scales[s].zero_point ? q[i] : (int8_t)scales[s].zero_point;
            upper[i] = x[i] < 0 ? 0 : h[i]; /* -0 and NaN stay */
        }
        check(STORED_RELU_INT8, q, want, sizeof want, scales[s]);
        check(STORED_RELU_BFLOAT16, h, upper, sizeof upper, scales[s]);
    }
}

static void the_range_ends_where_saturation_begins(void **state)
{
    (void)state;
    static float x[COUNT], masked[COUNT], out[COUNT];
    static uint8_t want[COUNT];
    for (size_t s = 0; s < N_SCALES; s++) {
        fill(x, COUNT, scales[s]);
        for (int i = 0; i < COUNT; i++) {
            double q = nearbyint((double)(x[i] / scales[s].scale)) + scales[s].zero_point;
            want[i] = q >= INT8_MIN && q <= INT8_MAX;
            masked[i] = want[i] ? x[i] : 0;
        }
        check(STORED_WITHIN_INT8, x, want, sizeof want, scales[s]);
        for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++) {
            memcpy(out, x, sizeof out); /* in place */
            stored_within_get(level)(COUNT, out, want, out);
            assert_memory_equal(out, masked, sizeof out);
        }
        stored_within(COUNT, x, want, out, 3);
        assert_memory_equal(out, masked, sizeof out);
    }
}

static void int8_is_what_onnx_runtime_computes(void **state)
{
    (void)state;
    struct golden golden;
    golden_open(&golden, "tests/golden/net_stored.bin");
    const struct golden_tensor *x = golden_find(&golden, "x");
    int64_t n = shape_count(&x->shape);
    int cases = 0;
    for (const struct golden_tensor *at; (at = golden_find(&golden, "%d/scale", cases)); cases++) {
        struct stored_scale scale = {
            at->data[0], (int32_t)golden_find(&golden, "%d/zero_point", cases)->data[0]
        };
        const float *stored = golden_find(&golden, "%d/stored", cases)->data;
        int8_t q[256];
        float back[256];
        stored_run(STORED_TO_INT8, n, x->data, q, scale, 1);
        stored_run(STORED_FROM_INT8, n, q, back, scale, 1);
        for (int64_t i = 0; i < n; i++)
            if (q[i] != (int)stored[i])
                fail_msg("case %d: %g is stored as %d, not %g", cases, (double)x->data[i], q[i],
                         (double)stored[i]);
        assert_memory_equal(back, golden_find(&golden, "%d/back", cases)->data,
                            (size_t)n * sizeof(float));
    }
    assert_int_equal(cases, 8);
    golden_close(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bfloat16_is_the_nearest),
        cmocka_unit_test(int8_is_the_nearest),
        cmocka_unit_test(relu_of_stored_numbers),
        cmocka_unit_test(the_range_ends_where_saturation_begins),
        cmocka_unit_test(int8_is_what_onnx_runtime_computes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
