/* test_heatmap.c: what predict makes of slides: against single windows, read from the slide and
 * classified one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/pool.h"
#include "heatmap/predict.h"
#include "net/model/model_run.h"
#include "net/onnx/onnx.h"
#include "net/model/weights.h"
#include "patch/extract.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/plain_slide.h"
#include "tests/unit/support/predictions.h"
#include "base/text.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* One window, read from the slide and classified by itself; with `ways` of turning it averaged. */
static double one_window(struct raster *raster, const struct model *model, int64_t x, int64_t y,
                         int ways)
{
    struct model_run run = { 0 };
    struct image window, turned;
    double sum = 0, scores[2];
    assert_true(raster_read(raster, x - 112, y - 112, 224, 224, &window, NULL));
    assert_true(image_new(&turned, 224, 224, 3, NULL));
    for (int way = 0; way < ways; way++) {
        for (int64_t r = 0; r < 224; r++)
            for (int64_t c = 0; c < 224; c++) {
                int64_t u = way & 1 ? 223 - c : c, v = way & 2 ? 223 - r : r;
                memcpy(image_at(&turned, c, r),
                       way & 4 ? image_at(&window, v, u) : image_at(&window, u, v), 3);
            }
        assert_true(model_classify(model, &run, 1, &turned, scores, NULL));
        sum += scores[1] / ways;
    }
    model_run_free(&run);
    image_free(&window);
    image_free(&turned);
    return sum;
}

/* Cells all over the heatmap, borders of the slide among them, against single windows. */
static void check_cells(char *path, const float *scores, const struct heatmap_info *info, int ways)
{
    struct slide *slide = NULL;
    struct raster raster;
    struct model *model = NULL;
    struct model_source source = { .network = "scan_tiny", .init_seed = 3, .classes = 2 };
    struct raster_request request = { .mpp = info->mpp };
    assert_true(slide_open(path, 0, &slide, NULL) && raster_open(slide, &request, &raster, NULL) &&
                model_open(&source, &model, NULL));
    int64_t step = info->width * info->height / 23, checked = 0;
    for (int64_t i = 0; i<info->width * info->height; i += step> 0 ? step : 1) {
        int64_t x = i % info->width * info->stride + info->stride / 2;
        int64_t y = i / info->width * info->stride + info->stride / 2;
        if (isnan(scores[2 * i]))
            continue;
        double expected = one_window(&raster, model, x, y, ways);
        assert_true(fabs(expected - (double)scores[2 * i + 1]) < 1e-5);
        assert_true(fabs((double)scores[2 * i] + (double)scores[2 * i + 1] - 1) < 1e-5);
        checked++;
    }
    assert_true(checked > 3);
    model_close(model);
    slide_close(slide);
}

/* Exact networks: dense = window = single windows, any stride, any size of blocks. */
static void dense_is_window(void **state)
{
    (void)state;
    static const int64_t strides[] = { 16, 100, 8, 24, 224 };
    char *slide = plain_slide_write("heatmap.tiff", 700, 500, 0.25);
    for (size_t i = 0; i < (SANITIZED ? 2 : 5); i++) {
        struct heatmap_info info;
        struct predict_options options = options_of("scan_tiny", PREDICT_WINDOW, strides[i]);
        float *window = predict_to("heatmap_window", slide, &options, 2, &info);
        check_cells(slide, window, &info, 1);
        options.mode = PREDICT_DENSE;
        float *dense = predict_to("heatmap_dense", slide, &options, 2, &info);
        double gap = largest_gap(dense, window, &info);
        options.memory_bytes = INT64_C(64) << 20; /* smaller blocks */
        float *small = predict_to("heatmap_small", slide, &options, 2, &info);
        double small_gap = largest_gap(small, window, &info);
        print_message("stride %lld: %g %g\n", (long long)strides[i], gap, small_gap);
        assert_true(gap < 1e-5 && small_gap < 1e-5);
        free(window), free(dense), free(small);
    }
    unlink(slide);
    free(slide);
}

/* A cell that reaches beyond the slide with its centre sees glass only: as if it had no tissue. */
static void centres_beyond_the_slide_are_not_scored(void **state)
{
    (void)state;
    char *slide = plain_slide_write("heatmap_beyond.tiff", 700, 500, 0.25);
    static const int64_t strides[] = { 600, 9 };
    for (int i = 0; i < 2; i++)
        for (int mode = PREDICT_DENSE; mode <= PREDICT_WINDOW; mode++) {
            struct heatmap_info info;
            int64_t stride = strides[i], scored = 0;
            struct predict_options options =
                options_of("scan_tiny", (enum predict_mode)mode, stride);
            options.min_tissue = 0;
            float *scores = predict_to("heatmap_beyond", slide, &options, 1, &info);
            assert_true(info.width == (700 + stride - 1) / stride);
            for (int64_t k = 0; k < info.width * info.height; k++) {
                int64_t x = k % info.width * stride + stride / 2;
                int64_t y = k / info.width * stride + stride / 2;
                assert_true(isnan(scores[2 * k]) || (x < 700 && y < 500));
                scored += !isnan(scores[2 * k]);
            }
            assert_true(scored > 0 && scored == info.scored);
            free(scores);
        }
    unlink(slide);
    free(slide);
}

/* Resampled, stains normalised, turned and mirrored, two models: each against its definition. */
static void further_options(void **state)
{
    (void)state;
    char *slide = plain_slide_write("heatmap_more.tiff", 1100, 760, 0.25);
    struct heatmap_info info;
    struct predict_options options = options_of("scan_tiny", PREDICT_AUTO, 48);
    options.mpp = 0.4;
    float *scaled = predict_to("heatmap_more", slide, &options, 1, &info);
    assert_true(info.width == (688 + 47) / 48);
    check_cells(slide, scaled, &info, 1);
    options.tta = true;
    float *turned = predict_to("heatmap_more", slide, &options, 1, &info);
    check_cells(slide, turned, &info, 8);
    options.tta = false;
    options.models[0].init_seed = 4;
    float *other = predict_to("heatmap_more", slide, &options, 1, &info);
    options.models[1] = options.models[0];
    options.models[0].init_seed = 3;
    options.n_models = 2;
    float *both = predict_to("heatmap_more", slide, &options, 1, &info);
    for (int64_t i = 0; i < info.width * info.height * 2; i++)
        if (!isnan(both[i]))
            assert_true(fabsf(both[i] - (scaled[i] + other[i]) / 2) < 1e-6f);
    options.n_models = 1;
    options.stain = STAIN_MACENKO;
    float *stained = predict_to("heatmap_more", slide, &options, 1, &info);
    double gap = largest_gap(stained, scaled, &info);
    assert_true(gap > 1e-6); /* other colours, other scores */
    free(scaled), free(turned), free(other), free(both), free(stained);
    unlink(slide);
    free(slide);
}

/* What exists of the first slide. */
static enum predict_state look(const struct predict *predict)
{
    struct predict_slide slide;
    struct err err = { 0 };
    bool ok = predict_enter(predict, 0, &slide, &err);
    enum predict_state state = slide.state;
    assert_true(ok == (state != PREDICT_OTHER));
    predict_leave(&slide);
    return state;
}

/* Tasks in any order, each in a process of its own or all in one, on any number of threads. */
static void tasks_give_the_same_bytes(void **state)
{
    (void)state;
    char *path = plain_slide_write("heatmap_tasks.tiff", 2000, 1250, 0.25);
    struct heatmap_info info;
    struct predict_options options = options_of("scan_small", PREDICT_AUTO, 16);
    options.memory_bytes = INT64_C(130) << 20;
    options.group_cost = 1 << 20;
    float *one = predict_to("heatmap_one", path, &options, 1, &info);
    float *three = predict_to("heatmap_three", path, &options, 3, &info);
    size_t bytes = (size_t)(info.width * info.height * 2) * sizeof(float);
    assert_memory_equal(one, three, bytes);
    char *folder = cohort_folder("heatmap_tasks"), *slide_folder = text_format("%s/s", folder);
    struct slide_entry entry = entry_of(path, "s");
    struct slide_list slides = { .entries = &entry, .n = 1 };
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct err err = { 0 };
    struct predict *predict = NULL;
    struct predict_slide slide;
    assert_true(predict_open(&options, &slides, folder, &ctx, &predict, &err));
    assert_true(predict_enter(predict, 0, &slide, &err));
    assert_int_equal(slide.state, PREDICT_MISSING);
    assert_true(predict_partition(predict, &slide, &ctx, &err));
    int64_t n_groups = slide.partition.n_groups;
    assert_true(n_groups > 3);
    for (int64_t g = 0; g < n_groups; g++) { /* the last first, each by itself */
        struct predict *task = NULL;
        struct predict_slide again;
        assert_true(predict_open(&options, &slides, folder, &ctx, &task, &err));
        assert_true(predict_enter(task, 0, &again, &err));
        assert_true(predict_partition(task, &again, &ctx, &err));
        assert_true(again.partition.hash == slide.partition.hash); /* read as it was made */
        assert_true(predict_group(task, &again, n_groups - 1 - g, &ctx, &err));
        predict_leave(&again);
        predict_close(task);
    }
    assert_true(predict_finish(predict, &slide, &ctx, &err));
    predict_leave(&slide);
    assert_int_equal(look(predict), PREDICT_DONE);
    struct heatmap *heatmap = NULL;
    assert_true(heatmap_open(slide_folder, &heatmap, &err));
    float *tasks = malloc(bytes);
    assert_true(heatmap_read_rows(heatmap, 0, info.height, tasks, &err));
    assert_memory_equal(one, tasks, bytes);
    heatmap_close(heatmap);
    predict_close(predict);
    options.stride = 32; /* other options in the same folder are noticed */
    assert_true(predict_open(&options, &slides, folder, &ctx, &predict, &err));
    assert_int_equal(look(predict), PREDICT_OTHER);
    assert_true(predict_clear(predict, 0, &err));
    assert_int_equal(look(predict), PREDICT_MISSING);
    predict_close(predict);
    pool_free(pool);
    unlink(path);
    free(one), free(three), free(tasks), free(folder), free(slide_folder), free(path);
}

/* A dense store is scored where its patches hold a whole window, with the slide's scores. */
static void stores_give_the_slides_scores(void **state)
{
    (void)state;
    char *path = plain_slide_write("heatmap_store.tiff", 1300, 900, 0.25);
    char *folder = cohort_folder("heatmap_store"), *store = text_format("%s/s.h5", folder);
    struct extract_options extract = { .grid = { .tile = 224, .margin = 112, .stride = 224 },
                                       .min_tissue = 0.5,
                                       .max_white = 1,
                                       .max_black = 1,
                                       .group = 10,
                                       .band_bytes = EXTRACT_BAND_BYTES,
                                       .batch_bytes = EXTRACT_BATCH_BYTES };
    struct slide_entry entry = entry_of(path, "s");
    struct extract_result result;
    struct stain_fit target = stain_default_target(STAIN_NONE);
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct err err = { 0 };
    if (!extract_slide(&entry, &extract, &target, store, &ctx, &result, &err))
        fail_msg("%s", err.text);
    pool_free(pool);
    for (int mode = PREDICT_DENSE; mode <= PREDICT_WINDOW; mode++) {
        struct heatmap_info info, of_store;
        struct predict_options options = options_of("scan_tiny", (enum predict_mode)mode, 32);
        float *slide = predict_to("heatmap_slide", path, &options, 1, &info);
        float *patches = predict_to("heatmap_patches", store, &options, 1, &of_store);
        assert_true(info.width == of_store.width && info.height == of_store.height);
        int64_t scored = 0;
        for (int64_t i = 0; i < info.width * info.height * 2; i++)
            if (!isnan(patches[i]) && !isnan(slide[i])) {
                assert_true(fabsf(patches[i] - slide[i]) < 1e-6f);
                scored++;
            }
        /* 7 x 7 cells a tile; those at the right and bottom are cut by the slide's edge */
        assert_true(scored > 20 && of_store.scored <= result.patches * 49 &&
                    of_store.scored > result.patches * 30);
        free(slide), free(patches);
    }
    unlink(path);
    free(path), free(folder), free(store);
}

static void expect_failure(const struct predict_options *options, char *slide, const char *word)
{
    char *folder = cohort_folder("heatmap_bad");
    struct slide_entry entry = entry_of(slide, "s");
    struct slide_list slides = { .entries = &entry, .n = 1 };
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct err err = { 0 };
    struct predict *predict = NULL;
    struct predict_slide work = { 0 };
    bool ok = predict_open(options, &slides, folder, &ctx, &predict, &err) &&
              predict_enter(predict, 0, &work, &err) &&
              predict_partition(predict, &work, &ctx, &err);
    predict_leave(&work);
    assert_false(ok);
    if (!strstr(err.text, word))
        fail_msg("'%s' is not in: %s", word, err.text);
    predict_close(predict);
    pool_free(pool);
    free(folder);
}

static void bad_input_is_refused(void **state)
{
    (void)state;
    char *slide = plain_slide_write("heatmap_bad.tiff", 600, 500, 0.5);
    char *plain = plain_slide_write("heatmap_no_mpp.tiff", 600, 500, 0);
    struct predict_options options = options_of("scan_tiny", PREDICT_AUTO, 16);
    expect_failure(&options, "/nowhere/a.tiff", "/nowhere/a.tiff");
    options.mpp = 0.25;
    expect_failure(&options, slide, "coarser than the 0.25");
    expect_failure(&options, plain, "--slide-mpp");
    options.mpp = 0;
    options.memory_bytes = 1 << 20;
    expect_failure(&options, slide, "--memory");
    options = options_of("vit_small_patch16_224", PREDICT_DENSE, 16);
    expect_failure(&options, slide, "--mode window");
    options = options_of("scan_tiny", PREDICT_AUTO, 16);
    options.models[1] = options.models[0];
    options.models[1].classes = 3;
    options.n_models = 2;
    expect_failure(&options, slide, "different classes");
    unlink(slide), unlink(plain);
    free(slide), free(plain);
}

/* The word models=HASH of a network with these weights, which `attr` and the order of a difference
 * make another one; the caller's. */
static char *hash_of(struct conv_attr attr, bool swapped)
{
    char *folder = cohort_folder("heatmap_hash"), *file = text_format("%s/net.onnx", folder);
    struct err err = { 0 };
    struct graph *graph = graph_new("net");
    value_id x = graph_input(graph, "input", SHAPE(1, 3, 64, 64));
    value_id a = graph_conv(graph, x, "a", 4, true, attr);
    value_id b = graph_conv(graph, x, "b", 4, true, attr);
    x = swapped ? graph_sub(graph, b, a) : graph_sub(graph, a, b);
    x = graph_flatten(graph, graph_global_average_pool(graph, graph_relu(graph, x)));
    graph_output(graph, "logits", graph_linear(graph, x, "fc", 2, true));
    assert_true(graph_initialize(graph, 5, &err) && onnx_write(graph, file, NULL, &err));
    graph_free(graph);
    struct predict_options options = options_of(NULL, PREDICT_WINDOW, 64);
    options.models[0] = (struct model_source){ .file = file };
    struct slide_entry entry = entry_of("s.tiff", "s");
    struct slide_list slides = { .entries = &entry, .n = 1 };
    struct ctx ctx = { .pool = pool_new(1) };
    struct predict *predict = NULL;
    if (!predict_open(&options, &slides, folder, &ctx, &predict, &err))
        fail_msg("%s", err.text);
    char *line = predict_line(predict, 0), *word = strstr(line, "models=");
    assert_non_null(word);
    char *hash = strndup(word, strcspn(word, " "));
    predict_close(predict);
    pool_free(ctx.pool);
    free(line), free(file), free(folder);
    return hash;
}

/* Equal weights do not make equal models: strides, padding, dilation and wiring count. */
static void attributes_tell_models_apart(void **state)
{
    (void)state;
    struct conv_attr dilated = conv_square(3, 1, 1);
    dilated.dilation[0] = dilated.dilation[1] = 2;
    char *hashes[] = { hash_of(conv_square(3, 1, 1), false), hash_of(conv_square(3, 2, 1), false),
                       hash_of(conv_square(3, 1, 0), false), hash_of(dilated, false),
                       hash_of(conv_square(3, 1, 1), true) };
    char *again = hash_of(conv_square(3, 1, 1), false);
    assert_string_equal(hashes[0], again);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(hashes[i], hashes[k]);
    for (int i = 0; i < 5; i++)
        free(hashes[i]);
    free(again);
}

/* NaN in a heatmap means that there is no tissue: a network that gives it is told of. */
static void broken_weights_are_told_of(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct model *model = NULL;
    char *folder = cohort_folder("heatmap_nan"), *weights = text_format("%s/w.safetensors", folder);
    char *slide = plain_slide_write("heatmap_nan.tiff", 600, 500, 0.5);
    struct predict_options options = options_of("scan_tiny", PREDICT_AUTO, 64);
    assert_true(model_open(&options.models[0], &model, &err));
    for (value_id v = 0; v < model->graph->n_values; v++)
        if (graph_is_parameter(model->graph, v))
            graph_data(model->graph, v)[0] = NAN;
    assert_true(weights_write(model->graph, weights, NULL, 0, &err));
    model_close(model);
    options.models[0].weights = weights;
    struct slide_entry entry = entry_of(slide, "s");
    struct slide_list slides = { .entries = &entry, .n = 1 };
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct predict *predict = NULL;
    struct predict_slide work = { 0 };
    for (options.mode = PREDICT_DENSE; options.mode <= PREDICT_WINDOW; options.mode++) {
        assert_true(predict_open(&options, &slides, folder, &ctx, &predict, &err));
        assert_true(predict_clear(predict, 0, &err));
        assert_true(predict_enter(predict, 0, &work, &err));
        assert_true(predict_partition(predict, &work, &ctx, &err));
        assert_false(predict_groups(predict, &work, &ctx, &err));
        assert_non_null(strstr(err.text, "not numbers"));
        predict_leave(&work);
        predict_close(predict);
    }
    pool_free(pool);
    unlink(weights), unlink(slide);
    free(weights), free(slide), free(folder);
}

/* Peak memory stays below what was allowed, with a slide of many blocks. */
static void memory_is_bounded(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    char *slide = plain_slide_write("heatmap_memory.tiff", 6000, 5000, 0.25);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct heatmap_info info;
        struct predict_options options = options_of("scan_small", PREDICT_AUTO, 16);
        options.memory_bytes = INT64_C(300) << 20;
        for (int i = 0; exporters[i]; i++)
            options.exports[i] = exporters[i];
        float *scores = predict_to("heatmap_memory", slide, &options, 2, &info);
        free(scores);
        _exit(info.scored > 40000 ? 0 : 1);
    }
    int status = 0;
    struct rusage usage;
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_int_equal(status, 0);
    print_message("peak %ld MB\n", usage.ru_maxrss / 1024);
    assert_true(usage.ru_maxrss < 300 * 1024);
    unlink(slide);
    free(slide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_bounded), /* first: the parent is still small */
        cmocka_unit_test(dense_is_window),
        cmocka_unit_test(centres_beyond_the_slide_are_not_scored),
        cmocka_unit_test(further_options),
        cmocka_unit_test(tasks_give_the_same_bytes),
        cmocka_unit_test(stores_give_the_slides_scores),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(attributes_tell_models_apart),
        cmocka_unit_test(broken_weights_are_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
