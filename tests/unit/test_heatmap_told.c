/* test_heatmap_told.c: what predict tells a user: that memory is too small for Winograd
 * convolutions, so that direct ones are used, or for any; that a calibration does not help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/pool.h"
#include "base/console.h"
#include "net/kernels/winograd_conv.h"
#include "net/onnx/onnx.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/drawn_model.h"
#include "tests/unit/support/plain_slide.h"
#include "tests/unit/support/predictions.h"
#include "base/text.h"

/* What opening the models, and planning the slide if `plans`, tells; the caller's. */
static char *told(char *slide, const struct predict_options *options, bool plans)
{
    char *folder = cohort_folder("heatmap_told"), *text = NULL;
    size_t size = 0;
    struct slide_entry entry = entry_of(slide, "s");
    struct slide_list slides = { .entries = &entry, .n = 1 };
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    struct ctx ctx = { .pool = pool_new(1), .console = console_new(stream, CONSOLE_LINES) };
    struct predict *predict = NULL;
    struct predict_slide work = { 0 };
    struct err err = { 0 };
    if (!predict_open(options, &slides, folder, &ctx, &predict, &err) ||
        (plans && !(predict_enter(predict, 0, &work, &err) &&
                    predict_partition(predict, &work, &ctx, &err))))
        fail_msg("%s", err.text);
    predict_leave(&work);
    predict_close(predict);
    console_free(ctx.console);
    pool_free(ctx.pool);
    assert_int_equal(fclose(stream), 0);
    free(folder);
    return text;
}

static bool opens(const struct predict_options *options, struct err *err)
{
    struct slide_entry entry = entry_of("s.tiff", "s");
    struct slide_list slides = { .entries = &entry, .n = 1 };
    struct ctx ctx = { .pool = pool_new(1) };
    struct predict *predict = NULL;
    bool ok = predict_open(options, &slides, "heatmap_told", &ctx, &predict, err);
    predict_close(predict);
    pool_free(ctx.pool);
    return ok;
}

static bool says(char *text, const char *words)
{
    bool found = strstr(text, words) != NULL;
    free(text);
    return found;
}

/* Megabytes that predict says are the least for this model. */
static int64_t least_mb(struct predict_options options)
{
    struct err err = { 0 };
    options.memory_bytes = INT64_C(64) << 20;
    assert_false(opens(&options, &err));
    const char *said = strstr(err.text, "--memory: 64 MB is not enough"), *at = NULL;
    if (!said || !(at = strstr(said, "pass at least ")))
        fail_msg("%s", err.text);
    return strtoll(at + strlen("pass at least "), NULL, 10);
}

/* The transformed weights of ResNet-18 do not fit beside the rest: scores are those of --kernels
 * direct, to the bit, and not the usual ones. */
static void tight_memory_means_direct_kernels(void **state)
{
    (void)state;
    if (!winograd_conv_available(SIMD_AVX2))
        skip();
    char *slide = plain_slide_write("heatmap_told.tiff", 600, 500, 0.25);
    char *model = drawn_model("heatmap_told_model", "resnet18", 224, 3, NULL);
    struct heatmap_info info;
    struct predict_options roomy = options_of(NULL, PREDICT_WINDOW, 64);
    roomy.models[0] = (struct model_source){ .file = model };
    struct predict_options tight = roomy;
    tight.memory_bytes = least_mb(roomy) << 20;
    struct predict_options direct = tight; /* batches as large, on which last digits may depend */
    direct.direct = true;
    assert_false(says(told(slide, &roomy, false), "using direct ones"));
    assert_true(says(told(slide, &tight, false), "too small for Winograd convolutions"));
    assert_false(says(told(slide, &direct, false), "using direct ones"));
    float *usual = predict_to("heatmap_told_usual", slide, &roomy, 1, &info);
    float *fallen = predict_to("heatmap_told_tight", slide, &tight, 1, &info);
    float *wanted = predict_to("heatmap_told_direct", slide, &direct, 1, &info);
    size_t bytes = (size_t)(info.width * info.height * info.n_classes) * sizeof(float);
    assert_memory_equal(fallen, wanted, bytes);
    assert_memory_not_equal(fallen, usual, bytes);
    free(usual), free(fallen), free(wanted);
    unlink(slide);
    free(slide), free(model);
}

/* The error names the least that does. */
static void too_little_memory_names_what_is_needed(void **state)
{
    (void)state;
    char *model = drawn_model("heatmap_told_model", "resnet18", 224, 3, NULL);
    struct predict_options options = options_of(NULL, PREDICT_WINDOW, 64);
    options.models[0] = (struct model_source){ .file = model };
    struct err err = { 0 };
    int64_t least = least_mb(options);
    options.memory_bytes = least << 20;
    if (!opens(&options, &err))
        fail_msg("with %lld: %s", (long long)least, err.text);
    options.memory_bytes = (least - 1) << 20;
    assert_false(opens(&options, &err));
    free(model);
}

/* A network whose padding is felt by windows with glass at their border, and by no others: the mean
 * of a colour, which any run computes alike, and of what is bright around a pixel. The latter
 * weighs so much that any glass gives a score of 1, of windows as of a dense run. */
static char *uneven_onnx(void)
{
    struct err err = { 0 };
    char *folder = cohort_folder("heatmap_uneven"), *path = text_format("%s/net.onnx", folder);
    struct graph *graph = graph_new("uneven");
    value_id x = graph_input(graph, "input", SHAPE(1, 3, 64, 64));
    value_id colour = graph_conv(graph, x, "colour", 1, true, conv_square(1, 4, 0));
    value_id bright =
        graph_relu(graph, graph_conv(graph, x, "bright", 1, true, conv_square(9, 4, 4)));
    x = graph_concat(graph, (value_id[]){ colour, bright }, 2, 1);
    x = graph_flatten(graph, graph_global_average_pool(graph, x));
    graph_output(graph, "logits", graph_linear(graph, x, "fc", 2, true));
    assert_true(graph_ok(graph, &err) && graph_initialize(graph, 1, &err));
    static const float red_less_blue[] = { 1, 0, -1 }, classes[] = { 0, 0, 20, 1000 };
    memcpy(graph_data(graph, graph_find(graph, "colour.weight")), red_less_blue, 12);
    memcpy(graph_data(graph, graph_find(graph, "fc.weight")), classes, 16);
    float *around = graph_data(graph, graph_find(graph, "bright.weight"));
    for (int i = 0; i < 3 * 81; i++)
        around[i] = 1.0f / (3 * 81);
    graph_data(graph, graph_find(graph, "bright.bias"))[0] = -0.8f;
    graph_data(graph, graph_find(graph, "colour.bias"))[0] = 0;
    memset(graph_data(graph, graph_find(graph, "fc.bias")), 0, 8);
    if (!onnx_write(graph, path, NULL, &err))
        fail_msg("%s", err.text);
    graph_free(graph);
    free(folder);
    return path;
}

/* A line mends a difference that all windows have alike. Here it is fitted to logits that differ
 * where scores do not, and spoils the scores of all the others. */
static void a_calibration_that_does_not_help_is_told(void **state)
{
    (void)state;
    char *slide = plain_slide_write("heatmap_told.tiff", 700, 500, 0.25);
    char *even = padded_onnx(), *uneven = uneven_onnx();
    struct predict_options options = options_of(NULL, PREDICT_DENSE, 16);
    options.calibration = CALIBRATE_AFFINE;
    options.models[0] = (struct model_source){ .file = uneven };
    assert_true(says(told(slide, &options, true),
                     "not bring dense scores closer to window scores; omit --calib"));
    options.models[0] = (struct model_source){ .file = even };
    assert_false(says(told(slide, &options, true), "not bring dense scores closer"));
    unlink(slide);
    free(slide), free(even), free(uneven);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tight_memory_means_direct_kernels),
        cmocka_unit_test(too_little_memory_names_what_is_needed),
        cmocka_unit_test(a_calibration_that_does_not_help_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
