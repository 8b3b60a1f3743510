/* test_mine.c: hard negatives: the list against scores of single patches, and what a data set makes
 * of a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/pool.h"
#include "net/model/model_run.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/drawn_model.h"
#include "prepare/augment_ops.h"
#include "train/dataset.h"
#include "train/mine.h"
#include "base/text.h"

#define SIDE 160
#define WINDOW 144
#define PATCHES 9 /* of a store: numbers 0, 2, .. have label 0, 1, 3, .. label 1, the last none */

static void have_its_own_normalisation(struct graph *graph, struct model_config *config)
{
    (void)graph;
    config->mean[0] = 0.4, config->std[1] = 0.5; /* not those of the training's config */
}

/* A model with drawn weights in a folder of its own; the caller's. */
static char *write_model(const char *name)
{
    return drawn_model(name, "scan_tiny", WINDOW, 5, have_its_own_normalisation);
}

/* The last patch has no label: nobody knows what it is. */
static bool is_normal(int number)
{
    return number % 2 == 0 && number != PATCHES - 1;
}

/* 1 - the probability of the first class in the middle of the patch. */
static double score_of(struct model *model, struct model_run *run, int patient, int number)
{
    struct image patch;
    struct err err = { 0 };
    double scores[2];
    cohort_patch(patient, number, SIDE, &patch);
    augment_crop(&patch, (SIDE - WINDOW) / 2, (SIDE - WINDOW) / 2, WINDOW);
    if (!model_classify(model, run, 1, &patch, scores, &err))
        fail_msg("%s", err.text);
    image_free(&patch);
    return 1 - scores[0];
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void read_config(const char *const *settings, size_t n, struct train_config *config)
{
    struct err err = { 0 };
    if (!config_read(NULL, settings, n, config, &err))
        fail_msg("%s", err.text);
}

/* Exactly the patches of normal tissue above the threshold, worst first, limited. */
static void list_is_right(void **state)
{
    (void)state;
    char *folder = write_model("mine-model"), *data = cohort_folder("mine-data");
    char *list = text_format("%s/list.csv", folder);
    double scores[2][PATCHES], sorted[2 * PATCHES];
    size_t n = 0, expected = 0;
    struct model *model = NULL;
    struct model_run run = { 0 };
    struct err err = { 0 };
    assert_true(model_open(&(struct model_source){ .file = folder }, &model, &err));
    for (int p = 0; p < 2; p++) {
        cohort_write_store(data, p, PATCHES, SIDE, 4, "");
        for (int i = 0; i < PATCHES; i++) {
            scores[p][i] = score_of(model, &run, p, i);
            if (is_normal(i))
                sorted[n++] = scores[p][i];
        }
    }
    qsort(sorted, n, sizeof *sorted, by_value);
    double threshold = (sorted[n / 3] + sorted[n / 3 - 1]) / 2;
    expected = n - n / 3;
    char *stores = text_format("mine.stores=%s", data);
    char *least = text_format("mine.threshold=%.17g", threshold);
    const char *settings[] = { stores, least, "network.input_px=144", "mine.limit=0" };
    for (int limited = 0; limited < 2; limited++) {
        struct train_config config;
        struct mine_result result;
        struct csv csv;
        struct pool *pool = pool_new(1);
        struct ctx ctx = { .pool = pool };
        settings[3] = limited ? "mine.limit=3" : "mine.limit=0";
        read_config(settings, 4, &config);
        if (!mine_run(&config, folder, list, &ctx, &result, &err) || !csv_read(list, &csv, &err))
            fail_msg("%s", err.text);
        assert_int_equal(result.scored, n);
        assert_int_equal(result.found, expected);
        assert_int_equal(result.kept, limited ? 3 : expected);
        assert_int_equal(csv.n_rows, result.kept);
        for (size_t i = 0; i < csv.n_rows; i++) {
            const char *store = csv_cell(&csv, i, csv_column(&csv, "store"));
            long number = strtol(csv_cell(&csv, i, csv_column(&csv, "patch")), NULL, 10);
            double score = strtod(csv_cell(&csv, i, csv_column(&csv, "score")), NULL);
            int patient = strstr(store, "s1.h5") ? 1 : 0;
            assert_true(number >= 0 && number < PATCHES && is_normal((int)number));
            assert_true(fabs(score - scores[patient][number]) < 1e-4);
            assert_true(fabs(score - sorted[n - 1 - i]) < 1e-4); /* worst first, none left out */
        }
        csv_free(&csv);
        config_free(&config);
        pool_free(pool);
    }
    model_run_free(&run);
    model_close(model);
    free(stores);
    free(least);
    free(list);
    free(folder);
    free(data);
}

static void write_text(const char *path, const char *text)
{
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0 && fclose(stream) == 0);
}

static bool open_with(const char *data, const char *list, struct dataset *out, struct err *err)
{
    struct train_config config;
    char *train = text_format("data.train=%s", data);
    char *hard = text_format("data.hard_negatives='%s'", list ? list : "");
    const char *settings[] = { train, hard, "network.input_px=144", "data.val_fraction=0.34" };
    read_config(settings, 4, &config);
    *err = (struct err){ 0 };
    bool ok = dataset_open(&config, out, err);
    config_free(&config);
    free(train);
    free(hard);
    return ok;
}

/* Listed patches come to training as the first class, once each; those of validation's patients do
 * not; the split of the others stays. */
static void list_is_added(void **state)
{
    (void)state;
    char *data = cohort_folder("mine-add-data"), *other = cohort_folder("mine-add-other");
    char *list = text_format("%s/list.csv", other), text[2000];
    struct dataset plain, more;
    struct err err;
    int64_t before[2], after[2], val_before[2], val_after[2];
    for (int p = 0; p < 3; p++)
        cohort_write_store(data, p, PATCHES, SIDE, 4, "");
    cohort_write_store(other, 7, PATCHES, SIDE, 4, "");
    assert_true(open_with(data, NULL, &plain, &err));
    const char *val = NULL, *train = NULL;
    for (int64_t i = 0; i < plain.n_samples; i++)
        *(dataset_side(&plain, i) == DATA_VAL ? &val : &train) = dataset_origin_path(&plain, i);
    assert_true(val && train);
    snprintf(text, sizeof text,
             "store,patch,score\n%s/s7.h5,4,0.9\n%s/s7.h5,0,0.8\n%s/s7.h5,4,0.7\n%s,3,0.6\n"
             "%s,2,0.6\n",
             other, other, other, val, train);
    write_text(list, text);
    if (!open_with(data, list, &more, &err))
        fail_msg("%s", err.text);
    dataset_count(&plain, DATA_TRAIN, before);
    dataset_count(&more, DATA_TRAIN, after);
    dataset_count(&plain, DATA_VAL, val_before);
    dataset_count(&more, DATA_VAL, val_after);
    assert_int_equal(after[0], before[0] + 3);
    assert_int_equal(after[1], before[1]);
    assert_int_equal(val_after[0], val_before[0]);
    assert_int_equal(val_after[1], val_before[1]);
    assert_true(dataset_hash(&plain) != dataset_hash(&more));
    dataset_free(&plain);
    dataset_free(&more);
    snprintf(text, sizeof text, "store,patch\n%s/s7.h5,9\n", other);
    write_text(list, text);
    assert_false(open_with(data, list, &more, &err));
    assert_non_null(strstr(err.text, "list.csv:2: the store has no patch of this number"));
    write_text(list, "slide,patch\na,1\n");
    assert_false(open_with(data, list, &more, &err));
    assert_non_null(strstr(err.text, "needs the columns store and patch"));
    free(list);
    free(data);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_is_right),
        cmocka_unit_test(list_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
