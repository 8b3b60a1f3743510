/* test_clipped.c: gradients of units (train/clipped.h) against what is known without making them:
 * their norms are those that activations and output gradients of a batch give ("ghost norms": of a
 * layer y = W x at places p, the squared norm of its gradient is the sum over all pairs of places
 * of (x_p . x_q) (dy_p . dy_q)), for every kind of layer; their sum is the gradient of the batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/zoo/zoo.h"
#include "train/clipped.h"

#define BATCH 3

static void draw(float *out, int64_t n, uint64_t stream)
{
    struct rng rng = rng_new(5, stream, 0);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)rng_normal(&rng);
}

/* Weights that are neither 0 nor 1. */
static struct graph *ready(struct graph *g)
{
    struct err err = { 0 };
    if (!graph_ok(g, &err) || !graph_initialize(g, 1, &err))
        fail_msg("%s", err.text);
    for (value_id v = 0; v < g->n_values; v++) {
        int64_t n = graph_is_parameter(g, v) ? shape_count(&g->values[v].shape) : 0;
        struct rng rng = rng_new(7, (uint64_t)v, 0);
        for (int64_t i = 0; i < n; i++)
            graph_data(g, v)[i] += 0.1f * (float)rng_normal(&rng);
    }
    return g;
}

static struct graph *unet(void)
{
    struct graph *g = NULL;
    struct zoo_options options = { .batch = BATCH, .height = 8, .width = 8, .conditions = 2 };
    struct err err = { 0 };
    if (!zoo_build("unet_tiny", &options, &g, &err))
        fail_msg("%s", err.text);
    return ready(g);
}

/* Tokens, attention, layer norm; strided and dilated convolutions. */
static struct graph *transformer(void)
{
    struct graph *g = graph_new("tokens");
    value_id x = graph_input(g, "input", SHAPE(BATCH, 3, 9, 11)), part[3];
    struct conv_attr wide = conv_square(3, 2, 1);
    wide.dilation[0] = wide.dilation[1] = 2;
    wide.pad[0] = 2;
    x = graph_relu(g, graph_conv(g, x, "first", 16, true, wide));
    x = graph_reshape(g, x, SHAPE(0, 16, -1));
    x = graph_transpose(g, x, (const int64_t[]){ 0, 2, 1 });
    value_id y = graph_linear(g, graph_layer_norm(g, x, "norm1", 1e-5f), "qkv", 48, true);
    for (int i = 0; i < 3; i++)
        part[i] = graph_slice(g, y, 2, 16 * i, 16 * (i + 1));
    y = graph_attention(g, part[0], part[1], part[2], NO_VALUE, NO_VALUE,
                        (struct attention_attr){ .heads = 2 });
    x = graph_add(g, x, graph_linear(g, y, "proj", 16, false));
    y = graph_linear(g, graph_layer_norm(g, x, "norm2", 1e-5f), "mlp", 40, true);
    x = graph_add(g, x, graph_linear(g, graph_gelu(g, y), "mlp2", 16, true));
    graph_output(g, "logits", graph_linear(g, graph_flatten(g, x), "fc", 3, true));
    return ready(g);
}

/* --- norms without gradients --- */

/* The rows x_p of a layer, [places, inner], for one sample x of its input; the caller's. */
static double *rows_of(const struct graph *g, const struct node *node, const float *x,
                       int64_t *places, int64_t *inner)
{
    const struct shape *in = graph_shape(g, node->inputs[0]);
    const struct shape *out = graph_shape(g, node->output);
    bool conv = node->op->kind == OP_CONV;
    const struct conv_attr *a = &node->attr.conv;
    int64_t wide = out->dim[out->rank - 1], high = conv ? out->dim[2] : 0;
    *places = conv ? high * wide : shape_span(in, 1, in->rank - 1);
    *inner = conv ? in->dim[1] * a->kernel[0] * a->kernel[1] : in->dim[in->rank - 1];
    double *rows = calloc((size_t)(*places * *inner), sizeof *rows), *at = rows;
    if (!conv)
        for (int64_t i = 0; i < *places * *inner; i++)
            rows[i] = (double)x[i];
    for (int64_t y = 0; conv && y < high; y++)
        for (int64_t w = 0; w < wide; w++)
            for (int64_t c = 0; c < in->dim[1]; c++)
                for (int64_t k = 0; k < a->kernel[0] * a->kernel[1]; k++, at++) {
                    int64_t row = y * a->stride[0] - a->pad[0] + k / a->kernel[1] * a->dilation[0];
                    int64_t column =
                        w * a->stride[1] - a->pad[1] + k % a->kernel[1] * a->dilation[1];
                    if (row >= 0 && row < in->dim[2] && column >= 0 && column < in->dim[3])
                        *at = (double)x[(c * in->dim[2] + row) * in->dim[3] + column];
                }
    return rows;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static bool learns(const struct graph *g, const struct node *node, int input)
{
    return node->n_inputs > input && g->values[node->inputs[input]].kind == VALUE_PARAMETER;
}

/* Squared norm of the gradients of weight and bias of a layer y = W x + b. */
static double ghost_layer(const struct graph *g, const struct node *node, const float *x,
                          const float *dy)
{
    const struct shape *out = graph_shape(g, node->output);
    bool conv = node->op->kind == OP_CONV;
    int64_t places, inner, outputs = conv ? out->dim[1] : out->dim[out->rank - 1];
    double *rows = rows_of(g, node, x, &places, &inner), sum = 0;
    double *errors = calloc((size_t)(places * outputs), sizeof *errors);
    for (int64_t p = 0; p < places; p++)
        for (int64_t o = 0; o < outputs; o++)
            errors[p * outputs + o] = (double)(conv ? dy[o * places + p] : dy[p * outputs + o]);
    for (int64_t p = 0; learns(g, node, 1) && p < places; p++)
        for (int64_t q = 0; q < places; q++)
            sum += dot(rows + p * inner, rows + q * inner, inner) *
                   dot(errors + p * outputs, errors + q * outputs, outputs);
    for (int64_t p = 0; learns(g, node, 2) && p < places; p++)
        for (int64_t q = 0; q < places; q++)
            sum += dot(errors + p * outputs, errors + q * outputs, outputs);
    free(rows);
    free(errors);
    return sum;
}

/* Of group norm (a row is a group of channels with its pixels) and layer norm (a token): one sample
 * of n numbers; weights lie `run` numbers apart. */
static double norm_layer(const struct graph *g, const struct node *node, const float *x,
                         const float *dy)
{
    const struct shape *in = graph_shape(g, node->inputs[0]);
    bool group = node->op->kind == OP_GROUP_NORM;
    int64_t n = shape_span(in, 1, in->rank), run = group ? shape_span(in, 2, in->rank) : 1;
    int64_t channels = shape_count(graph_shape(g, node->inputs[1]));
    int64_t length = group ? n / node->attr.norm.groups : channels;
    double *dw = calloc((size_t)channels, sizeof *dw), *db = calloc((size_t)channels, sizeof *db);
    for (int64_t first = 0; first < n; first += length) {
        double mean = 0, squares = 0;
        for (int64_t i = first; i < first + length; i++)
            mean += (double)x[i] / (double)length;
        for (int64_t i = first; i < first + length; i++)
            squares += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)length;
        for (int64_t i = first; i < first + length; i++) {
            int64_t c = i / run % channels;
            dw[c] += (double)dy[i] * ((double)x[i] - mean) /
                     sqrt(squares + (double)node->attr.norm.epsilon);
            db[c] += (double)dy[i];
        }
    }
    double sum = (learns(g, node, 1) ? dot(dw, dw, channels) : 0) +
                 (learns(g, node, 2) ? dot(db, db, channels) : 0);
    free(dw);
    free(db);
    return sum;
}

/* Adds a layer's part to norms [BATCH] (squared), from a plan of the batch that keeps all; false:
 * no layer with parameters. */
static bool add_layer(struct plan *plan, const struct graph *g, const struct node *node,
                      double *norms)
{
    enum op_kind kind = node->op->kind;
    bool norm = kind == OP_GROUP_NORM || kind == OP_LAYER_NORM;
    if (!norm && kind != OP_CONV && kind != OP_LINEAR)
        return false;
    int64_t in = shape_count(graph_shape(g, node->inputs[0]));
    int64_t out = shape_count(graph_shape(g, node->output));
    float *x = malloc((size_t)in * sizeof *x), *dy = malloc((size_t)out * sizeof *dy);
    struct err err = { 0 };
    if (!plan_activation(plan, node->inputs[0], x, &err) ||
        !plan_activation_gradient(plan, node->output, dy, &err))
        fail_msg("%s: %s", node->name, err.text);
    for (int64_t s = 0; s < BATCH; s++)
        norms[s] += (norm ? norm_layer : ghost_layer)(g, node, x + s * (in / BATCH),
                                                      dy + s * (out / BATCH));
    free(x);
    free(dy);
    return true;
}

/* --- comparisons --- */

/* Samples from `first` on of input i, as many as it has; of the gradient of the output. */
static void give_input(const struct graph *g, int i, int64_t first, float *to)
{
    int64_t n = shape_count(graph_shape(g, g->inputs[i].value));
    int64_t each = n / graph_shape(g, g->inputs[i].value)->dim[0];
    for (int64_t at = 0; at < n; at += each)
        draw(to + at, each, (uint64_t)(100 * i + first + at / each));
}

static void give_gradient(const struct graph *g, int64_t first, float *to)
{
    int64_t n = shape_count(graph_shape(g, g->outputs[0].value));
    int64_t each = n / graph_shape(g, g->outputs[0].value)->dim[0];
    for (int64_t at = 0; at < n; at += each)
        draw(to + at, each, (uint64_t)(1000 + first + at / each));
}

static void give_inputs(struct plan *plan, const struct graph *g)
{
    for (int i = 0; i < g->n_inputs; i++)
        give_input(g, i, 0, plan_input(plan, i));
}

/* The samples [0, n), each a unit, clipped and added to sum. */
static void run_units(struct clipped *units, int n, float *sum, double *norms)
{
    const struct graph *g = clipped_graph(units);
    struct err err = { 0 };
    for (int s = 0; s < n; s += clipped_slots(units)) {
        int many = n - s < clipped_slots(units) ? n - s : clipped_slots(units);
        for (int k = 0; k < many * g->n_inputs; k++)
            give_input(g, k / many, s + k % many, clipped_input(units, k % many, k / many));
        if (!clipped_forward(units, many, &err))
            fail_msg("%s", err.text);
        for (int k = 0; k < many; k++)
            give_gradient(g, s + k, clipped_output_gradient(units, k, 0));
        if (!clipped_backward(units, many, sum, norms + s, &err))
            fail_msg("%s", err.text);
    }
}

static double largest_difference(const float *a, const float *b, int64_t n)
{
    double most = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return most / largest;
}

/* Units of one sample in a network: norms against ghosts, the sum against the batch. */
static void compare(struct graph *g, int threads)
{
    struct plan_options whole = {
        .mode = PLAN_TRAIN, .threads = 1, .no_sharing = true, .direct = true
    };
    struct clipped_options options = { .copies = 1,
                                       .clip = INFINITY,
                                       .threads = threads,
                                       .plan = { .mode = PLAN_TRAIN, .direct = true } };
    struct plan *plan = NULL;
    struct clipped *units = NULL;
    struct err err = { 0 };
    int64_t count = graph_parameter_count(g), same = 0;
    float *sum = calloc((size_t)count, sizeof *sum);
    double least = 0, ghost[BATCH] = { 0 }, norms[BATCH] = { 0 };
    value_id *keep = calloc((size_t)g->n_values, sizeof *keep);
    for (value_id v = 0; v < g->n_values; v++)
        if (!graph_is_parameter(g, v))
            keep[whole.n_keep++] = v;
    whole.keep = keep;
    if (!plan_new(g, &whole, &plan, &err) || !clipped_new(g, &options, &units, &err))
        fail_msg("%s", err.text);
    give_inputs(plan, g);
    assert_true(plan_forward(plan, &err));
    give_gradient(g, 0, plan_output_gradient(plan, 0));
    plan_zero_gradients(plan);
    assert_true(plan_backward(plan, &err));
    for (int32_t i = 0; i < g->n_nodes; i++)
        same += add_layer(plan, g, &g->nodes[i], ghost);
    run_units(units, BATCH, sum, norms);
    double error = largest_difference(sum, plan_gradients(plan, &count), count), worst = 0;
    for (int s = 0; s < BATCH; s++) {
        worst = fmax(worst, norms[s] / sqrt(ghost[s]) - 1);
        least = fmin(least, norms[s] / sqrt(ghost[s]) - 1);
    }
    print_message("%s: %d layers; norms off by %.1e to %.1e, the sum by %.1e\n", g->name, (int)same,
                  least, worst, error);
    assert_true(least > -1e-7 && worst < 1e-5); /* from pairs: a little too large (pair_norm.h) */
    assert_true(error < 1e-6);
    clipped_free(units);
    plan_free(plan);
    free(keep);
    free(sum);
    graph_free(g);
}

static void unet_has_ghost_norms(void **state)
{
    (void)state;
    compare(unet(), 2);
}

static void transformer_has_ghost_norms(void **state)
{
    (void)state;
    compare(transformer(), 1);
}

#define MANY 11 /* more than two plans take */

/* Units are in other plans, beside others; saving: also where activations are kept as bfloat16. */
static void threads_change_no_bit(void **state)
{
    struct graph *g = unet();
    int64_t count = graph_parameter_count(g);
    struct err err = { 0 };
    (void)state;
    for (int half = 0; half < 2; half++) {
        float *sums[3];
        double norms[3][MANY];
        for (int i = 0; i < 3; i++) {
            struct clipped_options options = { .copies = 1, .clip = 0.5, .threads = 1 + i };
            struct clipped *units = NULL;
            options.plan.mode = PLAN_TRAIN;
            options.plan.saving = half ? SAVING_HALF : SAVING_ALL;
            sums[i] = calloc((size_t)count, sizeof *sums[i]);
            assert_true(clipped_new(g, &options, &units, &err));
            assert_int_equal(clipped_slots(units), 4 * (1 + i));
            assert_true(clipped_refresh(units, &err));
            run_units(units, MANY, sums[i], norms[i]);
            clipped_free(units);
            assert_memory_equal(sums[i], sums[0], (size_t)count * sizeof *sums[i]);
            assert_memory_equal(norms[i], norms[0], sizeof norms[i]);
        }
        for (int i = 0; i < 3; i++)
            free(sums[i]);
    }
    graph_free(g);
}

/* A unit that is not finite, in a plan with others, is as if it were not there. */
static void what_is_not_finite_is_left_out(void **state)
{
    struct graph *g = unet();
    int64_t count = graph_parameter_count(g);
    struct clipped_options options = { .copies = 1, .clip = 0.5, .threads = 1 };
    struct err err = { 0 };
    float *sums[2];
    double norms[BATCH];
    (void)state;
    options.plan.mode = PLAN_TRAIN;
    for (int i = 0; i < 2; i++) {
        struct clipped *units = NULL;
        sums[i] = calloc((size_t)count, sizeof *sums[i]);
        assert_true(clipped_new(g, &options, &units, &err));
        const struct graph *one = clipped_graph(units);
        for (int s = 0; s < BATCH; s++)
            for (int k = 0; k < one->n_inputs; k++)
                give_input(one, k, s, clipped_input(units, s, k));
        if (i == 0)
            clipped_input(units, BATCH - 1, 0)[5] = NAN;
        assert_true(clipped_forward(units, BATCH - (i == 1), &err));
        for (int s = 0; s < BATCH; s++)
            give_gradient(one, s, clipped_output_gradient(units, s, 0));
        assert_true(clipped_backward(units, BATCH - (i == 1), sums[i], norms, &err));
        assert_true(i == 1 || isnan(norms[BATCH - 1]));
        clipped_free(units);
    }
    assert_memory_equal(sums[0], sums[1], (size_t)count * sizeof *sums[0]);
    free(sums[0]), free(sums[1]);
    graph_free(g);
}

#ifndef __SANITIZE_ADDRESS__ /* whose memory no limit suffices for */
/* Between what plans of one unit and of four take. */
static struct rlimit limit_between(const struct graph *one, struct rlimit before)
{
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1 };
    struct plan_estimate need[2];
    struct graph *four = NULL;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_true(file && fscanf(file, "%ld", &pages) == 1 && fclose(file) == 0);
    assert_true(transform_resize(one, 4, 0, 0, &four, NULL));
    assert_true(plan_estimate(one, &options, &need[0], NULL));
    assert_true(plan_estimate(four, &options, &need[1], NULL));
    graph_free(four);
    before.rlim_cur =
        (rlim_t)(pages * sysconf(_SC_PAGESIZE)) + (rlim_t)(need[0].arena + need[1].arena) / 2;
    return before;
}

static void units_run_alone_where_memory_is_short(void **state)
{
    struct graph *g = graph_new("large");
    value_id x = graph_input(g, "input", SHAPE(1, 3, 1024, 1024));
    x = graph_relu(g, graph_conv(g, x, "first", 16, true, conv_square(3, 1, 1)));
    graph_output(g, "map", graph_conv(g, x, "second", 3, true, conv_square(3, 1, 1)));
    g = ready(g);
    struct clipped_options options = { .copies = 1, .clip = 0.5, .threads = 1 };
    struct rlimit before, limit;
    (void)state;
    options.plan.mode = PLAN_TRAIN;
    for (int tight = 0; tight < 2; tight++) {
        struct clipped *units = NULL;
        struct err err = { 0 };
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        limit = tight ? limit_between(g, before) : before;
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        bool ok = clipped_new(g, &options, &units, &err);
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        if (!ok)
            fail_msg("%s", err.text);
        assert_int_equal(clipped_slots(units), tight ? 1 : 4);
        clipped_free(units);
    }
    graph_free(g);
}
#endif

static float *outputs_of(const struct graph *g, int64_t *n)
{
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1 };
    struct plan *plan = NULL;
    struct err err = { 0 };
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    give_inputs(plan, g);
    assert_true(plan_forward(plan, &err));
    *n = shape_count(graph_shape(g, g->outputs[0].value));
    float *out = malloc((size_t)*n * sizeof *out);
    memcpy(out, plan_output(plan, 0), (size_t)*n * sizeof *out);
    plan_free(plan);
    return out;
}

/* Adapters change nothing at first; merged they are the same network. Only what is chosen learns.
 */
static void adapters_can_be_merged(void **state)
{
    static const char *const some[] = { "adapters", "norms", "out.conv.*" };
    static const char *const none[] = { "no.such.*" };
    struct graph *g = unet(), *adapted = NULL, *learnt = NULL, *merged = NULL;
    struct err err = { 0 };
    int64_t n = 0, count = 0;
    (void)state;
    assert_true(transform_adapters(g, 2, 3, &adapted, &err));
    float *before = outputs_of(g, &n), *after = outputs_of(adapted, &n);
    assert_true(largest_difference(after, before, n) < 1e-6);
    free(after);
    for (value_id v = 0; v < adapted->n_values; v++)
        if (graph_is_parameter(adapted, v) && strstr(adapted->values[v].name, ".adapter_")) {
            float *weights = graph_data(adapted, v);
            int64_t size = shape_count(&adapted->values[v].shape);
            draw(weights, size, (uint64_t)v);
            for (int64_t i = 0; i < size; i++) /* larger ones would amplify rounding */
                weights[i] *= 0.1f;
            count += size;
        }
    assert_true(transform_merge_adapters(adapted, &merged, &err));
    assert_int_equal(merged->n_nodes, g->n_nodes);
    float *a = outputs_of(adapted, &n), *b = outputs_of(merged, &n);
    assert_true(largest_difference(a, before, n) > 1e-2);
    assert_true(largest_difference(a, b, n) < 1e-5);
    assert_true(transform_learn(adapted, some, 3, &learnt, &err));
    for (value_id v = 0; v < learnt->n_values; v++) {
        const char *name = learnt->values[v].name;
        bool chosen =
            graph_is_parameter(learnt, v) && (strstr(name, ".adapter_") || strstr(name, "norm") ||
                                              strncmp(name, "out.conv.", 9) == 0);
        if (graph_is_parameter(learnt, v))
            assert_int_equal(learnt->values[v].kind == VALUE_PARAMETER, chosen);
    }
    assert_true(count > 0 && graph_parameter_count(learnt) > count);
    compare(learnt, 1);
    assert_false(transform_learn(adapted, none, 1, &learnt, &err));
    assert_non_null(strstr(err.text, "has no parameter 'no.such.*'"));
    free(before), free(a), free(b);
    graph_free(g), graph_free(adapted), graph_free(merged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(units_run_alone_where_memory_is_short),
#endif
        cmocka_unit_test(unet_has_ghost_norms),
        cmocka_unit_test(transformer_has_ghost_norms),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(adapters_can_be_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
