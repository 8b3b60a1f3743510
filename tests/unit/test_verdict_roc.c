/* test_verdict_roc.c: areas, intervals and DeLong's test against the definitions
 * (tests/golden/verdict_roc.py), the values of the literature, and odd data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/auc.h"
#include "base/pool.h"
#include "base/console.h"
#include "base/rng.h"
#include "support/golden_json.h"
#include "verdict/roc.h"
#include "verdict/scores.h"
#include "base/clock.h"

static struct ctx context(int threads)
{
    struct ctx ctx = { .pool = pool_new(threads) };
    assert_non_null(ctx.pool);
    return ctx;
}

static void compute(const double *scores, const bool *positive, int64_t n, int64_t replicates,
                    int threads, struct roc *roc)
{
    struct ctx ctx = context(threads);
    struct roc_options options = { replicates, 7, NULL };
    struct err err = { 0 };
    if (!roc_compute(scores, positive, n, &options, &ctx, roc, &err))
        fail_msg("%s", err.text);
    pool_free(ctx.pool);
}

static void the_toy_of_the_literature(void **state)
{
    (void)state;
    static const double scores[] = {
        .9, .8, .75, .6, .55, .5, .4, .7, .5, .45, .35, .3, .2, .15, .1
    };
    static const bool positive[15] = { 1, 1, 1, 1, 1, 1, 1 };
    struct roc roc;
    compute(scores, positive, 15, 0, 1, &roc);
    assert_near(roc.auc, .8839285714, 1e-9, "area");
    assert_near(roc.se, .0881733428, 1e-9, "standard error");
    assert_near(roc.delong_low, .5856, 5e-5, "low");
    assert_near(roc.delong_high, .9762, 5e-5, "high");
    assert_int_equal(roc.positives, 7);
    assert_int_equal(roc.negatives, 8);
    roc_free(&roc);
}

static void check_case(const json_t *want)
{
    size_t n;
    double *labels = golden_numbers(want, "labels", &n);
    double *scores[2] = { golden_numbers(want, "a", NULL), golden_numbers(want, "b", NULL) };
    bool *positive = calloc(n, sizeof *positive);
    struct roc roc;
    struct roc_test test;
    for (size_t i = 0; i < n; i++)
        positive[i] = labels[i] == 1;
    for (size_t k = 0; k < 2; k++) {
        compute(scores[k], positive, (int64_t)n, k == 0 ? 4000 : 0, 2, &roc);
        assert_near(roc.auc, golden_number(want, "auc", k), 1e-12, "area");
        assert_near(roc.se, golden_number(want, "se", k), 1e-12, "standard error");
        if (k == 0) {
            assert_near(roc.bootstrap_low, golden_number(want, "bootstrap_a", 0), .02, "low");
            assert_near(roc.bootstrap_high, golden_number(want, "bootstrap_a", 1), .02, "high");
            assert_near(roc.best.fpr, golden_number(want, "best", 0), 1e-12, "best fpr");
            assert_near(roc.best.tpr, golden_number(want, "best", 1), 1e-12, "best tpr");
            assert_near(roc.best.threshold, golden_number(want, "best", 2), 1e-12, "best");
            assert_true((double)roc.n_points <= golden_number(want, "points", 0));
        }
        roc_free(&roc);
    }
    assert_true(roc_delong_test(scores[0], scores[1], positive, (int64_t)n, &test, NULL));
    assert_near(test.se, golden_number(want, "difference_se", 0), 1e-12, "se of difference");
    assert_near(test.z, golden_number(want, "z", 0), 1e-9, "z");
    assert_near(test.p, golden_number(want, "p", 0), 1e-9, "p");
    free(labels), free(scores[0]), free(scores[1]), free(positive);
}

static void areas_and_tests_are_as_defined(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/roc.json");
    json_t *cases = json_object_get(golden, "cases");
    assert_int_equal(json_array_size(cases), 3);
    for (size_t i = 0; i < 3; i++)
        check_case(json_array_get(cases, i));
    json_decref(golden);
}

/* The trapezoids under the points are the area. */
static void the_curve_has_the_area(void **state)
{
    (void)state;
    enum { N = 500 };
    double scores[N], area = 0;
    bool positive[N];
    struct rng rng = rng_new(3, 1, 4);
    for (int i = 0; i < N; i++) {
        positive[i] = rng_below(&rng, 3) == 0;
        scores[i] = (double)rng_below(&rng, 40) + 10 * positive[i];
    }
    struct roc roc;
    compute(scores, positive, N, 0, 1, &roc);
    for (int64_t k = 1; k < roc.n_points; k++)
        area += (roc.points[k].fpr - roc.points[k - 1].fpr) *
                (roc.points[k].tpr + roc.points[k - 1].tpr) / 2;
    assert_near(area, roc.auc, 1e-12, "area of the curve");
    assert_true(roc.points[roc.n_points - 1].fpr == 1 && roc.points[roc.n_points - 1].tpr == 1);
    assert_true(roc.points[0].fpr == 0 && roc.points[0].tpr == 0);
    roc_free(&roc);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    static const double scores[] = { 1, 2, 3, 4, 5, 6, 2.5, 3.5 };
    static const bool positive[] = { 0, 0, 1, 0, 1, 1, 1, 0 };
    struct roc one, three;
    compute(scores, positive, 8, 500, 1, &one);
    compute(scores, positive, 8, 500, 3, &three);
    assert_true(one.bootstrap_low == three.bootstrap_low);
    assert_true(one.bootstrap_high == three.bootstrap_high);
    assert_true(one.bootstrap_low < one.auc && one.auc <= one.bootstrap_high);
    roc_free(&one), roc_free(&three);
}

static void ends_and_equals(void **state)
{
    (void)state;
    static const double scores[] = { 1, 2, 3, 4 }, same[] = { 5, 5, 5, 5 };
    static const bool apart[] = { 0, 0, 1, 1 }, one_kind[4] = { 0 };
    struct roc roc;
    struct roc_test test;
    struct err err = { 0 };
    struct ctx ctx = context(1);
    struct roc_options options = { 10, 1, NULL };
    compute(scores, apart, 4, 10, 1, &roc);
    assert_true(roc.auc == 1 && roc.se == 0 && roc.delong_low == 1 && roc.delong_high == 1);
    roc_free(&roc);
    assert_false(roc_compute(scores, one_kind, 4, &options, &ctx, &roc, &err));
    assert_non_null(strstr(err.text, "all 4 slides are negative"));
    assert_false(roc_compute(same, apart, 4, &options, &ctx, &roc, &err));
    assert_non_null(strstr(err.text, "all 4 scores are 5"));
    assert_true(roc_delong_test(scores, scores, apart, 4, &test, &err));
    assert_true(test.difference == 0 && test.z == 0 && test.p == 1);
    pool_free(ctx.pool);
}

/* A million scores: the same as the plain area, in seconds even with sanitizers. */
static void a_million_scores(void **state)
{
    (void)state;
    const int64_t n = 1000000;
    double *scores = malloc((size_t)n * sizeof *scores), area;
    bool *positive = malloc((size_t)n * sizeof *positive);
    struct rng rng = rng_new(1, 2, 3);
    for (int64_t i = 0; i < n; i++) {
        positive[i] = rng_below(&rng, 2);
        scores[i] = rng_normal(&rng) + positive[i];
    }
    struct roc roc;
    double began_s = clock_monotonic_s();
    compute(scores, positive, n, 0, 1, &roc);
    assert_true(clock_monotonic_s() - began_s < 60);
    assert_true(auc_area(scores, positive, n, &area, NULL));
    assert_near(roc.auc, area, 1e-12, "area");
    assert_near(roc.auc, 0.7602, 2e-3, "area of two normals one apart");
    assert_near(roc.se, 4.8e-4, 5e-5, "standard error");
    roc_free(&roc);
    free(scores), free(positive);
}

static void slides_are_found_by_name(void **state)
{
    (void)state;
    static const char text[] = "slide,score\nb/c.tif,1\na.SVS,2\nd.e.f,3\n";
    struct slide_table table;
    struct err err = { 0 };
    assert_true(slide_table_parse(text, sizeof text - 1, "t.csv", "slide", &table, &err));
    assert_int_equal(table.n, 3);
    assert_int_equal(slide_table_find(&table, "a"), 0);
    assert_int_equal(slide_table_find(&table, "c"), 1);
    assert_int_equal(slide_table_find(&table, "d.e.f"), 2);
    assert_int_equal(slide_table_find(&table, "b"), -1);
    assert_int_equal(slide_table_find(&table, "z"), -1);
    slide_table_free(&table);
    static const char twice[] = "slide,score\na,1\nb,1\na.tif,2\n";
    assert_false(slide_table_parse(twice, sizeof twice - 1, "t.csv", "slide", &table, &err));
    assert_string_equal(err.text, "t.csv:4: slide 'a' is already on line 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_toy_of_the_literature),
        cmocka_unit_test(areas_and_tests_are_as_defined),
        cmocka_unit_test(the_curve_has_the_area),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(ends_and_equals),
        cmocka_unit_test(a_million_scores),
        cmocka_unit_test(slides_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
