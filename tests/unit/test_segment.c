/* test_segment.c: objective segment: the classes of pixels by hand, label images that move with
 * their images, soft Dice against PyTorch, gradients by differences, measures by hand, a stop and a
 * resume, folds, and bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "support/cohort.h"
#include "support/train_job.h"
#include "train/loader.h"
#include "train/loss.h"
#include "train/objectives.h"
#include "train/pixel_classes.h"

enum { SIDE_PX = 48, INPUT_PX = 32 };

/* --- classes of pixels --- */

/* Two nuclei that touch, and one at the edge of the image; '#' is boundary, '+' inside. */
static void rims_are_boundaries(void **state)
{
    (void)state;
    static const char *const labels[] = { "11112222.", "11112222.", "11112222.", "11112222.",
                                          "........." };
    static const char *const wanted[] = { "+++##++#.", "+++##++#.", "+++##++#.", "########.",
                                          "........." };
    int32_t px[45];
    struct label_image image = { px, 9, 5 };
    struct image patch = { NULL, 9, 5, 3 }, found = { 0 };
    for (int i = 0; i < 45; i++)
        px[i] = labels[i / 9][i % 9] == '.' ? 0 : labels[i / 9][i % 9] - '0';
    assert_true(pixel_classes(&image, &patch, 1, &found, NULL));
    for (int i = 0; i < 45; i++) {
        char want = wanted[i / 9][i % 9];
        int class = want == '.'   ? SEGMENT_BACKGROUND
                    : want == '+' ? SEGMENT_INSIDE
                                  : SEGMENT_BOUNDARY;
        if (found.px[3 * i] != class)
            fail_msg("x %d, y %d is %d, want %d", i % 9, i / 9, found.px[3 * i], class);
    }
    image_free(&found);
    assert_true(pixel_classes(&image, &patch, 0.3, &found, NULL)); /* within 2.5 px */
    assert_int_equal(found.px[0], SEGMENT_INSIDE);
    assert_int_equal(found.px[3], SEGMENT_INSIDE);        /* 3 px from the other nucleus */
    assert_int_equal(found.px[3 * 2], SEGMENT_BOUNDARY);  /* 2 px */
    assert_int_equal(found.px[3 * 18], SEGMENT_BOUNDARY); /* 2 px above the edge */
    image_free(&found);
}

/* --- data --- */

/* An image whose green is 40 in nuclei and 200 elsewhere, and its labels: so the one can be told
 * from the other wherever they are moved. */
static void write_pair(const char *folder, int patient, int number, int64_t side, bool npy)
{
    struct image image = { 0 };
    struct label_image labels = { .width = side, .height = side };
    char *png = text_format("%s/p%d_%d_0.png", folder, patient, number);
    char *truth =
        text_format("%s/p%d_%d_0_labels.%s", folder, patient, number, npy ? "npy" : "png");
    assert_true(image_new(&image, side, side, 3, NULL));
    labels.px = calloc((size_t)(side * side), sizeof *labels.px);
    for (int64_t i = 0; i < side * side; i++) {
        int64_t x = i % side, y = i / side, cx = (x / 12) * 12 + 5, cy = (y / 12) * 12 + 6;
        bool in = (x - cx) * (x - cx) + 2 * (y - cy) * (y - cy) < 22 &&
                  (x / 12 + 3 * (y / 12) + number + patient) % 3 != 0;
        labels.px[i] = in ? (int32_t)(1 + x / 12 + 10 * (y / 12)) : 0;
        image.px[3 * i] = 120;
        image.px[3 * i + 1] = in ? 40 : 200;
        image.px[3 * i + 2] = 180;
    }
    assert_true(image_write_png(png, &image, NULL));
    if (npy) {
        char header[128] = "\x93NUMPY\x01";
        memset(header + 10, ' ', 117);
        int n = snprintf(header + 10, 100,
                         "{'descr': '<i4', 'fortran_order': False, 'shape': "
                         "(%d, %d), }",
                         (int)side, (int)side);
        header[10 + n] = ' ';
        header[8] = 118, header[127] = '\n';
        FILE *stream = fopen(truth, "wb");
        fwrite(header, 1, sizeof header, stream);
        fwrite(labels.px, sizeof *labels.px, (size_t)(side * side), stream);
        assert_int_equal(fclose(stream), 0);
    } else {
        assert_true(label_image_write_png(truth, &labels, NULL));
    }
    label_image_free(&labels);
    image_free(&image);
    free(png);
    free(truth);
}

/* p0 to p3, four images each. */
static char *pairs(const char *name)
{
    char *folder = cohort_folder(name);
    for (int i = 0; i < 16; i++)
        write_pair(folder, i / 4, i % 4, SIDE_PX + 4 * (i % 2), i == 5);
    return folder;
}

/* A config that is settled, and its data. False: *err has the reason. */
static bool open_data(const char *folder, const char *setting, struct train_config *config,
                      struct dataset *dataset, struct err *err)
{
    char *data = text_format("data.train=%s", folder);
    const char *const settings[] = { "objective=segment",    data,
                                     "data.spacing_um_px=1", "data.val_fraction=0.25",
                                     "network.input_px=32",  "network.name=segment_unet",
                                     "train.batch=4",        setting ? setting : "seed=0" };
    *config = (struct train_config){ 0 };
    *dataset = (struct dataset){ 0 };
    bool ok = config_read(NULL, settings, 8, config, err) && objective_settle(config, NULL, err) &&
              dataset_open(config, dataset, err);
    free(data);
    return ok;
}

/* Inside and boundary are where the image is dark, in training, with all augmentation that moves
 * pixels, and in validation. */
static void check_side(const struct dataset *dataset, bool train)
{
    struct model_config prepare;
    model_config_init(&prepare);
    prepare.spacing_um_px = 1;
    prepare.n_sizings = 1;
    prepare.sizings[0] = (struct model_sizing){ MODEL_CENTER_CROP, INPUT_PX, INPUT_PX };
    struct loader_options options = {
        .dataset = dataset,
        .side = train ? DATA_TRAIN : DATA_VAL,
        .train = train,
        .batch = 5,
        .input_px = INPUT_PX,
        .window_bytes = 1 << 20,
        .workers = 2,
        .seed = 3,
        .augment = { .flip = true, .rotate = true, .hed_jitter = 0.1 },
        .prepare = &prepare,
        .ranks = 1
    };
    struct loader *loader = NULL;
    struct batch batch;
    int64_t counts[SEGMENT_CLASSES] = { 0 }, places = INPUT_PX * INPUT_PX;
    assert_true(loader_new(&options, &loader, NULL) && loader_begin(loader, 1, 0, NULL));
    for (int64_t b = 0; b < loader_n_batches(loader); b++) {
        assert_true(loader_next(loader, &batch, NULL));
        const int32_t *labels = batch_int32(&batch, "labels");
        const float *pixels = batch_floats(&batch, "image");
        for (int64_t i = 0; i < batch.n * places; i++) {
            float green = pixels[(i / places * 3 + 1) * places + i % places];
            assert_int_equal(labels[i] != SEGMENT_BACKGROUND, green < 0.45f);
            counts[labels[i]]++;
        }
        for (int64_t i = batch.n * places; i < 5 * places; i++)
            assert_int_equal(labels[i], LOSS_IGNORE); /* padding */
    }
    assert_true(counts[SEGMENT_INSIDE] > 100 && counts[SEGMENT_BOUNDARY] > 100);
    loader_free(loader);
}

static void labels_move_with_pixels(void **state)
{
    (void)state;
    struct train_config config;
    struct dataset dataset;
    struct err err = { 0 };
    char *folder = pairs("segment-loader");
    if (!open_data(folder, NULL, &config, &dataset, &err))
        fail_msg("%s", err.text);
    assert_int_equal(dataset.n_samples, 16); /* label images are not images */
    check_side(&dataset, true);
    check_side(&dataset, false);
    dataset_free(&dataset);
    config_free(&config);
    free(folder);
}

/* Every patient is for validation in one fold, and the folds are about equal. */
static void folds_cover_all_patients(void **state)
{
    (void)state;
    struct train_config config;
    struct dataset dataset;
    struct err err = { 0 };
    int64_t seen = 0, none[2];
    char *folder = pairs("segment-folds");
    for (int fold = 1; fold <= 3; fold++) {
        char *setting = text_format("data.fold=%d", fold);
        char *data = text_format("data.train=%s", folder);
        const char *const settings[] = { "objective=segment", data, "data.folds=3", setting,
                                         "network.input_px=32" };
        assert_true(config_read(NULL, settings, 5, &config, NULL) &&
                    objective_settle(&config, NULL, NULL));
        if (!dataset_open(&config, &dataset, &err))
            fail_msg("%s", err.text);
        int64_t n = dataset_count(&dataset, DATA_VAL, none);
        assert_true(n == 4 || n == 8);
        seen += n;
        dataset_free(&dataset);
        config_free(&config);
        free(setting);
        free(data);
    }
    assert_int_equal(seen, 16);
    assert_false(open_data(folder, "data.folds=5", &config, &dataset, &err));
    assert_non_null(strstr(err.text, "data.folds: 5 folds need as many patients, but there are 4"));
    config_free(&config);
    free(folder);
}

/* --- loss and measures --- */

/* Values of PyTorch 1.13 in float64: softmax, one-hot labels, the formula of loss.h. */
static void dice_is_as_in_torch(void **state)
{
    (void)state;
    static const int32_t labels[] = { 0, 1, 2, 1, 2, LOSS_IGNORE, 0, 2 };
    static const double wanted[] = { -0.00519157, 0.00176493, 0.02501859,  -0.00943011, 0.00304758,
                                     -0.01055752, 0.00095524, -0.00144842, 0.00214399,  0.00879260,
                                     -0.02597383, 0.01087853, 0.02037964,  0.00000000,  -0.00488683,
                                     -0.00138886, 0.00109306, 0.00000000,  0.00569279,  0.01412915,
                                     -0.02147270, 0.00000000, -0.00080596, -0.01274028 };
    struct loss_classes spec = { .count = 2, .classes = 3, .places = 4, .divisor = 2 };
    float scores[24], gradient[24];
    double loss;
    for (int i = 0; i < 24; i++) {
        scores[i] = (float)(2 * sin(0.7 * i));
        gradient[i] = 1; /* it is added to what is there */
    }
    loss_dice(&spec, scores, labels, &loss, gradient);
    assert_true(fabs(loss - 0.534087501) < 1e-7);
    for (int i = 0; i < 24; i++)
        assert_true(fabs((double)gradient[i] - 1 - wanted[i]) < 5e-7);
}

enum { BATCH = 3, PLACES = 20, SCORES = BATCH * SEGMENT_CLASSES * PLACES };

struct fixture {
    struct train_config config;
    struct dataset dataset;
    struct learning learning;
    struct batch batch;
    float outputs[SCORES], gradient[SCORES];
    int32_t labels[BATCH * PLACES];
    int64_t samples[BATCH];
};

/* Two samples and one that is padding. */
static void set_up(struct fixture *f, const char *folder, const char *setting)
{
    struct err err = { 0 };
    *f = (struct fixture){ 0 };
    if (!open_data(folder, setting, &f->config, &f->dataset, &err))
        fail_msg("%s", err.text);
    f->learning = (struct learning){ .objective = objective_of(&f->config),
                                     .config = &f->config,
                                     .dataset = &f->dataset };
    if (!f->learning.objective->inputs(&f->learning, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < SCORES; i++)
        f->outputs[i] = (float)(1.5 * sin(0.9 * i));
    for (int i = 0; i < BATCH * PLACES; i++)
        f->labels[i] = i < 2 * PLACES ? i * 7 % 5 % 3 : LOSS_IGNORE;
    for (int i = 0; i < BATCH; i++)
        f->samples[i] = i < 2 ? i : -1;
    f->batch.n = 2;
    batch_put(&f->batch,
              (struct batch_item){ "labels", BATCH_INT32, SHAPE(BATCH, 4, 5), f->labels });
    batch_put(&f->batch, (struct batch_item){ "sample", BATCH_INT64, SHAPE(BATCH), f->samples });
}

static void tear_down(struct fixture *f)
{
    f->learning.objective->free(&f->learning);
    dataset_free(&f->dataset);
    config_free(&f->config);
}

static double loss_of(struct fixture *f, double divisor, float *gradient)
{
    float unused[SCORES]; /* weights count with a gradient alone */
    struct comparison c = { .batch = &f->batch,
                            .outputs = f->outputs,
                            .divisor = divisor,
                            .gradient = gradient ? gradient : unused };
    double loss = 0;
    assert_true(f->learning.objective->loss(&f->learning, &c, &loss, NULL));
    return loss;
}

static void check_gradient(const char *folder, const char *setting)
{
    struct fixture f;
    set_up(&f, folder, setting);
    double all = loss_of(&f, 2, f.gradient), half = loss_of(&f, 4, NULL);
    assert_true(all > 0 && fabs(all - 2 * half) < 1e-12 * all);
    for (int i = 0; i < SCORES; i++) {
        float kept = f.outputs[i];
        f.outputs[i] = kept + 1e-2f;
        double more = loss_of(&f, 2, NULL), step = (double)f.outputs[i];
        f.outputs[i] = kept - 1e-2f;
        double less = loss_of(&f, 2, NULL);
        step -= (double)f.outputs[i];
        f.outputs[i] = kept;
        if (fabs((more - less) / step - (double)f.gradient[i]) > 1e-5)
            fail_msg("%s: gradient %d is %g, by differences %g", setting, i, (double)f.gradient[i],
                     (more - less) / step);
        assert_true(i < SCORES / BATCH * 2 || f.gradient[i] == 0); /* padding */
    }
    tear_down(&f);
}

static void losses_have_their_gradients(void **state)
{
    (void)state;
    char *folder = pairs("segment-losses");
    check_gradient(folder, "train.loss=softmax");
    check_gradient(folder, "train.loss=dice");
    check_gradient(folder, "data.balance=weights");
    free(folder);
}

/* 2 x 20 px: what is taken for what, counted by hand from the table below. */
static void measures_are_by_hand(void **state)
{
    (void)state;
    static const char truth[] = "BBBBBBBBBBIIIIIIRRRR", found[] = "BBBBBBBBIRIIIIRRRRBI";
    static const char letters[] = "BIR";
    struct fixture f;
    struct predictions kept = { .outputs = SEGMENT_CLASSES * SEGMENT_CLASSES };
    double values[OBJECTIVE_MOST_MEASURES];
    char *folder = pairs("segment-measures");
    set_up(&f, folder, NULL);
    for (int i = 0; i < 2 * PLACES; i++) {
        f.labels[i] = (int32_t)(strchr(letters, truth[i % PLACES]) - letters);
        for (int c = 0; c < SEGMENT_CLASSES; c++)
            f.outputs[(i / PLACES * SEGMENT_CLASSES + c) * PLACES + i % PLACES] =
                letters[c] == found[i % PLACES] ? 1 : 0;
    }
    struct comparison c = { .batch = &f.batch, .outputs = f.outputs };
    const struct objective *objective = f.learning.objective;
    assert_true(objective->keep(&f.learning, &c, 3, &kept, NULL));
    assert_int_equal(kept.n, 2);
    assert_true(objective->judge(&f.learning, &kept, values, NULL));
    /* inside: 6 true, 6 found, 4 both; boundary: 4, 5, 2; nuclei: 10, 11, 9 */
    assert_true(fabs(values[objective_measure(objective, "dice")] - 8.0 / 12) < 1e-12);
    assert_true(fabs(values[objective_measure(objective, "iou")] - 4.0 / 8) < 1e-12);
    assert_true(fabs(values[objective_measure(objective, "dice_boundary")] - 4.0 / 9) < 1e-12);
    assert_true(fabs(values[objective_measure(objective, "dice_nuclei")] - 18.0 / 21) < 1e-12);
    struct model_config card = { 0 };
    objective->describe(&f.learning, &card);
    assert_int_equal(card.objective, OBJECTIVE_SEGMENT);
    assert_string_equal(card.class_names[SEGMENT_BOUNDARY], "boundary");
    predictions_free(&kept);
    tear_down(&f);
    free(folder);
}

/* --- training --- */

/* It learns; stopped after a step and resumed = never stopped. */
static void learns_and_resumes(void **state)
{
    (void)state;
    char *data = pairs("segment-resume"), *train = text_format("data.train=%s", data);
    char *whole = cohort_folder("segment-whole"), *parts = cohort_folder("segment-parts");
    struct job job = { .settings = { "objective=segment", train, "data.val_fraction=0.25",
                                     "network.name=segment_unet", "network.input_px=32",
                                     "data.spacing_um_px=1", "train.batch=4", "train.epochs=4",
                                     "train.loss=dice", "optimizer.name=adamw",
                                     "schedule.learning_rate=0.01" },
                       .folder = whole };
    struct train_result result;
    struct err err = { 0 };
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    job.folder = parts;
    job.stop_after = 4;
    assert_false(run_job(&job, &result, &err));
    assert_int_equal(err.kind, ERR_REQUEUE);
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

/* --- bad input --- */

static void refused(const char *folder, const char *setting, const char *want)
{
    struct train_config config;
    struct dataset dataset;
    struct err err = { 0 };
    assert_false(open_data(folder, setting, &config, &dataset, &err));
    if (!strstr(err.text, want))
        fail_msg("'%s' has no '%s'", err.text, want);
    config_free(&config);
}

static void bad_data_are_named(void **state)
{
    (void)state;
    char *folder = pairs("segment-bad"), *one = text_format("%s/p1_0_0.png", folder);
    refused(folder, "data.resize_px=64", "data.resize_px: does not apply to objective segment");
    refused(folder, "train.tta=true", "train.tta: does not apply");
    refused(folder, "classes=[a, b]", "classes: does not apply");
    refused(one, NULL, "p1_0_0.png: not a folder; objective segment takes folders of images");
    char *labels = text_format("%s/p1_0_0_labels.png", folder);
    assert_int_equal(remove(labels), 0);
    refused(folder, NULL, "p1_0_0.png: has no label image; objective segment needs");
    char *empty = cohort_folder("segment-empty");
    refused(empty, NULL, "contains no images (PNG, JPEG) to segment");
    free(folder), free(one), free(labels), free(empty);
}

/* A label image of another size, and a network that does not segment. */
static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    char *folder = pairs("segment-sizes"), *train = text_format("data.train=%s", folder);
    char *labels = text_format("%s/p0_1_0_labels.png", folder), *out = cohort_folder("segment-out");
    int32_t px[6] = { 0 };
    struct job job = { .settings = { "objective=segment", train, "data.val_fraction=0.25",
                                     "network.name=segment_unet", "network.input_px=32",
                                     "data.spacing_um_px=1", "train.batch=4", "train.epochs=1" },
                       .folder = out };
    struct train_result result;
    struct err err = { 0 };
    assert_true(label_image_write_png(labels, &(struct label_image){ px, 3, 2 }, NULL));
    assert_false(run_job(&job, &result, &err));
    assert_non_null(strstr(err.text, "p0_1_0.png: the image has 52 x 52 px, but its label image "
                                     "has 3 x 2; both must be of one size"));
    job.settings[3] = "network.name=scan_tiny";
    job.settings[4] = "network.input_px=224";
    assert_false(run_job(&job, &result, &err));
    assert_non_null(strstr(err.text, "network.name: scan_tiny is not a network that gives a class "
                                     "for every pixel; use segment_unet"));
    job.settings[3] = "network.name=segment_unet";
    job.settings[4] = "network.input_px=30";
    assert_false(run_job(&job, &result, &err));
    assert_non_null(strstr(err.text, "network.input_px: 30 does not fit (32 does)"));
    free(folder), free(train), free(labels), free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rims_are_boundaries),         cmocka_unit_test(labels_move_with_pixels),
        cmocka_unit_test(folds_cover_all_patients),    cmocka_unit_test(dice_is_as_in_torch),
        cmocka_unit_test(losses_have_their_gradients), cmocka_unit_test(measures_are_by_hand),
        cmocka_unit_test(learns_and_resumes),          cmocka_unit_test(bad_data_are_named),
        cmocka_unit_test(what_does_not_fit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
