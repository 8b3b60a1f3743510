/* test_train_private.c: private trainings on small made-up patches: without noise and clipping they
 * are SGD; they go on bit for bit, noise included; the key lies there as long and no longer; units
 * are patches or patients; some are kept out for audits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/csv.h"
#include "base/text.h"
#include "net/model/model_config.h"
#include "net/model/safetensors.h"
#include "privacy/clip.h"
#include "privacy/secret.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/train_job.h"
#include "train/private_units.h"

#define PATIENTS 4
#define PATCHES 7 /* of a patient; the last one of a store has no label */
#define SIDE 150

static void clip_toy(void **state)
{
    float a[2] = { 3, 4 }, b[2] = { 0.3f, 0.4f }, c[2] = { 0, -2 }, bad[2] = { NAN, 1 };
    float *gradients[4] = { a, b, c, bad };
    double factors[4];
    float sum[2] = { 0 };
    (void)state;
    for (int i = 0; i < 4; i++)
        factors[i] = clip_factor(
            sqrt((double)(gradients[i][0] * gradients[i][0] + gradients[i][1] * gradients[i][1])),
            1);
    assert_true(fabs(factors[0] - 0.2) < 1e-6 && factors[1] == 1 && factors[3] == 0);
    clip_sum(gradients, factors, 4, 2, 1, sum);
    assert_true(fabs((double)sum[0] - 0.9) < 2e-6 && fabs((double)sum[1] - 0.2) < 2e-6);
    assert_true(clip_factor(5, INFINITY) == 1 && clip_factor(INFINITY, 1) == 0);
}

static char *data_folder(const char *name, int first)
{
    char *data = cohort_folder(name);
    for (int p = first; p < first + PATIENTS; p++)
        cohort_write_store(data, p, PATCHES, SIDE, 3, "");
    return data;
}

/* The largest difference of two models, over the largest weight. */
static double apart(const char *folder_a, const char *folder_b)
{
    struct safetensors a, b;
    char *path_a = text_format("%s/model.safetensors", folder_a);
    char *path_b = text_format("%s/model.safetensors", folder_b);
    double most = 0, largest = 0;
    assert_true(safetensors_open(path_a, &a, NULL) && safetensors_open(path_b, &b, NULL));
    assert_int_equal(a.n_tensors, b.n_tensors);
    for (size_t i = 0; i < a.n_tensors; i++) {
        const float *x = (const float *)a.tensors[i].data, *y = (const float *)b.tensors[i].data;
        for (int64_t k = 0; k < a.tensors[i].count; k++) {
            most = fmax(most, fabs((double)x[k] - (double)y[k]));
            largest = fmax(largest, fabs((double)x[k]));
        }
    }
    safetensors_close(&a);
    safetensors_close(&b);
    free(path_a);
    free(path_b);
    return most / largest;
}

static void run(struct job *job)
{
    struct train_result result;
    struct err err;
    if (!run_job(job, &result, &err))
        fail_msg("%s", err.text);
}

/* With all patches in every step, no clipping and no noise, it is plain SGD. */
static void without_noise_it_is_sgd(void **state)
{
    char *data = data_folder("private-sgd-data", 0), *val = data_folder("private-sgd-val", 10);
    char *plain = cohort_folder("private-sgd-plain"), *private = cohort_folder("private-sgd");
    char *train = text_format("data.train=%s", data), *valid = text_format("data.val=%s", val);
    struct job job = { .settings = { train, valid, "network.name=scan_tiny", "network.norm=group",
                                     "network.input_px=144", "train.epochs=2", "train.batch=24",
                                     "schedule.learning_rate=0.01", "train.monitor=last",
                                     "augment.flip=false", "augment.rotate=false",
                                     "data.resize_px=144" },
                       .folder = plain };
    (void)state;
    run(&job);
    job.folder = private;
    job.threads = 2;
    job.settings[12] = "privacy.epsilon=inf";
    job.settings[13] = "privacy.clip=inf";
    job.settings[14] = "privacy.public_data=[val]";
    run(&job);
    print_message("private without noise and SGD: %.1e apart\n", apart(plain, private));
    assert_true(apart(plain, private) < 1e-6);
    /* copies of a patch, averaged, are the patch */
    char *copies = cohort_folder("private-sgd-copies");
    job.folder = copies;
    job.settings[15] = "privacy.multiplicity=3";
    run(&job);
    assert_true(apart(plain, copies) < 1e-6);
    /* and clipping changes it */
    char *clipped = cohort_folder("private-sgd-clipped");
    job.folder = clipped;
    job.settings[15] = "privacy.clip=0.001";
    run(&job);
    assert_true(apart(plain, clipped) > 1e-4);
    free(data), free(val), free(plain), free(private), free(train), free(valid), free(copies);
    free(clipped);
}

static bool key_is_there(const char *folder)
{
    struct stat info;
    char *path = text_format("%s/noise.key", folder);
    bool there = lstat(path, &info) == 0;
    if (there) {
        assert_int_equal(info.st_mode & 0777, 0600);
        assert_int_equal(info.st_size, SECRET_BYTES);
    }
    free(path);
    return there;
}

static void copy_folder(const char *from, const char *to)
{
    char *command = text_format("rm -r '%s' && cp -a '%s' '%s'", to, from, to);
    assert_int_equal(system(command), 0);
    free(command);
}

static void stop_after(struct job *job, int64_t steps)
{
    struct train_result result;
    struct err err;
    job->stop_after = steps;
    assert_false(run_job(job, &result, &err));
    if (err.kind != ERR_REQUEUE)
        fail_msg("%s", err.text);
    job->stop_after = 0;
    job->resume = true;
    assert_true(key_is_there(job->folder));
}

/* A run that is stopped at every second step, with other numbers of threads, against one that runs
 * through from the first step on: the same key, so the same noise and the same batches. */
static void goes_on_with_the_same_noise(void **state)
{
    char *data = data_folder("private-resume-data", 0), *one = cohort_folder("private-resume-1");
    char *many = cohort_folder("private-resume-2"), *other = cohort_folder("private-resume-3");
    char *train = text_format("data.train=%s", data);
    struct job job = { .settings = { train, "network.name=scan_tiny", "network.norm=group",
                                     "network.input_px=144", "train.epochs=2", "train.batch=2",
                                     "train.accumulate=2", "schedule.learning_rate=0.05",
                                     "privacy.epsilon=8", "privacy.multiplicity=2", "train.ema=0.9",
                                     "data.window_mb=1", "optimizer.name=adamw",
                                     "privacy.accountant=rdp" },
                       .folder = one };
    (void)state;
    stop_after(&job, 1);
    copy_folder(one, many);
    job.threads = 2;
    run(&job);
    assert_false(key_is_there(one));
    job.folder = many;
    for (int step = 3; step < 12; step += 2) {
        job.threads = 1 + step % 4;
        job.settings[14] = step % 4 == 1 ? "data.workers=1" : "data.workers=3";
        stop_after(&job, step);
    }
    run(&job);
    assert_false(key_is_there(many));
    assert_true(apart(one, many) == 0);
    job.folder = other; /* another key */
    job.resume = false;
    run(&job);
    assert_true(apart(one, other) > 1e-4);
    /* nothing that was seen is written */
    size_t size = 0;
    char *metrics = read_in(one, "metrics.csv", &size);
    assert_non_null(strstr(metrics, "epsilon"));
    assert_non_null(strstr(metrics, "\n1,0.05,,,,,,"));
    /* without its key a training cannot go on */
    char *lost = cohort_folder("private-resume-4"), *key = text_format("%s/noise.key", lost);
    struct train_result result;
    struct err err;
    job.folder = lost;
    stop_after(&job, 2);
    assert_int_equal(unlink(key), 0);
    assert_false(run_job(&job, &result, &err));
    assert_non_null(strstr(err.text, "cannot go on with the same noise"));
    free(metrics), free(data), free(one), free(many), free(other), free(train), free(lost);
    free(key);
}

/* What a model says of its privacy is what the accountant says of its steps. */
static void model_knows_epsilon(void **state)
{
    char *data = data_folder("private-model-data", 0), *out = cohort_folder("private-model");
    char *train = text_format("data.train=%s", data), *path = text_format("%s/config.json", out);
    struct job job = { .settings = { train, "network.name=scan_tiny", "network.norm=group",
                                     "network.input_px=144", "train.epochs=2", "train.batch=6",
                                     "privacy.epsilon=3", "privacy.accountant=rdp",
                                     "privacy.clip=0.5" },
                       .folder = out };
    struct model_config config;
    struct err err = { 0 };
    (void)state;
    run(&job);
    if (!model_config_read(path, &config, &err))
        fail_msg("%s", err.text);
    assert_true(config.privacy.set && config.privacy.epsilon <= 3 && config.privacy.epsilon > 2.99);
    assert_int_equal(config.privacy.steps, 8);
    assert_true(config.privacy.rate == 0.25 && config.privacy.clip == 0.5);
    assert_string_equal(config.privacy.unit, "patch");
    assert_string_equal(config.privacy.accountant, "rdp");
    model_config_free(&config);
    free(data), free(out), free(train), free(path);
}

static size_t count_rows(const char *folder, const char *name, struct csv *out)
{
    char *path = text_format("%s/%s", folder, name);
    struct err err = { 0 };
    if (!csv_read(path, out, &err))
        fail_msg("%s", err.text);
    free(path);
    return out->n_rows;
}

/* Half of the patches, or of the patients, are listed as others, with and without privacy. */
static void units_are_held_out(void **state)
{
    char *data = data_folder("private-held-data", 0), *out = cohort_folder("private-held");
    char *train = text_format("data.train=%s", data);
    struct job job = { .settings = { train, "network.name=scan_tiny", "network.norm=group",
                                     "network.input_px=144", "train.epochs=1", "train.batch=2",
                                     "privacy.hold_out=0.5", "data.val_fraction=0.25" },
                       .folder = out };
    struct csv members, others;
    (void)state;
    run(&job);
    size_t in = count_rows(out, "members.csv", &members);
    size_t kept_out = count_rows(out, "others.csv", &others);
    assert_int_equal(in + kept_out, (PATIENTS - 1) * (PATCHES - 1));
    assert_true(in > 0 && kept_out > 0);
    for (size_t i = 0; i < in; i++)
        for (size_t k = 0; k < kept_out; k++)
            assert_string_not_equal(csv_cell(&members, i, 0), csv_cell(&others, k, 0));
    csv_free(&members);
    csv_free(&others);
    char *patients = cohort_folder("private-held-patients");
    job.folder = patients;
    job.settings[6] = "privacy.hold_out=0.4";
    job.settings[7] = "privacy.epsilon=8";
    job.settings[8] = "privacy.unit=patient";
    job.settings[9] = "train.batch=1";
    job.settings[10] = "privacy.accountant=rdp";
    for (struct err err = { 0 };;) { /* all or none of four is likely enough */
        struct train_result result;
        if (run_job(&job, &result, &err))
            break;
        assert_non_null(strstr(err.text, "too few for it"));
    }
    in = count_rows(patients, "members.csv", &members);
    kept_out = count_rows(patients, "others.csv", &others);
    assert_int_equal(in + kept_out, PATIENTS * (PATCHES - 1));
    assert_int_equal(in % (PATCHES - 1), 0);
    for (size_t i = 0; i < in; i++)
        for (size_t k = 0; k < kept_out; k++)
            assert_string_not_equal(csv_cell(&members, i, 1), csv_cell(&others, k, 1));
    csv_free(&members);
    csv_free(&others);
    free(data), free(out), free(train), free(patients);
}

/* Patches of a patient are drawn without replacement, each as often as another. */
static void patients_give_some_patches(void **state)
{
    int64_t samples[] = { 4, 5, 6, 7, 8, 9, 1, 2 }, begin[] = { 0, 6, 8 };
    struct private_units units = {
        .kind = UNIT_PATIENT, .n = 2, .samples = samples, .begin = begin
    };
    struct order_item items[4];
    int64_t seen[10] = { 0 };
    (void)state;
    for (uint64_t step = 0; step < 6000; step++) {
        private_units_items(&units, 0, 3, step, 4, items);
        for (int i = 0; i < 4; i++) {
            assert_true(i == 0 || items[i].sample > items[i - 1].sample);
            assert_int_equal(items[i].copy, 0);
            seen[items[i].sample]++;
        }
    }
    for (int i = 4; i < 10; i++)
        assert_true(llabs(seen[i] - 4000) < 5 * 37); /* sqrt(6000 * 2/3 * 1/3) = 36.5 */
    private_units_items(&units, 1, 3, 0, 4, items);  /* fewer than wanted: again, as copies */
    assert_int_equal(items[2].sample, items[0].sample);
    assert_int_equal(items[2].copy, 1);
    assert_int_equal(items[3].sample, items[1].sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clip_toy),
        cmocka_unit_test(without_noise_it_is_sgd),
        cmocka_unit_test(goes_on_with_the_same_noise),
        cmocka_unit_test(model_knows_epsilon),
        cmocka_unit_test(units_are_held_out),
        cmocka_unit_test(patients_give_some_patches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
