/* test_train_run.c: whole trainings on small made-up patches: they learn, they go on bit for bit
 * after a stop at any step, they do not depend on the loader's threads, and they fail with words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/csv.h"
#include "base/pool.h"
#include "net/model/model_run.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/train_job.h"
#include "prepare/augment_ops.h"
#include "train/checkpoint.h"
#include "train/train.h"
#include "base/text.h"

static void assert_same_file(const char *a, const char *b, const char *name)
{
    size_t size_a = 0, size_b = 0;
    char *bytes_a = read_in(a, name, &size_a), *bytes_b = read_in(b, name, &size_b);
    assert_int_equal(size_a, size_b);
    if (memcmp(bytes_a, bytes_b, size_a) != 0)
        fail_msg("%s differs", name);
    free(bytes_a);
    free(bytes_b);
}

/* All arrays of two checkpoints. */
static void assert_same_arrays(const char *folder_a, const char *folder_b, const char *name)
{
    struct checkpoint a, b;
    char *path_a = text_format("%s/%s", folder_a, name);
    char *path_b = text_format("%s/%s", folder_b, name);
    assert_true(checkpoint_open(path_a, &a, NULL) && checkpoint_open(path_b, &b, NULL));
    assert_int_equal(a.file.n_tensors, b.file.n_tensors);
    for (size_t i = 0; i < a.file.n_tensors; i++)
        assert_memory_equal(a.file.tensors[i].data, b.file.tensors[i].data,
                            (size_t)a.file.tensors[i].count * sizeof(float));
    checkpoint_close(&a);
    checkpoint_close(&b);
    free(path_a);
    free(path_b);
}

static char *train_setting(const char *folder)
{
    return text_format("data.train=%s", folder);
}

/* Nuclei are counted within seconds; the results are all there and can be used. */
static void learns(void **state)
{
    (void)state;
    char *data = cohort_folder("train-learns-data"), *out = cohort_folder("train-learns");
    for (int p = 0; p < 6; p++)
        cohort_write_store(data, p, 17, 160, 5, "");
    char *train = train_setting(data);
    struct job job = { .settings = { train, "network.name=scan_tiny", "network.input_px=144",
                                     "data.val_fraction=0.34", "train.epochs=8", "train.batch=8",
                                     "schedule.learning_rate=0.02", "data.window_mb=1" },
                       .folder = out };
    struct train_result result;
    struct err err;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    print_message("validation AUC %.4f, best epoch %d, %.1f s\n",
                  job_measure(&result, &result.val, "auc"), (int)result.best_epoch + 1,
                  result.seconds);
    assert_true(job_measure(&result, &result.val, "auc") > 0.9);
    assert_int_equal(result.val.n, 32);
    static const char *const files[] = { "metrics.csv",       "metrics.json", "curves.svg",
                                         "curves.png",        "run.json",     "config.yaml",
                                         "confusion.csv",     "config.json",  "confusion.png",
                                         "model.safetensors", "model.onnx",   "scores.csv" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t size = 0;
        free(read_in(out, files[i], &size));
        assert_true(size > 0);
    }
    struct model *model = NULL;
    if (!model_open(&(struct model_source){ .file = out }, &model, &err))
        fail_msg("%s", err.text);
    assert_int_equal(model->config.patch_size_pixels, 144);
    assert_true(model->config.spacing_um_px == 0.5);
    assert_string_equal(model->config.class_names[1], "tumor");
    model_close(model);
    struct job again = job;
    assert_false(run_job(&again, &result, &err));
    assert_non_null(strstr(err.text, "already contains a training run"));
    free(train);
    free(data);
    free(out);
}

/* Stopped after k steps, then resumed with another number of loader threads (in two goes for the
 * first k). */
static void stop_and_resume(struct job *job, int64_t k)
{
    struct train_result result;
    struct err err;
    job->settings[18] = "data.workers=2";
    job->stop_after = k;
    job->resume = false;
    assert_false(run_job(job, &result, &err));
    assert_int_equal(err.kind, ERR_REQUEUE);
    job->settings[18] = "data.workers=1";
    job->stop_after = k == 1 ? 2 : 0;
    job->resume = true;
    bool ok = run_job(job, &result, &err);
    if (k == 1) {
        assert_false(ok);
        job->stop_after = 0;
        ok = run_job(job, &result, &err);
    }
    if (!ok)
        fail_msg("%s", err.text);
}

/* Stopped after any step and resumed = never stopped: weights, optimiser, average, metrics. With
 * accumulation, clipping, averaging, a plateau that goes back to the best, other loader threads. */
static void resume_is_exact(void **state)
{
    (void)state;
    char *data = cohort_folder("train-resume-data"), *whole = cohort_folder("train-resume-whole");
    cohort_write_images(data, 6, 6, 150);
    char *train = train_setting(data);
    struct job job = { .settings = { train,
                                     "network.input_px=144",
                                     "data.spacing_um_px=0.5",
                                     "data.val_fraction=0.34",
                                     "train.epochs=4",
                                     "train.batch=4",
                                     "train.accumulate=2",
                                     "train.clip=1",
                                     "train.ema=0.5",
                                     "schedule.name=plateau",
                                     "schedule.patience=1",
                                     "schedule.factor=0.5",
                                     "schedule.learning_rate=0.01",
                                     "optimizer.name=adam",
                                     "data.balance=sampling",
                                     "augment.hed_jitter=0.05",
                                     "train.monitor=loss",
                                     "checkpoint.every_steps=2",
                                     "data.workers=2",
                                     "train.mixup=0.4" },
                       .folder = whole };
    struct train_result result;
    struct err err;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    int64_t steps = result.steps;
    print_message("%d steps, best epoch %d\n", (int)steps, (int)result.best_epoch + 1);
    assert_true(steps >= 12);
    char *last = text_format("checkpoints/step-%010lld.safetensors", (long long)steps);
    for (int64_t k = 1; k < steps; k += 2) {
        char *part = cohort_folder("train-resume-part");
        job.folder = part;
        stop_and_resume(&job, k);
        assert_same_file(whole, part, "model.safetensors");
        assert_same_file(whole, part, "scores.csv");
        assert_same_arrays(whole, part, last);
        free(part);
    }
    free(last);
    free(train);
    free(data);
    free(whole);
}

/* Flips one byte in the middle of a file. */
static void damage(const char *path)
{
    FILE *stream = fopen(path, "r+b");
    assert_non_null(stream);
    fseek(stream, 0, SEEK_END);
    long middle = ftell(stream) / 2;
    fseek(stream, middle, SEEK_SET);
    int byte = fgetc(stream);
    fseek(stream, middle, SEEK_SET);
    fputc(byte ^ 0x10, stream);
    fclose(stream);
}

static void damaged_checkpoint(void **state)
{
    (void)state;
    char *data = cohort_folder("train-damaged-data"), *whole = cohort_folder("train-damaged-whole");
    char *part = cohort_folder("train-damaged");
    cohort_write_images(data, 4, 6, 150);
    char *train = train_setting(data);
    struct job job = { .settings = { train, "network.input_px=144", "data.spacing_um_px=0.5",
                                     "train.epochs=2", "train.batch=4",
                                     "checkpoint.every_steps=1" },
                       .folder = whole };
    struct train_result result;
    struct err err;
    assert_true(run_job(&job, &result, &err));
    job.folder = part;
    job.stop_after = 3;
    assert_false(run_job(&job, &result, &err));
    char *newest = text_format("%s/checkpoints/step-%010d.safetensors", part, 3);
    damage(newest);
    struct checkpoint checkpoint;
    assert_false(checkpoint_open(newest, &checkpoint, &err));
    assert_non_null(strstr(err.text, "damaged: the checksum does not match"));
    job.stop_after = 0;
    job.resume = true;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    assert_same_file(whole, part, "model.safetensors");
    /* one that cannot be opened may be sound: it is passed over, and stays */
    char *closed = text_format("%s/checkpoints/step-%010d.safetensors", part, 99);
    assert_int_equal(symlink(closed, closed), 0);
    assert_true(run_job(&job, &result, &err));
    assert_int_equal(unlink(closed), 0);
    free(closed);
    job.settings[4] = "train.batch=2";
    assert_false(run_job(&job, &result, &err));
    assert_non_null(
        strstr(err.text, "started with '  batch: 4', but the config now has '  batch: 2'"));
    job.settings[4] = "train.batch=4";
    cohort_write_images(data, 5, 6, 150);
    assert_false(run_job(&job, &result, &err));
    assert_non_null(strstr(err.text, "started with different data"));
    free(newest);
    free(train);
    free(data);
    free(whole);
    free(part);
}

/* A checkpoint whose state claims something else, with the right checksum. */
static void claim(const char *path, const char *from, const char *to)
{
    struct checkpoint checkpoint;
    assert_true(checkpoint_open(path, &checkpoint, NULL));
    const char *at = strstr(checkpoint.state, from);
    assert_non_null(at);
    char *state = text_format("%.*s%s%s", (int)(at - checkpoint.state), checkpoint.state, to,
                              at + strlen(from));
    size_t n = checkpoint.file.n_tensors;
    struct state_array *arrays = calloc(n, sizeof *arrays);
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_tensor *tensor = &checkpoint.file.tensors[i];
        float *copy = malloc((size_t)tensor->count * sizeof *copy + 1);
        memcpy(copy, tensor->data, (size_t)tensor->count * sizeof *copy);
        arrays[i] = (struct state_array){ strdup(tensor->name), copy, tensor->count };
    }
    checkpoint_close(&checkpoint);
    assert_true(checkpoint_write(path, arrays, n, state, NULL));
    for (size_t i = 0; i < n; i++)
        free((char *)arrays[i].name), free(arrays[i].data);
    free(arrays);
    free(state);
}

/* step * step_images may not overflow, and the best epoch is one that there was. */
static void claims_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
    } claims[] = {
        { "\"step\": 1,", "\"step\": 4611686018427387905," },
        { "\"step_images\": 4,", "\"step_images\": 4611686018427387905," },
        { "\"steps\": 1,", "\"steps\": 9223372036854775807," },
        { "\"best_epoch\": -1,", "\"best_epoch\": 7," },
        { "\"epoch\": 0,", "\"epoch\": 9223372036854775807," },
    };
    char *data = cohort_folder("train-claims-data");
    cohort_write_images(data, 4, 6, 150);
    char *train = train_setting(data);
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        char *out = cohort_folder("train-claims");
        char *path = text_format("%s/checkpoints/step-%010d.safetensors", out, 1);
        struct job job = { .settings = { train, "network.input_px=144", "data.spacing_um_px=0.5",
                                         "train.epochs=2", "train.batch=4" },
                           .folder = out,
                           .stop_after = 1 };
        struct train_result result;
        struct err err;
        assert_false(run_job(&job, &result, &err));
        claim(path, claims[i].from, claims[i].to);
        job.stop_after = 0;
        job.resume = true;
        if (run_job(&job, &result, &err) || !strstr(err.text, "not a checkpoint of this version"))
            fail_msg("%s: %s", claims[i].to, err.text);
        free(path);
        free(out);
    }
    free(train);
    free(data);
}

/* Weights that are not numbers: the sample is named, the step stopped or skipped. */
static void not_a_number(void **state)
{
    (void)state;
    char *data = cohort_folder("train-nan-data"), *out = cohort_folder("train-nan");
    cohort_write_images(data, 4, 4, 150);
    char *train = train_setting(data), *path = text_format("%s/start.safetensors", out);
    char *weights = text_format("network.weights=%s", path);
    struct zoo_options options = { .height = 144, .width = 144, .classes = 2 };
    struct graph *graph = NULL;
    assert_true(zoo_build("scan_tiny", &options, &graph, NULL));
    assert_true(graph_initialize(graph, 0, NULL));
    graph_data(graph, graph_find(graph, "fc.bias"))[0] = NAN;
    assert_true(weights_write(graph, path, NULL, 0, NULL));
    graph_free(graph);
    struct job job = { .settings = { train, weights, "network.input_px=144",
                                     "data.spacing_um_px=0.5", "train.epochs=1", "train.batch=4" },
                       .folder = out };
    struct train_result result;
    struct err err;
    assert_false(run_job(&job, &result, &err));
    if (!strstr(err.text, "epoch 1, step 1: the loss is not a number, first at ") ||
        !strstr(err.text, ".png; lower schedule.learning_rate"))
        fail_msg("%s", err.text);
    job.settings[6] = "train.on_nan=skip";
    job.stop_after = 2; /* both steps are skipped and the run goes on */
    assert_false(run_job(&job, &result, &err));
    assert_int_equal(result.steps, 2);
    free(weights);
    free(path);
    free(train);
    free(data);
    free(out);
}

/* The scores of an image; ways 8: their mean over all ways to lay it, as predict --tta has it. */
static void classify(const struct model *model, struct model_run *ready, struct image *image,
                     int ways, double scores[2])
{
    struct err err = { 0 };
    scores[0] = scores[1] = 0;
    for (int way = 0; way < ways; way++) { /* turned round, mirrored, and round again */
        double one[2];
        if (way > 0)
            augment_turn(image, 1);
        if (way == 4)
            augment_flip(image, true, false);
        if (!model_classify(model, ready, 1, image, one, &err))
            fail_msg("%s", err.text);
        for (int c = 0; c < 2; c++)
            scores[c] += one[c] / ways;
    }
}

/* The scores of the files that scores.csv names, from the model as a user opens it. */
static void assert_scores(const char *folder, const char *file, int ways)
{
    struct err err = { 0 };
    struct csv csv;
    struct model *model = NULL;
    struct model_run ready = { 0 };
    char *path = text_format("%s/scores.csv", folder);
    if (!csv_read(path, &csv, &err) ||
        !model_open(&(struct model_source){ .file = file }, &model, &err))
        fail_msg("%s", err.text);
    assert_true(csv.n_rows > 0);
    for (size_t i = 0; i < csv.n_rows; i++) {
        struct image image;
        double scores[2];
        double normal = strtod(csv_cell(&csv, i, csv_column(&csv, "prob_normal")), NULL);
        double tumor = strtod(csv_cell(&csv, i, csv_column(&csv, "prob_tumor")), NULL);
        assert_true(image_read(csv_cell(&csv, i, 0), &image, &err));
        classify(model, &ready, &image, ways, scores);
        double want = log(tumor / normal), got = log(scores[1] / scores[0]); /* never at an end */
        if (!(fabs(got - want) < 1e-2))
            fail_msg("%s: logit %.6f in the training, %.6f in use", file, want, got);
        image_free(&image);
    }
    model_run_free(&ready);
    model_close(model);
    csv_free(&csv);
    free(path);
}

/* The written model, in both forms, gives the scores it was judged by: weights, average, padding,
 * resizing and normalisation are all in the files. */
static void model_is_what_was_judged(void **state)
{
    (void)state;
    char *data = cohort_folder("train-judged-data"), *out = cohort_folder("train-judged"),
         *ways = cohort_folder("train-judged-ways");
    cohort_write_images(data, 4, 4, 40);
    char *train = train_setting(data), *onnx = text_format("%s/model.onnx", out);
    struct job job = { .settings = { train, "network.name=resnet18", "network.padding=replicate",
                                     "network.input_px=32", "data.resize_px=32",
                                     "data.spacing_um_px=0.5", "train.epochs=2", "train.batch=4",
                                     "train.ema=0.5", "schedule.learning_rate=0.002",
                                     "data.balance=weights" },
                       .folder = out };
    struct train_result result;
    struct err err;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    assert_scores(out, out, 1);
    assert_scores(out, onnx, 1);
    struct job wide = { .settings = { train, "network.name=scan_tiny", "network.input_px=144",
                                      "data.resize_px=144", "data.spacing_um_px=0.5",
                                      "train.epochs=1", "train.batch=4", "train.tta=true" },
                        .folder = ways };
    if (!run_job(&wide, &result, &err))
        fail_msg("%s", err.text);
    assert_scores(ways, ways, MODEL_WAYS);
    free(ways);
    free(onnx);
    free(train);
    free(data);
    free(out);
}

/* Validation with one class has no AUC: the loss decides, and the run ends well. */
static void validation_of_one_class(void **state)
{
    (void)state;
    char *data = cohort_folder("train-one-data"), *val = cohort_folder("train-one-val");
    char *out = cohort_folder("train-one");
    cohort_write_images(data, 3, 8, 150);
    cohort_write_images(val, 5, 1, 150); /* only number 0 of each patient: normal */
    for (int p = 0; p < 3; p++) {
        char *path = text_format("%s/normal/p%d_0_0.png", val, p);
        unlink(path);
        free(path);
    }
    char *train = train_setting(data), *val_setting = text_format("data.val=%s", val);
    struct job job = { .settings = { train, val_setting, "network.input_px=144",
                                     "data.spacing_um_px=0.5", "train.epochs=3", "train.batch=4",
                                     "schedule.learning_rate=0.01" },
                       .folder = out };
    struct train_result result;
    struct err err;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    assert_true(isnan(job_measure(&result, &result.val, "auc")));
    assert_int_equal(result.val.n, 2);
    assert_true(result.val.loss > 0);
    free(train);
    free(val_setting);
    free(data);
    free(val);
    free(out);
}

struct wrong {
    const char *setting, *says;
};

static void bad_requests(void **state)
{
    (void)state;
    static const struct wrong wrongs[] = {
        { "network.name=resnet19", "did you mean" },
        { "network.name=unet", "not an image classifier" },
        { "network.input_px=20", "network.input_px" },
        { "train.batch=1000", "are too few for one step; lower train.batch" },
        { "data.resize_px=100", "data.resize_px 100 is smaller than network.input_px 144" },
        { "network.weights=/nowhere.safetensors", "/nowhere.safetensors" },
        { "data.spacing_um_px=0", "set data.spacing_um_px" },
    };
    char *data = cohort_folder("train-wrong-data");
    cohort_write_images(data, 4, 2, 150);
    char *train = train_setting(data);
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        char *out = cohort_folder("train-wrong");
        struct job job = { .settings = { train, "network.input_px=144", "data.spacing_um_px=0.5",
                                         "train.batch=2", wrongs[i].setting },
                           .folder = out };
        struct train_result result;
        struct err err;
        assert_false(run_job(&job, &result, &err));
        if (!strstr(err.text, wrongs[i].says))
            fail_msg("'%s' does not say '%s'", err.text, wrongs[i].says);
        free(out);
    }
    free(train);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns),
        cmocka_unit_test(resume_is_exact),
        cmocka_unit_test(damaged_checkpoint),
        cmocka_unit_test(claims_are_refused),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(model_is_what_was_judged),
        cmocka_unit_test(validation_of_one_class),
        cmocka_unit_test(bad_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
