/* test_explain_golden.c: maps against pytorch-grad-cam and captum on the same weights and images:
 * ResNet-18, GoogLeNet and ViT-S (tests/golden/explain_maps.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "explain/explainer.h"
#include "support/golden.h"
#include "support/paths.h"
#include "support/zoo_golden.h"

static struct golden golden;

struct network {
    struct model model;
    struct explain_settings settings;
    struct explain_view *views;
    float *input;
    int64_t n; /* images */
    const char *name;
};

static void open_network(const char *name, struct network *out)
{
    char *folder = source_path("tests/golden/zoo");
    struct zoo_case *cases = NULL;
    struct err err = { 0 };
    size_t n_cases = zoo_cases(folder, &cases), i = 0;
    while (i < n_cases && strcmp(cases[i].name, name) != 0)
        i++;
    assert_true(i < n_cases);
    struct zoo_options options = cases[i].options;
    options.auxiliary = false; /* in eval mode torchvision's heads give nothing */
    *out = (struct network){ .name = name, .n = options.batch, .settings = explain_defaults() };
    if (!zoo_build(cases[i].network, &options, &out->model.graph, &err) ||
        !graph_allocate(out->model.graph, &err))
        fail_msg("%s", err.text);
    zoo_fill_parameters(out->model.graph, cases[i].gain, false);
    out->model.config.num_classes = options.classes, out->model.name = out->model.graph->name;
    out->settings.model = &out->model, out->settings.ig_steps = 8;
    out->settings.smooth_samples = 1, out->settings.smooth_noise = 0;
    out->settings.height = options.height, out->settings.width = options.width;
    int64_t floats = 3 * options.height * options.width;
    const struct golden_tensor *classes = golden_find(&golden, "%s/classes", name);
    out->views = calloc((size_t)out->n, sizeof *out->views);
    out->input = malloc((size_t)(out->n * floats) * sizeof *out->input);
    assert_true(out->views && out->input && classes);
    for (int64_t k = 0; k < out->n * floats; k++)
        out->input[k] = (float)zoo_number(zoo_stream("", "input"), k);
    for (int64_t k = 0; k < out->n; k++)
        out->views[k] = (struct explain_view){ .input = out->input + k * floats,
                                               .class_index = (int64_t)classes->data[k] };
    free(cases), free(folder);
}

static void close_network(struct network *network)
{
    graph_free(network->model.graph);
    free(network->views), free(network->input);
}

static struct probe *probe_for(const struct network *network, const struct explainer *explainer,
                               const char *layer)
{
    struct err err = { 0 };
    struct probe *probe = NULL;
    struct probe_options options = { .layers = &layer,
                                     .n_layers = layer != NULL,
                                     .height = network->settings.height,
                                     .width = network->settings.width,
                                     .batch = network->settings.batch,
                                     .threads = 1,
                                     .input_gradient = explainer->input_gradient,
                                     .forward_only = explainer->forward_only,
                                     .attention = explainer->attention };
    if (!probe_new(&network->model, &options, &probe, &err))
        fail_msg("%s", err.text);
    return probe;
}

/* The maps of the images for which the packages made one. */
static int compare(const struct network *network, const char *method, const char *layer,
                   double tolerance)
{
    struct err err = { 0 };
    const struct explainer *explainer = explainer_find(method, &err);
    const struct golden_tensor *theirs =
        layer ? golden_find(&golden, "%s/%s/%s", network->name, method, layer)
              : golden_find(&golden, "%s/%s", network->name, method);
    assert_true(explainer && theirs);
    struct probe *probe = probe_for(network, explainer, layer);
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    int64_t n = theirs->shape.dim[0], pixels = theirs->shape.dim[1] * theirs->shape.dim[2];
    struct attribution *maps = calloc((size_t)n, sizeof *maps);
    if ((explainer->check && !explainer->check(&network->settings, probe, layer ? 0 : -1, &err)) ||
        !explainer_run(explainer, &network->settings, probe, layer ? 0 : -1, network->views, n,
                       &ctx, maps, &err))
        fail_msg("%s", err.text);
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(maps[i].height, theirs->shape.dim[1]);
        assert_int_equal(maps[i].width, theirs->shape.dim[2]);
        double error = relative_error(maps[i].values, theirs->data + i * pixels, pixels);
        worst = error > worst ? error : worst;
        attribution_free(&maps[i]);
    }
    print_message("%-10s %-10s %-20s %.1e\n", network->name, method, layer ? layer : "", worst);
    free(maps), probe_free(probe), pool_free(pool);
    return !(worst <= tolerance);
}

static void compare_layer(const struct network *network, const char *layer)
{
    static const char *const methods[] = { "gradcam", "gradcam++", "hirescam" };
    int failures = 0;
    for (int i = 0; i < 3; i++)
        failures += compare(network, methods[i], layer, 1e-4);
    assert_int_equal(failures, 0);
}

/* The bytes of a map do not depend on what is made with it. */
static void same_alone(const struct network *network, const char *method)
{
    enum { MANY = 9 };
    struct err err = { 0 };
    const struct explainer *explainer = explainer_find(method, &err);
    struct probe *probe = probe_for(network, explainer, "layer4");
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct explain_view views[MANY];
    struct attribution together[MANY], alone;
    for (int i = 0; i < MANY; i++)
        views[i] = network->views[i % network->n];
    assert_true(
        explainer_run(explainer, &network->settings, probe, 0, views, MANY, &ctx, together, &err));
    for (int i = 0; i < MANY; i++) {
        assert_true(explainer_run(explainer, &network->settings, probe, 0, views + i, 1, &ctx,
                                  &alone, &err));
        assert_memory_equal(alone.values, together[i].values,
                            (size_t)(alone.height * alone.width) * sizeof(float));
        attribution_free(&alone), attribution_free(&together[i]);
    }
    probe_free(probe), pool_free(pool);
}

static void test_resnet18(void **state)
{
    (void)state;
    struct network network;
    open_network("resnet18", &network);
    compare_layer(&network, "layer4");
    compare_layer(&network, "layer2");
    compare_layer(&network, "layer1.0.conv1");
    same_alone(&network, "cam");
    same_alone(&network, "gradcam");
    assert_int_equal(compare(&network, "ig", NULL, 1e-3), 0);
    assert_int_equal(compare(&network, "smoothgrad", NULL, 1e-3), 0);
    close_network(&network);
}

static void test_googlenet(void **state)
{
    (void)state;
    struct network network;
    open_network("googlenet", &network);
    compare_layer(&network, "inception5b");
    compare_layer(&network, "inception4b.branch1.conv");
    assert_int_equal(compare(&network, "ig", NULL, 1e-3), 0);
    assert_int_equal(compare(&network, "smoothgrad", NULL, 1e-3), 0);
    close_network(&network);
}

static void test_vit_small(void **state)
{
    (void)state;
    struct network network;
    open_network("vit_small", &network);
    compare_layer(&network, "blocks.11.norm1");
    compare_layer(&network, "blocks.5");
    assert_int_equal(compare(&network, "ig", NULL, 1e-4), 0);
    assert_int_equal(compare(&network, "smoothgrad", NULL, 1e-4), 0);
    assert_int_equal(compare(&network, "rollout", NULL, 1e-5), 0);
    close_network(&network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resnet18),
        cmocka_unit_test(test_googlenet),
        cmocka_unit_test(test_vit_small),
    };
    golden_open(&golden, "tests/golden/explain_maps.bin");
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    golden_close(&golden);
    return failures;
}
