/* test_explain_probe.c: the values and gradients that a probe sees against a plan of the whole
 * network in which every tensor is kept, and against differences of logits; names of layers, tokens
 * of transformers; the same bytes on any number of threads; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "explain/probe.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"

#define SIDE 24
#define IMAGE (3 * SIDE * SIDE)
enum { CLASSES = 3, IMAGES = 11 };

static value_id unit(struct graph *g, value_id x, const char *name, int64_t channels, int stride)
{
    char norm[40], unit_name[40];
    snprintf(norm, sizeof norm, "%s.bn", name);
    snprintf(unit_name, sizeof unit_name, "%s.unit", name);
    x = graph_conv(g, x, name, channels, false, conv_square(3, stride, 1));
    x = graph_relu(g, graph_batch_norm(g, x, norm));
    return graph_alias(g, unit_name, x);
}

/* Branches, a residual, dropout, a shortcut from the image: everything that can cross a cut. */
static struct graph *branched(void)
{
    struct graph *g = graph_new("branched");
    value_id image = graph_input(g, "input", SHAPE(1, 3, SIDE, SIDE));
    value_id x = unit(g, image, "stem", 16, 2);
    value_id a = unit(g, x, "a", 16, 1), b = unit(g, unit(g, x, "b", 24, 1), "c", 16, 1);
    x = graph_alias(g, "sum", graph_relu(g, graph_add(g, graph_add(g, a, b), x)));
    value_id small = graph_average_pool(g, image, pool_square(2, 2, 0));
    x = graph_alias(g, "joined", graph_concat(g, (value_id[]){ x, small }, 2, 1));
    x = graph_dropout(g, unit(g, x, "last", 20, 2), 0.5f);
    x = graph_alias(g, "pool", graph_global_average_pool(g, x));
    graph_output(g, "logits", graph_linear(g, graph_flatten(g, x), "fc", CLASSES, true));
    return g;
}

/* Two blocks of attention on 16 tokens, with a class token or with the mean of the tokens. */
static struct graph *transformer(bool class_token)
{
    enum { WIDTH = 8 };
    static const char *const names[] = { "block.0", "block.1" };
    static const char *const norms[] = { "block.0.norm", "block.1.norm" };
    static const char *const linears[] = { "block.0.mlp", "block.1.mlp" };
    struct graph *g = graph_new("transformer");
    value_id image = graph_input(g, "input", SHAPE(1, 3, SIDE, SIDE));
    value_id x = graph_conv(g, image, "embed", WIDTH, true, conv_square(6, 6, 0));
    x = graph_transpose(g, graph_reshape(g, x, SHAPE(0, WIDTH, -1)), (int64_t[]){ 0, 2, 1 });
    value_id token = graph_expand_batch(g, graph_parameter(g, "token", SHAPE(1, 1, WIDTH)), x);
    if (class_token)
        x = graph_concat(g, (value_id[]){ token, x }, 2, 1);
    for (int i = 0; i < 2; i++) {
        value_id y = graph_layer_norm(g, x, norms[i], 1e-6f);
        value_id heads =
            graph_transpose(g, graph_reshape(g, y, SHAPE(0, 0, 2, -1)), (int64_t[]){ 0, 2, 1, 3 });
        y = graph_matmul(g, heads, heads,
                         (struct matmul_attr){ .transpose_b = true, .scale = 0.5f });
        y = graph_matmul(g, graph_softmax(g, y, -1), heads, (struct matmul_attr){ 0 });
        y = graph_reshape(g, graph_transpose(g, y, (int64_t[]){ 0, 2, 1, 3 }), SHAPE(0, 0, WIDTH));
        x = graph_add(g, x, graph_gelu(g, graph_linear(g, y, linears[i], WIDTH, true)));
        graph_alias(g, names[i], x);
    }
    x = class_token ? graph_flatten(g, graph_slice(g, x, 1, 0, 1))
                    : graph_reduce_mean(g, x, 1u << 1, false);
    graph_init(g, "token", (struct init){ INIT_NORMAL, 1 });
    graph_output(g, "logits", graph_linear(g, x, "head", CLASSES, true));
    return g;
}

static struct model model_of(struct graph *graph)
{
    struct err err = { 0 };
    graph_init(graph, "*.bn.weight", (struct init){ INIT_NORMAL, 1 });
    graph_init(graph, "*.bn.bias", (struct init){ INIT_NORMAL, 0.5f });
    graph_init(graph, "*.bn.running_mean", (struct init){ INIT_NORMAL, 0.5f });
    if (!graph_ok(graph, &err) || !graph_initialize(graph, 3, &err))
        fail_msg("%s", err.text);
    return (
        struct model){ .graph = graph, .config = { .num_classes = CLASSES }, .name = graph->name };
}

static float *images(int64_t n)
{
    float *x = malloc((size_t)n * IMAGE * sizeof *x);
    struct rng rng = rng_new(5, 0, 0);
    assert_non_null(x);
    for (int64_t i = 0; i < n * IMAGE; i++)
        x[i] = (float)rng_normal(&rng);
    return x;
}

static struct probe *probe_of(const struct model *model, const char *const *layers, int n,
                              struct probe_options more)
{
    struct err err = { 0 };
    struct probe *probe = NULL;
    more.layers = layers, more.n_layers = n;
    more.height = more.width = SIDE;
    more.batch = more.batch ? more.batch : IMAGES;
    more.threads = more.threads ? more.threads : 1;
    if (!probe_new(model, &more, &probe, &err))
        fail_msg("%s", err.text);
    return probe;
}

static void near(const char *what, const float *a, const float *b, int64_t n)
{
    double most = 0, difference = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)b[i]));
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
    }
    if (!(difference <= 2e-5 * most) || most == 0)
        fail_msg("%s: differs by %g of %g", what, difference, most);
}

/* The network as it is, unfused, with all tensors. */
static struct plan *reference(const struct model *model, int64_t n, struct graph **graph)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    struct plan_options options = {
        .mode = PLAN_TUNE, .threads = 1, .no_sharing = true, .input_gradients = true
    };
    if (!transform_resize(model->graph, n, SIDE, SIDE, graph, &err) ||
        !plan_new(*graph, &options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void run_reference(struct plan *plan, const float *x, int64_t n, const int64_t *classes)
{
    struct err err = { 0 };
    memcpy(plan_input(plan, 0), x, (size_t)n * IMAGE * sizeof *x);
    assert_true(plan_forward(plan, &err));
    for (int64_t i = 0; i < n; i++)
        plan_output_gradient(plan, 0)[i * CLASSES + classes[i]] = 1;
    assert_true(plan_backward(plan, &err));
}

static const int64_t some_classes[IMAGES] = { 0, 1, 2, 2, 1, 0, 0, 1, 2, 1, 1 };

/* Every layer alone, all at once, and with the input's gradient. */
static void compare_layers(struct graph *graph, const char *const *names, int n_names)
{
    struct model model = model_of(graph);
    struct err err = { 0 };
    struct graph *whole = NULL;
    struct plan *plan = reference(&model, IMAGES, &whole);
    float *x = images(IMAGES), *expected = malloc(IMAGES * 64 * IMAGE * sizeof *expected);
    run_reference(plan, x, IMAGES, some_classes);
    for (int set = 0; set < n_names + 2; set++) {
        int first = set < n_names ? set : 0, n = set < n_names ? 1 : n_names;
        struct probe *probe = probe_of(&model, names + first, n,
                                       (struct probe_options){ .input_gradient = set > n_names });
        assert_true(probe_differentiate(probe, x, IMAGES, some_classes, &err));
        near("logits", probe_logits(probe), plan_output(plan, 0), IMAGES * CLASSES);
        for (int i = 0; i < n; i++) {
            const struct probe_layer *layer = probe_layer(probe, i);
            value_id value = graph_find(whole, names[first + i]);
            assert_string_equal(layer->name, names[first + i]);
            assert_false(layer->tokens);
            int64_t count = IMAGES * layer->channels * layer->height * layer->width;
            assert_int_equal(count, shape_count(graph_shape(whole, value)));
            assert_true(plan_activation(plan, value, expected, &err));
            near(layer->name, probe_activation(probe, i, &err), expected, count);
            assert_true(plan_activation_gradient(plan, value, expected, &err));
            near(layer->name, probe_gradient(probe, i, &err), expected, count);
        }
        if (set > n_names) {
            assert_true(plan_activation_gradient(plan, whole->inputs[0].value, expected, &err));
            near("input", probe_input_gradient(probe, &err), expected, IMAGES * IMAGE);
        }
        probe_free(probe);
    }
    free(x), free(expected);
    plan_free(plan), graph_free(whole), graph_free(graph);
}

static void test_layers(void **state)
{
    (void)state;
    /* fused away, in parallel branches, behind dropout, without extent, the logits, the image */
    static const char *const names[] = { "a",      "stem.unit", "b.unit",    "c.bn",
                                         "sum",    "joined",    "last.unit", "pool",
                                         "logits", "input",     "a.bn",      "c" };
    compare_layers(branched(), names, sizeof names / sizeof *names);
}

/* Tokens are images without the class token, their gradients too. */
static void test_tokens(void **state)
{
    (void)state;
    for (int class_token = 0; class_token < 2; class_token++) {
        struct model model = model_of(transformer(class_token));
        struct err err = { 0 };
        struct graph *whole = NULL;
        struct plan *plan = reference(&model, 2, &whole);
        float *x = images(2), expected[2 * 17 * 8];
        run_reference(plan, x, 2, some_classes);
        static const char *const names[] = { "block.0", "" };
        struct probe *probe = probe_of(&model, names, 2, (struct probe_options){ .batch = 2 });
        assert_true(probe_differentiate(probe, x, 2, some_classes, &err));
        const char *last = class_token ? "block.1.norm" : "block.1";
        assert_string_equal(probe_layer(probe, 1)->name, last);
        for (int i = 0; i < 4; i++) {
            const struct probe_layer *layer = probe_layer(probe, i / 2);
            value_id value = graph_find(whole, layer->name);
            assert_true(layer->tokens && layer->class_token == class_token && layer->spatial);
            assert_true(layer->height == 4 && layer->width == 4 && layer->channels == 8);
            assert_true(i % 2 ? plan_activation(plan, value, expected, &err)
                              : plan_activation_gradient(plan, value, expected, &err));
            const float *ours =
                i % 2 ? probe_activation(probe, i / 2, &err) : probe_gradient(probe, i / 2, &err);
            float plain[2 * 16 * 8];
            for (int k = 0; k < 2 * 8 * 16; k++)
                plain[k] = expected[(k / 128 * (16 + class_token) + class_token + k % 16) * 8 +
                                    k / 16 % 8];
            near(layer->name, ours, plain, 2 * 8 * 16);
        }
        probe_free(probe), plan_free(plan), graph_free(whole), graph_free(model.graph), free(x);
    }
}

/* The rows of attention add up to 1, and are those of the network. */
static void test_attention(void **state)
{
    (void)state;
    struct model model = model_of(transformer(true)), other = model_of(branched());
    struct err err = { 0 };
    float *x = images(9);
    struct probe_options options = { .forward_only = true, .attention = true, .batch = 9 };
    struct probe *probe = probe_of(&model, NULL, 0, options);
    assert_int_equal(probe_n_layers(probe), 0);
    assert_int_equal(probe_n_attention(probe), 2);
    assert_true(probe_forward(probe, x, 9, &err));
    struct graph *whole = NULL;
    struct plan *plan = reference(&model, 9, &whole);
    run_reference(plan, x, 9, some_classes);
    int found = 0;
    for (int32_t i = 0; i < whole->n_nodes; i++)
        if (whole->nodes[i].op->kind == OP_SOFTMAX) {
            struct probe_attention attention = probe_attention(probe, found++);
            float expected[9 * 2 * 17 * 17];
            assert_true(attention.heads == 2 && attention.tokens == 17);
            assert_true(plan_activation(plan, whole->nodes[i].output, expected, &err));
            near("attention", attention.values, expected, 9 * 2 * 17 * 17);
            double sum = 0;
            for (int k = 0; k < 17; k++)
                sum += (double)attention.values[k];
            assert_true(fabs(sum - 1) < 1e-5);
        }
    assert_int_equal(found, 2);
    probe_free(probe), plan_free(plan), graph_free(whole);
    probe = probe_of(&other, NULL, 0, options);
    assert_int_equal(probe_n_attention(probe), 0);
    probe_free(probe), graph_free(model.graph), graph_free(other.graph), free(x);
}

/* Central differences of the logit, along a random direction. */
static void test_differences(void **state)
{
    (void)state;
    struct model model = model_of(transformer(true));
    struct err err = { 0 };
    struct probe *probe =
        probe_of(&model, NULL, 0, (struct probe_options){ .input_gradient = true });
    float *x = images(3), *moved = images(3);
    const float step = 1e-2f;
    for (int64_t class = 0; class < CLASSES; class ++) {
        assert_true(probe_differentiate(probe, x, 1, &class, &err));
        const float *gradient = probe_input_gradient(probe, &err);
        double slope = 0;
        for (int i = 0; i < IMAGE; i++) {
            const float *direction = moved + 2 * IMAGE;
            slope += (double)gradient[i] * (double)direction[i];
            moved[i] = x[i] + step * direction[i];
            moved[IMAGE + i] = x[i] - step * direction[i];
        }
        assert_true(probe_forward(probe, moved, 2, &err));
        const float *logits = probe_logits(probe);
        double expected = ((double)logits[class] - (double)logits[CLASSES + class]) / 2e-2;
        if (!(fabs(slope - expected) < 1e-3 * fabs(expected) + 1e-4))
            fail_msg("class %d: %g, by differences %g", (int)class, slope, expected);
    }
    probe_free(probe), graph_free(model.graph), free(x), free(moved);
}

/* However many threads, in one call or in two; an image left over is that image alone. */
static void test_threads(void **state)
{
    (void)state;
    struct model model = model_of(branched());
    struct err err = { 0 };
    float *x = images(IMAGES), *first = NULL;
    static const char *const names[] = { "b.unit" };
    size_t bytes = 0;
    for (int threads = 1; threads <= 3; threads++) {
        struct probe *probe =
            probe_of(&model, names, 1, (struct probe_options){ .threads = threads });
        bytes = IMAGES * 24 * 12 * 12 * sizeof(float);
        for (int again = 0; again < 3; again++) {
            if (again == 1)
                assert_true(probe_differentiate(probe, x, IMAGES, some_classes, &err));
            else
                assert_true(probe_forward(probe, x, IMAGES, &err) &&
                            probe_backward(probe, some_classes, &err));
            if (!first) {
                first = malloc(bytes);
                assert_non_null(first);
                memcpy(first, probe_gradient(probe, 0, &err), bytes);
            }
            assert_memory_equal(first, probe_gradient(probe, 0, &err), bytes);
        }
        assert_true(probe_differentiate(probe, x + 10 * IMAGE, 1, some_classes + 10, &err));
        assert_memory_equal(first + 10 * 24 * 144, probe_gradient(probe, 0, &err),
                            24 * 144 * sizeof(float));
        probe_free(probe);
    }
    free(first), free(x), graph_free(model.graph);
}

/* Probes that share weights, at several sizes and for several purposes, are as those that do not.
 */
static void test_shared(void **state)
{
    (void)state;
    struct model model = model_of(branched());
    struct err err = { 0 };
    struct probe_shared *shared = probe_shared_new();
    float *x = images(4);
    static const char *const names[] = { "b.unit", "sum" };
    for (int i = 0; i < 8; i++) {
        struct probe *probes[2] = { NULL, NULL };
        int64_t side = i & 4 ? SIDE / 2 : SIDE;
        for (int k = 0; k < 2; k++) {
            struct probe_options options = { .layers = names + (i & 1),
                                             .n_layers = 1,
                                             .height = side,
                                             .width = side,
                                             .batch = 4,
                                             .threads = 1,
                                             .forward_only = i & 2,
                                             .shared = k ? shared : NULL };
            if (!probe_new(&model, &options, &probes[k], &err) ||
                !probe_forward(probes[k], x, 4, &err))
                fail_msg("%s", err.text);
        }
        const struct probe_layer *layer = probe_layer(probes[0], 0);
        assert_int_equal(layer->height, side / 2);
        assert_memory_equal(probe_logits(probes[0]), probe_logits(probes[1]),
                            4 * CLASSES * sizeof(float));
        assert_memory_equal(
            probe_activation(probes[0], 0, &err), probe_activation(probes[1], 0, &err),
            (size_t)(4 * layer->channels * layer->height * layer->width) * sizeof(float));
        probe_free(probes[0]), probe_free(probes[1]);
    }
    probe_shared_free(shared), graph_free(model.graph), free(x);
}

static void refused(const struct model *model, const char *layer, int side, const char *message)
{
    struct err err = { 0 };
    struct probe *probe = NULL;
    struct probe_options options = {
        .layers = &layer, .n_layers = 1, .height = side, .width = side, .batch = 1, .threads = 1
    };
    assert_false(probe_new(model, &options, &probe, &err));
    assert_string_equal(err.text, message);
    assert_null(probe);
}

static void test_bad_input(void **state)
{
    (void)state;
    struct graph *graph = branched();
    graph_alias(graph, "beside", graph_relu(graph, graph_find(graph, "a")));
    struct model model = model_of(graph);
    struct err err = { 0 };
    refused(&model, "joint", SIDE, "branched: no layer 'joint'; did you mean joined?");
    refused(&model, "fc.weight", SIDE, "branched: 'fc.weight' is a weight, not a layer");
    refused(&model, "beside", SIDE,
            "branched: the scores do not depend on layer 'beside'; choose a layer before the "
            "output");
    static const char *const names[] = { "pool" };
    struct probe *probe = probe_of(&model, names, 1, (struct probe_options){ .batch = 1 });
    assert_false(probe_need_spatial(probe, 0, &err));
    assert_string_equal(err.text,
                        "branched: layer 'pool' has no extent (1 x 1), so there is nothing "
                        "to map; choose one that has, e.g. --layer last.unit");
    int64_t class = CLASSES;
    float *x = images(2);
    assert_null(probe_activation(probe, 0, &err));
    assert_false(probe_forward(probe, x, 2, &err));
    assert_string_equal(err.text, "branched: a pass of 2 images in a probe for 1 to 1");
    assert_false(probe_backward(probe, &class, &err));
    assert_true(probe_forward(probe, x, 1, &err));
    assert_null(probe_gradient(probe, 0, &err));
    assert_null(probe_input_gradient(probe, &err));
    assert_false(probe_backward(probe, &class, &err));
    assert_string_equal(err.text, "branched: no class 3; it has 3");
    probe_free(probe), graph_free(graph), free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),    cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_differences),
        cmocka_unit_test(test_threads),   cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
