/* test_heatmap_padded.c: networks with zero padding run densely: blocks agree, the difference to
 * windows is measured as the run works, calibrated on other windows than it is judged by, and
 * belongs to a cohort. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/pool.h"
#include "heatmap/predict.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/plain_slide.h"
#include "tests/unit/support/predictions.h"
#include "base/text.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Padded networks: the sizes of blocks agree to 1e-3, the difference to windows is measured. */
static void padded_networks(void **state)
{
    (void)state;
    char *slide = plain_slide_write("heatmap_padded.tiff", 900, 600, 0.25), *onnx = padded_onnx();
    struct heatmap_info info, raw;
    struct predict_options options = options_of(NULL, PREDICT_DENSE, 16);
    options.models[0] = (struct model_source){ .file = onnx };
    options.check_windows = 200;
    float *large = predict_to("heatmap_padded", slide, &options, 2, &raw);
    options.memory_bytes = INT64_C(8) << 20;
    float *small = predict_to("heatmap_padded", slide, &options, 2, &info);
    double gap = largest_gap(large, small, &info);
    print_message("blocks: %g; r %g, mean %g, max %g\n", gap, raw.check.r, raw.check.mean,
                  raw.check.max);
    assert_true(gap < 1e-3);
    assert_true(raw.check.windows == 200 && raw.raw.windows == 0 && raw.check.max > 0);
    options.mode = PREDICT_WINDOW;
    float *window = predict_to("heatmap_padded", slide, &options, 2, &info);
    double mean = 0, calibrated_mean = 0;
    options.mode = PREDICT_DENSE;
    options.calibration = CALIBRATE_AFFINE;
    float *calibrated = predict_to("heatmap_padded", slide, &options, 2, &info);
    /* fitted on one half of the windows, judged by the other, before and after */
    assert_true(info.raw.windows == 100 && info.check.windows == 100);
    assert_true(info.check.fitted_on == 100 && info.raw.fitted_on == 0);
    assert_true(info.check.mean < info.raw.mean);
    for (int64_t i = 1; i < info.width * info.height * 2; i += 2)
        if (!isnan(window[i])) {
            mean += fabs((double)large[i] - (double)window[i]) / (double)info.scored;
            calibrated_mean +=
                fabs((double)calibrated[i] - (double)window[i]) / (double)info.scored;
        }
    print_message("mean |dp| %g, measured %g; calibrated %g, measured %g\n", mean, raw.check.mean,
                  calibrated_mean, info.check.mean);
    assert_true(fabs(mean - raw.check.mean) < 0.3 * mean); /* the sample tells of the whole */
    assert_true(fabs(calibrated_mean - info.check.mean) < 0.3 * calibrated_mean);
    assert_true(calibrated_mean < mean);
    free(large), free(small), free(window), free(calibrated);
    unlink(slide);
    free(slide);
    free(onnx);
}

/* A run with test-time augmentation is checked as it runs: the check tells of its heatmap. */
static void turned_windows_are_checked(void **state)
{
    (void)state;
    char *slide = plain_slide_write("heatmap_turned.tiff", 700, 500, 0.25), *onnx = padded_onnx();
    struct heatmap_info info, plain, turned;
    struct predict_options options = options_of(NULL, PREDICT_DENSE, 32);
    options.models[0] = (struct model_source){ .file = onnx };
    options.check_windows = 1000; /* many of them twice */
    free(predict_to("heatmap_turned", slide, &options, 2, &plain));
    options.tta = true;
    float *dense = predict_to("heatmap_turned", slide, &options, 2, &turned);
    options.mode = PREDICT_WINDOW;
    float *window = predict_to("heatmap_turned", slide, &options, 2, &info);
    double mean = 0;
    for (int64_t i = 1; i < info.width * info.height * 2; i += 2)
        if (!isnan(window[i]))
            mean += fabs((double)dense[i] - (double)window[i]) / (double)info.scored;
    print_message("mean |dp| %g; measured %g, without symmetries %g\n", mean, turned.check.mean,
                  plain.check.mean);
    assert_true(fabs(turned.check.mean / mean - 1) < 0.25); /* borders are seldom drawn */
    assert_true(turned.check.windows == plain.check.windows);
    assert_true(turned.check.mean < plain.check.mean && turned.check.max < plain.check.max);
    free(dense), free(window);
    unlink(slide);
    free(slide);
    free(onnx);
}

/* Runs a cohort in a folder that may hold results already. */
static bool run_slides(const char *folder, struct slide_entry *entries, size_t n,
                       const struct predict_options *options, bool overwrite, struct err *err)
{
    char *arguments[] = { "test" };
    struct slide_list slides = { .entries = entries, .n = n };
    struct predict_request request = {
        .slides = &slides,
        .options = *options,
        .folder = folder,
        .overwrite = overwrite,
        .argc = 1,
        .argv = arguments,
    };
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct predict_row rows[2];
    struct predict_times times;
    size_t rows_done = 0;
    bool ok = predict_cohort(&request, &ctx, rows, &rows_done, &times, err);
    pool_free(pool);
    return ok;
}

/* The check is of a cohort: with another slide it is made again, and heatmaps that were calibrated
 * by the old one are not mixed with new ones. */
static void another_cohort_is_checked_again(void **state)
{
    (void)state;
    char *first = plain_slide_write("heatmap_first.tiff", 700, 500, 0.25),
         *second = plain_slide_write("heatmap_second.tiff", 800, 500, 0.25), *onnx = padded_onnx(),
         *folder = cohort_folder("heatmap_cohort"), *json = text_format("%s/check.json", folder),
         *text[3] = { 0 };
    struct slide_entry entries[] = { entry_of(first, "first"), entry_of(second, "second") };
    struct predict_options options = options_of(NULL, PREDICT_DENSE, 32);
    struct err err = { 0 };
    size_t size;
    options.models[0] = (struct model_source){ .file = onnx };
    options.check_windows = 16;
    for (size_t i = 0; i < 3; i++) { /* the last time nothing is new */
        if (!run_slides(folder, entries, i ? 2 : 1, &options, false, &err))
            fail_msg("%s", err.text);
        assert_true(file_read(json, 1 << 16, &text[i], &size, &err));
    }
    assert_string_not_equal(text[0], text[1]);
    assert_string_equal(text[1], text[2]);
    options.calibration = CALIBRATE_AFFINE;
    free(folder);
    folder = cohort_folder("heatmap_cohort");
    assert_true(run_slides(folder, entries, 1, &options, false, &err));
    assert_false(run_slides(folder, entries, 2, &options, false, &err));
    const char *was = strstr(err.text, "then: cohort="), *now = strstr(err.text, "now:  cohort=");
    if (!was || !now || strncmp(was + 6, now + 6, strlen("cohort=") + 16) == 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < 3; i++)
        free(text[i]);
    unlink(first), unlink(second);
    free(first), free(second), free(onnx), free(folder), free(json);
}

/* A calibration was fitted to slides as they were: with another of them it is not used again. */
static void a_calibration_knows_its_slides(void **state)
{
    (void)state;
    char *first = plain_slide_write("heatmap_fitted.tiff", 700, 500, 0.25),
         *second = plain_slide_write("heatmap_other.tiff", 800, 500, 0.25), *onnx = padded_onnx(),
         *folder = cohort_folder("heatmap_fitted"), *made = text_format("%s/first", folder),
         *away = text_format("%s/away", folder);
    struct slide_entry entries[] = { entry_of(first, "first"), entry_of(second, "second") };
    struct predict_options options = options_of(NULL, PREDICT_DENSE, 32);
    struct err err = { 0 };
    options.models[0] = (struct model_source){ .file = onnx };
    options.check_windows = 16;
    options.calibration = CALIBRATE_AFFINE;
    assert_true(run_slides(folder, entries, 2, &options, false, &err));
    assert_int_equal(rename(made, away), 0); /* as of a slide that was not come to */
    char *again = plain_slide_write("heatmap_fitted.tiff", 720, 500, 0.25);
    assert_string_equal(again, first);
    assert_false(run_slides(folder, entries, 2, &options, false, &err));
    assert_non_null(strstr(err.text, "check.json: was made from a different cohort (then "));
    assert_true(run_slides(folder, entries, 2, &options, true, &err));
    unlink(first), unlink(second);
    free(first), free(second), free(onnx), free(folder), free(made), free(away);
    free(again);
}

/* The same agreement of blocks for a network as published, which sees far. */
static void blocks_of_resnet_agree(void **state)
{
    (void)state;
    if (SANITIZED)
        skip(); /* minutes, without more to see */
    char *slide = plain_slide_write("heatmap_resnet.tiff", 900, 600, 0.25);
    struct heatmap_info info;
    struct predict_options options = options_of("resnet18", PREDICT_DENSE, 32);
    options.models[0].height = options.models[0].width = 64;
    options.check_windows = 4;
    float *large = predict_to("heatmap_resnet", slide, &options, 2, &info);
    options.memory_bytes = INT64_C(720) << 20;
    float *small = predict_to("heatmap_resnet", slide, &options, 2, &info);
    double gap = largest_gap(large, small, &info);
    print_message("resnet18: blocks %g\n", gap);
    assert_true(gap > 0 && gap < 1e-3); /* 0: the blocks were the same */
    free(large), free(small);
    unlink(slide);
    free(slide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padded_networks),
        cmocka_unit_test(turned_windows_are_checked),
        cmocka_unit_test(another_cohort_is_checked_again),
        cmocka_unit_test(a_calibration_knows_its_slides),
        cmocka_unit_test(blocks_of_resnet_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
