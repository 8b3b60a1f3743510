/* test_audit.c: the statistics of membership inference against SciPy and scikit-learn
 * (tests/golden/audit.py), and attacks on numbers whose answer is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "audit/blind.h"
#include "audit/nearest.h"
#include "audit/power.h"
#include "audit/signals.h"
#include "base/auc.h"
#include "base/pool.h"
#include "base/rng.h"
#include "support/golden_json.h"

static struct ctx ctx_of(int threads)
{
    struct ctx ctx = { .pool = pool_new(threads) };
    assert_non_null(ctx.pool);
    return ctx;
}

static void shares_have_exact_intervals(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/audit.json"), *item;
    size_t i;
    json_array_foreach(json_object_get(golden, "shares"), i, item)
    {
        struct share share = share_of((int64_t)golden_number(item, "k", 0),
                                      (int64_t)golden_number(item, "n", 0), 0.95);
        assert_near(share.low, golden_number(item, "low", 0), 1e-12, "low");
        assert_near(share.high, golden_number(item, "high", 0), 1e-12, "high");
    }
    json_array_foreach(json_object_get(golden, "betas"), i, item)
    {
        double got = beta_share(golden_number(item, "a", 0), golden_number(item, "b", 0),
                                golden_number(item, "x", 0));
        assert_near(got / golden_number(item, "share", 0), 1, 1e-10, "beta");
    }
    json_decref(golden);
}

static void one_run_is_the_theorem(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/audit.json"), *item;
    size_t i;
    json_array_foreach(json_object_get(golden, "runs"), i, item)
    {
        int64_t m = (int64_t)golden_number(item, "m", 0), r = (int64_t)golden_number(item, "r", 0),
                v = (int64_t)golden_number(item, "v", 0);
        double delta = golden_number(item, "delta", 0), epsilon = golden_number(item, "epsilon", 0);
        double chance = golden_number(item, "chance", 0);
        assert_near(one_run_chance(m, r, v, epsilon, delta) / chance, 1, 1e-9, "chance");
        if (chance < 1)
            assert_near(one_run_epsilon(m, r, v, delta, 1 - chance), epsilon, 1e-6, "epsilon");
    }
    json_decref(golden);
    assert_true(one_run_epsilon(1000, 100, 50, 0, 0.95) == 0);
    /* 500 of 500 right at 95 %: even then epsilon is finite */
    double all_right = one_run_epsilon(500, 500, 500, 0, 0.95);
    assert_near(500 * log(1 / (1 + exp(-all_right))), log(0.05), 1e-6, "all right");
}

/* n / 2 members, whose scores are `shift` higher, and n / 2 others. */
static void draw(int64_t n, double shift, uint64_t seed, double *scores, bool *member)
{
    for (int64_t i = 0; i < n; i++) {
        struct rng rng = rng_new(seed, 1, (uint64_t)i);
        member[i] = i % 2 == 0;
        scores[i] = rng_normal(&rng) + (member[i] ? shift : 0);
    }
}

enum { MANY = 4000 };

static void power_of_known_scores(void **state)
{
    (void)state;
    struct ctx ctx = ctx_of(2);
    struct err err = { 0 };
    double scores[MANY];
    bool member[MANY];
    struct power power;
    draw(MANY, 0, 3, scores, member);
    assert_true(
        power_of(scores, member, MANY, (struct promise){ 1, 1e-5 }, true, &ctx, &power, &err));
    assert_true(power.chance && !power.at[0].above && !power.at[1].above);
    assert_true(power.one_run.epsilon < 0.2);
    power_free(&power);
    draw(MANY, 2, 4, scores, member);
    assert_true(
        power_of(scores, member, MANY, (struct promise){ 1, 1e-5 }, true, &ctx, &power, &err));
    assert_near(power.roc.auc, 0.5 * erfc(-2 / 2.0), 0.02, "area");
    /* P(N(2, 1) > 2.326) */
    assert_near(power.at[0].tpr.value, 0.372, 0.05, "true positives");
    assert_true(power.at[0].fpr.value == 0.01 && power.at[1].fpr.value == 0.001);
    assert_true(!power.chance && power.at[0].above && power.at[0].tpr.low > power.at[0].limit);
    assert_true(power.one_run.epsilon > 1);
    power_free(&power);
    assert_true(
        power_of(scores, member, MANY, (struct promise){ INFINITY, 0 }, false, &ctx, &power, &err));
    assert_true(!power.at[0].above && power.one_run.guesses == 0);
    power_free(&power);
    pool_free(ctx.pool);
}

/* A mechanism that is (1, 0)-private exactly: randomised response. No audit may refute more. */
static void lower_bounds_stay_below_the_truth(void **state)
{
    (void)state;
    struct ctx ctx = ctx_of(1);
    struct err err = { 0 };
    double scores[MANY];
    bool member[MANY];
    int above = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct one_run run;
        for (int64_t i = 0; i < MANY; i++) {
            struct rng rng = rng_new(seed, 2, (uint64_t)i);
            member[i] = rng_uniform(&rng) < 0.5;
            bool told = rng_uniform(&rng) < 1 / (1 + exp(-1.0));
            scores[i] = (told == member[i] ? 1 : -1) + 1e-3 * rng_uniform(&rng);
        }
        assert_true(one_run_audit(scores, member, MANY, 0, 0.95, &run, &err));
        assert_true(run.epsilon > 0.7);
        above += run.epsilon > 1;
    }
    assert_true(above <= 6); /* 2 expected */
    pool_free(ctx.pool);
}

enum { SAMPLES = 1000, MODELS = 20 };

/* Samples of different difficulty; a model's confidence is higher on those it was trained on. */
static void fake_model(uint64_t seed, bool random_half, struct signal *signal, bool *member)
{
    struct err err = { 0 };
    assert_true(signal_new(SAMPLES, signal, &err));
    signal->trained_on = calloc(SAMPLES, sizeof *signal->trained_on);
    for (int64_t i = 0; i < SAMPLES; i++) {
        struct rng shared = rng_new(1, 3, (uint64_t)i), own = rng_new(seed, 4, (uint64_t)i);
        bool in = random_half ? rng_uniform(&own) < 0.5 : false;
        double difficulty = 3 * rng_normal(&shared);
        signal->confidence[i] = difficulty + 0.5 * rng_normal(&own) + (in ? 1.0 : 0);
        signal->loss[i] = log1p(exp(-signal->confidence[i]));
        signal->trained_on[i] = in;
        if (member)
            member[i] = in;
    }
}

static double area(const double *scores, const bool *member)
{
    double auc = 0;
    struct err err = { 0 };
    assert_true(auc_area(scores, member, SAMPLES, &auc, &err));
    return auc;
}

static void references_make_attacks_stronger(void **state)
{
    (void)state;
    struct signal model, references[MODELS];
    bool member[SAMPLES], online = false;
    double scores[SAMPLES];
    struct err err = { 0 };
    fake_model(100, true, &model, member);
    attack_loss(&model, SAMPLES, scores);
    double by_loss = area(scores, member);
    assert_true(by_loss > 0.5 && by_loss < 0.65);
    for (int r = 0; r < MODELS; r++)
        fake_model(200 + (uint64_t)r, false, &references[r], NULL);
    attack_rmia(&model, references, 1, true, SAMPLES, scores);
    assert_true(area(scores, member) > by_loss + 0.05);
    for (int few = 4; few <= MODELS; few += 16) {
        assert_true(attack_lira(&model, references, few, SAMPLES, scores, &online, &err));
        assert_false(online);
        assert_true(area(scores, member) > 0.85); /* the best is 0.92 */
    }
    for (int r = 0; r < MODELS; r++) {
        signal_free(&references[r]);
        fake_model(300 + (uint64_t)r, true, &references[r], NULL);
    }
    assert_true(attack_lira(&model, references, MODELS, SAMPLES, scores, &online, &err));
    assert_true(online);
    assert_true(area(scores, member) > 0.85);
    /* the reference itself is no member's model: attacked, it says nothing of our members */
    attack_loss(&references[0], SAMPLES, scores);
    assert_near(area(scores, member), 0.5, 0.06, "control");
    assert_false(attack_lira(&model, references, 1, SAMPLES, scores, &online, &err));
    signal_free(&model);
    for (int r = 0; r < MODELS; r++)
        signal_free(&references[r]);
}

static void logistic_regression_is_scikit_learns(void **state)
{
    (void)state;
    enum { N = 60, P = 3 };
    double x[N * P], weights[P + 1];
    bool y[N];
    struct err err = { 0 };
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < P; j++)
            x[i * P + j] = sin(1.7 * i + 0.9 * j) + 0.3 * cos(0.37 * i * j);
        y[i] = sin(1.7 * i) + cos(5.1 * i) > 0.2;
    }
    assert_true(blind_fit(x, N, P, y, NULL, weights, &err));
    json_t *golden = golden_json("tests/golden/audit.json");
    for (size_t i = 0; i <= P; i++)
        assert_near(weights[i], golden_number(golden, "logistic", i), 1e-6, "weight");
    json_decref(golden);
}

/* A smooth random image; `light` is added to all of it. */
static struct image picture(uint64_t number, double light)
{
    struct image image;
    struct err err = { 0 };
    struct rng rng = rng_new(9, 5, number);
    double a = rng_between(&rng, 1, 9), b = rng_between(&rng, 1, 9), c = rng_between(&rng, 0, 6);
    assert_true(image_new(&image, 48, 40, 3, &err));
    for (int64_t y = 0; y < 40; y++)
        for (int64_t x = 0; x < 48; x++)
            for (int k = 0; k < 3; k++)
                image_at(&image, x, y)[k] =
                    (uint8_t)(120 + light +
                              90 * sin(a * (double)x / 48 + c + k) * cos(b * (double)y / 40));
    return image;
}

static void the_blind_see_only_shifts(void **state)
{
    (void)state;
    enum { N = 600 };
    static double features[N * BLIND_FEATURES], scores[N];
    static bool member[SAMPLES];
    struct err err = { 0 };
    for (int shifted = 0; shifted < 2; shifted++) {
        for (int i = 0; i < N; i++) {
            member[i] = i % 2 == 0;
            struct image image = picture((uint64_t)i, shifted && member[i] ? 8 : 0);
            blind_features(&image, features + i * BLIND_FEATURES);
            image_free(&image);
        }
        assert_true(blind_scores(features, N, BLIND_FEATURES, member, 5, scores, &err));
        double auc = 0;
        assert_true(auc_area(scores, member, N, &auc, &err));
        assert_true(shifted ? auc > 0.8 : auc > 0.4 && auc < 0.57);
    }
}

static void copies_are_noticed(void **state)
{
    (void)state;
    enum { N = 120 };
    float *views = malloc(3 * N * NEAREST_SIZE * sizeof *views);
    double ratios[N], again[N];
    struct err err = { 0 };
    struct nearest honest, copied;
    assert_non_null(views);
    for (uint64_t i = 0; i < 3 * N; i++) {
        struct image image = picture(i, 0);
        assert_true(nearest_view(&image, views + i * NEAREST_SIZE, &err));
        image_free(&image);
    }
    const float *trained = views, *kept = views + N * NEAREST_SIZE,
                *samples = kept + N * NEAREST_SIZE;
    struct ctx one = ctx_of(1), two = ctx_of(2);
    assert_true(nearest_audit(samples, N, trained, N, kept, N, 1, &one, ratios, &honest, &err));
    assert_true(honest.works && honest.planted == 100 && honest.noticed.value == 1);
    assert_near(honest.median, 1, 0.15, "median");
    assert_true(honest.nearer.low < 0.5 && honest.nearer.high > 0.5);
    assert_true(nearest_audit(samples, N, trained, N, kept, N, 1, &two, again, &honest, &err));
    for (int i = 0; i < N; i++)
        assert_true(ratios[i] == again[i]);
    for (int i = 0; i < 30 * NEAREST_SIZE; i++) /* a generator that copies a quarter */
        views[2 * N * NEAREST_SIZE + i] = views[40 * NEAREST_SIZE + i];
    assert_true(nearest_audit(samples, N, trained, N, kept, N, 1, &one, NULL, &copied, &err));
    assert_true(copied.copies.value >= 0.25 && copied.nearer.low > 0.5);
    free(views);
    pool_free(one.pool);
    pool_free(two.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_have_exact_intervals),
        cmocka_unit_test(one_run_is_the_theorem),
        cmocka_unit_test(power_of_known_scores),
        cmocka_unit_test(lower_bounds_stay_below_the_truth),
        cmocka_unit_test(references_make_attacks_stronger),
        cmocka_unit_test(logistic_regression_is_scikit_learns),
        cmocka_unit_test(the_blind_see_only_shifts),
        cmocka_unit_test(copies_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
