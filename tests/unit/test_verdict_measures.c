/* test_verdict_measures.c: precision and recall, calibration, patients and groups against
 * scikit-learn and numpy (tests/golden/verdict_measures.py), and odd data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/pool.h"
#include "support/golden_json.h"
#include "support/paths.h"
#include "verdict/judgement.h"

/* One case of the golden file. */
struct sample {
    double *scores, *labels, *patients;
    bool *positive;
    int64_t n;
};

static struct sample sample_of(const json_t *want)
{
    size_t n;
    struct sample sample = { .scores = golden_numbers(want, "scores", &n),
                             .labels = golden_numbers(want, "labels", NULL),
                             .patients = golden_numbers(want, "patients", NULL) };
    sample.n = (int64_t)n;
    sample.positive = calloc(n, sizeof *sample.positive);
    for (size_t i = 0; i < n; i++)
        sample.positive[i] = sample.labels[i] == 1;
    return sample;
}

static void free_sample(struct sample *sample)
{
    free(sample->scores), free(sample->labels), free(sample->patients), free(sample->positive);
}

static void for_all_cases(void (*check)(const json_t *want, const struct sample *sample))
{
    json_t *golden = golden_json("tests/golden/verdict/measures.json");
    json_t *cases = json_object_get(golden, "cases");
    assert_int_equal(json_array_size(cases), 4);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        struct sample sample = sample_of(json_array_get(cases, i));
        check(json_array_get(cases, i), &sample);
        free_sample(&sample);
    }
    json_decref(golden);
}

static void check_precision(const json_t *want, const struct sample *sample)
{
    struct precision got;
    size_t n;
    assert_true(precision_compute(sample->scores, sample->positive, sample->n, &got, NULL));
    assert_near(got.average, golden_number(want, "average_precision", 0), 1e-12, "average");
    double *recall = golden_numbers(want, "recall", &n);
    double *precision = golden_numbers(want, "precision", NULL);
    assert_int_equal(got.n_points, n);
    for (size_t i = 0; i < n; i++) {
        assert_near(got.points[i].recall, recall[i], 1e-12, "recall");
        assert_near(got.points[i].precision, precision[i], 1e-12, "precision");
    }
    free(recall), free(precision);
    precision_free(&got);
}

static void precision_is_as_in_scikit_learn(void **state)
{
    (void)state;
    for_all_cases(check_precision);
    static const double scores[] = { 1, 2 };
    static const bool none[2] = { 0 };
    struct precision got;
    struct err err = { 0 };
    assert_false(precision_compute(scores, none, 2, &got, &err));
}

static void check_calibration(const json_t *want, const struct sample *sample)
{
    struct calibration got;
    size_t n, filled = 0;
    int64_t bins = (int64_t)golden_number(want, "bins", 0), counted = 0;
    assert_true(calibration_compute(sample->scores, sample->positive, sample->n, bins, &got, NULL));
    assert_true(got.probabilities && got.n_bins == bins);
    assert_near(got.brier, golden_number(want, "brier", 0), 1e-12, "Brier score");
    double *mean = golden_numbers(want, "mean", &n), *share = golden_numbers(want, "share", NULL);
    for (int64_t k = 0; k < bins; k++) {
        counted += got.bins[k].n;
        if (got.bins[k].n == 0)
            continue;
        assert_true(filled < n);
        assert_near(got.bins[k].score, mean[filled], 1e-12, "mean score");
        assert_near(got.bins[k].share, share[filled++], 1e-12, "share of positives");
    }
    assert_int_equal(filled, n);
    assert_int_equal(counted, sample->n);
    free(mean), free(share);
    calibration_free(&got);
}

static void calibration_is_as_in_scikit_learn(void **state)
{
    (void)state;
    for_all_cases(check_calibration);
}

/* Whatever the number of bins, a score lies within the edges of its bin. */
static void bins_hold_their_scores(void **state)
{
    (void)state;
    for (int64_t bins = 1; bins <= 40; bins++)
        for (int64_t k = 0; k <= 4 * bins; k++) {
            const double score = (double)k / (double)(4 * bins);
            const bool positive = true;
            struct calibration got;
            assert_true(calibration_compute(&score, &positive, 1, bins, &got, NULL));
            int64_t at = 0;
            while (got.bins[at].n == 0)
                at++;
            assert_true(score <= got.bins[at].high && (at == 0 || score > got.bins[at].low));
            calibration_free(&got);
        }
}

static void scores_beyond_1_are_no_probabilities(void **state)
{
    (void)state;
    static const double scores[] = { 0.5, 1.5 };
    static const bool positive[] = { 0, 1 };
    struct calibration got;
    assert_true(calibration_compute(scores, positive, 2, 10, &got, NULL));
    assert_false(got.probabilities);
    assert_true(isnan(got.brier) && got.n_bins == 0);
    calibration_free(&got);
}

static char *write_table(const struct sample *sample)
{
    char *path = scratch_path("measures.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("slide,score,label,patient,half\n", file);
    for (int64_t i = 0; i < sample->n; i++)
        fprintf(file, "s%03d,%.17g,%d,p%02d,%d\n", (int)i, sample->scores[i], sample->positive[i],
                (int)sample->patients[i], (int)sample->patients[i] % 2);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void read_scores(const char *path, struct scores *scores)
{
    const struct scores_request request = { .path = path,
                                            .slide_column = "slide",
                                            .score_column = "score",
                                            .label_column = "label",
                                            .patient_column = "patient",
                                            .group_column = "half" };
    struct err err = { 0 };
    if (!scores_read(&request, scores, &err))
        fail_msg("%s", err.text);
}

static void judge(const struct scores *scores, int threads, struct judgement *out)
{
    struct ctx ctx = { .pool = pool_new(threads) };
    const struct judgement_options options = { 4000, 7, 0 };
    struct scores_part part;
    struct err err = { 0 };
    assert_true(scores_part(scores, NULL, &part, &err));
    if (!judgement_make(&part, &options, &ctx, out, &err))
        fail_msg("%s", err.text);
    scores_part_free(&part);
    pool_free(ctx.pool);
}

static void check_patients(const json_t *want, const struct sample *sample)
{
    char *path = write_table(sample);
    struct scores scores;
    struct judgement got, again;
    read_scores(path, &scores);
    judge(&scores, 1, &got);
    judge(&scores, 3, &again);
    assert_true(got.clustered && got.n == sample->n);
    assert_near(got.roc.bootstrap_low, golden_number(want, "bootstrap", 0), .02, "low");
    assert_near(got.roc.bootstrap_high, golden_number(want, "bootstrap", 1), .02, "high");
    assert_true(got.roc.bootstrap_low == again.roc.bootstrap_low);
    assert_true(got.roc.bootstrap_high == again.roc.bootstrap_high);
    judgement_free(&got), judgement_free(&again);
    const char *const keys[] = { "patient_auc_max", "patient_auc_mean" };
    for (int how = PATIENT_MAX; how <= PATIENT_MEAN; how++) {
        struct err err = { 0 };
        scores_free(&scores);
        read_scores(path, &scores);
        assert_true(scores_by_patient(&scores, (enum patient_score)how, &err));
        judge(&scores, 2, &got);
        assert_near(got.roc.auc, golden_number(want, keys[how], 0), 1e-12, keys[how]);
        assert_false(got.clustered);
        assert_true(got.n == got.patients && scores.n_slides == sample->n);
        judgement_free(&got);
    }
    scores_free(&scores);
    free(path);
}

static void patients_are_drawn_and_judged(void **state)
{
    (void)state;
    for_all_cases(check_patients);
}

/* The slides of a group are evaluated as if there were no others. */
static void check_groups(const json_t *want, const struct sample *sample)
{
    (void)want;
    char *path = write_table(sample);
    struct scores scores;
    struct judged_groups groups;
    struct ctx ctx = { .pool = pool_new(1) };
    const struct judgement_options options = { 50, 7, 0 };
    struct err err = { 0 };
    read_scores(path, &scores);
    assert_true(judged_groups_make(&scores, &options, &ctx, &groups, &err));
    assert_int_equal(groups.n, 2);
    for (int half = 0; half < 2; half++) {
        const struct judged_group *group = &groups.items[half];
        double wins = 0, pairs = 0;
        for (int64_t i = 0; i < sample->n; i++)
            for (int64_t k = 0; k < sample->n; k++)
                if ((int)sample->patients[i] % 2 == half && (int)sample->patients[k] % 2 == half &&
                    sample->positive[i] && !sample->positive[k]) {
                    double a = sample->scores[i], b = sample->scores[k];
                    wins += a > b ? 1 : a == b ? .5 : 0;
                    pairs++;
                }
        assert_string_equal(group->value, half ? "1" : "0");
        assert_null(group->flaw);
        assert_near(group->judgement.roc.auc, wins / pairs, 1e-12, "area of a group");
        int64_t negatives = group->judgement.n - group->judgement.positives;
        assert_int_equal(group->small, group->judgement.positives < 10 || negatives < 10);
    }
    judged_groups_free(&groups);
    scores_free(&scores);
    pool_free(ctx.pool);
    free(path);
}

static void groups_are_judged_alone(void **state)
{
    (void)state;
    for_all_cases(check_groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(precision_is_as_in_scikit_learn),
        cmocka_unit_test(calibration_is_as_in_scikit_learn),
        cmocka_unit_test(bins_hold_their_scores),
        cmocka_unit_test(scores_beyond_1_are_no_probabilities),
        cmocka_unit_test(patients_are_drawn_and_judged),
        cmocka_unit_test(groups_are_judged_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
