/* test_objectives.c: measures of regression against scikit-learn and SciPy
 * (tests/golden/train_regress.py), and what an objective promises: its loss has the gradient that
 * differences give, whatever the batch is divided by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "patch/h5.h"
#include "support/cohort.h"
#include "support/golden.h"
#include "support/train_job.h"
#include "train/checkpoint.h"
#include "train/loss.h"
#include "train/objectives.h"
#include "train/regression.h"

static void assert_close(const struct golden *golden, const char *group, const char *name,
                         double got)
{
    const struct golden_tensor *t = golden_find(golden, "%s/%s", group, name);
    assert_non_null(t);
    double want = (double)t->data[0] + (double)t->data[1];
    if (!(fabs(got - want) < 1e-11 * fmax(1, fabs(want))))
        fail_msg("%s/%s: %.15g, want %.15g", group, name, got, want);
}

static void measures_are_as_in_sklearn(void **state)
{
    (void)state;
    static const char *const groups[] = { "plain", "ties", "bad", "two" };
    struct golden golden;
    golden_open(&golden, "tests/golden/train_regress.bin");
    for (int k = 0; k < 4; k++) {
        const struct golden_tensor *target = golden_find(&golden, "%s/target", groups[k]);
        const struct golden_tensor *predicted = golden_find(&golden, "%s/predicted", groups[k]);
        struct regression found;
        assert_true(
            regression_compute(predicted->data, target->data, target->shape.dim[0], &found, NULL));
        assert_close(&golden, groups[k], "mae", found.mae);
        assert_close(&golden, groups[k], "rmse", found.rmse);
        assert_close(&golden, groups[k], "r2", found.r2);
        assert_close(&golden, groups[k], "pearson", found.pearson);
        assert_close(&golden, groups[k], "spearman", found.spearman);
    }
    golden_close(&golden);
}

static void undefined_is_nan(void **state)
{
    (void)state;
    static const float same[] = { 2, 2, 2 }, rising[] = { 1, 2, 3 }, broken[] = { 1, NAN, 3 };
    struct regression found;
    struct err err = { 0 };
    assert_true(regression_compute(rising, same, 3, &found, NULL));
    assert_true(isnan(found.r2) && isnan(found.pearson) && isnan(found.spearman));
    assert_true(fabs(found.mae - 2.0 / 3) < 1e-12);
    assert_true(regression_compute(same, rising, 3, &found, NULL));
    assert_true(found.r2 == 0 && isnan(found.pearson) && isnan(found.spearman));
    assert_false(regression_compute(broken, rising, 3, &found, &err));
    assert_string_equal(err.text, "sample 1: the prediction is not a number");
    assert_false(regression_compute(rising, broken, 3, &found, &err));
    assert_string_equal(err.text, "sample 1: the target is not a number");
}

/* --- every objective that learns from a batch --- */

#define BATCH 5
#define SIDE_PX 40

struct fixture {
    struct train_config config;
    struct dataset dataset;
    struct learning learning;
    struct batch batch;
    float targets[BATCH], outputs[2 * BATCH], gradient[2 * BATCH];
    int32_t labels[BATCH];
    int64_t samples[BATCH];
};

/* A learning from two stores, and a batch of four samples, filled up with one that is padding. */
static void set_up(struct fixture *f, const char *folder, const char *objective, const char *loss)
{
    char *data = text_format("data.train=%s", folder);
    const char *const settings[] = { objective,
                                     loss,
                                     data,
                                     "data.val_fraction=0.5",
                                     "train.batch=5",
                                     "network.input_px=40",
                                     "train.huber_delta=0.7" };
    struct err err = { 0 };
    *f = (struct fixture){ 0 };
    if (!config_read(NULL, settings, 7, &f->config, &err) ||
        !objective_settle(&f->config, NULL, &err) || !dataset_open(&f->config, &f->dataset, &err))
        fail_msg("%s", err.text);
    f->learning = (struct learning){ .objective = objective_of(&f->config),
                                     .config = &f->config,
                                     .dataset = &f->dataset,
                                     .patch_px = SIDE_PX,
                                     .crop_px = SIDE_PX,
                                     .outputs = f->config.truth == TRUTH_TARGETS ? 1 : 2 };
    if (!f->learning.objective->inputs(&f->learning, &err))
        fail_msg("%s", err.text);
    f->batch.n = BATCH - 1;
    for (int i = 0; i < BATCH; i++) {
        bool real = i < BATCH - 1;
        f->targets[i] = real && f->dataset.targets ? f->dataset.targets[i] : NAN;
        f->labels[i] = real ? i % 2 : LOSS_IGNORE;
        f->samples[i] = real ? i : -1;
    }
    for (int i = 0; i < 2 * BATCH; i++)
        f->outputs[i] = 0.9f * (float)i - 3;
    batch_put(&f->batch, (struct batch_item){ "target", BATCH_FLOAT, SHAPE(BATCH), f->targets });
    batch_put(&f->batch, (struct batch_item){ "label", BATCH_INT32, SHAPE(BATCH), f->labels });
    batch_put(&f->batch, (struct batch_item){ "sample", BATCH_INT64, SHAPE(BATCH), f->samples });
    free(data);
}

static void tear_down(struct fixture *f)
{
    f->learning.objective->free(&f->learning);
    dataset_free(&f->dataset);
    config_free(&f->config);
}

static char *two_stores(const char *name)
{
    char *folder = cohort_folder(name);
    for (int patient = 0; patient < 2; patient++)
        cohort_write_store(folder, patient, 7, SIDE_PX, 4, "");
    return folder;
}

static double loss_of(struct fixture *f, double divisor, float *gradient)
{
    double loss = 0;
    struct comparison c = {
        .batch = &f->batch, .outputs = f->outputs, .divisor = divisor, .gradient = gradient
    };
    assert_true(f->learning.objective->loss(&f->learning, &c, &loss, NULL));
    return loss;
}

static void check_objective(const char *folder, const char *objective, const char *loss)
{
    struct fixture f;
    set_up(&f, folder, objective, loss);
    double all = loss_of(&f, 4, f.gradient), half = loss_of(&f, 8, NULL);
    assert_true(all > 0 && fabs(all - 2 * half) < 1e-12 * all);
    int64_t n = BATCH * f.learning.outputs;
    for (int64_t i = 0; i < n; i++) {
        float kept = f.outputs[i];
        f.outputs[i] = kept + 1e-2f;
        double more = loss_of(&f, 4, NULL), step = (double)f.outputs[i];
        f.outputs[i] = kept - 1e-2f;
        double less = loss_of(&f, 4, NULL);
        step -= (double)f.outputs[i];
        f.outputs[i] = kept;
        if (fabs((more - less) / step - (double)f.gradient[i]) > 2e-3)
            fail_msg("%s, %s: gradient %d is %g, by differences %g", objective, loss, (int)i,
                     (double)f.gradient[i], (more - less) / step);
        assert_true(i < n - f.learning.outputs || f.gradient[i] == 0); /* padding */
    }
    tear_down(&f);
}

static void losses_have_their_gradients(void **state)
{
    (void)state;
    char *folder = two_stores("objective-losses");
    check_objective(folder, "objective=classify", "train.loss=softmax");
    check_objective(folder, "objective=classify", "train.loss=sigmoid");
    check_objective(folder, "objective=regress", "train.loss=mse");
    check_objective(folder, "objective=regress", "train.loss=huber");
    free(folder);
}

/* Patches without a target are no samples; the card says what the training data are like, and a
 * prediction is in the target's unit. */
static void targets_are_normalised(void **state)
{
    (void)state;
    struct fixture f;
    struct model_config card = { 0 };
    struct predictions kept = { .outputs = 1 };
    char *folder = two_stores("objective-targets");
    set_up(&f, folder, "objective=regress", "train.loss=mse");
    assert_int_equal(f.dataset.n_samples, 12); /* 2 x 7, of which the last has none */
    double few = (double)cohort_nuclei(0, SIDE_PX), many = (double)cohort_nuclei(1, SIDE_PX);
    assert_true(f.dataset.targets[0] == (float)few && f.dataset.targets[1] == (float)many);
    f.learning.objective->describe(&f.learning, &card);
    assert_string_equal(card.target.name, "nuclei");
    assert_int_equal(card.objective, OBJECTIVE_REGRESS);
    assert_true(fabs(card.target.mean - (few + many) / 2) < 1e-9);
    assert_true(fabs(card.target.std - (many - few) / 2) < 1e-9);
    assert_true(card.target.min == few && card.target.max == many);
    struct comparison c = { .batch = &f.batch, .outputs = f.outputs };
    assert_true(f.learning.objective->keep(&f.learning, &c, 3, &kept, NULL));
    assert_int_equal(kept.n, BATCH - 1);
    for (int i = 0; i < BATCH - 1; i++) {
        double value = (double)f.outputs[i] * card.target.std + card.target.mean;
        assert_true(fabs((double)kept.values[i] - value) < 1e-5);
        assert_true(kept.truths[i] == f.targets[i] && kept.samples[i] == i);
    }
    predictions_free(&kept);
    tear_down(&f);
    free(folder);
}

/* Takes out of a checkpoint's config the keys that older versions did not have. */
static void make_older(const char *folder)
{
    static const char *const newer[] = { "objective: classify\\u000a",
                                         "  activation: softmax\\u000a", "  loss: softmax\\u000a",
                                         "  huber_delta: 1\\u000a" };
    char *path = text_format("%s/checkpoints/step-0000000002.safetensors", folder);
    struct checkpoint checkpoint;
    assert_true(checkpoint_open(path, &checkpoint, NULL));
    char *state = strdup(checkpoint.state);
    for (int i = 0; i < 4; i++) {
        char *at = strstr(state, newer[i]);
        assert_non_null(at);
        memmove(at, at + strlen(newer[i]), strlen(at + strlen(newer[i])) + 1);
    }
    size_t n = checkpoint.file.n_tensors;
    struct state_array *arrays = calloc(n, sizeof *arrays);
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_tensor *tensor = &checkpoint.file.tensors[i];
        float *copy = malloc((size_t)tensor->count * sizeof *copy);
        assert_true(safetensors_floats(tensor, copy));
        arrays[i] = (struct state_array){ tensor->name, copy, tensor->count };
    }
    assert_true(checkpoint_write(path, arrays, n, state, NULL));
    for (size_t i = 0; i < n; i++)
        free(arrays[i].data);
    free(arrays);
    free(state);
    free(path);
    checkpoint_close(&checkpoint);
}

/* Stopped after a step and resumed = never stopped. */
static void check_resume(const char *objective, bool older)
{
    char *data = cohort_folder("objective-resume"), *train = text_format("data.train=%s", data);
    char *whole = cohort_folder("objective-whole"), *parts = cohort_folder("objective-parts");
    for (int patient = 0; patient < 2; patient++)
        cohort_write_store(data, patient, 13, 144, 4, "");
    struct job job = { .settings = { objective, train, "data.val_fraction=0.5",
                                     "network.input_px=144", "train.batch=4", "train.epochs=2",
                                     "schedule.learning_rate=0.01" },
                       .folder = whole };
    struct train_result result;
    struct err err = { 0 };
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    job.folder = parts;
    job.stop_after = 2;
    assert_false(run_job(&job, &result, &err));
    assert_int_equal(err.kind, ERR_REQUEUE);
    if (older)
        make_older(parts);
    job.stop_after = 0;
    job.resume = true;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    static const char *const files[] = { "model.safetensors", "scores.csv", "config.json" };
    for (int i = 0; i < 3; i++) {
        size_t a_size, b_size;
        char *a = read_in(whole, files[i], &a_size), *b = read_in(parts, files[i], &b_size);
        assert_int_equal(a_size, b_size);
        assert_memory_equal(a, b, a_size);
        free(a);
        free(b);
    }
    free(data), free(train), free(whole), free(parts);
}

static void resumes_as_if_never_stopped(void **state)
{
    (void)state;
    check_resume("objective=regress", false);
    check_resume("objective=classify", true);
}

static void bad_targets_are_named(void **state)
{
    (void)state;
    char *folder = cohort_folder("objective-images"), *data = text_format("data.train=%s", folder);
    cohort_write_images(folder, 2, 2, SIDE_PX);
    const char *const settings[] = { "objective=regress", data, "network.input_px=40",
                                     "data.spacing_um_px=1" };
    struct train_config config;
    struct dataset dataset;
    struct err err = { 0 };
    assert_true(config_read(NULL, settings, 4, &config, NULL));
    assert_true(objective_settle(&config, NULL, NULL));
    assert_false(dataset_open(&config, &dataset, &err));
    assert_non_null(strstr(err.text, "p0_0_0.png: images have no targets; objective regress takes "
                                     "patch stores from 'extract --target'"));
    config_free(&config);
    free(folder);
    free(data);
}

/* A store of a slide without tissue has no patches: nothing says what a patch is, in training as in
 * validation. */
static void nothing_to_learn_from_is_named(void **state)
{
    (void)state;
    char *folder = cohort_folder("objective-empty");
    char *train = text_format("data.train=%s", folder), *val = text_format("data.val=%s", folder);
    cohort_write_store(folder, 0, 0, SIDE_PX, 4, "");
    const char *const settings[] = { "objective=regress", train, val, "network.input_px=40",
                                     "data.spacing_um_px=1" };
    struct train_config config;
    struct dataset dataset;
    struct err err = { 0 };
    assert_true(config_read(NULL, settings, 5, &config, NULL));
    assert_true(objective_settle(&config, NULL, NULL));
    assert_false(dataset_open(&config, &dataset, &err));
    assert_non_null(strstr(err.text, "data.train: no patches"));
    config_free(&config);
    free(folder), free(train), free(val);
}

/* A file of features is one of HDF5 too. */
static void features_are_no_patches(void **state)
{
    (void)state;
    char *folder = cohort_folder("objective-features");
    char *path = text_format("%s/bag.h5", folder), *data = text_format("data.train=%s", path);
    const char *const settings[] = { data };
    struct train_config config;
    struct dataset dataset;
    struct err err = { 0 };
    hid_t file = h5_create(path);
    assert_true(h5_put_data(file, "features", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2,
                            (hsize_t[]){ 2, 3 }, (float[6]){ 0 }));
    assert_true(H5Fclose(file) >= 0);
    assert_true(config_read(NULL, settings, 1, &config, NULL));
    assert_true(objective_settle(&config, NULL, NULL));
    assert_false(dataset_open(&config, &dataset, &err));
    assert_non_null(strstr(err.text, "bag.h5: an HDF5 file of features, but not a patch store"));
    config_free(&config);
    free(folder), free(path), free(data);
}

/* What config.json says about a number is checked. */
static void cards_are_checked(void **state)
{
    (void)state;
    static const char before[] =
        "{\"num_classes\": 1, \"class_names\": [\"a\"], \"patch_size_pixels\": 8, "
        "\"spacing_um_px\": 1, \"transform\": [], \"microtome\": {\"objective\": ";
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "\"regress\", \"target\": {\"name\": \"a\", \"unit\": \"\", \"mean\": 2, \"std\": 3, "
          "\"min\": 0, \"max\": 9}}}",
          NULL },
        { "\"dream\"}}", "c.json: the model was trained with objective 'dream'; this version knows "
                         "classify, classify_audio, classify_text, distill, encode, generate, "
                         "mask, regress and segment" },
        { "\"regress\"}}",
          "c.json: 'microtome: target' must be an object, with num_classes 1, if a "
          "model predicts a number" },
        { "\"regress\", \"target\": {\"name\": \"a\", \"unit\": \"\", \"mean\": 2, \"std\": 0, "
          "\"min\": 0, \"max\": 9}}}",
          "c.json: 'microtome: target' must be an object with std above 0 and min below max" },
        { "\"regress\", \"target\": {\"name\": \"a\", \"unit\": \"\", \"mean\": \"2\"}}}",
          "c.json: 'microtome: target: mean' must be a number" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = text_format("%s%s", before, cases[i].text);
        struct model_config card;
        struct err err = { 0 };
        bool ok = model_config_parse(text, strlen(text), "c.json", &card, &err);
        assert_string_equal(err.text, cases[i].message ? cases[i].message : "");
        assert_true(ok == !cases[i].message);
        if (ok) {
            assert_true(card.target.mean == 2 && card.target.std == 3 && card.target.max == 9);
            model_config_free(&card);
        }
        free(text);
    }
}

/* Keys that an objective does not take are refused by name. */
static void refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *settings[4], *message;
    } cases[] = {
        { { "objective=distill" },
          "run.yaml: objective: distill needs a teacher; set distill.teacher, or pass "
          "--distill-dense" },
        { { "objective=regress", "distill.teacher=a" },
          "run.yaml: distill.teacher: objective regress has no teacher; omit it, or set objective: "
          "distill" },
        { { "objective=regress", "train.loss=softmax" },
          "run.yaml: train.loss: softmax with network.activation: auto is not taken by objective "
          "regress; it takes mse with activation none, huber with activation none" },
        { { "train.loss=softmax", "network.activation=sigmoid" },
          "run.yaml: train.loss: softmax with network.activation: sigmoid is not taken by "
          "objective classify; it takes softmax with activation softmax, sigmoid with activation "
          "sigmoid" },
        { { "train.monitor=r2" },
          "run.yaml: train.monitor: r2 is not a measure of objective classify; use accuracy, "
          "auc, loss or last" },
        { { "data.train=[a.h5, b/slide.svs]" },
          "run.yaml: data.train: b/slide.svs: whole slides are not taken by objective classify; it "
          "takes patches with labels: patch stores (.h5), folders of images, tar files" },
        { { "data.val=[bag.pt]", "objective=regress" },
          "run.yaml: data.val: bag.pt: features are not taken by objective regress; it takes "
          "patches with targets: patch stores (.h5) from 'extract --target'" },
        { { "data.test=[reports.jsonl]" },
          "run.yaml: data.test: reports.jsonl: texts are not taken by objective classify; it takes "
          "patches with labels: patch stores (.h5), folders of images, tar files" },
        { { "objective=regress", "train.mixup=0.2" },
          "train.mixup: is for classes, but objective regress learns a number; omit it" },
        { { "train.loss=sigmoid", "train.smoothing=0.1" },
          "train.smoothing: only the softmax loss takes it; omit it" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct train_config config;
        struct err err = { 0 };
        size_t n = 0;
        while (n < 4 && cases[i].settings[n])
            n++;
        assert_true(config_read(NULL, cases[i].settings, n, &config, NULL));
        assert_false(objective_settle(&config, "run.yaml", &err));
        assert_string_equal(err.text, cases[i].message);
        config_free(&config);
    }
}

/* What is left to the objective is chosen by it. */
static void chosen_by_the_objective(void **state)
{
    (void)state;
    struct train_config config;
    assert_true(config_read(NULL, NULL, 0, &config, NULL));
    assert_true(objective_settle(&config, NULL, NULL));
    assert_int_equal(config.train.monitor, MONITOR_AUC);
    assert_int_equal(config.train.loss, LOSS_SOFTMAX);
    assert_int_equal(config.network.activation, ACTIVATION_SOFTMAX);
    config_free(&config);
    const char *const settings[] = { "objective=regress" };
    assert_true(config_read(NULL, settings, 1, &config, NULL));
    assert_true(objective_settle(&config, NULL, NULL));
    assert_int_equal(config.train.monitor, MONITOR_R2);
    assert_int_equal(config.train.loss, LOSS_MSE);
    assert_int_equal(config.network.activation, ACTIVATION_NONE);
    config_free(&config);
    const char *const sigmoid[] = { "network.activation=sigmoid" };
    assert_true(config_read(NULL, sigmoid, 1, &config, NULL));
    assert_true(objective_settle(&config, NULL, NULL));
    assert_int_equal(config.train.loss, LOSS_SIGMOID);
    config_free(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures_are_as_in_sklearn),     cmocka_unit_test(undefined_is_nan),
        cmocka_unit_test(losses_have_their_gradients),    cmocka_unit_test(targets_are_normalised),
        cmocka_unit_test(resumes_as_if_never_stopped),    cmocka_unit_test(bad_targets_are_named),
        cmocka_unit_test(nothing_to_learn_from_is_named), cmocka_unit_test(refused_by_name),
        cmocka_unit_test(features_are_no_patches),        cmocka_unit_test(cards_are_checked),
        cmocka_unit_test(chosen_by_the_objective),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
