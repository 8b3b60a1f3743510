/* test_likeness_distances.c: Frechet's and the kernel distance, precision, recall, density and
 * coverage, and logistic regression against scipy, scikit-learn and prdc
 * (tests/golden/likeness.py); toys with a known answer; what sets of one distribution give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/rng.h"
#include "likeness/frechet.h"
#include "likeness/kernel_distance.h"
#include "likeness/logistic.h"
#include "likeness/neighbours.h"
#include "likeness/two_sample.h"
#include "support/golden_json.h"

#define D 6

/* As in tests/golden/likeness.py. */
static struct rows drawn(int64_t n, double shift)
{
    double *values = malloc((size_t)(n * D) * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < D; j++)
            values[i * D + j] = sin(1.7 * (double)i + 0.9 * (double)j + shift) +
                                0.5 * cos(0.37 * (double)(i * (j % 7)) + shift) +
                                0.3 * shift * (double)(j % 3);
    return (struct rows){ values, n, D };
}

/* Independent, normal, with this mean in the first column. */
static struct rows normal(int64_t n, int64_t d, double mean, uint64_t stream)
{
    double *values = malloc((size_t)(n * d) * sizeof *values);
    struct rng rng = rng_new(5, stream, 0);
    for (int64_t i = 0; i < n * d; i++)
        values[i] = rng_normal(&rng) + (i % d == 0 ? mean : 0);
    return (struct rows){ values, n, d };
}

static void drop(struct rows rows)
{
    free((double *)rows.values);
}

static void check(bool ok, const struct err *err)
{
    if (!ok)
        fail_msg("%s", err->text);
}

static void test_frechet_toy(void **state)
{
    (void)state;
    struct err err = { 0 };
    const double zero[2] = { 0, 0 }, away[2] = { 1, 2 };
    const double a[4] = { 2, 0.5, 0.5, 1 }, b[4] = { 1, -0.3, -0.3, 3 }, none[4] = { 0 };
    const double one[4] = { 1, 1, 1, 1 }; /* singular */
    double out = 0;
    check(frechet_of_moments(zero, a, away, b, 2, &out, &err), &err);
    assert_near(out, 5.929311855, 1e-9, "toy");
    check(frechet_of_moments(away, b, zero, a, 2, &out, &err), &err);
    assert_near(out, 5.929311855, 1e-9, "toy, the other way round");
    check(frechet_of_moments(zero, a, zero, none, 2, &out, &err), &err);
    assert_near(out, 3, 1e-12, "against a point");
    check(frechet_of_moments(away, one, zero, one, 2, &out, &err), &err);
    assert_near(out, 5, 1e-7, "singular");
}

static void test_golden(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/likeness.json");
    struct err err = { 0 };
    struct ctx ctx = { .pool = pool_new(2) };
    struct rows a = drawn(60, 0), b = drawn(45, 0.8);
    double out = 0;
    check(frechet_distance(&a, &b, &out, &err), &err);
    assert_near(out, golden_number(golden, "frechet", 0), 1e-6, "frechet");
    assert_near(kernel_distance(&a, &b), golden_number(golden, "kernel", 0), 1e-10, "kernel");
    struct neighbour_scores scores;
    check(neighbours_score(&a, &b, 5, &ctx, &scores, &err), &err);
    assert_near(scores.precision, golden_number(golden, "precision", 0), 1e-12, "precision");
    assert_near(scores.recall, golden_number(golden, "recall", 0), 1e-12, "recall");
    assert_near(scores.density, golden_number(golden, "density", 0), 1e-12, "density");
    assert_near(scores.coverage, golden_number(golden, "coverage", 0), 1e-12, "coverage");
    pool_free(ctx.pool);
    json_decref(golden);
    drop(a);
    drop(b);
}

static void test_logistic(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/likeness.json");
    struct err err = { 0 };
    struct rows a = drawn(60, 0), b = drawn(45, 0.8);
    double *values = malloc(105 * D * sizeof *values);
    bool positive[105];
    memcpy(values, a.values, 60 * D * sizeof *values);
    memcpy(values + 60 * D, b.values, 45 * D * sizeof *values);
    for (int i = 0; i < 105; i++)
        positive[i] = i >= 60;
    struct rows both = { values, 105, D };
    struct logistic fit = { 0 };
    check(logistic_fit(&both, positive, 1, false, &fit, &err), &err);
    for (size_t j = 0; j < D; j++)
        assert_near(fit.weights[j], golden_number(golden, "logistic_weights", j), 1e-5, "weight");
    assert_near(fit.intercept, golden_number(golden, "logistic_intercept", 0), 1e-5, "intercept");
    logistic_free(&fit);
    memset(positive, 0, sizeof positive);
    assert_false(logistic_fit(&both, positive, 1, false, &fit, &err));
    free(values);
    json_decref(golden);
    drop(a);
    drop(b);
}

/* Sets of one distribution are at 0, others are not; the plain distance is too large for few. */
static void test_same(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct ctx ctx = { .pool = pool_new(2) };
    struct rows a = normal(400, 20, 0, 1), b = normal(400, 20, 0, 2), c = normal(400, 20, 1, 3);
    double plain = 0, infinity = 0;
    check(frechet_distance(&a, &b, &plain, &err), &err);
    check(frechet_infinity(&a, &b, 1, &ctx, &infinity, &err), &err);
    assert_near(plain, 2 * 20 * 21 / (4 * 400.0), 0.12, "bias of few rows");
    assert_true(fabs(infinity) < plain / 4);
    check(frechet_infinity(&a, &c, 1, &ctx, &infinity, &err), &err);
    assert_near(infinity, 1, 0.2, "one apart");
    struct kernel_estimate kernel;
    check(kernel_distance_subsets(&a, &b, 20, 200, 1, &ctx, &kernel, &err), &err);
    assert_true(fabs(kernel.mean) < 0.01 && kernel.size == 200);
    struct two_sample test;
    check(two_sample_test(&a, &b, 1000, 1, &ctx, &test, &err), &err);
    assert_true(fabs(test.auc - 0.5) < 0.08 && test.p > 0.01 && test.n == 400);
    check(two_sample_test(&a, &c, 1000, 1, &ctx, &test, &err), &err);
    assert_near(test.auc, 0.76, 0.04, "AUC of normals one apart"); /* Phi(1 / sqrt 2) */
    assert_true(test.p < 1e-10);
    struct rows few = normal(30, 20, 0, 4);
    check(frechet_infinity(&a, &few, 1, &ctx, &infinity, &err), &err);
    assert_true(isnan(infinity));
    pool_free(ctx.pool);
    drop(a);
    drop(b);
    drop(c);
    drop(few);
}

/* Any number of threads gives the same bytes. */
static void test_threads(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct rows a = normal(150, 9, 0, 1), b = normal(130, 9, 0.5, 2);
    struct result {
        struct two_sample test;
        struct kernel_estimate kernel;
        struct neighbour_scores scores;
        double infinity;
    } results[2];
    memset(results, 0, sizeof results);
    for (int i = 0; i < 2; i++) {
        struct ctx ctx = { .pool = pool_new(1 + 2 * i) };
        check(two_sample_test(&a, &b, 1000, 1, &ctx, &results[i].test, &err), &err);
        check(kernel_distance_subsets(&a, &b, 10, 50, 1, &ctx, &results[i].kernel, &err), &err);
        check(neighbours_score(&a, &b, 5, &ctx, &results[i].scores, &err), &err);
        check(frechet_infinity(&a, &b, 1, &ctx, &results[i].infinity, &err), &err);
        pool_free(ctx.pool);
    }
    assert_memory_equal(&results[0], &results[1], sizeof results[0]);
    drop(a);
    drop(b);
}

static void test_binomial(void **state)
{
    (void)state;
    assert_near(two_sample_p(0, 10), 1, 1e-12, "none");
    assert_near(two_sample_p(10, 10), 1 / 1024.0, 1e-12, "all");
    assert_near(two_sample_p(8, 10), 56 / 1024.0, 1e-12, "eight of ten");
    assert_true(two_sample_p(9000, 10000) < 1e-300);
}

static void test_transfer(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct rows a = normal(200, 4, 0, 1), b = normal(200, 4, 0, 2);
    int32_t la[200], lb[200];
    for (int i = 0; i < 200; i++) {
        la[i] = i % 10 == 0 ? -1 : a.values[i * 4 + 2] > 0;
        lb[i] = b.values[i * 4 + 2] > 0;
    }
    double auc = 0;
    check(transfer_auc(&a, la, &b, lb, 2, &auc, &err), &err);
    assert_true(auc > 0.98);
    for (int i = 0; i < 200; i++) {
        la[i] = a.values[i * 4] > 0.5 ? 2 : a.values[i * 4] < -0.5 ? 0 : 1;
        lb[i] = b.values[i * 4] > 0.5 ? 2 : b.values[i * 4] < -0.5 ? 0 : 1;
    }
    check(transfer_auc(&a, la, &b, lb, 3, &auc, &err), &err);
    assert_true(auc > 0.75 && auc < 0.95); /* the middle class is not linear */
    check(transfer_auc(&a, la, &b, lb, 4, &auc, &err), &err);
    assert_true(isnan(auc));
    drop(a);
    drop(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frechet_toy), cmocka_unit_test(test_golden),
        cmocka_unit_test(test_logistic),    cmocka_unit_test(test_same),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_binomial),
        cmocka_unit_test(test_transfer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
