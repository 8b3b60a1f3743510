/* test_explain_ridge.c: ridge regression against scikit-learn (tests/golden/explain_ridge.py), the
 * dual form against the primal one, and data that has no answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "explain/ridge.h"
#include "support/golden_json.h"

static void check_case(const json_t *want)
{
    int64_t n = (int64_t)golden_number(want, "n", 0), p = (int64_t)golden_number(want, "p", 0);
    int64_t targets = (int64_t)golden_number(want, "targets", 0);
    double *x = golden_numbers(want, "x", NULL), *y = golden_numbers(want, "y", NULL);
    double *weights =
        json_object_get(want, "weights") ? golden_numbers(want, "weights", NULL) : NULL;
    double coef[64], intercept[2];
    struct err err = { 0 };
    if (!ridge_fit_targets(x, y, weights, n, p, targets, golden_number(want, "alpha", 0), coef,
                           intercept, &err))
        fail_msg("%s", err.text);
    for (int64_t k = 0; k < targets * p; k++)
        assert_near(coef[k], golden_number(want, "coef", (size_t)k), 1e-10, "coefficient");
    for (int64_t j = 0; j < targets; j++)
        assert_near(intercept[j], golden_number(want, "intercept", (size_t)j), 1e-10, "intercept");
    free(x);
    free(y);
    free(weights);
}

static void fits_are_those_of_scikit_learn(void **state)
{
    (void)state;
    json_t *cases = golden_json("tests/golden/explain/ridge.json");
    size_t i;
    json_t *want;
    assert_int_equal(json_array_size(cases), 6);
    json_array_foreach(cases, i, want) check_case(want);
    json_decref(cases);
}

/* Columns that are 0 add nothing; enough of them turn the problem into its dual. */
static void the_dual_form_has_the_same_answer(void **state)
{
    (void)state;
    static const double x[4][2] = { { 1, 2 }, { 0, 1 }, { 3, -1 }, { 2, 5 } };
    static const double y[4] = { 1, 0, 4, 2 }, weights[4] = { 1, 2, 0.5, 1 };
    double wide[4][7] = { { 0 } }, coef[2], wide_coef[7], intercept, wide_intercept;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++)
            wide[i][3 * k + 1] = x[i][k];
    assert_true(ridge_fit(x[0], y, weights, 4, 2, 0.3, coef, &intercept, NULL));
    assert_true(ridge_fit(wide[0], y, weights, 4, 7, 0.3, wide_coef, &wide_intercept, NULL));
    assert_near(wide_intercept, intercept, 1e-13, "intercept");
    for (int k = 0; k < 7; k++)
        assert_near(wide_coef[k], k % 3 == 1 && k < 5 ? coef[k / 3] : 0, 1e-13, "coefficient");
}

static void expect_failure(const double *x, const double *y, const double *weights, int64_t n,
                           int64_t p, double alpha, const char *text)
{
    double coef[4], intercept;
    struct err err = { 0 };
    assert_false(ridge_fit(x, y, weights, n, p, alpha, coef, &intercept, &err));
    assert_string_equal(err.text, text);
}

static void what_has_no_answer_is_refused(void **state)
{
    (void)state;
    static const double same[6] = { 1, 2, 2, 4, 3, 6 }, y[3] = { 1, 2, 4 };
    static const double none[3] = { 0 }, bad[3] = { 1, -1, 1 }, infinite[3] = { 1, INFINITY, 1 };
    expect_failure(same, y, NULL, 3, 2, 0,
                   "ridge: columns depend on each other (3 rows, 2 columns): use a penalty above "
                   "0");
    expect_failure(same, y, NULL, 2, 3, 0,
                   "ridge: columns depend on each other (2 rows, 3 columns): use a penalty above "
                   "0");
    expect_failure(same, y, none, 3, 2, 1, "ridge: all weights are 0");
    expect_failure(same, y, bad, 3, 2, 1, "ridge: weight -1 of row 1 is not 0 or more");
    expect_failure(same, infinite, NULL, 3, 2, 1, "ridge: a value is not a finite number");
    expect_failure(same, y, NULL, 3, 2, -1, "ridge: the penalty -1 is not 0 or more");
    expect_failure(same, y, NULL, 0, 2, 1,
                   "ridge: 0 rows of 2 columns: at least one of each is needed");
}

static void one_row_is_its_intercept(void **state)
{
    (void)state;
    static const double x[2] = { 3, 4 }, y[1] = { 7 };
    double coef[2], intercept;
    assert_true(ridge_fit(x, y, NULL, 1, 2, 1, coef, &intercept, NULL));
    assert_near(coef[0], 0, 0, "coefficient");
    assert_near(intercept, 7, 1e-15, "intercept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_are_those_of_scikit_learn),
        cmocka_unit_test(the_dual_form_has_the_same_answer),
        cmocka_unit_test(what_has_no_answer_is_refused),
        cmocka_unit_test(one_row_is_its_intercept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
