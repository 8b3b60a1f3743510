/* test_net_linear.c: the kernels of Transformers on every instruction set of this processor against
 * sums in double: linear layers of any size with bias, residual and activation, the gradients of
 * their input, weight and bias, packed products, attention and layer norm;
 * threads change no bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/kernels/attention.h"
#include "net/kernels/linear.h"
#include "net/kernels/linear_gradient.h"
#include "net/kernels/normalize.h"

#define GUARD 12345.0f

static float *noise(int64_t n, uint64_t stream)
{
    struct rng rng = rng_new(7, stream, 0);
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
    x[n] = GUARD;
    return x;
}

static double activate(enum linear_function function, double v)
{
    switch (function) {
    case LINEAR_RELU:
        return v > 0 ? v : 0;
    case LINEAR_SILU:
        return v / (1 + exp(-v));
    case LINEAR_GELU:
        return 0.5 * v * (1 + erf(v / sqrt(2.0)));
    case LINEAR_SAME:
        break;
    }
    return v;
}

/* One layer on one level: 1 and 2 threads, and the residual in the place of y. */
static void check_layer(struct linear l, bool turned, bool with_bias, bool with_residual)
{
    int64_t count = l.rows * l.outputs;
    float *x = noise(l.rows * l.inputs, 1), *w = noise(l.inputs * l.outputs, 2);
    float *bias = noise(l.outputs, 3), *residual = noise(count, 4);
    float *y = noise(count, 5), *other = noise(count, 6);
    float *packed = malloc(linear_packed_floats(&l) * sizeof *packed);
    int64_t input_step = turned ? 1 : l.outputs, output_step = turned ? l.inputs : 1;
    assert_non_null(packed);
    for (size_t i = 0; i < linear_packed_floats(&l); i++)
        packed[i] = NAN; /* what packing does not set is not read */
    l.threads = 1;
    linear_pack(&l, w, input_step, output_step, packed);
    linear_run(&l, x, packed, with_bias ? bias : NULL, with_residual ? residual : NULL, y);
    l.threads = 2;
    memcpy(other, residual, (size_t)count * sizeof *other);
    linear_pack(&l, w, input_step, output_step, packed);
    linear_run(&l, x, packed, with_bias ? bias : NULL, with_residual ? other : NULL, other);
    assert_memory_equal(y, other, (size_t)count * sizeof *y);
    for (int64_t r = 0; r < l.rows; r++)
        for (int64_t o = 0; o < l.outputs; o++) {
            double sum = with_bias ? (double)bias[o] : 0, size = 1;
            for (int64_t i = 0; i < l.inputs; i++) {
                double term =
                    (double)x[r * l.inputs + i] * (double)w[i * input_step + o * output_step];
                sum += term, size += fabs(term);
            }
            sum += with_residual ? (double)residual[r * l.outputs + o] : 0;
            double want = activate(l.function, sum);
            if (!(fabs((double)y[r * l.outputs + o] - want) <= 1e-6 * size))
                fail_msg(
                    "level %d, %lld x %lld x %lld, function %d: [%lld, %lld] is %.9g, not %.9g",
                    (int)l.level, (long long)l.rows, (long long)l.inputs, (long long)l.outputs,
                    (int)l.function, (long long)r, (long long)o, (double)y[r * l.outputs + o],
                    want);
        }
    assert_true(y[count] == GUARD && other[count] == GUARD);
    free(x), free(w), free(bias), free(residual), free(y), free(other), free(packed);
}

static void linear_layers_are_right(void **state)
{
    (void)state;
    static const int64_t rows[] = { 1, 5, 7, 73, 150 }, inputs[] = { 1, 31, 300, 1030 },
                         outputs[] = { 1, 9, 48, 161 };
    int kind = 0;
    for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++)
        for (int r = 0; r < 5; r++)
            for (int i = 0; i < 4; i++)
                for (int o = 0; o < 4; o++, kind++) {
                    struct linear l = { .level = level,
                                        .rows = rows[r],
                                        .inputs = inputs[i],
                                        .outputs = outputs[o],
                                        .function = (enum linear_function)(kind % 4) };
                    check_layer(l, kind % 3 > 0, kind % 5 > 0, kind % 7 > 2);
                }
}

/* gelu of all that matters, through a layer that changes nothing. */
static void gelu_is_exact(void **state)
{
    (void)state;
    enum { N = 4001 };
    float x[N], y[N], *packed, one = 1;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - N / 2) * 0.005f;
    x[0] = NAN, x[1] = INFINITY;
    for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++) {
        struct linear l = { level, 1, N, 1, 1, LINEAR_GELU };
        packed = malloc(linear_packed_floats(&l) * sizeof *packed);
        linear_pack(&l, &one, 1, 1, packed);
        linear_run(&l, x, packed, NULL, NULL, y);
        assert_true(isnan(y[0]) && isinf(y[1]));
        for (int i = 2; i < N; i++) {
            double want = activate(LINEAR_GELU, (double)x[i]);
            assert_true(fabs((double)y[i] - want) <= 3e-7 * fmax(1, fabs((double)x[i])));
        }
        free(packed);
    }
}

/* What is added to must be counted too. want, size [outputs, inputs + 1]: sums over the rows, the
 * last of every output for its bias, and of their sizes. */
static void check_added(const struct linear_gradient *g, const float *from, const float *got,
                        const double *want, const double *size)
{
    int64_t n = g->outputs * g->inputs;
    for (int64_t o = 0; o < g->outputs; o++)
        for (int64_t i = 0; i <= g->inputs; i++) {
            int64_t at = i < g->inputs ? o * g->inputs + i : n + o, k = o * (g->inputs + 1) + i;
            double sum = (double)from[at] + want[k],
                   bound = 1e-6 * (fabs((double)from[at]) + size[k]);
            if (!(fabs((double)got[at] - sum) <= bound))
                fail_msg(
                    "level %d, %lld rows: gradient [%lld, %lld] of [%lld, %lld] is %.9g, not %.9g",
                    (int)g->level, (long long)g->rows, (long long)o, (long long)i,
                    (long long)g->outputs, (long long)g->inputs, (double)got[at], sum);
        }
}

/* On 1, 2 and 3 threads, and weight or bias alone. */
static void check_gradient(struct linear_gradient g, const float *x, const float *dy,
                           const double *want, const double *size)
{
    int64_t n = g.outputs * g.inputs, count = n + g.outputs;
    size_t bytes = (size_t)count * sizeof(float);
    float *from = noise(count, 14), *one = noise(count, 14), *other = noise(count, 14);
    for (g.threads = 1; g.threads <= 3; g.threads++) {
        size_t floats = linear_gradient_scratch_floats(&g) / 16 * 16 + 16;
        float *scratch = aligned_alloc(64, floats * sizeof *scratch);
        assert_non_null(scratch);
        memset(scratch, 0xff, floats * sizeof *scratch);
        float *to = g.threads == 1 ? one : other;
        memcpy(to, from, bytes);
        linear_gradient_run(&g, x, dy, to, to + n, scratch);
        assert_memory_equal(one, to, bytes);
        memcpy(other, from, bytes);
        linear_gradient_run(&g, x, dy, NULL, other + n, scratch);
        assert_memory_equal(other, from, (size_t)n * sizeof *other);
        linear_gradient_run(&g, x, dy, other, NULL, scratch);
        assert_memory_equal(one, other, bytes);
        free(scratch);
    }
    check_added(&g, from, one, want, size);
    assert_true(one[count] == GUARD && other[count] == GUARD);
    free(from), free(one), free(other);
}

static void check_gradients(int64_t rows, int64_t inputs, int64_t outputs)
{
    float *x = noise(rows * inputs, 15), *dy = noise(rows * outputs, 16);
    double *want = calloc((size_t)(2 * outputs * (inputs + 1)), sizeof *want);
    double *size = want + outputs * (inputs + 1);
    assert_non_null(want);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t i = 0; i <= inputs; i++) {
                double term =
                    (double)dy[r * outputs + o] * (i < inputs ? (double)x[r * inputs + i] : 1);
                want[o * (inputs + 1) + i] += term, size[o * (inputs + 1) + i] += fabs(term);
            }
    for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++)
        check_gradient((struct linear_gradient){ level, 1, rows, inputs, outputs }, x, dy, want,
                       size);
    free(x), free(dy), free(want);
}

static void gradients_of_weights_are_right(void **state)
{
    (void)state;
    static const int64_t rows[] = { 1, 7, 65, 530 }, inputs[] = { 1, 9, 37, 161 },
                         outputs[] = { 1, 6, 65, 150 };
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 4; i++)
            for (int o = 0; o < 4; o++)
                check_gradients(rows[r], inputs[i], outputs[o]);
}

static void attention_is_right(void **state)
{
    (void)state;
    enum { SAMPLES = 2, HEADS = 3, KEYS = 61, WIDTH = 20, STEP = 3 * HEADS * WIDTH };
    float *qkv = noise(SAMPLES * KEYS * STEP, 8), *y = noise(SAMPLES * KEYS * HEADS * WIDTH, 9);
    for (enum simd level = SIMD_PORTABLE; level <= simd_best(); level++) {
        struct attention a = { .level = level,
                               .threads = 1,
                               .samples = SAMPLES,
                               .heads = HEADS,
                               .queries = KEYS,
                               .keys = KEYS,
                               .width = WIDTH,
                               .scale = 0.3f,
                               .q_step = STEP,
                               .k_step = STEP,
                               .v_step = STEP,
                               .y_step = HEADS * WIDTH };
        float *scratch = malloc(attention_scratch_floats(&a) * sizeof *scratch);
        struct attention_arrays at = { .q = qkv,
                                       .k = qkv + HEADS * WIDTH,
                                       .v = qkv + 2 * HEADS * WIDTH,
                                       .y = y,
                                       .scratch = scratch };
        attention_forward_pass(&a, &at);
        for (int row = 0; row < SAMPLES * KEYS * HEADS; row++) {
            int sample = row / HEADS / KEYS, query = row / HEADS % KEYS, head = row % HEADS;
            const float *first = qkv + sample * KEYS * STEP + head * WIDTH;
            double p[KEYS], sum = 0;
            for (int k = 0; k < KEYS; k++) {
                double score = 0;
                for (int i = 0; i < WIDTH; i++)
                    score += (double)first[query * STEP + i] *
                             (double)first[k * STEP + HEADS * WIDTH + i];
                p[k] = exp((double)a.scale * score);
                sum += p[k];
            }
            for (int i = 0; i < WIDTH; i++) {
                double want = 0;
                for (int k = 0; k < KEYS; k++)
                    want += p[k] / sum * (double)first[k * STEP + 2 * HEADS * WIDTH + i];
                assert_true(fabs((double)y[row * WIDTH + i] - want) < 1e-5);
            }
        }
        free(scratch);
    }
    free(qkv), free(y);
}

static void layer_norm_is_right(void **state)
{
    (void)state;
    enum { ROWS = 3, LENGTH = 37 };
    float *x = noise(ROWS * LENGTH, 10), *weight = noise(LENGTH, 11), *bias = noise(LENGTH, 12);
    float *dy = noise(ROWS * LENGTH, 13), y[ROWS * LENGTH], stats[2 * ROWS], dx[ROWS * LENGTH];
    float dweight[LENGTH] = { 0 }, dbias[LENGTH] = { 0 };
    struct normalize n = { ROWS, LENGTH, 1e-5f, false, 2 };
    normalize_run(&n, x, weight, bias, y, stats);
    normalize_back(&n, x, weight, stats, dy, dx, dweight, dbias);
    for (int r = 0; r < ROWS; r++) {
        const float *from = x + r * LENGTH, *d = dy + r * LENGTH;
        double mean = 0, variance = 0, sum = 0, product = 0;
        for (int i = 0; i < LENGTH; i++)
            mean += (double)from[i] / LENGTH;
        for (int i = 0; i < LENGTH; i++)
            variance += ((double)from[i] - mean) * ((double)from[i] - mean) / LENGTH;
        double scale = 1 / sqrt(variance + 1e-5);
        for (int i = 0; i < LENGTH; i++) {
            double g = (double)d[i] * (double)weight[i];
            sum += g / LENGTH, product += g * ((double)from[i] - mean) * scale / LENGTH;
        }
        for (int i = 0; i < LENGTH; i++) {
            double hat = ((double)from[i] - mean) * scale;
            double want = hat * (double)weight[i] + (double)bias[i];
            double slope = scale * ((double)d[i] * (double)weight[i] - sum - hat * product);
            assert_true(fabs((double)y[r * LENGTH + i] - want) < 1e-5);
            assert_true(fabs((double)dx[r * LENGTH + i] - slope) < 1e-5);
            dweight[i] -= (float)(hat * (double)d[i]), dbias[i] -= d[i];
        }
    }
    for (int i = 0; i < LENGTH; i++)
        assert_true(fabsf(dweight[i]) < 1e-5f && fabsf(dbias[i]) < 1e-5f);
    free(x), free(weight), free(bias), free(dy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layers_are_right),
        cmocka_unit_test(gelu_is_exact),
        cmocka_unit_test(gradients_of_weights_are_right),
        cmocka_unit_test(attention_is_right),
        cmocka_unit_test(layer_norm_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
