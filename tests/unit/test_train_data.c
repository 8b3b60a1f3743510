/* test_train_data.c: data sets, their sides and the loader: no patient on
 * both sides, the same batches on any number of threads, and bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "train/loss.h"
#include "patch/h5.h"
#include "tests/unit/support/cohort.h"
#include "train/loader.h"
#include "train/tar.h"
#include "base/text.h"

enum { SIDE_PX = 40 };

static struct train_config config_with(const char *train, const char *val, const char *setting)
{
    struct train_config config;
    struct err err = { 0 };
    char *a = text_format("data.train=%s", train),
         *b = text_format("data.val=%s", val ? val : "[]");
    const char *settings[] = { a, b, "network.input_px=32", setting ? setting : "seed=0" };
    if (!config_read(NULL, settings, 4, &config, &err))
        fail_msg("%s", err.text);
    free(a);
    free(b);
    return config;
}

static void assert_no_leak(const struct dataset *dataset)
{
    for (int64_t i = 0; i < dataset->n_samples; i++)
        for (int64_t j = 0; j < i; j++)
            if (dataset_patient(dataset, i) == dataset_patient(dataset, j))
                assert_int_equal(dataset_side(dataset, i), dataset_side(dataset, j));
}

/* Two of nine patients have the third class: whatever the seed, one of them is on each side. */
static void split_shares_rare_classes(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-split-rare");
    for (int patient = 0; patient < 9; patient++)
        for (int class = 0; class < (patient == 3 || patient == 7 ? 3 : 2); class ++) {
            struct image patch;
            char *path =
                text_format("%s/p%d_idx5_x%d_y0_class%d.png", folder, patient, class, class);
            cohort_patch(patient, class, SIDE_PX, &patch);
            assert_true(image_write_png(path, &patch, NULL));
            image_free(&patch);
            free(path);
        }
    for (int seed = 0; seed < 12; seed++) {
        struct train_config config = config_with(folder, NULL, "classes=[a, b, c]");
        struct dataset dataset;
        struct err err = { 0 };
        int64_t count[3];
        config.seed = seed;
        if (!dataset_open(&config, &dataset, &err))
            fail_msg("%s", err.text);
        assert_no_leak(&dataset);
        for (int side = DATA_TRAIN; side <= DATA_VAL; side++) {
            dataset_count(&dataset, (enum data_side)side, count);
            assert_true(count[0] > 0 && count[1] > 0);
            assert_int_equal(count[2], 1);
        }
        dataset_free(&dataset);
        config_free(&config);
    }
    free(folder);
}

/* Whatever the seed and the share, patients are whole, both sides have both classes. */
static void split_never_leaks(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-split");
    cohort_write_images(folder, 7, 6, SIDE_PX);
    bool differs = false;
    uint64_t first_hash = 0;
    for (int seed = 0; seed < 12; seed++) {
        char *setting = text_format("seed=%d", seed);
        struct train_config config = config_with(folder, NULL, setting);
        struct dataset dataset, again;
        struct err err = { 0 };
        int64_t count[2];
        config.data.val_fraction = 0.1 + 0.06 * seed;
        if (!dataset_open(&config, &dataset, &err))
            fail_msg("%s", err.text);
        assert_int_equal(dataset.n_samples, 42);
        assert_int_equal(dataset.n_patients, 7);
        assert_no_leak(&dataset);
        for (int side = 0; side < 2; side++) {
            assert_true(dataset_count(&dataset, (enum data_side)side, count) > 0);
            assert_true(count[0] > 0 && count[1] > 0);
        }
        assert_true(dataset_open(&config, &again, &err));
        assert_true(dataset_hash(&dataset) == dataset_hash(&again));
        differs |= seed > 0 && dataset_hash(&dataset) != first_hash;
        first_hash = seed == 0 ? dataset_hash(&dataset) : first_hash;
        dataset_free(&dataset);
        dataset_free(&again);
        config_free(&config);
        free(setting);
    }
    assert_true(differs);
    free(folder);
}

static uint64_t hash_of(struct train_config *config)
{
    struct dataset dataset;
    struct err err = { 0 };
    if (!dataset_open(config, &dataset, &err))
        fail_msg("%s", err.text);
    uint64_t hash = dataset_hash(&dataset);
    dataset_free(&dataset);
    return hash;
}

/* The same names and labels with other pixels are other data; the time of a file says nothing. */
static void changed_pixels_are_other_data(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-changed");
    for (int patient = 0; patient < 4; patient++)
        cohort_write_store(folder, patient, 6, SIDE_PX, 3, "");
    struct train_config config = config_with(folder, NULL, "seed=1");
    char *store = text_format("%s/s2.h5", folder);
    uint64_t before = hash_of(&config);
    const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    assert_int_equal(utimensat(AT_FDCWD, store, old, 0), 0);
    assert_true(hash_of(&config) == before);
    FILE *stream = fopen(store, "r+b");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, -100, SEEK_END), 0);
    int byte = fgetc(stream);
    assert_int_equal(fseek(stream, -100, SEEK_END), 0);
    fputc(byte ^ 1, stream);
    assert_int_equal(fclose(stream), 0);
    assert_true(hash_of(&config) != before);
    config_free(&config);
    free(store);
    free(folder);
}

static void expect_error(struct train_config *config, const char *says)
{
    struct dataset dataset;
    struct err err = { 0 };
    assert_false(dataset_open(config, &dataset, &err));
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    config_free(config);
}

static void stores_by_attribute(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-stores");
    cohort_write_store(folder, 0, 7, SIDE_PX, 3, "train");
    cohort_write_store(folder, 1, 7, SIDE_PX, 3, "val");
    cohort_write_store(folder, 2, 7, SIDE_PX, 3, "test");
    struct train_config config = config_with(folder, NULL, "data.split=attribute");
    struct dataset dataset;
    struct err err = { 0 };
    int64_t count[2];
    if (!dataset_open(&config, &dataset, &err))
        fail_msg("%s", err.text);
    assert_int_equal(dataset_count(&dataset, DATA_TRAIN, count), 6);
    assert_int_equal(dataset_count(&dataset, DATA_VAL, count), 6);
    assert_true(dataset.mpp == 0.5);
    dataset_free(&dataset);
    config_free(&config);
    cohort_write_store(folder, 3, 7, SIDE_PX, 3, "");
    config = config_with(folder, NULL, "data.split=attribute");
    expect_error(&config, "the store has no split");
    free(folder);
}

static void stores_of_two_resolutions(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-two-mpp");
    for (int i = 0; i < 2; i++)
        cohort_write_store(folder, i, 7, SIDE_PX, 3, i ? "val" : "train");
    char *path = text_format("%s/s1.h5", folder);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0 && H5Adelete(file, "mpp") >= 0 && h5_put_real(file, "mpp", 0.25));
    assert_true(H5Fclose(file) >= 0);
    struct train_config config = config_with(folder, NULL, "data.split=attribute");
    expect_error(&config, "patches have 0.25 um/px, but the stores before it have 0.5");
    config = config_with(folder, NULL, "data.spacing_um_px=0.5");
    struct dataset dataset;
    assert_true(dataset_open(&config, &dataset, NULL));
    dataset_free(&dataset);
    config_free(&config);
    cohort_write_store(folder, 1, 7, 2 * SIDE_PX, 3, "val"); /* twice as far when resized */
    config = config_with(folder, NULL, "data.resize_px=32");
    expect_error(&config, "um/px when resized, but the stores before it have");
    free(path);
    free(folder);
}

static void bad_data_is_named(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-bad"), *images = text_format("%s/images", folder);
    char *one = text_format("%s/one", folder), *normal = text_format("%s/one/normal", folder);
    assert_true(file_make_folder(images, NULL));
    cohort_write_images(images, 2, 2, SIDE_PX);
    struct train_config config = config_with(images, images, NULL);
    expect_error(&config, "2 of 2 patients are in both training and validation, e.g. 'p0'");
    config = config_with(images, NULL, "classes=[a, b]");
    expect_error(&config, "class unknown");
    config = config_with(images, NULL, "data.patient=^(x.*)_");
    expect_error(&config, "the name contains no patient");
    config = config_with(images, NULL, "data.patient=((");
    expect_error(&config, "data.patient");
    config = config_with("/nowhere/at/all", NULL, NULL);
    expect_error(&config, "no such file or folder");
    assert_true(file_make_folder(normal, NULL));
    config = config_with(one, NULL, NULL);
    expect_error(&config, "contains neither patch stores (.h5) nor images");
    for (int p = 0; p < 2; p++) {
        struct image image;
        char *path = text_format("%s/p%d_0_0.png", normal, p);
        cohort_patch(p, 0, SIDE_PX, &image);
        assert_true(image_write_png(path, &image, NULL));
        image_free(&image);
        free(path);
    }
    config = config_with(one, NULL, NULL);
    expect_error(&config, "class 'tumor' has no training sample");
    cohort_write_store(folder, 0, 1, SIDE_PX, 1, "");
    char *store = text_format("%s/s0.h5", folder);
    config = config_with(store, NULL, NULL);
    expect_error(&config, "no labelled patches");
    cohort_write_store(folder, 0, 5, 16, 2, "");
    config = config_with(store, NULL, NULL);
    expect_error(&config, "patches have 16 px, but network.input_px is 32");
    free(store);
    free(folder);
    free(images);
    free(one);
    free(normal);
}

/* --- loader --- */

static struct model_config crops = { .sizings = { { MODEL_CENTER_CROP, 32, 32 } },
                                     .n_sizings = 1,
                                     .mean = { 0.5, 0.5, 0.5 },
                                     .std = { 0.2, 0.2, 0.2 } };

static struct loader_options loader_options(const struct dataset *dataset, int workers)
{
    return (struct loader_options){ .dataset = dataset,
                                    .side = DATA_TRAIN,
                                    .train = true,
                                    .batch = 5,
                                    .input_px = 32,
                                    .window_bytes = 2 * 4 * SIDE_PX * SIDE_PX * 3,
                                    .workers = workers,
                                    .seed = 9,
                                    .augment = { .flip = true, .rotate = true, .hsv_noise = 20 },
                                    .prepare = &crops,
                                    .rank = 0,
                                    .ranks = 1 };
}

/* All batches of an epoch from `first` on, one after another: pixels; the caller's. */
static float *epoch_of(const struct loader_options *options, uint64_t epoch, int64_t first,
                       int64_t *n_batches, int64_t *samples)
{
    struct loader *loader = NULL;
    struct err err = { 0 };
    int64_t floats = options->batch * 3 * options->input_px * options->input_px;
    assert_true(loader_new(options, &loader, NULL));
    *n_batches = loader_n_batches(loader);
    float *out = calloc((size_t)(*n_batches * floats), sizeof *out);
    assert_true(loader_begin(loader, epoch, first, NULL));
    for (int64_t i = first; i < *n_batches; i++) {
        struct batch batch;
        if (!loader_next(loader, &batch, &err))
            fail_msg("%s", err.text);
        memcpy(out + i * floats, batch_floats(&batch, "image"), (size_t)floats * sizeof *out);
        const int64_t *ids = batch_int64(&batch, "sample");
        const int32_t *labels = batch_int32(&batch, "label");
        for (int64_t j = 0; j < options->batch; j++) {
            samples[i * options->batch + j] = ids[j];
            if (ids[j] >= 0)
                assert_int_equal(labels[j], dataset_label(options->dataset, ids[j]));
            else
                assert_int_equal(labels[j], LOSS_IGNORE);
        }
    }
    loader_free(loader);
    return out;
}

static void loader_is_deterministic(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-loader");
    for (int p = 0; p < 3; p++)
        cohort_write_store(folder, p, 14, SIDE_PX, 4, "train");
    struct train_config config = config_with(folder, NULL, "data.split=attribute");
    struct dataset dataset;
    assert_true(dataset_open(&config, &dataset, NULL));
    int64_t n = 0, samples[64], other[64];
    struct loader_options options = loader_options(&dataset, 1);
    float *once = epoch_of(&options, 4, 0, &n, samples);
    assert_int_equal(n, 7); /* 39 samples, batches of 5 */
    size_t bytes = (size_t)(5 * 3 * 32 * 32) * sizeof(float);
    for (int workers = 2; workers <= 5; workers++) {
        options.workers = workers;
        float *again = epoch_of(&options, 4, 0, &n, other);
        assert_memory_equal(once, again, (size_t)n * bytes);
        assert_memory_equal(samples, other, (size_t)n * 5 * sizeof *samples);
        free(again);
    }
    float *late = epoch_of(&options, 4, 3, &n, other); /* as after a resume */
    assert_memory_equal((char *)once + 3 * bytes, (char *)late + 3 * bytes, 4 * bytes);
    float *next = epoch_of(&options, 5, 0, &n, other);
    assert_memory_not_equal(once, next, 7 * bytes);
    free(once);
    free(late);
    free(next);
    dataset_free(&dataset);
    config_free(&config);
    free(folder);
}

/* Validation takes every sample once, in order, and fills the last batch up; ranks share it. */
static void validation_takes_all(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-loader-val");
    cohort_write_images(folder, 2, 6, SIDE_PX);
    struct train_config config = config_with(folder, NULL, "data.val_fraction=0.5");
    struct dataset dataset;
    assert_true(dataset_open(&config, &dataset, NULL));
    for (int ranks = 1; ranks <= 2; ranks++) {
        int seen[12] = { 0 }, filled = 0;
        for (int rank = 0; rank < ranks; rank++) {
            int64_t n = 0, samples[64];
            struct loader_options options = loader_options(&dataset, 2);
            options.side = DATA_VAL;
            options.train = false;
            options.batch = 4;
            options.rank = rank;
            options.ranks = ranks;
            free(epoch_of(&options, 0, 0, &n, samples));
            assert_int_equal(n, ranks == 1 ? 2 : 1);
            for (int64_t i = 0; i < 4 * n; i++) {
                if (samples[i] >= 0)
                    seen[samples[i]]++;
                else
                    filled++;
            }
        }
        for (int64_t i = 0; i < 12; i++)
            assert_int_equal(seen[i], dataset_side(&dataset, i) == DATA_VAL);
        assert_int_equal(filled, 2);
    }
    dataset_free(&dataset);
    config_free(&config);
    free(folder);
}

/* Without augmentation and crop a batch is the patch, normalised. */
static void pixels_are_right(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-pixels");
    cohort_write_store(folder, 0, 5, SIDE_PX, 2, "train");
    struct train_config config = config_with(folder, NULL, "data.split=attribute");
    struct dataset dataset;
    assert_true(dataset_open(&config, &dataset, NULL));
    struct loader_options options = loader_options(&dataset, 2);
    struct model_config plain = crops;
    plain.n_sizings = 0;
    options.prepare = &plain;
    options.train = false;
    options.input_px = SIDE_PX;
    options.batch = 4;
    int64_t n = 0, samples[8];
    float *pixels = epoch_of(&options, 0, 0, &n, samples);
    for (int64_t i = 0; i < 4; i++) {
        struct image image;
        assert_int_equal(samples[i], i);
        cohort_patch(0, (int)i, SIDE_PX, &image);
        for (int64_t p = 0; p < SIDE_PX * SIDE_PX; p++)
            for (int c = 0; c < 3; c++) {
                float want = ((float)image.px[3 * p + c] / 255.0f - 0.5f) / 0.2f;
                assert_true(pixels[(i * 3 + c) * SIDE_PX * SIDE_PX + p] == want);
            }
        image_free(&image);
    }
    free(pixels);
    dataset_free(&dataset);
    config_free(&config);
    free(folder);
}

/* A store that lost the end of its pixels after it was listed is named; so is one that is cut short
 * from the beginning. */
static void cut_store_is_named(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-cut"), *path = text_format("%s/s1.h5", folder);
    for (int p = 0; p < 2; p++)
        cohort_write_store(folder, p, 40, SIDE_PX, 8, p ? "train" : "val");
    struct train_config config = config_with(folder, NULL, "data.split=attribute");
    struct dataset dataset;
    struct loader *loader = NULL;
    struct batch batch;
    struct err err = { 0 };
    assert_true(dataset_open(&config, &dataset, NULL));
    assert_int_equal(truncate(path, 60000), 0); /* of 40 x 40 x 40 x 3 bytes of pixels */
    struct loader_options options = loader_options(&dataset, 3);
    options.side = DATA_TRAIN;
    assert_true(loader_new(&options, &loader, NULL));
    assert_true(loader_begin(loader, 0, 0, NULL));
    assert_false(loader_next(loader, &batch, &err));
    if (!strstr(err.text, "s1.h5"))
        fail_msg("%s", err.text);
    loader_free(loader);
    dataset_free(&dataset);
    err = (struct err){ 0 };
    assert_false(dataset_open(&config, &dataset, &err));
    assert_non_null(strstr(err.text, "s1.h5"));
    config_free(&config);
    free(path);
    free(folder);
}

/* An image that is none is named. */
static void damage_is_named(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-damage");
    char *png = text_format("%s/normal/p0_0_0.png", folder);
    cohort_write_images(folder, 2, 4, SIDE_PX);
    struct train_config config = config_with(folder, NULL, "data.val_fraction=0.5");
    struct dataset dataset;
    struct loader *loader = NULL;
    struct batch batch;
    assert_true(dataset_open(&config, &dataset, NULL));
    FILE *stream = fopen(png, "wb");
    fputs("this is no picture", stream);
    fclose(stream);
    struct err err = { 0 };
    struct loader_options options = loader_options(&dataset, 3);
    options.batch = 4;
    options.side = dataset_side(&dataset, 0);
    assert_true(loader_new(&options, &loader, NULL));
    assert_true(loader_begin(loader, 0, 0, NULL));
    assert_false(loader_next(loader, &batch, &err));
    assert_non_null(strstr(err.text, "p0_0_0.png"));
    assert_non_null(strstr(err.text, "neither a PNG nor a JPEG"));
    loader_free(loader);
    dataset_free(&dataset);
    config_free(&config);
    free(png);
    free(folder);
}

/* --- tar --- */

static void tar_entries(void **state)
{
    (void)state;
    char *folder = cohort_folder("train-tar");
    char *archive = text_format("%s/a.tar", folder), *broken = text_format("%s/b.tar", folder);
    char long_name[151];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[150] = 0;
    const char *formats[] = { "gnu", "pax", "ustar" };
    for (int i = 0; i < 3; i++) {
        char *command =
            text_format("cd %s && rm -rf x && mkdir x && printf hello > x/a && printf world > "
                        "x/%s && tar --format=%s --sort=name -cf a.tar x",
                        folder, i < 2 ? long_name : "b", formats[i]);
        assert_int_equal(system(command), 0);
        struct tar tar;
        struct err err = { 0 };
        if (!tar_open(archive, &tar, &err))
            fail_msg("%s", err.text);
        bool found = false;
        for (size_t k = 0; k < tar.n; k++) {
            uint8_t *bytes = NULL;
            assert_int_equal(tar.entries[k].size, 5);
            assert_true(tar_read(&tar, k, &bytes, NULL));
            bool other = strcmp(tar.entries[k].name, "x/a") != 0;
            assert_memory_equal(bytes, other ? "world" : "hello", 5);
            found |= strcmp(tar.entries[k].name + 2, i < 2 ? long_name : "b") == 0;
            free(bytes);
        }
        assert_true(found);
        tar_close(&tar);
        free(command);
    }
    char *command = text_format("head -c 700 %s > %s && printf XYZ | dd of=%s bs=1 seek=530 "
                                "conv=notrunc status=none",
                                archive, broken, archive);
    assert_int_equal(system(command), 0);
    struct tar tar;
    struct err err = { 0 };
    assert_false(tar_open(archive, &tar, &err));
    assert_non_null(strstr(err.text, "damaged at byte 512"));
    free(command);
    free(archive);
    free(broken);
    free(folder);
}

/* The IDC tars: published counts, classes and patients; no patient in both. */
static void real_tars(void **state)
{
    (void)state;
    const char *shared = getenv("SHARED");
    char *train = text_format("%s/data/idc/train.tar", shared ? shared : "");
    char *val = text_format("%s/data/idc/val.tar", shared ? shared : "");
    if (!file_exists(train)) {
        print_message("no shared data: not tested on the IDC patches\n");
        free(train), free(val);
        skip();
    }
    struct train_config config = config_with(train, val, "classes=[normal, idc]");
    struct dataset dataset;
    struct err err = { 0 };
    int64_t count[2];
    if (!dataset_open(&config, &dataset, &err))
        fail_msg("%s", err.text);
    assert_int_equal(dataset_count(&dataset, DATA_TRAIN, count), 2246);
    assert_int_equal(dataset_count(&dataset, DATA_VAL, count), 873);
    struct loader_options options = loader_options(&dataset, 2);
    struct model_config resizes = { .sizings = { { MODEL_RESIZE, 32, 32 } },
                                    .n_sizings = 1,
                                    .std = { 1, 1, 1 } };
    options.prepare = &resizes;
    options.side = DATA_VAL;
    options.train = false;
    options.batch = 64;
    struct loader *loader = NULL;
    struct batch batch;
    assert_true(loader_new(&options, &loader, NULL) && loader_begin(loader, 0, 0, NULL));
    assert_true(loader_next(loader, &batch, &err));
    assert_int_equal(batch.n, 64);
    loader_free(loader);
    dataset_free(&dataset);
    config_free(&config);
    free(train);
    free(val);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_never_leaks),
        cmocka_unit_test(split_shares_rare_classes),
        cmocka_unit_test(changed_pixels_are_other_data),
        cmocka_unit_test(stores_by_attribute),
        cmocka_unit_test(stores_of_two_resolutions),
        cmocka_unit_test(bad_data_is_named),
        cmocka_unit_test(loader_is_deterministic),
        cmocka_unit_test(validation_takes_all),
        cmocka_unit_test(pixels_are_right),
        cmocka_unit_test(cut_store_is_named),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(tar_entries),
        cmocka_unit_test(real_tars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
