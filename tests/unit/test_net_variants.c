/* test_net_variants.c: networks with another head, and with other rules than batch norm: against
 * PyTorch (tests/golden/net_variants.py), as they start and learn, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/model/variant.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/golden.h"
#include "train/loss.h"

static struct golden golden;

static value_id conv_norm(struct graph *g, value_id x, const char *conv, const char *norm,
                          int64_t channels, struct conv_attr attr)
{
    return graph_batch_norm(g, graph_conv(g, x, conv, channels, false, attr), norm);
}

/* The network of net_variants.py as it is before it is changed. */
static struct graph *small_network(float dropout)
{
    struct graph *g = graph_new("small");
    value_id x = graph_input(g, "input", SHAPE(2, 3, 17, 15));
    x = graph_relu(g, conv_norm(g, x, "conv1", "bn1", 8, conv_square(3, 2, 1)));
    value_id y = graph_relu(g, conv_norm(g, x, "a.conv1", "a.bn1", 8, conv_square(3, 1, 1)));
    y = conv_norm(g, y, "a.conv2", "a.bn2", 8, conv_square(3, 1, 1));
    x = graph_alias(g, "a", graph_relu(g, graph_add(g, y, x)));
    y = graph_relu(g, conv_norm(g, x, "b.conv1", "b.bn1", 12, conv_square(3, 2, 1)));
    y = conv_norm(g, y, "b.conv2", "b.bn2", 12, conv_square(3, 1, 1));
    x = conv_norm(g, x, "b.down", "b.norm", 12, conv_square(1, 2, 0));
    x = graph_alias(g, "b", graph_relu(g, graph_add(g, y, x)));
    x = graph_alias(g, "avgpool", graph_global_average_pool(g, x));
    x = graph_dropout(g, graph_flatten(g, x), dropout);
    graph_output(g, "logits", graph_alias(g, "fc", graph_linear(g, x, "fc", 3, true)));
    assert_true(graph_ok(g, NULL));
    return g;
}

static struct graph *variant_of(struct graph *g, enum head_kind head, enum norm_rule norm)
{
    struct err err = { 0 };
    if (!variant_apply(&g, &(struct network_variant){ head, norm, PADDING_ZERO }, &err))
        fail_msg("%s", err.text);
    return g;
}

static struct plan *plan_of(const struct graph *g, const struct plan_options *options)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    if (!plan_new(g, options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void set_parameters(struct graph *g, const char *name)
{
    assert_true(graph_allocate(g, NULL));
    for (int32_t i = 0; i < g->n_values; i++) {
        if (!graph_is_parameter(g, i))
            continue;
        const struct golden_tensor *t = golden_find(&golden, "%s/p:%s", name, g->values[i].name);
        if (!t || !shape_equal(&t->shape, &g->values[i].shape))
            fail_msg("%s: PyTorch's network has no %s of this shape", name, g->values[i].name);
        memcpy(graph_data(g, i), t->data, (size_t)shape_count(&t->shape) * sizeof(float));
    }
}

static void check(const char *name, const char *what, const float *own,
                  const struct golden_tensor *t)
{
    double error = relative_error(own, t->data, shape_count(&t->shape));
    if (error > 2e-5)
        fail_msg("%s: %s is off by %g", name, what, error);
}

static void compare(const char *name, enum head_kind head, enum norm_rule norm)
{
    struct graph *g = variant_of(small_network(0), head, norm);
    struct plan_options options = { .mode = PLAN_TRAIN,
                                    .threads = 2,
                                    .norm_frozen = norm == NORM_FROZEN };
    const struct golden_tensor *x = golden_find(&golden, "%s/x", name);
    const struct golden_tensor *dy = golden_find(&golden, "%s/g", name);
    set_parameters(g, name);
    struct plan *plan = plan_of(g, &options);
    memcpy(plan_input(plan, 0), x->data, (size_t)shape_count(&x->shape) * sizeof(float));
    plan_zero_gradients(plan);
    assert_true(plan_forward(plan, NULL));
    check(name, "y", plan_output(plan, 0), golden_find(&golden, "%s/y", name));
    memcpy(plan_output_gradient(plan, 0), dy->data,
           (size_t)shape_count(&dy->shape) * sizeof(float));
    assert_true(plan_backward(plan, NULL));
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i].kind == VALUE_PARAMETER)
            check(name, g->values[i].name, plan_parameter_gradient(plan, i),
                  golden_find(&golden, "%s/d:%s", name, g->values[i].name));
    plan_free(plan);
    graph_free(g);
}

static void test_pytorch(void **state)
{
    (void)state;
    compare("frozen_mean", HEAD_MEAN, NORM_FROZEN);
    compare("frozen_max", HEAD_MAX, NORM_FROZEN);
    compare("ws_attention", HEAD_ATTENTION, NORM_WS);
    compare("ws_classes", HEAD_CLASSES, NORM_WS);
    compare("fixup_lse", HEAD_LSE, NORM_FIXUP);
    compare("group_mean", HEAD_MEAN, NORM_GROUP);
}

static void draw_images(struct plan *plan, const struct graph *g)
{
    const struct shape *shape = graph_shape(g, g->inputs[0].value);
    struct rng rng = rng_new(3, 1, 4);
    for (int64_t i = 0; i < shape_count(shape); i++)
        plan_input(plan, 0)[i] = (float)rng_normal(&rng);
}

/* Running statistics that differ from those of the images. */
static void set_statistics(struct graph *g)
{
    for (int32_t i = 0; i < g->n_values; i++) {
        bool variance = strstr(g->values[i].name, "running_var") != NULL;
        for (int64_t k = 0;
             g->values[i].kind == VALUE_BUFFER && k < shape_count(&g->values[i].shape); k++)
            graph_data(g, i)[k] = (variance ? 0.2f : -0.1f) + 0.02f * (float)(k % 7);
    }
}

/* Frozen batch norm trains with the numbers of inference, and its statistics stay. Dropout is on,
 * unlike in PLAN_TUNE. */
static void test_frozen(void **state)
{
    (void)state;
    struct graph *g = small_network(0.5f), *before = NULL;
    assert_true(graph_initialize(g, 5, NULL));
    set_statistics(g);
    assert_true(graph_copy(g, &before, NULL));
    for (int32_t i = 0; i < g->n_values; i++)
        assert_true(!graph_is_parameter(g, i) || graph_own(g, i, NULL));
    value_id keep = graph_find(g, "avgpool");
    float maps[2][2 * 12];
    for (int k = 0; k < 2; k++) {
        struct plan_options options = { .mode = k ? PLAN_INFER : PLAN_TRAIN,
                                        .threads = 1,
                                        .norm_frozen = true,
                                        .keep = &keep,
                                        .n_keep = 1 };
        struct plan *plan = plan_of(g, &options);
        draw_images(plan, g);
        plan_set_random(plan, 1, 0);
        assert_true(plan_forward(plan, NULL));
        assert_true(plan_activation(plan, keep, maps[k], NULL));
        float logits[6];
        memcpy(logits, plan_output(plan, 0), sizeof logits);
        plan_set_random(plan, 2, 0);
        assert_true(plan_forward(plan, NULL));
        assert_int_equal(memcmp(logits, plan_output(plan, 0), sizeof logits) == 0, k);
        plan_free(plan);
    }
    assert_true(relative_error(maps[0], maps[1], 24) < 1e-6);
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i].kind == VALUE_BUFFER)
            assert_memory_equal(graph_data(g, i), graph_data(before, i),
                                (size_t)shape_count(&g->values[i].shape) * sizeof(float));
    graph_free(g);
    graph_free(before);
}

/* The same network, with the linear layer's parameters, whatever the head. */
static void test_heads_of_a_constant_map(void **state)
{
    (void)state;
    static const enum head_kind heads[] = { HEAD_MEAN, HEAD_LSE, HEAD_MAX, HEAD_ATTENTION,
                                            HEAD_CLASSES };
    float want[3] = { 0 };
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
        struct graph *g = graph_new("flat");
        value_id x = graph_input(g, "input", SHAPE(1, 3, 4, 6));
        x = graph_reduce_mean(g, graph_conv(g, x, "conv", 7, true, conv_square(1, 1, 0)),
                              1u << 2 | 1u << 3, false);
        graph_output(g, "logits", graph_linear(g, x, "fc", 3, true));
        g = variant_of(g, heads[k], NORM_BATCH);
        assert_true(graph_initialize(g, 8, NULL));
        struct plan *plan = plan_of(g, &(struct plan_options){ .threads = 1 });
        for (int64_t i = 0; i < 3 * 24; i++)
            plan_input(plan, 0)[i] = 0.3f * (float)(1 + i / 24);
        assert_true(plan_forward(plan, NULL));
        if (k == 0)
            memcpy(want, plan_output(plan, 0), sizeof want);
        assert_true(relative_error(plan_output(plan, 0), want, 3) < 1e-5);
        plan_free(plan);
        graph_free(g);
    }
}

static double step(struct plan *plan, struct graph *g, float rate)
{
    static const int32_t labels[4] = { 0, 1, 2, 1 };
    struct loss_classes spec = { .count = 4, .classes = 3, .places = 1 };
    double loss = 0;
    int64_t count;
    draw_images(plan, g);
    plan_zero_gradients(plan);
    assert_true(plan_forward(plan, NULL));
    assert_true(loss_softmax(&spec, plan_output(plan, 0), labels, &loss,
                             plan_output_gradient(plan, 0), NULL));
    assert_true(plan_backward(plan, NULL));
    const float *d = plan_gradients(plan, &count);
    for (int32_t i = 0; i < g->n_values; i++)
        for (int64_t k = 0;
             g->values[i].kind == VALUE_PARAMETER && k < shape_count(&g->values[i].shape); k++)
            graph_data(g, i)[k] -= rate * *d++;
    return loss;
}

/* The root mean square of an activation. */
static double size_of(struct plan *plan, const struct graph *g, value_id value)
{
    int64_t n = shape_count(graph_shape(g, value));
    float *floats = malloc((size_t)n * sizeof *floats);
    double sum = 0;
    assert_non_null(floats);
    assert_true(plan_activation(plan, value, floats, NULL));
    for (int64_t i = 0; i < n; i++)
        sum += (double)floats[i] * (double)floats[i];
    free(floats);
    return sqrt(sum / (double)n);
}

/* From the start numbers neither vanish nor grow with the depth, and a few steps learn four images
 * by heart. */
static void learns(const char *network, enum norm_rule norm, enum head_kind head, float rate)
{
    struct zoo_options options = { .batch = 4, .height = 64, .width = 64, .classes = 3 };
    struct graph *g = NULL;
    struct err err = { 0 };
    assert_true(zoo_build(network, &options, &g, &err));
    g = variant_of(g, head, norm);
    assert_true(graph_initialize(g, 2, &err));
    value_id keep[2] = { graph_find(g, "layer1"), graph_find(g, "layer4") };
    struct plan *plan = plan_of(g, &(struct plan_options){ .mode = PLAN_TRAIN,
                                                           .threads = 2,
                                                           .norm_frozen = norm == NORM_FROZEN,
                                                           .keep = keep,
                                                           .n_keep = 2 });
    double first = step(plan, g, rate), last = first;
    double growth = size_of(plan, g, keep[1]) / size_of(plan, g, keep[0]);
    for (int i = 0; i < 8; i++)
        last = step(plan, g, rate);
    print_message("%s %s: grows by %.2f, loss %.3f -> %.3f\n", network, norm_names[norm], growth,
                  first, last);
    assert_true(growth > 0.2 && growth < 5);
    assert_true(last < 0.8 * first);
    plan_free(plan);
    graph_free(g);
}

static void test_learning(void **state)
{
    (void)state;
    learns("resnet18", NORM_WS, HEAD_ATTENTION, 0.02f);
    learns("resnet18", NORM_FIXUP, HEAD_AUTO, 0.1f); /* slow at first: the classifier starts at 0 */
}

/* Logits and gradients of one image, whole or tile by tile; the caller's: 3 + *count floats. */
static float *gradient_of(const struct graph *g, enum norm_rule norm, const struct plan_stream *s,
                          int64_t *count)
{
    struct plan *plan = plan_of(
        g, &(struct plan_options){
               .mode = PLAN_TRAIN, .threads = 2, .norm_frozen = norm == NORM_FROZEN, .stream = s });
    draw_images(plan, g);
    plan_zero_gradients(plan);
    assert_true(plan_forward(plan, NULL));
    for (int i = 0; i < 3; i++)
        plan_output_gradient(plan, 0)[i] = 0.5f - (float)i;
    assert_true(plan_backward(plan, NULL));
    const float *gradients = plan_gradients(plan, count);
    float *all = malloc((size_t)(*count + 3) * sizeof *all);
    assert_non_null(all);
    memcpy(all, plan_output(plan, 0), 3 * sizeof *all);
    memcpy(all + 3, gradients, (size_t)*count * sizeof *all);
    plan_free(plan);
    return all;
}

/* Every head and norm is streamed. */
static void test_streamed(void **state)
{
    (void)state;
    static const struct network_variant variants[] = {
        { HEAD_MEAN, NORM_FROZEN, PADDING_ZERO },      { HEAD_MAX, NORM_FROZEN, PADDING_ZERO },
        { HEAD_ATTENTION, NORM_FROZEN, PADDING_ZERO }, { HEAD_ATTENTION, NORM_WS, PADDING_ZERO },
        { HEAD_CLASSES, NORM_WS, PADDING_ZERO },       { HEAD_LSE, NORM_FIXUP, PADDING_ZERO },
    };
    for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
        struct graph *g = variant_of(small_network(0), variants[k].head, variants[k].norm);
        struct graph *sized = NULL;
        int64_t count, streamed_count;
        assert_true(graph_initialize(g, 5, NULL));
        for (int32_t i = 0; i < g->n_values; i++) /* what starts with 0 has gradients as well */
            for (int64_t j = 0;
                 g->values[i].kind == VALUE_PARAMETER && j < shape_count(&g->values[i].shape); j++)
                graph_data(g, i)[j] += 0.01f * (float)(j % 5);
        assert_true(transform_resize(g, 1, 93, 118, &sized, NULL));
        float *whole = gradient_of(sized, variants[k].norm, NULL, &count);
        float *tiles = gradient_of(sized, variants[k].norm, &(struct plan_stream){ .tile_px = 32 },
                                   &streamed_count);
        assert_int_equal(count, streamed_count);
        assert_true(relative_error(tiles, whole, 3) < 1e-5);
        assert_true(relative_error(tiles + 3, whole + 3, count) < 1e-5);
        free(whole);
        free(tiles);
        graph_free(sized);
        graph_free(g);
    }
}

struct heard {
    int64_t parameters, floats;
};

static void hear(void *arg, value_id parameter, float *gradient, int64_t count)
{
    struct heard *heard = arg;
    (void)parameter, (void)gradient;
    heard->parameters++, heard->floats += count;
}

/* A plan of standardised weights adds to gradients that are lent, names each once, and notices
 * changes: at once while it is trained, in inference by plan_refresh. */
static void test_plan_of_standardized(void **state)
{
    (void)state;
    struct graph *g = variant_of(small_network(0), HEAD_AUTO, NORM_WS);
    assert_true(graph_initialize(g, 5, NULL));
    int64_t n = graph_parameter_count(g), count, learnt = 0;
    float *lent = calloc((size_t)n, sizeof *lent), *once = calloc((size_t)n, sizeof *once);
    assert_true(lent && once);
    struct plan *plan =
        plan_of(g, &(struct plan_options){ .mode = PLAN_TRAIN, .threads = 1, .gradients = lent });
    struct heard heard = { 0 };
    draw_images(plan, g);
    assert_ptr_equal(plan_gradients(plan, &count), lent);
    assert_int_equal(count, n);
    plan_on_gradient(plan, hear, &heard);
    for (int i = 0; i < 2; i++) {
        assert_true(plan_forward(plan, NULL));
        for (int k = 0; k < 6; k++)
            plan_output_gradient(plan, 0)[k] = 1 - 0.3f * (float)k;
        assert_true(plan_backward(plan, NULL));
        if (i == 0)
            memcpy(once, lent, (size_t)n * sizeof *once);
    }
    for (int64_t i = 0; i < n; i++)
        once[i] *= 2;
    assert_true(relative_error(lent, once, n) < 1e-6);
    for (int32_t i = 0; i < g->n_values; i++)
        learnt += g->values[i].kind == VALUE_PARAMETER;
    assert_int_equal(heard.parameters, 2 * learnt);
    assert_int_equal(heard.floats, 2 * n);
    plan_free(plan);

    float before[6];
    plan = plan_of(g, &(struct plan_options){ .threads = 1 });
    draw_images(plan, g);
    assert_true(plan_forward(plan, NULL));
    memcpy(before, plan_output(plan, 0), sizeof before);
    graph_data(g, graph_find(g, "conv1.gain"))[3] *= 2;
    assert_true(plan_refresh(plan, NULL) && plan_forward(plan, NULL));
    assert_true(relative_error(plan_output(plan, 0), before, 6) > 1e-3);
    plan_free(plan);
    free(lent);
    free(once);
    graph_free(g);
}

/* Standardised weights as they are: the same numbers without the op. */
static void test_settled(void **state)
{
    (void)state;
    struct graph *g = variant_of(small_network(0), HEAD_AUTO, NORM_WS);
    float want[6] = { 0 };
    assert_true(graph_initialize(g, 5, NULL));
    for (int k = 0; k < 2; k++) {
        struct plan *plan = plan_of(g, &(struct plan_options){ .threads = 1 });
        draw_images(plan, g);
        assert_true(plan_forward(plan, NULL));
        if (k == 0)
            memcpy(want, plan_output(plan, 0), sizeof want);
        assert_true(relative_error(plan_output(plan, 0), want, 6) < 2e-6);
        plan_free(plan);
        if (k == 0)
            assert_true(variant_settle(&g, NULL));
    }
    for (int32_t i = 0; i < g->n_nodes; i++)
        assert_true(g->nodes[i].op->kind != OP_STANDARDIZE);
    assert_true(graph_find(g, "conv1.weight") != NO_VALUE);
    assert_true(graph_find(g, "conv1.gain") == NO_VALUE);
    graph_free(g);
}

static void refused(const char *network, enum head_kind head, enum norm_rule norm, const char *why)
{
    struct graph *g = NULL;
    struct err err = { 0 };
    assert_true(zoo_build(network, NULL, &g, &err));
    assert_false(variant_apply(&g, &(struct network_variant){ head, norm, PADDING_ZERO }, &err));
    if (!strstr(err.text, why) || !strstr(err.text, network))
        fail_msg("%s", err.text);
    graph_free(g);
}

static void test_refused(void **state)
{
    (void)state;
    refused("densenet121", HEAD_AUTO, NORM_WS, "norm1 does not follow a convolution");
    refused("resnet110_v2", HEAD_AUTO, NORM_FIXUP, "layer1.1.bn1 does not follow a convolution");
    refused("googlenet", HEAD_AUTO, NORM_FIXUP, "no residual branches");
    refused("vit_small_patch16_224", HEAD_AUTO, NORM_WS, "no batch norm");
    refused("vgg16_bn", HEAD_MEAN, NORM_BATCH, "does not end in a pooling");
    refused("segment_unet", HEAD_CLASSES, NORM_BATCH, "does not end in a pooling");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pytorch),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_heads_of_a_constant_map),
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_plan_of_standardized),
        cmocka_unit_test(test_settled),
        cmocka_unit_test(test_refused),
    };
    golden_open(&golden, "tests/golden/net_variants.bin");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    golden_close(&golden);
    return failed;
}
