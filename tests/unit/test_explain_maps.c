/* test_explain_maps.c: the methods against their definitions on small networks whose answer is
 * known: Grad-CAM is ReLU(CAM) / Z, integrated gradients add up to the difference of the logits,
 * SmoothGrad is the mean over its noise, rollout the product of the attention; maps at other sizes
 * and scales; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/rng.h"
#include "explain/explainer.h"
#include "net/model/classifier.h"
#include "support/paths.h"

#define SIDE 24
#define FLOATS (3 * SIDE * SIDE)
enum { CLASSES = 3, VIEWS = 6, GRID = 12, CHANNELS = 8 };

enum ending { MEAN_AND_LINEAR, MEAN_AND_TWO, LAST_CONV, ONE_NUMBER };

static struct graph *network(enum ending ending)
{
    struct graph *g = graph_new("small");
    int64_t outputs = ending == ONE_NUMBER ? 1 : CLASSES;
    value_id x = graph_input(g, "input", SHAPE(1, 3, SIDE, SIDE));
    x = graph_relu(g, graph_conv(g, x, "conv1", 8, true, conv_square(3, 2, 1)));
    x = graph_alias(g, "first", x);
    x = graph_gelu(g, graph_conv(g, x, "conv2", CHANNELS, true, conv_square(3, 1, 1)));
    x = graph_alias(g, "last", x);
    if (ending == LAST_CONV)
        x = graph_conv(g, x, "conv3", outputs, true, conv_square(GRID, 1, 0));
    else
        x = graph_alias(g, "pool", graph_global_average_pool(g, x));
    x = graph_flatten(g, graph_dropout(g, x, 0.5f));
    if (ending == MEAN_AND_TWO)
        x = graph_gelu(g, graph_linear(g, x, "hidden", 8, true));
    graph_output(g, "logits", ending == LAST_CONV ? x : graph_linear(g, x, "fc", outputs, true));
    return g;
}

struct scene {
    struct model model;
    struct explain_settings settings;
    struct explain_view views[VIEWS];
    float *input;
    struct pool *pool;
    struct ctx ctx;
};

static void open_scene(struct scene *s, struct graph *graph, int64_t classes)
{
    struct err err = { 0 };
    if (!graph_ok(graph, &err) || !graph_initialize(graph, 9, &err))
        fail_msg("%s", err.text);
    *s = (struct scene){ .model = { .graph = graph, .name = graph->name },
                         .settings = explain_defaults(),
                         .input = malloc(VIEWS * FLOATS * sizeof(float)),
                         .pool = pool_new(1) };
    s->model.config.num_classes = classes;
    s->settings.model = &s->model;
    s->settings.height = s->settings.width = SIDE;
    s->ctx.pool = s->pool;
    assert_non_null(s->input);
    struct rng rng = rng_new(1, 2, 3);
    for (int i = 0; i < VIEWS * FLOATS; i++)
        s->input[i] = (float)rng_normal(&rng);
    for (int i = 0; i < VIEWS; i++)
        s->views[i] = (struct explain_view){ .input = s->input + i * FLOATS,
                                             .class_index = i % classes,
                                             .key = (uint64_t)i };
}

static void close_scene(struct scene *s)
{
    graph_free(s->model.graph), free(s->input), pool_free(s->pool);
}

static struct probe *probe_for(const struct scene *s, const struct explainer *e, const char *layer,
                               int threads)
{
    struct err err = { 0 };
    struct probe *probe = NULL;
    struct probe_options options = { .layers = &layer,
                                     .n_layers = layer != NULL,
                                     .height = SIDE,
                                     .width = SIDE,
                                     .batch = s->settings.batch,
                                     .threads = threads,
                                     .input_gradient = e->input_gradient,
                                     .forward_only = e->forward_only,
                                     .attention = e->attention };
    if (!probe_new(&s->model, &options, &probe, &err))
        fail_msg("%s", err.text);
    return probe;
}

static void run(const struct scene *s, const char *method, const char *layer, int threads,
                int64_t n, struct attribution *out)
{
    struct err err = { 0 };
    const struct explainer *e = explainer_find(method, &err);
    struct probe *probe = probe_for(s, e, layer, threads);
    int at = e->maps == MAPS_LAYER ? 0 : -1;
    if ((e->check && !e->check(&s->settings, probe, at, &err)) ||
        !explainer_run(e, &s->settings, probe, at, s->views, n, &s->ctx, out, &err))
        fail_msg("%s: %s", method, err.text);
    probe_free(probe);
}

static void free_maps(struct attribution *maps, int n)
{
    for (int i = 0; i < n; i++)
        attribution_free(&maps[i]);
}

/* Also HiResCAM = CAM / Z there. */
static void test_gradcam_is_cam(void **state)
{
    (void)state;
    struct scene s;
    struct attribution cam[VIEWS], gradcam[VIEWS], hirescam[VIEWS];
    open_scene(&s, network(MEAN_AND_LINEAR), CLASSES);
    run(&s, "cam", "", 1, VIEWS, cam);
    run(&s, "gradcam", "last", 1, VIEWS, gradcam);
    run(&s, "hirescam", "last", 1, VIEWS, hirescam);
    bool any = false, negative = false;
    for (int i = 0; i < VIEWS; i++) {
        double most = 0;
        assert_true(cam[i].height == GRID && cam[i].width == GRID);
        for (int k = 0; k < GRID * GRID; k++)
            most = fmax(most, fabs((double)cam[i].values[k]));
        for (int k = 0; k < GRID * GRID; k++) {
            double expected = (double)cam[i].values[k] / (GRID * GRID);
            any |= expected > 0, negative |= expected < 0;
            assert_true(fabs((double)hirescam[i].values[k] - expected) < 1e-6 * most);
            assert_true(fabs((double)gradcam[i].values[k] - fmax(expected, 0)) < 1e-6 * most);
        }
    }
    assert_true(any && negative);
    free_maps(cam, VIEWS), free_maps(gradcam, VIEWS), free_maps(hirescam, VIEWS);
    close_scene(&s);
}

/* On any number of threads, alone or with others. */
static void test_same_bytes(void **state)
{
    (void)state;
    static const char *const methods[] = { "cam",      "gradcam", "gradcam++",
                                           "hirescam", "ig",      "smoothgrad" };
    struct scene s;
    open_scene(&s, network(MEAN_AND_LINEAR), CLASSES);
    s.settings.smooth_samples = 5, s.settings.ig_steps = 6, s.settings.batch = 4;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        struct attribution one[VIEWS], many[VIEWS], alone[1];
        run(&s, methods[m], "last", 1, VIEWS, one);
        run(&s, methods[m], "last", 3, VIEWS, many);
        run(&s, methods[m], "last", 2, 1, alone);
        size_t bytes = (size_t)(one->height * one->width) * sizeof(float);
        for (int i = 0; i < VIEWS; i++)
            assert_memory_equal(one[i].values, many[i].values, bytes);
        assert_memory_equal(one->values, alone->values, bytes);
        free_maps(one, VIEWS), free_maps(many, VIEWS), free_maps(alone, 1);
    }
    close_scene(&s);
}

static double logit_of(const struct scene *s, const float *input, int64_t class)
{
    struct err err = { 0 };
    struct probe *probe = probe_for(s, explainer_find("cam", &err), NULL, 1);
    assert_true(probe_forward(probe, input, 1, &err));
    double logit = (double)probe_logits(probe)[class];
    probe_free(probe);
    return logit;
}

static void test_integrated(void **state)
{
    (void)state;
    struct scene s;
    struct attribution maps[CLASSES];
    open_scene(&s, network(MEAN_AND_TWO), CLASSES);
    float *blank = calloc(FLOATS, sizeof *blank);
    run(&s, "ig", NULL, 1, CLASSES, maps);
    for (int i = 0; i < CLASSES; i++) {
        double sum = 0, sizes = 0,
               difference = logit_of(&s, s.views[i].input, i) - logit_of(&s, blank, i);
        for (int k = 0; k < SIDE * SIDE; k++)
            sum += (double)maps[i].values[k], sizes += fabs((double)maps[i].values[k]);
        assert_true(fabs(difference) > 1e-2 * sizes);
        if (!(fabs(sum - difference) < 1e-3 * sizes))
            fail_msg("class %d: %g, not %g", i, sum, difference);
    }
    free_maps(maps, CLASSES), free(blank);
    close_scene(&s);
}

/* The noise as documented, and the mean of the gradients at the noisy copies. */
static void test_smoothgrad(void **state)
{
    (void)state;
    struct scene s;
    struct err err = { 0 };
    struct attribution map;
    enum { SAMPLES = 4 };
    open_scene(&s, network(MEAN_AND_TWO), CLASSES);
    s.settings.smooth_samples = SAMPLES, s.settings.smooth_noise = 0.1;
    s.views[0].key = 77;
    run(&s, "smoothgrad", NULL, 1, 1, &map);
    struct probe *probe = probe_for(&s, explainer_find("smoothgrad", &err), NULL, 1);
    float low = s.input[0], high = s.input[0], *noisy = malloc(FLOATS * sizeof *noisy);
    double *mean = calloc(FLOATS, sizeof *mean);
    for (int k = 0; k < FLOATS; k++)
        low = fminf(low, s.input[k]), high = fmaxf(high, s.input[k]);
    for (int i = 0; i < SAMPLES; i++) {
        struct rng rng = rng_new(77, rng_hash("smoothgrad"), (uint64_t)i);
        for (int k = 0; k < FLOATS; k++)
            noisy[k] = (float)((double)s.input[k] + 0.1 * (double)(high - low) * rng_normal(&rng));
        assert_true(probe_differentiate(probe, noisy, 1, &s.views[0].class_index, &err));
        for (int k = 0; k < FLOATS; k++)
            mean[k] += (double)probe_input_gradient(probe, &err)[k] / SAMPLES;
    }
    for (int k = 0; k < SIDE * SIDE; k++) {
        double expected = 0;
        for (int c = 0; c < 3; c++)
            expected += fabs(mean[c * SIDE * SIDE + k]);
        assert_true(fabs((double)map.values[k] - expected) < 1e-5 * (expected + 1e-3));
    }
    probe_free(probe), attribution_free(&map), free(noisy), free(mean);
    close_scene(&s);
}

/* One layer of attention in which every token looks at all others alike: half stays where it is. */
static void test_rollout(void **state)
{
    (void)state;
    enum { TOKENS = 16 };
    struct scene s;
    struct attribution map;
    struct graph *g = graph_new("even");
    value_id x = graph_input(g, "input", SHAPE(1, 3, SIDE, SIDE));
    x = graph_conv(g, x, "embed", 4, true, conv_square(6, 6, 0));
    x = graph_transpose(g, graph_reshape(g, x, SHAPE(0, 4, -1)), (int64_t[]){ 0, 2, 1 });
    value_id none = graph_scale(g, x, 0, 0);
    value_id y = graph_attention(g, none, none, x, NO_VALUE, NO_VALUE,
                                 (struct attention_attr){ .heads = 1 });
    x = graph_reduce_mean(g, graph_add(g, x, y), 1u << 1, false);
    graph_output(g, "logits", graph_linear(g, x, "fc", CLASSES, true));
    open_scene(&s, g, CLASSES);
    run(&s, "rollout", NULL, 1, 1, &map);
    assert_true(map.height == 4 && map.width == 4);
    for (int i = 0; i < TOKENS; i++)
        assert_true(fabs((double)map.values[i] - 1.0 / TOKENS) < 1e-7);
    attribution_free(&map);
    close_scene(&s);
}

/* A file that ends in softmax: the gradient is that of the logits before it. */
static void test_onnx(void **state)
{
    (void)state;
    enum { INPUT = 16, MAP = 6 };
    struct err err = { 0 };
    struct model *model = NULL;
    char *path = source_path("tests/golden/onnx_scores/softmax.onnx");
    if (!model_open_classifier(&(struct model_source){ .file = path }, &model, &err))
        fail_msg("%s", err.text);
    struct scene s;
    open_scene(&s, network(MEAN_AND_LINEAR), CLASSES);
    s.settings.model = model, s.settings.height = s.settings.width = INPUT;
    static const char *const methods[] = { "cam", "gradcam" };
    struct attribution maps[2];
    for (int i = 0; i < 2; i++) {
        const struct explainer *e = explainer_find(methods[i], &err);
        struct probe_options options = { .layers = (const char *const[]){ "" },
                                         .n_layers = 1,
                                         .height = INPUT,
                                         .width = INPUT,
                                         .batch = 1,
                                         .threads = 1,
                                         .forward_only = e->forward_only };
        struct probe *probe = NULL;
        if (!probe_new(model, &options, &probe, &err) ||
            !explainer_run(e, &s.settings, probe, 0, s.views, 1, &s.ctx, &maps[i], &err))
            fail_msg("%s", err.text);
        assert_string_equal(probe_layer(probe, 0)->name, "r"); /* the node's name in the file */
        probe_free(probe);
    }
    float most = 0;
    for (int k = 0; k < MAP * MAP; k++) {
        float expected = fmaxf(0, maps[0].values[k] / (MAP * MAP));
        assert_true(fabsf(maps[1].values[k] - expected) < 1e-6f);
        most = fmaxf(most, expected);
    }
    assert_true(most > 1e-3f);
    free_maps(maps, 2), model_close(model), free(path);
    close_scene(&s);
}

/* A regressor, or a network with one logit, is explained as class 0. */
static void test_one_number(void **state)
{
    (void)state;
    struct scene s;
    struct attribution maps[2];
    open_scene(&s, network(ONE_NUMBER), 1);
    run(&s, "gradcam", "", 1, 2, maps);
    assert_true(maps[0].height == GRID);
    free_maps(maps, 2);
    close_scene(&s);
}

static void refused(const struct scene *s, const char *method, const char *layer,
                    const char *message)
{
    struct err err = { 0 };
    const struct explainer *e = explainer_find(method, &err);
    struct probe *probe = probe_for(s, e, layer, 1);
    assert_false(e->check(&s->settings, probe, layer ? 0 : -1, &err));
    assert_string_equal(err.text, message);
    probe_free(probe);
}

static void test_bad_input(void **state)
{
    (void)state;
    static const enum ending others[] = { MEAN_AND_TWO, LAST_CONV };
    struct err err = { 0 };
    struct scene s;
    for (int i = 0; i < 2; i++) {
        open_scene(&s, network(others[i]), CLASSES);
        refused(&s, "cam", "",
                "small: cam needs a network that ends in a global mean and one linear layer, and "
                "this one does not; use gradcam");
        close_scene(&s);
    }
    open_scene(&s, network(MEAN_AND_LINEAR), CLASSES);
    refused(&s, "cam", "first",
            "small: cam maps the layer before the global mean, which is 'last', not 'first'; pass "
            "--layer last, or use gradcam");
    refused(
        &s, "gradcam", "pool",
        "small: layer 'pool' has no extent (1 x 1), so there is nothing to map; choose one that "
        "has, e.g. --layer last");
    refused(&s, "rollout", NULL,
            "small: rollout needs the attention between the tokens of a transformer, which this "
            "network does not have; use gradcam");
    close_scene(&s);
    assert_null(explainer_find("gradcan", &err));
    assert_non_null(strstr(err.text, "no method 'gradcan'; there are cam, gradcam, gradcam++, "));
}

/* PyTorch: F.interpolate(mode="bilinear", align_corners=False) of [[1, 2], [4, 8]] to 3 x 4. */
static void test_resize(void **state)
{
    (void)state;
    static const float expected[12] = { 1, 1.25f, 1.75f, 2, 2.5f, 3.125f, 4.375f, 5, 4, 5, 7, 8 };
    float values[4] = { 1, 2, 4, 8 }, out[12];
    attribution_resize(&(struct attribution){ 2, 2, values }, 3, 4, out);
    for (int i = 0; i < 12; i++)
        assert_true(fabsf(out[i] - expected[i]) < 1e-6f);
    attribution_resize(&(struct attribution){ 1, 1, values }, 2, 2, out);
    assert_true(out[0] == 1 && out[3] == 1);
}

static void test_normalize(void **state)
{
    (void)state;
    float positive[] = { 1, 3, NAN, 2 }, cut[] = { -5, 0, 2 }, both[] = { -4, 2, 0, NAN };
    float flat[] = { 3, 3, NAN }, zero[] = { 0, 0 }, negative[] = { -1, -2 };
    attribution_normalize(positive, 4, true);
    assert_true(positive[0] == 0 && positive[1] == 1 && isnan(positive[2]) && positive[3] == 0.5f);
    attribution_normalize(cut, 3, true);
    assert_true(cut[0] == 0 && cut[1] == 0 && cut[2] == 1);
    attribution_normalize(both, 4, false);
    assert_true(both[0] == -1 && both[1] == 0.5f && both[2] == 0 && isnan(both[3]));
    attribution_normalize(flat, 3, true);
    assert_true(flat[0] == 0 && flat[1] == 0 && isnan(flat[2]));
    attribution_normalize(zero, 2, false);
    assert_true(zero[0] == 0 && zero[1] == 0);
    attribution_normalize(negative, 2, true);
    assert_true(negative[0] == 0 && negative[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradcam_is_cam), cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_integrated),     cmocka_unit_test(test_smoothgrad),
        cmocka_unit_test(test_rollout),        cmocka_unit_test(test_one_number),
        cmocka_unit_test(test_onnx),           cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_resize),         cmocka_unit_test(test_normalize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
