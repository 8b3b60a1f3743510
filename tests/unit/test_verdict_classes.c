/* test_verdict_classes.c: areas of one class against the others and confusion matrices, against
 * scikit-learn (tests/golden/verdict_classes.py), and odd data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "support/golden_json.h"
#include "verdict/confusion.h"
#include "verdict/roc_classes.h"

#define MOST 8

/* One ROC case of the golden file. */
struct sample {
    int n_classes;
    int64_t n;
    double *values[MOST];
    bool *positive[MOST];
    int64_t *clusters; /* NULL: rows are drawn */
    struct roc_class classes[MOST];
};

static struct sample sample_of(const json_t *want)
{
    size_t n;
    double *labels = golden_numbers(want, "labels", &n);
    const json_t *scores = json_object_get(want, "scores"),
                 *patients = json_object_get(want, "patients");
    struct sample sample = { .n_classes = (int)json_array_size(scores), .n = (int64_t)n };
    for (int k = 0; k < sample.n_classes; k++) {
        const json_t *column = json_array_get(scores, (size_t)k);
        sample.values[k] = calloc(n, sizeof **sample.values);
        sample.positive[k] = calloc(n, sizeof **sample.positive);
        for (size_t i = 0; i < n; i++) {
            sample.values[k][i] = json_number_value(json_array_get(column, i));
            sample.positive[k][i] = labels[i] == k;
        }
        sample.classes[k] = (struct roc_class){ sample.values[k], sample.positive[k] };
    }
    if (json_is_array(patients)) {
        sample.clusters = calloc(n, sizeof *sample.clusters);
        for (size_t i = 0; i < n; i++)
            sample.clusters[i] = json_integer_value(json_array_get(patients, i));
    }
    free(labels);
    return sample;
}

static void free_sample(struct sample *sample)
{
    for (int k = 0; k < sample->n_classes; k++)
        free(sample->values[k]), free(sample->positive[k]);
    free(sample->clusters);
}

static void check_means(const json_t *want, const struct sample *sample, const struct ctx *ctx)
{
    const struct roc_options options = { 2000, 1, sample->clusters };
    const json_t *interval = json_object_get(want, "interval");
    struct roc_classes got;
    for (int k = 0; k < sample->n_classes; k++) {
        const struct roc_options none = { 0 };
        struct roc roc;
        assert_true(
            roc_compute(sample->values[k], sample->positive[k], sample->n, &none, ctx, &roc, NULL));
        assert_near(roc.auc, golden_number(want, "areas", (size_t)k), 1e-12, "area of a class");
        roc_free(&roc);
    }
    assert_true(roc_classes_compute(sample->classes, sample->n_classes, sample->n, &options, ctx,
                                    &got, NULL));
    assert_near(got.macro.area, golden_number(want, "macro", 0), 1e-12, "macro");
    assert_near(got.weighted.area, golden_number(want, "weighted", 0), 1e-12, "weighted");
    /* two sets of 2000 replicates: their quantiles differ by a few thousandths */
    assert_near(got.macro.low, golden_number(interval, "macro", 0), 0.012, "macro low");
    assert_near(got.macro.high, golden_number(interval, "macro", 1), 0.012, "macro high");
    assert_near(got.weighted.low, golden_number(interval, "weighted", 0), 0.012, "weighted low");
    assert_near(got.weighted.high, golden_number(interval, "weighted", 1), 0.012, "weighted high");
}

static void means_are_as_in_scikit_learn(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/classes.json");
    const json_t *cases = json_object_get(golden, "roc");
    struct ctx ctx = { .pool = pool_new(2) };
    assert_int_equal(json_array_size(cases), 3);
    for (size_t i = 0; i < 3; i++) {
        struct sample sample = sample_of(json_array_get(cases, i));
        check_means(json_array_get(cases, i), &sample, &ctx);
        free_sample(&sample);
    }
    pool_free(ctx.pool);
    json_decref(golden);
}

/* The same on any number of threads; a class without rows has no area. */
static void means_do_not_depend_on_threads(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/classes.json");
    struct sample sample = sample_of(json_array_get(json_object_get(golden, "roc"), 1));
    const struct roc_options options = { 300, 5, sample.clusters };
    struct roc_classes got[2];
    for (int threads = 1; threads <= 2; threads++) {
        struct ctx ctx = { .pool = pool_new(2 * threads - 1) };
        assert_true(roc_classes_compute(sample.classes, sample.n_classes, sample.n, &options, &ctx,
                                        &got[threads - 1], NULL));
        pool_free(ctx.pool);
    }
    assert_memory_equal(&got[0].macro, &got[1].macro, sizeof got[0].macro);
    assert_memory_equal(&got[0].weighted, &got[1].weighted, sizeof got[0].weighted);
    struct ctx ctx = { .pool = pool_new(1) };
    struct err err = { 0 };
    memset(sample.positive[0], 0, (size_t)sample.n * sizeof *sample.positive[0]);
    assert_false(roc_classes_compute(sample.classes, sample.n_classes, sample.n, &options, &ctx,
                                     &got[0], &err));
    assert_non_null(strstr(err.text, "a class has no slides"));
    pool_free(ctx.pool);
    free_sample(&sample);
    json_decref(golden);
}

/* null in the golden file: undefined. */
static void assert_same(double got, const json_t *want, const char *what)
{
    if (json_is_null(want))
        assert_true(isnan(got));
    else
        assert_near(got, json_number_value(want), 1e-12, what);
}

static struct confusion matrix_of(const json_t *counts)
{
    struct class_list names = { 0 };
    struct confusion matrix;
    const size_t n = json_array_size(counts);
    for (size_t k = 0; k < n; k++)
        assert_true(class_list_add(&names, "abcdefgh" + k, 1, NULL));
    assert_true(confusion_new(&names, &matrix, NULL));
    for (size_t i = 0; i < n * n; i++)
        confusion_add(&matrix, (int)(i / n), (int)(i % n),
                      json_integer_value(json_array_get(json_array_get(counts, i / n), i % n)));
    class_list_free(&names);
    return matrix;
}

static void check_measures(const json_t *want)
{
    struct confusion matrix = matrix_of(json_object_get(want, "counts"));
    struct confusion_measures got;
    for (int weights = KAPPA_NONE; weights <= KAPPA_QUADRATIC; weights++) {
        assert_true(confusion_measure(&matrix, (enum kappa_weights)weights, &got, NULL));
        assert_same(got.kappa, json_array_get(json_object_get(want, "kappa"), (size_t)weights),
                    kappa_weights_names[weights]);
        if (weights < KAPPA_QUADRATIC)
            free(got.classes);
    }
    assert_same(got.accuracy, json_object_get(want, "accuracy"), "accuracy");
    assert_same(got.balanced_accuracy, json_object_get(want, "balanced_accuracy"), "balanced");
    assert_same(got.macro_f1, json_object_get(want, "macro_f1"), "macro F1");
    assert_same(got.weighted_f1, json_object_get(want, "weighted_f1"), "weighted F1");
    assert_same(got.mcc, json_object_get(want, "matthews"), "Matthews");
    for (size_t k = 0; k < matrix.classes.n; k++) {
        const struct confusion_class *class = &got.classes[k];
        assert_same(class->precision, json_array_get(json_object_get(want, "precision"), k), "p");
        assert_same(class->recall, json_array_get(json_object_get(want, "recall"), k), "r");
        assert_same(class->f1, json_array_get(json_object_get(want, "f1"), k), "F1");
        assert_same(class->specificity, json_array_get(json_object_get(want, "specificity"), k),
                    "specificity");
    }
    free(got.classes);
    confusion_free(&matrix);
}

static void measures_are_as_in_scikit_learn(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/classes.json");
    const json_t *cases = json_object_get(golden, "confusion");
    assert_int_equal(json_array_size(cases), 6);
    for (size_t i = 0; i < 6; i++)
        check_measures(json_array_get(cases, i));
    json_decref(golden);
}

static void nothing_has_no_measures(void **state)
{
    (void)state;
    struct class_list names = { 0 };
    struct confusion matrix;
    struct confusion_measures got;
    struct err err = { 0 };
    double low, high;
    assert_true(class_list_parse("a, b", "classes", &names, NULL));
    assert_true(confusion_new(&names, &matrix, NULL));
    assert_false(confusion_measure(&matrix, KAPPA_NONE, &got, &err));
    assert_int_equal(err.kind, ERR_MISSING);
    assert_false(confusion_kappa_interval(&matrix, KAPPA_NONE, 10, 1, &low, &high, &err));
    confusion_add(&matrix, 0, 0, 5); /* all is one class, however it is drawn */
    assert_false(confusion_kappa_interval(&matrix, KAPPA_NONE, 10, 1, &low, &high, &err));
    confusion_add(&matrix, 1, 1, 5);
    assert_true(confusion_kappa_interval(&matrix, KAPPA_NONE, 100, 1, &low, &high, &err));
    assert_true(low == 1 && high == 1);
    confusion_free(&matrix);
    class_list_free(&names);
}

static void classes_are_found_by_name_and_number(void **state)
{
    (void)state;
    struct class_list list = { 0 };
    struct err err = { 0 };
    assert_true(class_list_parse("Stroma,tumor, 7 ", "classes", &list, NULL));
    assert_int_equal(class_list_find(&list, "Stroma"), 0);
    assert_int_equal(class_list_find(&list, "stroma"), 0);
    assert_int_equal(class_list_find(&list, "Tumour"), 1);
    assert_int_equal(class_list_find(&list, "7"), 2);
    assert_int_equal(class_list_find(&list, "2"), 2);
    assert_int_equal(class_list_find(&list, "1.0"), 1);
    const char *const others[] = { "3", "-1", "1.5", "", "nan", "tum", "1x" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(class_list_find(&list, others[i]), -1);
    class_list_free(&list);
    const char *const bad[] = { "a", "a,,b", "a,a", "", "a," };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(class_list_parse(bad[i], "classes", &list, &err));
        class_list_free(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_are_as_in_scikit_learn),
        cmocka_unit_test(means_do_not_depend_on_threads),
        cmocka_unit_test(measures_are_as_in_scikit_learn),
        cmocka_unit_test(nothing_has_no_measures),
        cmocka_unit_test(classes_are_found_by_name_and_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
