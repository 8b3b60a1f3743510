/* test_net_transform.c: transforms keep what a network computes: fused and folded graphs, cuts,
 * prefixes, paddings, tokens that nobody reads, and the dense network against its sliding window.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/plan/plan.h"
#include "net/graph/transform.h"
#include "support/golden.h"

/* Random parameters; scales and variances around 1. */
static void finish(struct graph *g)
{
    struct err err = { 0 };
    if (!graph_ok(g, &err))
        fail_msg("%s", err.text);
    for (int32_t i = 0; i < g->n_values; i++)
        if (graph_is_parameter(g, i) && g->values[i].init.kind == INIT_CONSTANT)
            g->values[i].init = (struct init){ INIT_UNIFORM, 0.4f };
    assert_true(graph_initialize(g, 11, &err));
    for (int32_t i = 0; i < g->n_values; i++)
        if (graph_is_parameter(g, i) &&
            (strstr(g->values[i].name, "running_var") || strstr(g->values[i].name, "bn.weight")))
            for (int64_t k = 0; k < shape_count(graph_shape(g, i)); k++)
                graph_data(g, i)[k] += 1;
}

/* Layers of many kinds: what fusing and folding meet. */
static struct graph *mixed(void)
{
    struct graph *g = graph_new("mixed");
    value_id x = graph_input(g, "x", SHAPE(2, 3, 20, 17));
    x = graph_conv(g, x, "a", 16, false, conv_square(3, 1, 1));
    x = graph_relu(g, graph_batch_norm(g, x, "a_bn"));
    value_id y = graph_conv(g, x, "b", 16, true, conv_square(3, 1, 1));
    y = graph_batch_norm(g, y, "b_bn");
    value_id z = graph_conv(g, x, "c", 16, false, conv_square(1, 1, 0));
    z = graph_batch_norm(g, z, "c_bn");
    x = graph_relu(g, graph_add(g, y, z));
    y = graph_batch_norm(g, x, "pre_bn"); /* cannot be folded: its input is used twice */
    y = graph_silu(g, graph_conv(g, y, "d", 16, true, conv_square(3, 1, 1)));
    x = graph_add(g, x, y);
    x = graph_conv_transpose(
        g, x, "e", 8, false,
        (struct conv_attr){ .kernel = { 2, 2 }, .stride = { 2, 2 }, .groups = 2 });
    x = graph_batch_norm(g, x, "e_bn");
    x = graph_flatten(g, graph_global_average_pool(g, x));
    x = graph_linear(g, graph_dropout(g, x, 0.5f), "f", 12, true);
    x = graph_gelu(g, graph_batch_norm(g, x, "f_bn"));
    graph_output(g, "y", graph_linear(g, x, "g", 4, true));
    finish(g);
    return g;
}

static void fill(float *x, int64_t n, uint64_t stream)
{
    struct rng rng = rng_new(3, stream, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
}

static struct plan *plan_of(const struct graph *g)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    if (!plan_new(g, &(struct plan_options){ .mode = PLAN_INFER, .threads = 1 }, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

/* The first output for random input, fresh memory. */
static float *result(const struct graph *g, int64_t *n)
{
    struct err err = { 0 };
    struct plan *plan = plan_of(g);
    for (int i = 0; i < g->n_inputs; i++)
        fill(plan_input(plan, i), shape_count(graph_shape(g, g->inputs[i].value)), (uint64_t)i);
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
    *n = shape_count(graph_shape(g, g->outputs[0].value));
    float *y = malloc((size_t)*n * sizeof *y);
    memcpy(y, plan_output(plan, 0), (size_t)*n * sizeof *y);
    plan_free(plan);
    return y;
}

static void same_result(const struct graph *a, const struct graph *b, double tolerance)
{
    int64_t n, m;
    float *x = result(a, &n), *y = result(b, &m);
    assert_int_equal(n, m);
    if (relative_error(y, x, n) > tolerance)
        fail_msg("off by %g", relative_error(y, x, n));
    free(x), free(y);
}

static int count_ops(const struct graph *g, enum op_kind kind)
{
    int count = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        count += g->nodes[i].op->kind == kind;
    return count;
}

static void fused_graphs_compute_the_same(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = mixed(), *fused = NULL, *kept = NULL;
    if (!transform_for_inference(g, NULL, 0, &fused, &err))
        fail_msg("%s", err.text);
    assert_int_equal(count_ops(fused, OP_DROPOUT), 0);
    assert_int_equal(count_ops(fused, OP_BATCH_NORM), 1);
    assert_int_equal(count_ops(fused, OP_RELU), 0);
    assert_int_equal(count_ops(fused, OP_SILU) + count_ops(fused, OP_GELU), 0);
    assert_int_equal(count_ops(fused, OP_ADD), 1); /* silu before the addition: not fusible */
    same_result(g, fused, 1e-5);
    const char *keep[] = { "b", "a_bn", "c_bn" };
    assert_true(transform_for_inference(g, keep, 3, &kept, &err));
    for (int i = 0; i < 3; i++) {
        value_id old = graph_find(g, keep[i]), made = graph_find(kept, keep[i]);
        struct graph *a = NULL, *b = NULL;
        assert_true(made != NO_VALUE);
        assert_true(transform_prefix(g, old, &a, &err) && transform_prefix(kept, made, &b, &err));
        same_result(a, b, 1e-5);
        graph_free(a), graph_free(b);
    }
    same_result(g, kept, 1e-5);
    assert_false(transform_for_inference(g, (const char *[]){ "pre_nb" }, 1, &kept, &err));
    assert_string_equal(err.text, "mixed: no layer 'pre_nb'; did you mean pre_bn?");
    graph_free(g), graph_free(fused), graph_free(kept);
}

/* Two blocks of a Transformer whose last tokens are read by `slices` slices of 2 tokens each, the
 * first of them tokens 3 and 4. */
static struct graph *sequence(bool packed, int slices)
{
    struct graph *g = graph_new("sequence");
    value_id x = graph_input(g, "x", SHAPE(3, 9, 8)), mask = graph_input(g, "mask", SHAPE(3, 9));
    value_id scores[2];
    for (int i = 0; i < 2; i++) {
        const char *names[2][5] = { { "qkv", "q", "k", "v", "fc" },
                                    { "qkv1", "q1", "k1", "v1", "fc1" } };
        value_id y = graph_layer_norm(g, x, i ? "norm1" : "norm", 1e-5f);
        struct attention_attr heads = { .heads = 2 };
        value_id a = packed ? graph_attention_packed(g, graph_linear(g, y, names[i][0], 24, true),
                                                     NO_VALUE, mask, heads)
                            : graph_attention(g, graph_linear(g, y, names[i][1], 8, true),
                                              graph_linear(g, y, names[i][2], 8, true),
                                              graph_linear(g, y, names[i][3], 8, true), NO_VALUE,
                                              mask, heads);
        x = graph_alias(g, i ? "seen" : "unseen", graph_add(g, x, a));
        y = graph_linear(g, graph_gelu(g, graph_linear(g, x, names[i][4], 16, true)),
                         i ? "last1" : "last", 16, true);
        y = graph_mul(g, graph_silu(g, graph_slice(g, y, 2, 0, 8)), graph_slice(g, y, 2, 8, 16));
        x = graph_add(g, x, graph_mul(g, y, graph_parameter(g, i ? "scale1" : "scale", SHAPE(8))));
    }
    for (int i = 0; i < slices; i++)
        scores[i] = graph_linear(g, graph_slice(g, x, 1, 3 - i, 5 - i), i ? "head1" : "head", 4, 1);
    graph_output(g, "y", slices > 1 ? graph_add(g, scores[0], scores[1]) : scores[0]);
    finish(g);
    return g;
}

static int64_t rows_of(const struct graph *g, const char *name)
{
    return graph_shape(g, graph_find(g, name))->dim[1];
}

/* Bit for bit, as a sum does not depend on how many rows there are. */
static void tokens_that_nobody_reads_are_not_computed(void **state)
{
    (void)state;
    struct err err = { 0 };
    for (int packed = 0; packed < 2; packed++) {
        struct graph *g = sequence(packed, 1), *few = NULL, *kept = NULL, *two = NULL;
        assert_true(transform_rows(g, NULL, 0, &few, &err));
        same_result(g, few, 0);
        assert_int_equal(rows_of(few, "fc1"), 2);
        assert_int_equal(rows_of(few, "last1"), 2);
        assert_int_equal(rows_of(few, packed ? "qkv1" : "k1"), 9);
        assert_int_equal(rows_of(few, packed ? "qkv1" : "q1"), packed ? 9 : 2);
        assert_int_equal(rows_of(few, "last"), 9);
        assert_int_equal(graph_find(few, "seen"), NO_VALUE);
        assert_true(graph_find(few, "unseen") != NO_VALUE);
        assert_true(transform_rows(g, (const char *[]){ "seen" }, 1, &kept, &err));
        same_result(g, kept, 0);
        assert_int_equal(rows_of(kept, "seen"), 9);
        assert_int_equal(rows_of(kept, "fc1"), 2);
        graph_free(g), graph_free(few), graph_free(kept);
        g = sequence(packed, 2); /* two slices need more than one of them */
        assert_true(transform_rows(g, NULL, 0, &two, &err));
        same_result(g, two, 0);
        assert_int_equal(rows_of(two, "fc1"), 9);
        graph_free(g), graph_free(two);
    }
}

static void folding_needs_floats(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = graph_new("bare"), *out = NULL;
    value_id x = graph_input(g, "x", SHAPE(1, 3, 8, 8));
    x = graph_conv(g, x, "a", 4, false, conv_square(3, 1, 1));
    graph_output(g, "y", graph_batch_norm(g, x, "a_bn"));
    assert_false(transform_fold_batch_norm(g, NULL, 0, &out, &err));
    assert_non_null(strstr(err.text, "a.weight"));
    graph_free(g);
}

static void two_halves_are_the_whole(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = mixed(), *head = NULL, *tail = NULL;
    int64_t n, m;
    float *whole = result(g, &n);
    static const char *const places[] = { "a", "b_bn", "pre_bn", "f" };
    for (int k = 0; k < 4; k++) {
        assert_true(transform_cut(g, graph_find(g, places[k]), &head, &tail, &err));
        struct plan *first = plan_of(head), *second = plan_of(tail);
        fill(plan_input(first, 0), 2 * 3 * 20 * 17, 0);
        assert_true(plan_forward(first, &err));
        for (int i = 0; i < tail->n_inputs; i++) {
            assert_string_equal(tail->inputs[i].name, head->outputs[i].name);
            m = shape_count(graph_shape(tail, tail->inputs[i].value));
            memcpy(plan_input(second, i), plan_output(first, i), (size_t)m * sizeof(float));
        }
        assert_true(plan_forward(second, &err));
        assert_true(relative_error(plan_output(second, 0), whole, n) < 1e-6);
        assert_int_equal(graph_parameter_count(head) + graph_parameter_count(tail),
                         graph_parameter_count(g));
        plan_free(first), plan_free(second);
        graph_free(head), graph_free(tail);
    }
    assert_false(transform_cut(g, graph_find(g, "y"), &head, &tail, &err));
    free(whole);
    graph_free(g);
}

static void another_size_shares_the_parameters(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = mixed(), *other = NULL;
    assert_true(transform_resize(g, 5, 33, 0, &other, &err));
    assert_true(shape_equal(graph_shape(other, 0), &SHAPE(5, 3, 33, 17)));
    assert_ptr_equal(graph_data(g, graph_find(g, "a.weight")),
                     graph_data(other, graph_find(other, "a.weight")));
    graph_free(g), graph_free(other);
}

static struct graph *padded(enum padding explicit_padding)
{
    static const enum pad_mode modes[] = { PAD_ZERO, PAD_REFLECT, PAD_REPLICATE };
    struct graph *g = graph_new("padded");
    value_id x = graph_input(g, "x", SHAPE(2, 16, 12, 11));
    bool outside = explicit_padding != PADDING_ZERO;
    struct pad_attr border = { { 2, 2, 2, 2 }, modes[explicit_padding], 0 };
    if (outside)
        x = graph_pad(g, x, border);
    x = graph_conv(g, x, "a", 16, true, conv_square(5, 1, outside ? 0 : 2));
    graph_output(g, "y", graph_relu(g, x));
    finish(g);
    return g;
}

static void padding_is_that_of_a_border(void **state)
{
    (void)state;
    struct err err = { 0 };
    for (enum padding padding = PADDING_REFLECT; padding <= PADDING_REPLICATE; padding++) {
        struct graph *zero = padded(PADDING_ZERO), *border = padded(padding), *made = NULL;
        assert_true(transform_padding(zero, padding, &made, &err));
        same_result(border, made, 1e-6);
        graph_free(zero), graph_free(border), graph_free(made);
    }
}

static struct graph *residual(int64_t side)
{
    struct graph *g = graph_new("residual");
    value_id x = graph_input(g, "x", SHAPE(1, 3, side, side));
    x = graph_relu(g, graph_conv(g, x, "a", 16, true, conv_square(3, 1, 1)));
    value_id y = graph_relu(g, graph_conv(g, x, "b", 16, true, conv_square(3, 1, 1)));
    y = graph_conv(g, y, "c", 16, true, conv_square(3, 1, 1));
    x = graph_relu(g, graph_add(g, x, y));
    y = graph_conv(g, x, "d", 16, true, conv_square(5, 1, 2));
    graph_output(g, "y", graph_concat(g, (value_id[]){ x, y }, 2, 1));
    finish(g);
    return g;
}

/* Far from the border zero padding changes nothing: there both networks agree. */
static void without_padding_the_middle_is_the_same(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = residual(21), *valid = NULL;
    int64_t n, m;
    assert_true(transform_padding(g, PADDING_VALID, &valid, &err));
    const struct shape *shape = graph_shape(valid, graph_find(valid, "y"));
    assert_true(shape_equal(shape, &SHAPE(1, 32, 21 - 10, 21 - 10)));
    float *a = result(g, &n), *b = result(valid, &m);
    for (int64_t c = 0; c < 32; c++)
        for (int64_t y = 0; y < 11; y++)
            assert_true(relative_error(b + (c * 11 + y) * 11, a + (c * 21 + y + 5) * 21 + 5, 11) <
                        1e-5);
    free(a), free(b);
    graph_free(g), graph_free(valid);
}

/* Strides 2 x 2 x 2, no padding, a residual block, mean over what is left, two linear layers. */
static struct graph *scanner(int64_t side, bool whole_map)
{
    struct graph *g = graph_new("scanner");
    value_id x = graph_input(g, "x", SHAPE(1, 3, side, side));
    x = graph_conv(g, x, "a", 16, false, conv_square(3, 2, 0));
    x = graph_relu(g, graph_batch_norm(g, x, "a_bn"));
    x = graph_max_pool(g, x, pool_square(2, 2, 0));
    value_id y = graph_relu(g, graph_conv(g, x, "b", 16, true, conv_square(3, 1, 0)));
    value_id crop = graph_pad(g, x, (struct pad_attr){ .pad = { -1, -1, -1, -1 } });
    x = graph_add(g, y, crop);
    x = graph_relu(g, graph_conv(g, x, "c", 32, true, conv_square(3, 2, 0)));
    if (!whole_map)
        x = graph_global_average_pool(g, x);
    x = graph_relu(g, graph_linear(g, graph_flatten(g, x), "d", 8, true));
    graph_output(g, "y", graph_softmax(g, graph_linear(g, x, "e", 3, true), -1));
    finish(g);
    return g;
}

/* A first stride of 4 that has to be divided to score every 2 px. */
static struct graph *coarse(int64_t side)
{
    struct graph *g = graph_new("coarse");
    value_id x = graph_input(g, "x", SHAPE(1, 3, side, side));
    x = graph_relu(g, graph_conv(g, x, "a", 16, true, conv_square(8, 4, 0)));
    x = graph_relu(g, graph_conv(g, x, "b", 16, true, conv_square(3, 2, 0)));
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "y", graph_linear(g, x, "c", 3, true));
    finish(g);
    return g;
}

static void compare_dense(struct graph *g, int64_t window, int64_t stride)
{
    struct err err = { 0 };
    struct graph *dense = NULL;
    const int64_t height = 83, width = 75;
    struct dense_spec spec = { window, stride, height, width };
    if (!transform_dense(g, &spec, &dense, &err))
        fail_msg("%s", err.text);
    struct plan *whole = plan_of(dense), *one = plan_of(g);
    float *image = plan_input(whole, 0);
    fill(image, 3 * height * width, 9);
    assert_true(plan_forward(whole, &err));
    const struct shape *shape = graph_shape(dense, graph_find(dense, "y"));
    int64_t rows = (height - window) / stride + 1, columns = (width - window) / stride + 1;
    assert_true(shape_equal(shape, &SHAPE(1, 3, rows, columns)));
    for (int64_t i = 0; i < rows; i += 3)
        for (int64_t k = 0; k < columns; k += 2) {
            for (int64_t c = 0; c < 3; c++)
                for (int64_t y = 0; y < window; y++)
                    memcpy(plan_input(one, 0) + (c * window + y) * window,
                           image + (c * height + i * stride + y) * width + k * stride,
                           (size_t)window * sizeof(float));
            assert_true(plan_forward(one, &err));
            for (int64_t c = 0; c < 3; c++)
                assert_true(fabsf(plan_output(one, 0)[c] -
                                  plan_output(whole, 0)[(c * rows + i) * columns + k]) < 1e-5f);
        }
    plan_free(whole), plan_free(one);
    graph_free(dense);
}

static void dense_equals_the_sliding_window(void **state)
{
    (void)state;
    struct err err = { 0 };
    for (int whole_map = 0; whole_map < 2; whole_map++) {
        struct graph *g = scanner(31, whole_map);
        struct field field;
        assert_true(transform_field(g, graph_find(g, "y"), 31, &field, &err));
        assert_true(field.exact && !field.padded);
        assert_int_equal(field.stride_px, 8);
        compare_dense(g, 31, 8);
        compare_dense(g, 31, 4);
        compare_dense(g, 31, 2);
        compare_dense(g, 31, 1);
        struct graph *dense = NULL;
        assert_false(transform_dense(g, &(struct dense_spec){ 31, 3, 64, 64 }, &dense, &err));
        graph_free(g);
    }
}

static void large_strides_are_divided(void **state)
{
    (void)state;
    struct graph *g = coarse(40);
    for (int64_t stride = 8; stride >= 1; stride /= 2)
        compare_dense(g, 40, stride);
    graph_free(g);
}

/* 3x3/2 then 2x2/2 pool, 3x3, 3x3/2: 1 + 2 + 2 + 8 + 8 = 21; the map of 31 px has 2 px: + 8. */
static void the_field_is_counted(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = scanner(31, false), *r = residual(21);
    struct field field;
    assert_true(transform_field(g, graph_find(g, "c"), 31, &field, &err));
    assert_int_equal(field.receptive_px, 21);
    assert_true(transform_field(g, graph_find(g, "y"), 31, &field, &err));
    assert_int_equal(field.receptive_px, 29);
    assert_true(transform_field(r, graph_find(r, "y"), 21, &field, &err));
    assert_true(field.padded && !field.exact);
    assert_int_equal(field.receptive_px, 11);
    assert_int_equal(field.stride_px, 1);
    assert_non_null(strstr(field.reason, "a: conv pads"));
    graph_free(g), graph_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_graphs_compute_the_same),
        cmocka_unit_test(tokens_that_nobody_reads_are_not_computed),
        cmocka_unit_test(folding_needs_floats),
        cmocka_unit_test(two_halves_are_the_whole),
        cmocka_unit_test(another_size_shares_the_parameters),
        cmocka_unit_test(padding_is_that_of_a_border),
        cmocka_unit_test(without_padding_the_middle_is_the_same),
        cmocka_unit_test(dense_equals_the_sliding_window),
        cmocka_unit_test(large_strides_are_divided),
        cmocka_unit_test(the_field_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
