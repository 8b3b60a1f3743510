/* test_metrics.c: areas, accuracies and confusion against scikit-learn
 * (tests/golden/train_ops.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/auc.h"
#include "support/golden_train.h"
#include "train/metrics.h"

static void assert_close(const struct golden *golden, const char *group, const char *name,
                         double got)
{
    const struct golden_tensor *t = golden_find(golden, "%s/%s", group, name);
    assert_non_null(t);
    double want = (double)t->data[0] + (double)t->data[1];
    if (!(fabs(got - want) < 1e-12))
        fail_msg("%s/%s: %.15g, want %.15g", group, name, got, want);
}

static void areas_are_as_in_sklearn(void **state)
{
    const struct golden *golden = *state;
    static const char *const groups[] = { "auc/ties", "auc/plain", "auc/few" };
    for (int k = 0; k < 3; k++) {
        const struct golden_tensor *labels = golden_find(golden, "%s/labels", groups[k]);
        const struct golden_tensor *scores = golden_find(golden, "%s/scores", groups[k]);
        int64_t n = labels->shape.dim[0];
        double *s = malloc((size_t)n * sizeof *s), area;
        bool *positive = malloc((size_t)n * sizeof *positive);
        for (int64_t i = 0; i < n; i++) {
            s[i] = (double)scores->data[i];
            positive[i] = labels->data[i] > 0;
        }
        assert_true(auc_area(s, positive, n, &area, NULL));
        assert_close(golden, groups[k], "area", area);
        free(s), free(positive);
    }
}

static void areas_of_small_cases(void **state)
{
    (void)state;
    double area;
    static const double scores[] = { 1, 1, 1, 1 };
    assert_true(auc_area(scores, (bool[]){ 0, 1, 0, 1 }, 4, &area, NULL));
    assert_true(area == 0.5);
    assert_true(auc_area(scores, (bool[]){ 1, 1, 1, 1 }, 4, &area, NULL));
    assert_true(isnan(area));
    assert_true(auc_area(scores, (bool[]){ 0 }, 0, &area, NULL));
    assert_true(isnan(area));
    static const double ends[] = { -INFINITY, 0, INFINITY };
    assert_true(auc_area(ends, (bool[]){ 0, 0, 1 }, 3, &area, NULL));
    assert_true(area == 1);
}

static void all_numbers_are_as_in_sklearn(void **state)
{
    const struct golden *golden = *state;
    static const char *const groups[] = { "classes_2", "classes_3" };
    for (int k = 0; k < 2; k++) {
        const struct golden_tensor *scores = golden_find(golden, "%s/scores", groups[k]);
        const struct golden_tensor *labels = golden_find(golden, "%s/labels", groups[k]);
        const struct golden_tensor *want = golden_find(golden, "%s/confusion", groups[k]);
        int64_t n = scores->shape.dim[0], classes = scores->shape.dim[1], confusion[9];
        int32_t truth[60];
        struct metrics metrics;
        struct err err = { 0 };
        assert_int_equal(n, 60);
        for (int64_t i = 0; i < n; i++)
            truth[i] = (int32_t)labels->data[i];
        assert_true(metrics_compute(scores->data, truth, n, classes, &metrics, confusion, &err));
        for (int64_t i = 0; i < classes * classes; i++)
            assert_true((float)confusion[i] == want->data[i]);
        assert_int_equal(metrics.n, n);
        assert_close(golden, groups[k], "accuracy", metrics.accuracy);
        assert_close(golden, groups[k], "balanced", metrics.balanced_accuracy);
        assert_close(golden, groups[k], "f1", metrics.f1);
        assert_close(golden, groups[k], "area", metrics.auc);
    }
}

static void absent_classes_and_ties(void **state)
{
    (void)state;
    struct metrics metrics;
    struct err err = { 0 };
    /* Class 2 does not occur; a tie goes to class 0. */
    static const float scores[] = { .4f, .4f, .2f, .1f, .8f, .1f, .3f, .3f, .4f };
    static const int32_t labels[] = { 0, 1, 1 };
    assert_true(metrics_compute(scores, labels, 3, 3, &metrics, NULL, &err));
    assert_true(fabs(metrics.accuracy - 2.0 / 3) < 1e-15);
    assert_true(metrics.balanced_accuracy == 0.75);
    /* Class 0: .4 over .1 and .3. Class 1: .8 over .4, .3 below. */
    assert_true(metrics.auc == 0.75);
    assert_true(metrics_compute(scores, (int32_t[]){ 0 }, 1, 2, &metrics, NULL, &err));
    assert_true(metrics.accuracy == 1 && isnan(metrics.auc) && isnan(metrics.f1));
    assert_true(metrics_compute(NULL, NULL, 0, 2, &metrics, NULL, &err));
    assert_true(metrics.n == 0 && isnan(metrics.accuracy) && isnan(metrics.balanced_accuracy));
}

static void bad_input_is_named(void **state)
{
    (void)state;
    struct metrics metrics;
    struct err err = { 0 };
    float scores[] = { .4f, .6f, .2f, .8f };
    assert_false(metrics_compute(scores, (int32_t[]){ 0, 2 }, 2, 2, &metrics, NULL, &err));
    assert_non_null(strstr(err.text, "sample 1: label 2"));
    assert_false(metrics_compute(scores, (int32_t[]){ -1, 0 }, 2, 2, &metrics, NULL, &err));
    assert_non_null(strstr(err.text, "sample 0: label -1"));
    scores[3] = NAN;
    assert_false(metrics_compute(scores, (int32_t[]){ 0, 1 }, 2, 2, &metrics, NULL, &err));
    assert_non_null(strstr(err.text, "sample 1: the score of class 1"));
    assert_false(metrics_compute(scores, (int32_t[]){ 0, 0 }, 2, 1, &metrics, NULL, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(areas_are_as_in_sklearn),
        cmocka_unit_test(areas_of_small_cases),
        cmocka_unit_test(all_numbers_are_as_in_sklearn),
        cmocka_unit_test(absent_classes_and_ties),
        cmocka_unit_test(bad_input_is_named),
    };
    return cmocka_run_group_tests(tests, golden_train_open, golden_train_close);
}
