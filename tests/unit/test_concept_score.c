/* test_concept_score.c: concept regressions against scikit-learn (tests/golden/concepts.py), the
 * sign on a toy whose answer is known, p-values under the null, Holm's method, folds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/rng.h"
#include "explain/concept_score.h"
#include "explain/products.h"
#include "explain/symmetric.h"
#include "support/golden_json.h"

#define N 48

static struct ctx ctx_of(int threads)
{
    struct ctx ctx = { .pool = pool_new(threads) };
    assert_non_null(ctx.pool);
    return ctx;
}

/* As in tests/golden/concepts.py. */
static void draw(int64_t p, float **x, float **g)
{
    *x = malloc((size_t)(N * p) * sizeof **x);
    *g = malloc((size_t)(N * p) * sizeof **g);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < p; j++) {
            (*x)[i * p + j] = (float)(sin(1.7 * i + 0.9 * j) + 0.5 * cos(0.37 * i * (j % 7)) +
                                      0.2 * sin(2.3 * i * j + 1));
            (*g)[i * p + j] = (float)(cos(0.8 * i - 0.3 * j) + 0.4);
        }
}

struct scored {
    struct concept_score score;
    enum concept_state state;
    double sensitivities[N];
    double *direction;
};

struct given {
    double values[N];
    int32_t patient[N];
    int fold[N];
};

/* Patients of four patches in a row. */
static void by_fours(struct given *given)
{
    for (int i = 0; i < N; i++) {
        given->patient[i] = i / 4;
        given->fold[i] = i / 4 % 3;
    }
}

static struct scored score(int64_t p, float *x, float *g, const struct given *given, bool answers,
                           struct concept_score_options options, int threads)
{
    struct ctx ctx = ctx_of(threads);
    struct err err = { 0 };
    struct concept_space space;
    struct concept_bases bases = { 0 };
    struct scored out = { .direction = malloc((size_t)p * sizeof(double)) };
    struct concept_sample sample = { .n = N,
                                     .values = given->values,
                                     .patient = given->patient,
                                     .fold = given->fold,
                                     .n_folds = 3,
                                     .answers = answers };
    assert_true(concept_space_make(N, p, x, g, &ctx, &space, &err));
    if (!concept_score(&sample, &options, &space, &bases, &ctx, &out.state, &out.score,
                       out.sensitivities, out.direction, &err))
        fail_msg("%s", err.text);
    concept_bases_free(&bases);
    concept_space_free(&space);
    pool_free(ctx.pool);
    return out;
}

static void compare(const struct scored *got, const json_t *want, int64_t p, double tolerance)
{
    assert_int_equal(got->state, CONCEPT_SCORED);
    for (int k = 0; k < 3; k++)
        assert_near(got->score.fold_quality[k], golden_number(want, "fold_quality", (size_t)k),
                    tolerance, "quality of a fold");
    assert_near(got->score.quality, golden_number(want, "quality", 0), tolerance, "quality");
    assert_near(got->score.tcav, golden_number(want, "tcav", 0), 1e-12, "tcav");
    for (int i = 0; i < N; i++)
        assert_near(got->sensitivities[i], golden_number(want, "sensitivities", (size_t)i),
                    tolerance, "sensitivity");
    for (int64_t j = 0; j < p; j++)
        assert_near(got->direction[j], golden_number(want, "direction", (size_t)j), tolerance,
                    "direction");
}

static void against_golden(const char *name, int64_t p)
{
    json_t *golden = golden_json("tests/golden/concepts.json");
    const char *const ways[] = { "ridge", "chosen", "pca", "logistic" };
    for (int way = 0; way < 4; way++) {
        struct concept_score_options options = { .permutations = 3, .seed = 1 };
        struct given given;
        float *x, *g;
        bool answers = way == 3;
        by_fours(&given);
        draw(p, &x, &g);
        for (int i = 0; i < N; i++) {
            given.values[i] =
                2 * (double)x[i * p] - 1.5 * (double)x[i * p + 1] + 0.7 * sin(3.1 * i * i);
            if (answers)
                given.values[i] = given.values[i] > 0.3;
        }
        options.fit.ridge = way == 0 ? 0.3 : answers ? 0.1 : 0;
        options.fit.pca = way == 2;
        struct scored got = score(p, x, g, &given, answers, options, 2);
        const json_t *want = json_object_get(json_object_get(golden, name), ways[way]);
        assert_non_null(want);
        compare(&got, want, p, 1e-5);
        if (answers) {
            assert_near(got.score.accuracy, golden_number(want, "accuracy", 0), 1e-9, "accuracy");
            assert_true(isnan(got.score.br));
        } else {
            assert_near(got.score.br, golden_number(want, "br", 0), 1e-4, "br");
        }
        free(got.direction);
    }
    json_decref(golden);
}

static void few_channels_as_scikit_learn(void **state)
{
    (void)state;
    against_golden("few", 6);
}

static void many_channels_as_scikit_learn(void **state)
{
    (void)state;
    against_golden("many", 90);
}

/* Activations that hold area and colour in mixed channels; logit = 3 area - 2 colour^3 / 3, so its
 * gradient is known. More area raises the logit, more colour lowers it. */
static void sign_on_a_toy(void **state)
{
    (void)state;
    static const double mix[4][2] = { { 1, 0.5 }, { -2, 1 }, { 0.5, 1.5 }, { -0.3, -1 } };
    for (int concept = 0; concept < 3; concept ++) {
        struct given given;
        float *x = malloc(N * 4 * sizeof *x), *g = malloc(N * 4 * sizeof *g);
        by_fours(&given);
        for (int i = 0; i < N; i++) {
            struct rng rng = rng_new(5, 0, (uint64_t)i);
            double area = rng_normal(&rng), colour = 1 + rng_uniform(&rng);
            double other = rng_normal(&rng);
            given.values[i] = concept == 0 ? area : concept == 1 ? colour : other;
            for (int j = 0; j < 4; j++)
                x[i * 4 + j] = (float)(mix[j][0] * area + mix[j][1] * colour + 7);
            /* the gradient that moves area alone by da, colour alone by dc: solve mix' g = d */
            double d0 = 3, d1 = -2 * colour * colour;
            double a = 0, b = 0, c = 0;
            for (int j = 0; j < 4; j++) {
                a += mix[j][0] * mix[j][0];
                b += mix[j][0] * mix[j][1];
                c += mix[j][1] * mix[j][1];
            }
            double u = (d0 * c - d1 * b) / (a * c - b * b), v = (d1 * a - d0 * b) / (a * c - b * b);
            for (int j = 0; j < 4; j++)
                g[i * 4 + j] = (float)(mix[j][0] * u + mix[j][1] * v);
        }
        struct concept_score_options options = { .permutations = 199, .seed = 2 };
        struct scored got = score(4, x, g, &given, false, options, 1);
        if (concept == 2) {
            assert_true(got.score.p_quality > 0.05);
        } else {
            assert_true(got.score.quality > 0.99);
            assert_true(got.score.p_quality <= 0.005 + 1e-12);
            assert_true(got.score.tcav == (concept == 0 ? 1 : 0));
            assert_true(concept == 0 ? got.score.mean_s > 0 : got.score.br < -1);
            assert_true(got.score.agreement > 0.99);
        }
        if (concept == 1) { /* every column raised by the same factor leaves all but S as it is */
            double s = got.score.quality * got.score.mean_s / got.score.std_s;
            assert_near(got.score.br, s, 1e-12, "br");
        }
        free(got.direction);
    }
}

/* The gradient of a linear head is the same for all patches: Br is not defined, never infinite. */
static void constant_gradient(void **state)
{
    (void)state;
    struct given given;
    float *x, *g;
    by_fours(&given);
    draw(6, &x, &g);
    for (int i = 0; i < N; i++) {
        given.values[i] = (double)x[i * 6];
        for (int j = 0; j < 6; j++)
            g[i * 6 + j] = (float)(j + 1);
    }
    struct scored got =
        score(6, x, g, &given, false, (struct concept_score_options){ .permutations = 9 }, 1);
    assert_true(isnan(got.score.br));
    assert_true(got.score.tcav == 1 && got.score.mean_s > 0);
    free(got.direction);
}

static void what_cannot_be_scored(void **state)
{
    (void)state;
    struct concept_score_options options = { .permutations = 9 };
    for (int way = 0; way < 4; way++) {
        static const enum concept_state want[] = { CONCEPT_CONSTANT, CONCEPT_FEW_PATIENTS,
                                                   CONCEPT_FEW_PATCHES, CONCEPT_DEAD_LAYER };
        struct given given;
        float *x, *g;
        by_fours(&given);
        draw(6, &x, &g);
        for (int i = 0; i < N; i++) {
            given.values[i] = way == 0 ? 4 : sin(i);
            if ((way == 1 && i >= 8) || (way == 2 && i % 4 > 0 && i >= 8))
                given.values[i] = NAN;
            if (way == 2 && i >= 12)
                given.values[i] = NAN;
            for (int j = 0; way == 3 && j < 6; j++)
                x[i * 6 + j] = 2;
        }
        struct scored got = score(6, x, g, &given, false, options, 1);
        assert_int_equal(got.state, want[way]);
        free(got.direction);
    }
}

/* Patches without a value change nothing about the others. */
static void missing_values(void **state)
{
    (void)state;
    struct given given;
    float *x, *g;
    by_fours(&given);
    draw(90, &x, &g);
    for (int i = 0; i < N; i++)
        given.values[i] = i % 5 == 0 ? NAN : (double)x[i * 90];
    struct concept_score_options options = { .permutations = 40, .seed = 3 };
    struct scored got = score(90, x, g, &given, false, options, 1);
    assert_int_equal(got.score.n, N - 10);
    for (int i = 0; i < N; i++)
        assert_true(isnan(got.sensitivities[i]) == (i % 5 == 0));
    free(got.direction);
}

static void threads_same_bytes(void **state)
{
    (void)state;
    struct scored got[2];
    for (int k = 0; k < 2; k++) {
        struct given given;
        float *x, *g;
        by_fours(&given);
        draw(90, &x, &g);
        for (int i = 0; i < N; i++)
            given.values[i] = sin(i * 0.7);
        struct concept_score_options options = { .permutations = 100, .seed = 3 };
        got[k] = score(90, x, g, &given, false, options, k ? 4 : 1);
    }
    assert_memory_equal(&got[0].score, &got[1].score, sizeof got[0].score);
    assert_memory_equal(got[0].sensitivities, got[1].sensitivities, sizeof got[0].sensitivities);
    free(got[0].direction);
    free(got[1].direction);
}

/* Concepts that have nothing to do with the activations, but differ between patients, as the
 * activations do: p-values are uniform. */
static void p_values_under_the_null(void **state)
{
    (void)state;
    enum { RUNS = 300, PERMUTATIONS = 39 };
    int tenths[10] = { 0 }, below_s = 0;
    double sum = 0;
    for (int run = 0; run < RUNS; run++) {
        struct given given;
        struct rng rng = rng_new(11, 0, (uint64_t)run);
        double of_patient[12][2];
        float *x = malloc(N * 3 * sizeof *x), *g = malloc(N * 3 * sizeof *g);
        by_fours(&given);
        for (int k = 0; k < 12; k++) {
            of_patient[k][0] = rng_normal(&rng);
            of_patient[k][1] = rng_normal(&rng);
        }
        for (int i = 0; i < N; i++) {
            given.values[i] = 2 * of_patient[i / 4][0] + rng_normal(&rng);
            for (int j = 0; j < 3; j++) {
                x[i * 3 + j] = (float)(2 * of_patient[i / 4][1] * (j == 0) + rng_normal(&rng));
                g[i * 3 + j] = (float)(1 + rng_normal(&rng));
            }
        }
        struct concept_score_options options = { .permutations = PERMUTATIONS,
                                                 .seed = (uint64_t)run };
        struct scored got = score(3, x, g, &given, false, options, 1);
        int tenth = (int)ceil(got.score.p_quality * 10 - 1e-9) - 1;
        tenths[tenth]++;
        sum += got.score.p_quality;
        below_s += got.score.p_permuted <= 0.1;
        free(got.direction);
    }
    assert_true(fabs(sum / RUNS - 0.5125) < 3 * 0.29 / sqrt(RUNS));
    assert_true(tenths[0] > 12 && tenths[0] < 50); /* 30 expected, deviation 5.2 */
    assert_true(below_s > 12 && below_s < 50);
}

static void holm_by_hand(void **state)
{
    (void)state;
    struct err err = { 0 };
    double p[] = { 0.01, 0.04, NAN, 0.03, 0.005, 0.5 };
    static const double want[] = { 0.04, 0.09, 0, 0.09, 0.025, 0.5 };
    assert_true(concept_holm(p, 6, &err));
    for (int i = 0; i < 6; i++)
        assert_true(i == 2 ? isnan(p[i]) : fabs(p[i] - want[i]) < 1e-12);
}

static void folds_of_patients(void **state)
{
    (void)state;
    struct err err = { 0 };
    int64_t counts[] = { 10, 1, 1, 9, 8, 2, 3 };
    char *names[] = { "a", "b", "c", "d", "e", "f", "g" };
    int fold[7], again[7];
    int64_t sums[3] = { 0 };
    assert_true(concept_folds(counts, names, 7, 3, 4, fold, &err));
    assert_true(concept_folds(counts, names, 7, 3, 4, again, &err));
    assert_memory_equal(fold, again, sizeof fold);
    for (int i = 0; i < 7; i++)
        sums[fold[i]] += counts[i];
    for (int k = 0; k < 3; k++)
        assert_true(sums[k] >= 11 && sums[k] <= 12);
}

static void eigenvectors(void **state)
{
    (void)state;
    enum { SIZE = 37 };
    static double matrix[SIZE * SIZE], kept[SIZE * SIZE], vectors[SIZE * SIZE], values[SIZE];
    struct err err = { 0 };
    for (int rank = 1; rank <= SIZE; rank += 9) { /* sums of outer products: some are deficient */
        memset(matrix, 0, sizeof matrix);
        for (int r = 0; r < rank; r++)
            for (int i = 0; i < SIZE; i++)
                for (int j = 0; j < SIZE; j++)
                    matrix[i * SIZE + j] += sin(1 + i * (r + 1)) * sin(1 + j * (r + 1)) * (r + 1);
        memcpy(kept, matrix, sizeof matrix);
        assert_true(symmetric_eigen(matrix, SIZE, values, vectors, &err));
        for (int i = 0; i < SIZE; i++) {
            assert_true(i == 0 || values[i] <= values[i - 1]);
            for (int j = 0; j < SIZE; j++) {
                double image = product_dot(kept + j * SIZE, vectors + i * SIZE, SIZE);
                double dot = product_dot(vectors + i * SIZE, vectors + j * SIZE, SIZE);
                assert_true(fabs(image - values[i] * vectors[i * SIZE + j]) < 1e-10 * values[0]);
                assert_true(fabs(dot - (i == j)) < 1e-12);
            }
        }
    }
    matrix[3] = NAN;
    assert_false(symmetric_eigen(matrix, SIZE, values, vectors, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eigenvectors),
        cmocka_unit_test(few_channels_as_scikit_learn),
        cmocka_unit_test(many_channels_as_scikit_learn),
        cmocka_unit_test(sign_on_a_toy),
        cmocka_unit_test(constant_gradient),
        cmocka_unit_test(what_cannot_be_scored),
        cmocka_unit_test(missing_values),
        cmocka_unit_test(threads_same_bytes),
        cmocka_unit_test(p_values_under_the_null),
        cmocka_unit_test(holm_by_hand),
        cmocka_unit_test(folds_of_patients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
