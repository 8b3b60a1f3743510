/* test_as_trained.c: a model is used as it was validated: the scores that a training writes of its
 * validation and test patches are those that the model gives for them, in both of its forms, with
 * crops, resizes, stains, and from images, tar files and stores alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/csv.h"
#include "base/pool.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/train_job.h"
#include "train/score.h"
#include "base/text.h"

#define SAME 1e-6

/* The scores of a table of the training, looked for by name. */
struct expected {
    struct csv csv;
    int64_t found;
    double worst;
};

static bool compare_row(void *arg, const struct score_row *row, struct err *err)
{
    struct expected *expected = arg;
    const struct csv *csv = &expected->csv;
    if (row->problem)
        return err_set(err, ERR_FORMAT, "%s", row->problem);
    for (size_t i = 0; i < csv->n_rows; i++) {
        if (strcmp(csv_cell(csv, i, csv_column(csv, "sample")), row->name) != 0)
            continue;
        double want = strtod(csv_cell(csv, i, csv_column(csv, "prob_tumor")), NULL);
        expected->worst = fmax(expected->worst, fabs(row->scores[1] - want));
        assert_int_equal(strtol(csv_cell(csv, i, csv_column(csv, "label")), NULL, 10), row->label);
        assert_string_equal(csv_cell(csv, i, csv_column(csv, "patient")), row->patient);
        expected->found++;
    }
    return true;
}

/* All patches of folder/table, scored from `data` by the model, have the scores of the table. */
static void assert_as_trained(const char *folder, const char *table, const char *model_path,
                              char *data, bool tta)
{
    struct err err = { 0 };
    struct model *model = NULL;
    struct expected expected = { 0 };
    struct pool *pool = pool_new(2);
    struct ctx ctx = { .pool = pool };
    char *path = text_format("%s/%s", folder, table);
    if (!csv_read(path, &expected.csv, &err) ||
        !model_open(&(struct model_source){ .file = model_path }, &model, &err))
        fail_msg("%s", err.text);
    struct score_request request = { .model = model, .paths = &data, .n_paths = 1, .tta = tta };
    if (!score_run(&request, &ctx, compare_row, &expected, &err))
        fail_msg("%s", err.text);
    print_message("%s, %s: %d patches, |dp| at most %.1e\n", model_path, table, (int)expected.found,
                  expected.worst);
    assert_true(expected.found > 0);
    assert_int_equal(expected.found, expected.csv.n_rows);
    assert_true(expected.worst < SAME);
    model_close(model);
    csv_free(&expected.csv);
    pool_free(pool);
    free(path);
}

/* The ONNX file alone, where no config.json lies beside it. */
static char *lone_onnx(const char *folder)
{
    char *alone = cohort_folder("as-trained-onnx");
    char *from = text_format("%s/model.onnx", folder), *to = text_format("%s/model.onnx", alone);
    assert_int_equal(rename(from, to), 0);
    free(from);
    free(alone);
    return to;
}

static void train_and_compare(const char *name, char *data, const char *const *settings,
                              size_t n_settings, bool tta)
{
    char *out = cohort_folder(name), *train = text_format("data.train=%s", data);
    struct job job = { .settings = { train, "network.name=resnet18", "network.input_px=48",
                                     "data.spacing_um_px=0.5", "train.epochs=1", "train.batch=8",
                                     "schedule.learning_rate=0.01", "data.val_fraction=0.34" },
                       .folder = out };
    for (size_t i = 0; i < n_settings; i++)
        job.settings[8 + i] = settings[i];
    struct train_result result;
    struct err err;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    assert_as_trained(out, "scores.csv", out, data, tta);
    char *onnx = lone_onnx(out);
    assert_as_trained(out, "scores.csv", onnx, data, tta);
    free(onnx);
    free(train);
    free(out);
}

/* 50 px are cropped to 48, or to 48 after a resize, or their stains are fitted first. */
static void images(void **state)
{
    (void)state;
    static const char *const resized[] = { "data.resize_px=64" };
    static const char *const stained[] = { "data.stain=macenko", "data.resize_px=57",
                                           "train.tta=true" };
    char *data = cohort_folder("as-trained-images");
    cohort_write_images(data, 4, 6, 50);
    train_and_compare("as-trained-crop", data, NULL, 0, false);
    train_and_compare("as-trained-resize", data, resized, 1, false);
    train_and_compare("as-trained-stain", data, stained, 3, true);
    free(data);
}

/* A crop out of an odd difference begins where torchvision's does. */
static void crops_begin_as_in_torchvision(void **state)
{
    (void)state;
    static const int cases[][3] = { { 50, 48, 1 }, { 49, 48, 0 }, { 51, 48, 2 },
                                    { 53, 48, 2 }, { 55, 48, 4 }, { 48, 48, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(model_crop_start(cases[i][0], cases[i][1]), cases[i][2]);
}

/* Stores whose split is test are judged once, by the kept weights; nobody is on two sides. */
static void test_side(void **state)
{
    (void)state;
    char *data = cohort_folder("as-trained-stores"), *out = cohort_folder("as-trained-test");
    for (int p = 0; p < 6; p++)
        cohort_write_store(data, p, 10, 50, 4, p < 2 ? "test" : p < 4 ? "val" : "train");
    char *train = text_format("data.train=%s", data);
    struct job job = { .settings = { train, "network.name=resnet18", "network.input_px=48",
                                     "schedule.learning_rate=0.005", "train.epochs=2",
                                     "train.batch=4", "data.split=attribute" },
                       .folder = out };
    struct train_result result;
    struct err err;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    assert_true(result.tested);
    assert_int_equal(result.test.n, result.val.n);
    assert_true(isfinite(job_measure(&result, &result.test, "auc")) && isfinite(result.test.loss));
    assert_as_trained(out, "scores.csv", out, data, false);
    assert_as_trained(out, "test_scores.csv", out, data, false);
    size_t size = 0;
    char *metrics = read_in(out, "metrics.json", &size), *run = read_in(out, "run.json", &size);
    assert_non_null(strstr(metrics, "\"test\": {"));
    assert_non_null(strstr(run, "\"test\": {"));
    free(metrics);
    free(run);
    /* also where patients are drawn, a store of the test is not */
    job.settings[6] = "data.val_fraction=0.34";
    job.folder = cohort_folder("as-trained-drawn");
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    assert_true(result.tested);
    assert_as_trained(job.folder, "test_scores.csv", job.folder, data, false);
    free((char *)job.folder);
    job.folder = cohort_folder("as-trained-leak");
    char *test = text_format("data.test=%s", data);
    job.settings[7] = test;
    assert_false(run_job(&job, &result, &err));
    if (!strstr(err.text, "patients are in both training and test") &&
        !strstr(err.text, "patients are in both validation and test"))
        fail_msg("%s", err.text);
    free((char *)job.folder);
    free(test);
    free(train);
    free(data);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_begin_as_in_torchvision),
        cmocka_unit_test(images),
        cmocka_unit_test(test_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
