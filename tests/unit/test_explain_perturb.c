/* test_explain_perturb.c: LIME, occlusion and Score-CAM against the packages lime, captum and
 * pytorch-grad-cam (tests/golden/explain_perturb.py), LIME's arithmetic on a toy, the same bytes on
 * any number of threads, images with nothing in them, settings that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "explain/lime.h"
#include "net/model/classifier.h"
#include "net/zoo/zoo.h"
#include "support/golden.h"
#include "support/golden_image.h"
#include "support/golden_json.h"
#include "support/zoo_golden.h"

#define SIDE 64
#define PLANE (SIDE * SIDE)
enum { CLASSES = 3, EXPLAINED = 1 };

static const struct network {
    const char *name, *zoo;
    double gain;
} networks[] = {
    { "resnet18", "resnet18", 1.0 },
    { "googlenet", "googlenet", 1.4 },
    { "vit_small", "vit_small_patch16_224", 1.0 },
};

/* The image of the golden file, and one of its networks. */
static struct fixture {
    struct golden golden;
    struct model model;
    struct image image;
    float input[3 * PLANE];
    struct ctx ctx;
} f;

static void prepare(const struct image *image, float *input)
{
    for (int c = 0; c < 3; c++)
        for (int64_t i = 0; i < PLANE; i++)
            input[c * PLANE + i] = (float)((image->px[3 * i + c] / 255.0 - 0.5) / 0.25);
}

static void use_network(const struct network *network)
{
    struct err err = { 0 };
    struct zoo_options options = {
        .batch = 1, .channels = 3, .height = SIDE, .width = SIDE, .classes = CLASSES
    };
    graph_free(f.model.graph);
    if (!zoo_build(network->zoo, &options, &f.model.graph, &err) ||
        !graph_allocate(f.model.graph, &err))
        fail_msg("%s", err.text);
    zoo_fill_parameters(f.model.graph, network->gain, false);
    f.model.name = f.model.graph->name;
    f.model.config.num_classes = CLASSES;
}

static int set_up(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct image whole = golden_image("explain", "slic", 3);
    golden_open(&f.golden, "tests/golden/explain/perturb.bin");
    if (!image_new(&f.image, SIDE, SIDE, 3, &err))
        fail_msg("%s", err.text);
    use_network(&networks[0]);
    for (int64_t y = 0; y < SIDE; y++)
        memcpy(image_at(&f.image, 0, y), image_at(&whole, 0, y), 3 * SIDE);
    prepare(&f.image, f.input);
    f.ctx.pool = pool_new(2);
    image_free(&whole);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    golden_close(&f.golden);
    graph_free(f.model.graph);
    image_free(&f.image);
    pool_free(f.ctx.pool);
    return 0;
}

static struct explain_settings settings_of(int threads)
{
    struct explain_settings settings = explain_defaults();
    settings.model = &f.model;
    settings.height = settings.width = SIDE;
    settings.batch = 24, settings.threads = threads;
    return settings;
}

static struct probe *probe_of(const struct explain_settings *settings, const char *layer)
{
    struct err err = { 0 };
    struct probe *probe = NULL;
    struct probe_options options = { .layers = &layer,
                                     .n_layers = layer != NULL,
                                     .height = SIDE,
                                     .width = SIDE,
                                     .batch = settings->batch,
                                     .threads = settings->threads,
                                     .forward_only = true };
    if (!probe_new(&f.model, &options, &probe, &err))
        fail_msg("%s", err.text);
    return probe;
}

static struct explain_view view_of(struct probe *probe)
{
    double scores[CLASSES];
    assert_true(probe_forward(probe, f.input, 1, NULL));
    assert_true(model_score(&f.model, probe_logits(probe), scores, NULL));
    return (struct explain_view){ &f.image, f.input, EXPLAINED, scores[EXPLAINED], 77 };
}

static const struct golden_tensor *want(const char *network, const char *name)
{
    const struct golden_tensor *tensor = golden_find(&f.golden, "%s%s", network, name);
    if (!tensor)
        fail_msg("no %s%s in the golden file", network, name);
    return tensor;
}

static struct attribution explain(const struct explain_settings *settings, const char *method,
                                  const char *layer)
{
    struct err err = { 0 };
    struct attribution map = { 0 };
    const struct explainer *explainer = explainer_find(method, &err);
    assert_non_null(explainer);
    struct probe *probe = probe_of(settings, layer);
    struct explain_view view = view_of(probe);
    int at = explainer->maps == MAPS_LAYER ? 0 : -1;
    if ((explainer->check && !explainer->check(settings, probe, at, &err)) ||
        !explainer->explain(settings, probe, at, &view, &f.ctx, &map, &err))
        fail_msg("%s", err.text);
    probe_free(probe);
    return map;
}

/* --- the arithmetic of LIME --- */

static void the_toy_of_three_superpixels(void **state)
{
    (void)state;
    static const double expected[] = { .3305849473, -.1343892902, .0801631341 };
    uint8_t on[8][3];
    double y[8], coef[3], intercept;
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 3; k++)
            on[i][k] = (i >> k) & 1;
        y[i] = .1 + .5 * on[i][0] - .2 * on[i][1] + .3 * on[i][0] * on[i][2];
    }
    assert_near(lime_weight(0, 3), sqrt(exp(-16)), 1e-15, "all off");
    assert_near(lime_weight(3, 3), 1, 0, "all on");
    assert_true(lime_fit(on[0], y, 8, 3, coef, &intercept, NULL));
    for (int k = 0; k < 3; k++)
        assert_near(coef[k], expected[k], 1e-9, "coefficient");
    assert_near(intercept, .2482553734, 1e-9, "intercept");
}

static void masks_are_drawn_by_key_and_row(void **state)
{
    (void)state;
    enum { ROWS = 1000, COLUMNS = 43 };
    static uint8_t on[ROWS][COLUMNS], fewer[10][COLUMNS], other[ROWS][COLUMNS];
    int64_t n = 0;
    lime_draw(5, ROWS, COLUMNS, on[0]);
    lime_draw(5, 10, COLUMNS, fewer[0]);
    lime_draw(6, ROWS, COLUMNS, other[0]);
    assert_memory_equal(on, fewer, sizeof fewer);
    assert_memory_not_equal(on, other, sizeof other);
    for (int k = 0; k < COLUMNS; k++) {
        int64_t column = 0, pairs = 0;
        assert_int_equal(on[0][k], 1);
        for (int i = 1; i < ROWS; i++) {
            assert_in_range(on[i][k], 0, 1);
            column += on[i][k];
            pairs += on[i][k] == on[i][(k + 1) % COLUMNS];
        }
        assert_in_range(column, 420, 580); /* 5 standard deviations */
        assert_in_range(pairs, 420, 580);
        n += column;
    }
    assert_in_range(n, 999 * COLUMNS / 2 - 520, 999 * COLUMNS / 2 + 520);
}

/* --- against the packages --- */

static void check_lime(const char *network, const struct lime_samples *samples)
{
    struct explain_settings settings = settings_of(1);
    struct probe *probe = probe_of(&settings, NULL);
    struct explain_view view = view_of(probe);
    double coef[64], intercept, most = 0;
    struct err err = { 0 };
    assert_near(view.score, (double)want(network, ".score")->data[EXPLAINED], 1e-5, "score");
    if (!lime_explain(&settings, probe, &view, samples, &f.ctx, coef, &intercept, &err))
        fail_msg("%s", err.text);
    for (int64_t k = 0; k < samples->segments; k++)
        most = fmax(most, fabs(coef[k] - (double)want(network, ".lime.coef")->data[k]));
    print_message("%s: LIME within %.1e\n", network, most);
    assert_true(most < 1e-6);
    assert_near(intercept, (double)want(network, ".lime.intercept")->data[0], 1e-6, "intercept");
    probe_free(probe);
}

static void check_occlusion(const char *network, int64_t side, int64_t stride, const char *name)
{
    struct explain_settings settings = settings_of(1);
    settings.occlusion_px = side, settings.occlusion_stride_px = stride;
    struct attribution map = explain(&settings, "occlusion", NULL);
    double error = relative_error(map.values, want(network, name)->data, PLANE);
    print_message("%s: occlusion within %.1e of the largest\n", network, error);
    assert_true(error < 1e-4);
    attribution_free(&map);
}

static void lime_and_occlusion_are_those_of_the_packages(void **state)
{
    (void)state;
    const struct golden_tensor *segments = want("", "lime.segments"), *on = want("", "lime.on");
    int32_t labels[PLANE];
    uint8_t *masks = malloc((size_t)shape_count(&on->shape));
    struct lime_samples samples = { labels, on->shape.dim[1], masks, on->shape.dim[0] };
    for (int64_t i = 0; i < PLANE; i++)
        labels[i] = (int32_t)segments->data[i];
    for (int64_t i = 0; i < shape_count(&on->shape); i++)
        masks[i] = on->data[i] > 0;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        use_network(&networks[i]);
        check_lime(networks[i].name, &samples);
        check_occlusion(networks[i].name, 20, 9, ".occlusion.20.9");
    }
    use_network(&networks[0]);
    check_occlusion("resnet18", 16, 8, ".occlusion.16.8");
    free(masks);
}

static void score_cam_is_that_of_its_package(void **state)
{
    (void)state;
    struct explain_settings settings = settings_of(1);
    struct attribution map = explain(&settings, "scorecam", "layer2");
    const struct golden_tensor *tensor = want("", "scorecam.layer2");
    assert_int_equal(map.height, tensor->shape.dim[0]);
    assert_int_equal(map.width, tensor->shape.dim[1]);
    double error = relative_error(map.values, tensor->data, map.height * map.width);
    print_message("Score-CAM: within %.1e of the largest\n", error);
    assert_true(error < 1e-4);
    attribution_free(&map);
}

/* --- promises --- */

static struct explain_settings quick(int threads)
{
    struct explain_settings settings = settings_of(threads);
    settings.lime_samples = 30, settings.lime_segments = 10;
    settings.occlusion_px = 16;
    return settings;
}

static void threads_change_no_bytes(void **state)
{
    (void)state;
    static const char *const methods[] = { "lime", "occlusion", "scorecam" };
    for (int i = 0; i < 3; i++) {
        struct explain_settings one = quick(1), two = quick(2);
        const char *layer = i == 2 ? "layer1" : NULL;
        struct attribution a = explain(&one, methods[i], layer);
        struct attribution b = explain(&two, methods[i], layer);
        assert_memory_equal(a.values, b.values, (size_t)(a.height * a.width) * sizeof *a.values);
        attribution_free(&a);
        attribution_free(&b);
    }
}

/* What hides nothing changes nothing. */
static void a_constant_image_has_no_evidence(void **state)
{
    (void)state;
    struct explain_settings settings = quick(1);
    struct image kept = f.image, constant;
    assert_true(image_new(&constant, SIDE, SIDE, 3, NULL));
    memset(constant.px, 190, image_bytes(&constant));
    f.image = constant;
    prepare(&constant, f.input);
    static const char *const methods[] = { "lime", "occlusion" };
    for (int i = 0; i < 2; i++) {
        struct attribution map = explain(&settings, methods[i], NULL);
        for (int64_t k = 0; k < PLANE; k++)
            assert_true(fabsf(map.values[k]) < 1e-5f);
        attribution_free(&map);
    }
    f.image = kept;
    prepare(&kept, f.input);
    image_free(&constant);
}

static void refused(const char *method, const struct explain_settings *settings, const char *text)
{
    struct err err = { 0 };
    assert_false(explainer_find(method, NULL)->check(settings, NULL, -1, &err));
    assert_string_equal(err.text, text);
}

static void settings_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct explain_settings settings = settings_of(1);
    settings.occlusion_px = 65;
    refused("occlusion", &settings,
            "occlusion by squares of 65 px: the input of the network allows 1 to 64 px");
    settings.occlusion_px = 8, settings.occlusion_stride_px = 9;
    refused("occlusion", &settings,
            "occlusion in steps of 9 px by squares of 8 px: steps of 1 to 8 px leave no gaps");
    settings.lime_samples = 1;
    refused("lime", &settings,
            "LIME of 1 samples and 50 superpixels: it needs at least 2 samples and 1 superpixel");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_toy_of_three_superpixels),
        cmocka_unit_test(masks_are_drawn_by_key_and_row),
        cmocka_unit_test(lime_and_occlusion_are_those_of_the_packages),
        cmocka_unit_test(score_cam_is_that_of_its_package),
        cmocka_unit_test(threads_change_no_bytes),
        cmocka_unit_test(a_constant_image_has_no_evidence),
        cmocka_unit_test(settings_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
