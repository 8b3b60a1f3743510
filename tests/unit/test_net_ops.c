/* test_net_ops.c: every op against PyTorch (tests/golden/net_ops.py) and central differences, with
 * plain and blocked images, parameters and activations as operands, one thread and two; losses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "train/loss.h"
#include "net/plan/plan.h"
#include "support/golden.h"

#define MAX_INPUTS 5
#define TOLERANCE 2e-5

struct op_case {
    const char *name;
    enum op_kind kind; /* OP_KINDS: attention, made of several nodes */
    union attr attr;
};

#define SQUARE(k)                                                                                  \
    {                                                                                              \
        k, k                                                                                       \
    }
#define AROUND(p)                                                                                  \
    {                                                                                              \
        p, p, p, p                                                                                 \
    }

static const struct op_case cases[] = {
    { "conv", OP_CONV, { .conv = { .kernel = SQUARE(3), .pad = AROUND(1) } } },
    { "conv_block", OP_CONV, { .conv = { .kernel = SQUARE(3), .pad = AROUND(1) } } },
    { "conv_odd", OP_CONV, { .conv = { { 5, 3 }, { 2, 1 }, { 2, 1, 2, 1 } } } },
    { "conv_stride", OP_CONV, { .conv = { .kernel = SQUARE(1), .stride = SQUARE(2) } } },
    { "conv_dilated",
      OP_CONV,
      { .conv = { .kernel = SQUARE(3), .pad = AROUND(2), .dilation = SQUARE(2) } } },
    { "conv_groups", OP_CONV, { .conv = { .kernel = SQUARE(3), .pad = AROUND(1), .groups = 2 } } },
    { "conv_depth", OP_CONV, { .conv = { .kernel = SQUARE(3), .pad = AROUND(1), .groups = 16 } } },
    { "conv_sides", OP_CONV, { .conv = { .kernel = { 3, 2 }, .pad = { 0, 1, 3, 2 } } } },
    { "conv_patch", OP_CONV, { .conv = { .kernel = SQUARE(8), .stride = SQUARE(8) } } },
    { "deconv",
      OP_CONV_TRANSPOSE,
      { .conv = { .kernel = SQUARE(3),
                  .stride = SQUARE(2),
                  .pad = AROUND(1),
                  .output_pad = SQUARE(1) } } },
    { "deconv_plain", OP_CONV_TRANSPOSE, { .conv = { .kernel = SQUARE(2), .stride = SQUARE(2) } } },
    { "deconv_groups",
      OP_CONV_TRANSPOSE,
      { .conv = { .kernel = SQUARE(3), .pad = AROUND(1), .dilation = SQUARE(2), .groups = 2 } } },
    { "linear", OP_LINEAR, { .linear = { ACT_NONE } } },
    { "linear_tokens", OP_LINEAR, { .linear = { ACT_NONE } } },
    { "matmul", OP_MATMUL, { .matmul = { 0 } } },
    { "matmul_tb", OP_MATMUL, { .matmul = { .transpose_b = true, .scale = 0.5f } } },
    { "matmul_ta", OP_MATMUL, { .matmul = { .transpose_a = true } } },
    { "matmul_repeat", OP_MATMUL, { .matmul = { 0 } } },
    { "batch_norm", OP_BATCH_NORM, { .norm = { .epsilon = 1e-5f, .momentum = 0.1f } } },
    { "batch_norm_odd", OP_BATCH_NORM, { .norm = { .epsilon = 1e-3f, .momentum = 0.1f } } },
    { "batch_norm_2d", OP_BATCH_NORM, { .norm = { .epsilon = 1e-5f, .momentum = 0.1f } } },
    { "group_norm", OP_GROUP_NORM, { .norm = { .epsilon = 1e-5f, .groups = 4 } } },
    { "layer_norm", OP_LAYER_NORM, { .norm = { .epsilon = 1e-6f } } },
    { "relu", OP_RELU, { .linear = { 0 } } },
    { "leaky_relu", OP_LEAKY_RELU, { .leaky = { 0.1f } } },
    { "silu", OP_SILU, { .linear = { 0 } } },
    { "gelu", OP_GELU, { .gelu = { false } } },
    { "sigmoid", OP_SIGMOID, { .linear = { 0 } } },
    { "tanh", OP_TANH, { .linear = { 0 } } },
    { "max_pool", OP_MAX_POOL, { .pool = { SQUARE(3), SQUARE(2), AROUND(1) } } },
    { "max_pool_ceil",
      OP_MAX_POOL,
      { .pool = { .kernel = SQUARE(3), .stride = SQUARE(2), .ceil_mode = true } } },
    { "max_pool_dilated",
      OP_MAX_POOL,
      { .pool = { .kernel = SQUARE(3), .pad = AROUND(1), .dilation = SQUARE(2) } } },
    { "average_pool",
      OP_AVERAGE_POOL,
      { .pool = { SQUARE(3), SQUARE(2), AROUND(1), .count_include_pad = true } } },
    { "average_pool_inside",
      OP_AVERAGE_POOL,
      { .pool = { SQUARE(3), SQUARE(2), AROUND(1), .ceil_mode = true } } },
    { "average_pool_ceil",
      OP_AVERAGE_POOL,
      { .pool = { SQUARE(3), SQUARE(2), AROUND(1), .ceil_mode = true,
                  .count_include_pad = true } } },
    { "global_max_pool", OP_GLOBAL_MAX_POOL, { .linear = { 0 } } },
    { "global_average_pool", OP_GLOBAL_AVERAGE_POOL, { .linear = { 0 } } },
    { "adaptive_average_pool", OP_ADAPTIVE_AVERAGE_POOL, { .adaptive = { { 3, 4 } } } },
    { "lrn", OP_LRN, { .lrn = { 5, 0.1f, 0.75f, 1 } } },
    { "lrn_even", OP_LRN, { .lrn = { 4, 0.1f, 0.6f, 2 } } },
    { "add", OP_ADD, { .linear = { 0 } } },
    { "sub", OP_SUB, { .linear = { 0 } } },
    { "mul", OP_MUL, { .linear = { 0 } } },
    { "mul_map", OP_MUL, { .linear = { 0 } } },
    { "mul_wide", OP_MUL, { .linear = { 0 } } },
    { "div", OP_DIV, { .linear = { 0 } } },
    { "div_number", OP_DIV, { .linear = { 0 } } },
    { "scale", OP_SCALE, { .scale = { 1.5f, -0.25f } } },
    { "concat", OP_CONCAT, { .axis = { 1 } } },
    { "concat_odd", OP_CONCAT, { .axis = { 1 } } },
    { "concat_rows", OP_CONCAT, { .axis = { 2 } } },
    { "concat_one", OP_CONCAT, { .axis = { -3 } } },
    { "slice", OP_SLICE, { .slice = { 1, 16, 32, 1 } } },
    { "slice_odd", OP_SLICE, { .slice = { 1, 1, 6, 2 } } },
    { "slice_rows", OP_SLICE, { .slice = { 2, 1, -1, 1 } } },
    { "pad", OP_PAD, { .pad = { { 3, 1, 0, 2 }, PAD_ZERO, 0.5f } } },
    { "pad_crop", OP_PAD, { .pad = { { 1, -1, -1, 2 }, PAD_ZERO, 0 } } },
    { "pad_reflect", OP_PAD, { .pad = { { 1, 2, 2, 1 }, PAD_REFLECT, 0 } } },
    { "pad_replicate", OP_PAD, { .pad = { { 1, 2, 3, 1 }, PAD_REPLICATE, 0 } } },
    { "reshape", OP_RESHAPE, { .reshape = { { 3, { 0, 3, -1 } } } } },
    { "flatten", OP_FLATTEN, { .axis = { 1 } } },
    { "transpose", OP_TRANSPOSE, { .transpose = { 4, { 0, 2, 3, 1 } } } },
    { "expand_batch", OP_EXPAND_BATCH, { .linear = { 0 } } },
    { "reduce_mean", OP_REDUCE_MEAN, { .reduce = { 1u << 1 | 1u << 3, false } } },
    { "reduce_mean_keep", OP_REDUCE_MEAN, { .reduce = { 1u << 2, true } } },
    { "softmax", OP_SOFTMAX, { .axis = { -1 } } },
    { "softmax_channels", OP_SOFTMAX, { .axis = { 1 } } },
    { "log_softmax", OP_LOG_SOFTMAX, { .axis = { -1 } } },
    { "log_softmax_channels", OP_LOG_SOFTMAX, { .axis = { 1 } } },
    { "upsample_nearest", OP_UPSAMPLE, { .upsample = { UPSAMPLE_NEAREST, { 2, 2 } } } },
    { "upsample_nearest_size",
      OP_UPSAMPLE,
      { .upsample = { .mode = UPSAMPLE_NEAREST, .size = { 7, 5 } } } },
    { "upsample_bilinear", OP_UPSAMPLE, { .upsample = { UPSAMPLE_BILINEAR, { 2, 2 } } } },
    { "upsample_corners",
      OP_UPSAMPLE,
      { .upsample = { .mode = UPSAMPLE_BILINEAR, .size = { 7, 9 }, .align_corners = true } } },
    { "upsample_broken", OP_UPSAMPLE, { .upsample = { UPSAMPLE_BILINEAR, { 1.5, 1.5 } } } },
    { "lse", OP_GLOBAL_LSE_POOL, { .lse = { 0 } } },
    { "lse_soft", OP_GLOBAL_LSE_POOL, { .lse = { 0.5f } } },
    { "attention_pool", OP_ATTENTION_POOL, { .linear = { 0 } } },
    { "standardize", OP_STANDARDIZE, { .norm = { .epsilon = 1e-3f } } },
    { "attention", OP_KINDS, { .linear = { 0 } } },
    { "heads", OP_ATTENTION, { .attention = { .heads = 2 } } },
    { "heads_masked", OP_ATTENTION, { .attention = { .heads = 2, .scale = 0.7f } } },
    { "heads_packed", OP_ATTENTION, { .attention = { .heads = 2 } } },
    { "heads_long", OP_ATTENTION, { .attention = { .heads = 1 } } },
    { "rms_norm", OP_RMS_NORM, { .norm = { .epsilon = 1e-6f } } },
    { "function_exp", OP_FUNCTION, { .function = { FUNCTION_EXP, 0 } } },
    { "function_log", OP_FUNCTION, { .function = { FUNCTION_LOG, 0 } } },
    { "function_sqrt", OP_FUNCTION, { .function = { FUNCTION_SQRT, 0 } } },
    { "function_reciprocal", OP_FUNCTION, { .function = { FUNCTION_RECIPROCAL, 0 } } },
    { "function_abs", OP_FUNCTION, { .function = { FUNCTION_ABS, 0 } } },
    { "function_erf", OP_FUNCTION, { .function = { FUNCTION_ERF, 0 } } },
    { "function_sin", OP_FUNCTION, { .function = { FUNCTION_SIN, 0 } } },
    { "function_cos", OP_FUNCTION, { .function = { FUNCTION_COS, 0 } } },
    { "function_power", OP_FUNCTION, { .function = { FUNCTION_POWER, 2.5f } } },
    { "reduce_max", OP_REDUCE_MAX, { .reduce = { 1u << 1 | 1u << 3, false } } },
    { "reduce_max_keep", OP_REDUCE_MAX, { .reduce = { 1u << 2, true } } },
    { "take", OP_TAKE, { .axis = { 1 } } },
    { "take_last", OP_TAKE, { .axis = { -1 } } },
    { "embedding", OP_EMBEDDING, { .linear = { 0 } } },
    { "relative_bias", OP_RELATIVE_BIAS, { .relative = { 0 } } },
    { "relative_bias_near", OP_RELATIVE_BIAS, { .relative = { .distance = 20 } } },
};

/* How the tensors of a case enter the graph. */
enum entry {
    ENTRY_PARAMETERS, /* x0 is an input, all others are parameters */
    ENTRY_INPUTS,     /* all are inputs */
    ENTRY_BLOCKED,    /* images go through a convolution by 1, so that they are blocked */
    ENTRIES
};

struct built {
    struct graph *graph;
    value_id x[MAX_INPUTS];
    int n;
};

static struct golden golden;

static value_id through_identity(struct graph *g, value_id x)
{
    int64_t channels = graph_shape(g, x)->dim[1];
    float *one = calloc((size_t)(channels * channels), sizeof *one);
    char name[32];
    for (int64_t c = 0; c < channels; c++)
        one[c * (channels + 1)] = 1;
    snprintf(name, sizeof name, "one%d", x);
    value_id w = graph_constant(g, name, SHAPE(channels, channels, 1, 1), one);
    free(one);
    return graph_node(g, OP_CONV, NULL, (value_id[]){ x, w }, 2,
                      &(union attr){ .conv = conv_square(1, 1, 0) });
}

static bool stays_parameter(const struct op_case *c, int i)
{
    return i > 0 && (c->kind == OP_BATCH_NORM || c->kind == OP_GROUP_NORM ||
                     c->kind == OP_LAYER_NORM || c->kind == OP_RMS_NORM || c->kind == OP_CONV ||
                     c->kind == OP_CONV_TRANSPOSE || c->kind == OP_LINEAR);
}

static value_id composed_attention(struct graph *g, const value_id *x)
{
    struct matmul_attr by_key = { .transpose_b = true, .scale = (float)(1 / sqrt(8)) };
    value_id weights = graph_softmax(g, graph_matmul(g, x[0], x[1], by_key), -1);
    return graph_matmul(g, weights, x[2], (struct matmul_attr){ 0 });
}

static struct built build(const struct op_case *c, enum entry entry)
{
    struct built b = { .graph = graph_new(c->name) };
    value_id used[MAX_INPUTS];
    for (; b.n < MAX_INPUTS; b.n++) {
        const struct golden_tensor *t = golden_find(&golden, "%s/x%d", c->name, b.n);
        char name[8];
        if (!t)
            break;
        snprintf(name, sizeof name, "x%d", b.n);
        bool statistic = c->kind == OP_BATCH_NORM && b.n >= 3;
        bool parameter = stays_parameter(c, b.n) || (entry == ENTRY_PARAMETERS && b.n > 0);
        value_id x = statistic   ? graph_buffer(b.graph, name, t->shape)
                     : parameter ? graph_parameter(b.graph, name, t->shape)
                                 : graph_input(b.graph, name, t->shape);
        b.x[b.n] = used[b.n] = x;
        if (entry == ENTRY_BLOCKED && t->shape.rank == 4 && !parameter)
            used[b.n] = through_identity(b.graph, x);
    }
    value_id y = c->kind == OP_KINDS ? composed_attention(b.graph, used)
                                     : graph_node(b.graph, c->kind, NULL, used, b.n, &c->attr);
    graph_output(b.graph, "y", y);
    struct err err = { 0 };
    if (!graph_ok(b.graph, &err) || !graph_allocate(b.graph, &err))
        fail_msg("%s", err.text);
    return b;
}

/* Where the floats of x_i are to be written. */
static float *place_of(const struct built *b, struct plan *plan, int i)
{
    if (graph_is_parameter(b->graph, b->x[i]))
        return graph_data(b->graph, b->x[i]);
    for (int k = 0; k < b->graph->n_inputs; k++)
        if (b->graph->inputs[k].value == b->x[i])
            return plan_input(plan, k);
    return NULL;
}

static void fill(const struct op_case *c, const struct built *b, struct plan *plan)
{
    for (int i = 0; i < b->n; i++) {
        const struct golden_tensor *t = golden_find(&golden, "%s/x%d", c->name, i);
        memcpy(place_of(b, plan, i), t->data, (size_t)shape_count(&t->shape) * sizeof(float));
    }
}

static struct plan *plan_of(const struct built *b, enum plan_mode mode, int threads)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    struct plan_options options = { .mode = mode, .threads = threads, .input_gradients = true };
    if (!plan_new(b->graph, &options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void check(const struct op_case *c, enum entry entry, const char *what, double error,
                  double tolerance)
{
    if (error > tolerance)
        fail_msg("%s (entry %d): %s is off by %g", c->name, (int)entry, what, error);
}

static void check_gradients(const struct op_case *c, const struct built *b, struct plan *plan,
                            enum entry entry)
{
    struct err err = { 0 };
    for (int i = 0; i < b->n; i++) {
        const struct golden_tensor *d = golden_find(&golden, "%s/d%d", c->name, i);
        int64_t n = shape_count(&d->shape);
        float *own = malloc((size_t)n * sizeof *own);
        char what[16];
        snprintf(what, sizeof what, "d%d", i);
        if (b->graph->values[b->x[i]].kind == VALUE_PARAMETER) {
            memcpy(own, plan_parameter_gradient(plan, b->x[i]), (size_t)n * sizeof *own);
        } else if (b->graph->values[b->x[i]].kind == VALUE_BUFFER ||
                   !plan_activation_gradient(plan, b->x[i], own, &err)) {
            free(own);
            continue; /* running statistics, the shape of expand_batch: no gradient */
        }
        check(c, entry, what, relative_error(own, d->data, n), TOLERANCE);
        free(own);
    }
}

static void ops_agree_with_pytorch(void **state)
{
    (void)state;
    struct err err = { 0 };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (enum entry entry = 0; entry < ENTRIES; entry++) {
            const struct op_case *c = &cases[k];
            struct built b = build(c, entry);
            const struct golden_tensor *y = golden_find(&golden, "%s/y", c->name);
            const struct golden_tensor *g = golden_find(&golden, "%s/g", c->name);
            int64_t n = shape_count(&y->shape);
            assert_true(shape_equal(graph_shape(b.graph, graph_find(b.graph, "y")), &y->shape));
            struct plan *plan = plan_of(&b, PLAN_TRAIN, 1);
            fill(c, &b, plan);
            for (int twice = 0; twice < 2; twice++) {
                plan_zero_gradients(plan);
                assert_true(plan_forward(plan, &err));
                check(c, entry, "y", relative_error(plan_output(plan, 0), y->data, n), TOLERANCE);
                memcpy(plan_output_gradient(plan, 0), g->data, (size_t)n * sizeof(float));
                if (!plan_backward(plan, &err))
                    fail_msg("%s", err.text);
                check_gradients(c, &b, plan, entry);
            }
            plan_free(plan);
            if (c->kind != OP_BATCH_NORM) {
                plan = plan_of(&b, PLAN_INFER, 2);
                fill(c, &b, plan);
                assert_true(plan_refresh(plan, &err) && plan_forward(plan, &err));
                check(c, entry, "y of inference", relative_error(plan_output(plan, 0), y->data, n),
                      TOLERANCE);
                plan_free(plan);
            }
            graph_free(b.graph);
        }
}

static double weighted_sum(struct plan *plan, const struct golden_tensor *g)
{
    double sum = 0;
    for (int64_t i = 0; i < shape_count(&g->shape); i++)
        sum += (double)plan_output(plan, 0)[i] * (double)g->data[i];
    return sum;
}

static void check_differences(const struct op_case *c, const struct built *b, struct plan *plan)
{
    const float step = 4e-3f;
    struct err err = { 0 };
    const struct golden_tensor *g = golden_find(&golden, "%s/g", c->name);
    for (int i = 0; i < b->n; i++) {
        const struct golden_tensor *d = golden_find(&golden, "%s/d%d", c->name, i);
        if (b->graph->values[b->x[i]].kind == VALUE_BUFFER)
            continue;
        float *x = place_of(b, plan, i);
        int64_t n = shape_count(&d->shape), stride = n / 12 + 1;
        double largest = 1e-3;
        for (int64_t k = 0; k < n; k++)
            largest = fmax(largest, fabs((double)d->data[k]));
        for (int64_t k = 0; k < n; k += stride) {
            float middle = x[k], above = middle + step, below = middle - step;
            x[k] = above;
            assert_true(plan_forward(plan, &err));
            double up = weighted_sum(plan, g);
            x[k] = below;
            assert_true(plan_forward(plan, &err));
            double slope = (up - weighted_sum(plan, g)) / ((double)above - (double)below);
            x[k] = middle;
            if (fabs(slope - (double)d->data[k]) > 1e-2 * largest)
                fail_msg("%s: d%d[%lld] is %g, central difference %g", c->name, i, (long long)k,
                         (double)d->data[k], slope);
        }
    }
}

/* The reference gradients were checked above to be ours. */
static void gradients_agree_with_central_differences(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct op_case *c = &cases[k];
        struct built b = build(c, ENTRY_PARAMETERS);
        struct plan *plan = plan_of(&b, PLAN_TRAIN, 1);
        fill(c, &b, plan);
        check_differences(c, &b, plan);
        plan_free(plan);
        graph_free(b.graph);
    }
}

static void every_op_is_tested(void **state)
{
    (void)state;
    for (int kind = 0; kind < OP_KINDS; kind++) {
        /* these have their own tests: test_net_plan, test_net_forms, test_net_collective,
         * test_stream */
        bool found = kind == OP_DROPOUT || kind == OP_CONVERT || kind == OP_HALO ||
                     kind == OP_ALL_REDUCE || kind == OP_ALL_GATHER || kind == OP_REDUCE_SCATTER ||
                     kind == OP_CARRY;
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            found = found || (int)cases[k].kind == kind;
        if (!found)
            fail_msg("%s has no case", op_get((enum op_kind)kind)->name);
        assert_int_equal(op_get((enum op_kind)kind)->kind, kind);
    }
}

static void check_loss(const char *name, double loss, const float *gradient)
{
    const struct golden_tensor *y = golden_find(&golden, "%s/y", name);
    const struct golden_tensor *d = golden_find(&golden, "%s/d0", name);
    assert_true(fabs(loss - (double)y->data[0]) < 1e-6 * fmax(1, fabs(loss)));
    assert_true(relative_error(gradient, d->data, shape_count(&d->shape)) < 1e-6);
}

static void softmax_loss(const char *name, float smoothing)
{
    const struct golden_tensor *x = golden_find(&golden, "%s/x0", name);
    const struct golden_tensor *t = golden_find(&golden, "%s/x1", name);
    const struct golden_tensor *w = golden_find(&golden, "%s/x2", name);
    int32_t labels[64];
    float gradient[256];
    double loss;
    struct err err = { 0 };
    struct loss_classes spec = { .count = x->shape.dim[0],
                                 .classes = x->shape.dim[1],
                                 .places = shape_span(&x->shape, 2, x->shape.rank),
                                 .weights = w->data,
                                 .smoothing = smoothing };
    for (int64_t i = 0; i < shape_count(&t->shape); i++)
        labels[i] = t->data[i] < 0 ? LOSS_IGNORE : (int32_t)t->data[i];
    assert_true(loss_softmax(&spec, x->data, labels, &loss, gradient, &err));
    check_loss(name, loss, gradient);
    labels[0] = 3;
    assert_false(loss_softmax(&spec, x->data, labels, &loss, gradient, &err));
}

/* Cross-entropy is linear in its target: blended labels give the blend of the losses that the cases
 * above hold against PyTorch, weights and smoothing included. */
static void blended_labels(void **state)
{
    (void)state;
    const struct golden_tensor *x = golden_find(&golden, "loss_smooth/x0");
    static const int32_t labels[4] = { 0, 2, 1, 1 }, others[4] = { 1, 1, 1, 0 };
    static const float weights[3] = { 0.5f, 1, 2 };
    float gradient[12], one[12], two[12];
    double loss, a, b, want = 0;
    struct err err = { 0 };
    for (int i = 0; i < 4; i++) {
        float share = 0.55f + 0.1f * (float)i;
        struct loss_classes spec = { .count = 1,
                                     .classes = 3,
                                     .places = 1,
                                     .weights = weights,
                                     .divisor = 4,
                                     .smoothing = 0.1f };
        const float *scores = x->data + 3 * i;
        assert_true(loss_softmax(&spec, scores, &labels[i], &a, one, &err));
        assert_true(loss_softmax(&spec, scores, &others[i], &b, two, &err));
        spec.shares = &share;
        spec.others = &others[i];
        assert_true(loss_softmax(&spec, scores, &labels[i], &loss, gradient, &err));
        want = (double)share * a + (1 - (double)share) * b;
        assert_true(fabs(loss - want) < 1e-12);
        for (int c = 0; c < 3; c++)
            assert_true(fabs((double)gradient[c] - (double)share * (double)one[c] -
                             (1 - (double)share) * (double)two[c]) < 1e-7);
    }
}

static void losses_agree_with_pytorch(void **state)
{
    (void)state;
    double loss;
    float gradient[64];
    softmax_loss("loss_softmax", 0);
    softmax_loss("loss_smooth", 0.1f);
    softmax_loss("loss_pixels", 0);
    const struct golden_tensor *x = golden_find(&golden, "loss_sigmoid/x0");
    struct loss_classes spec = { .count = 4,
                                 .classes = 3,
                                 .places = 1,
                                 .weights = golden_find(&golden, "loss_sigmoid/x2")->data };
    loss_sigmoid(&spec, x->data, golden_find(&golden, "loss_sigmoid/x1")->data, &loss, gradient);
    check_loss("loss_sigmoid", loss, gradient);
    x = golden_find(&golden, "loss_mse/x0");
    loss_mse(12, 0, x->data, golden_find(&golden, "loss_mse/x1")->data, &loss, gradient);
    check_loss("loss_mse", loss, gradient);
    x = golden_find(&golden, "loss_huber/x0");
    loss_huber(12, 0, 0.7f, x->data, golden_find(&golden, "loss_huber/x1")->data, &loss, gradient);
    check_loss("loss_huber", loss, gradient);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_is_tested),
        cmocka_unit_test(ops_agree_with_pytorch),
        cmocka_unit_test(gradients_agree_with_central_differences),
        cmocka_unit_test(losses_agree_with_pytorch),
        cmocka_unit_test(blended_labels),
    };
    golden_open(&golden, "tests/golden/net_ops.bin");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    golden_close(&golden);
    return failed;
}
