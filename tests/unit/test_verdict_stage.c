/* test_verdict_stage.c: sizes of lesions against scipy and scikit-image, stages by CAMELYON17's
 * rules and their kappa against scikit-learn (tests/golden/verdict_stage.py); tables of stages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support/golden_json.h"
#include "support/paths.h"
#include "verdict/stage_compare.h"

static struct image mask_of(const json_t *want)
{
    const json_t *rows = json_object_get(want, "rows");
    const int64_t width = (int64_t)golden_number(want, "width", 0);
    struct image mask;
    assert_true(image_new(&mask, width, (int64_t)json_array_size(rows), 1, NULL));
    for (int64_t y = 0; y < mask.height; y++)
        for (int64_t x = 0; x < width; x++)
            *image_at(&mask, x, y) =
                json_string_value(json_array_get(rows, (size_t)y))[x] == '#' ? 255 : 0;
    return mask;
}

static void check_sizes(const json_t *want)
{
    const json_t *lesions = json_object_get(want, "lesions");
    struct image mask = mask_of(want);
    struct size_rules rules = size_rules_camelyon17();
    struct lesion_sizes got;
    rules.join_um = golden_number(want, "join_um", 0);
    assert_true(
        lesion_sizes_of_mask(&mask, NULL, golden_number(want, "um_per_px", 0), &rules, &got, NULL));
    assert_int_equal(got.n, json_array_size(lesions));
    for (int32_t i = 0; i < got.n; i++) {
        const json_t *lesion = json_array_get(lesions, (size_t)i);
        const double found[4] = { got.items[i].diameter_um, got.items[i].area_um2,
                                  got.items[i].x_px, got.items[i].y_px };
        for (size_t k = 0; k < 4; k++)
            assert_near(found[k], json_number_value(json_array_get(lesion, k)), 1e-9, "lesion");
    }
    lesion_sizes_free(&got);
    image_free(&mask);
}

static void sizes_are_as_in_skimage(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/stage.json");
    const json_t *masks = json_object_get(golden, "masks");
    assert_int_equal(json_array_size(masks), 5);
    for (size_t i = 0; i < 5; i++)
        check_sizes(json_array_get(masks, i));
    json_decref(golden);
}

static void types_follow_the_diameter(void **state)
{
    (void)state;
    const struct size_rules rules = size_rules_camelyon17();
    assert_int_equal(metastasis_of(0, &rules), METASTASIS_ITC);
    assert_int_equal(metastasis_of(199.99, &rules), METASTASIS_ITC);
    assert_int_equal(metastasis_of(200, &rules), METASTASIS_MICRO);
    assert_int_equal(metastasis_of(2000, &rules), METASTASIS_MICRO);
    assert_int_equal(metastasis_of(2000.01, &rules), METASTASIS_MACRO);
    const struct lesion_sizes none = { 0 };
    assert_int_equal(lesion_sizes_type(&none), METASTASIS_NONE);
}

/* A disc of radius r px has a diameter of 2 r px; small lesions can be dropped. */
static void a_disc_has_its_diameter(void **state)
{
    (void)state;
    struct size_rules rules = size_rules_camelyon17();
    struct lesion_sizes got;
    struct image mask;
    assert_true(image_new(&mask, 300, 300, 1, NULL));
    for (int64_t y = 0; y < 300; y++)
        for (int64_t x = 0; x < 300; x++)
            *image_at(&mask, x, y) = hypot((double)x - 130, (double)y - 140) <= 125 ? 255 : 0;
    *image_at(&mask, 299, 299) = 255;
    assert_true(lesion_sizes_of_mask(&mask, NULL, 8, &rules, &got, NULL));
    assert_int_equal(got.n, 2);
    assert_near(got.items[0].diameter_um, 2000, 0.002, "diameter");
    assert_near(got.items[0].x_px, 130, 1e-9, "x");
    assert_int_equal(got.items[1].type, METASTASIS_ITC);
    lesion_sizes_free(&got);
    rules.least_um = 50;
    assert_true(lesion_sizes_of_mask(&mask, NULL, 8, &rules, &got, NULL));
    assert_int_equal(got.n, 1);
    lesion_sizes_free(&got);
    image_free(&mask);
}

static void stages_follow_the_rules(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/stage.json");
    const json_t *stages = json_object_get(golden, "stages");
    assert_int_equal(json_array_size(stages), 56); /* all patients of five nodes */
    for (size_t i = 0; i < 56; i++) {
        int64_t nodes[METASTASES];
        for (size_t k = 0; k < METASTASES; k++)
            nodes[k] = json_integer_value(json_array_get(json_array_get(stages, i), k));
        assert_int_equal(stage_of_nodes(nodes),
                         json_integer_value(json_array_get(json_array_get(stages, i), METASTASES)));
    }
    json_decref(golden);
}

/* Several slides of a node count once, with the larger type; without nodes every slide is one. */
static void slides_of_a_node_are_one(void **state)
{
    (void)state;
    static const struct {
        const char *slide, *patient, *node;
        enum metastasis type;
    } given[] = { { "a", "p", "1", METASTASIS_MICRO }, { "b", "p", "1", METASTASIS_MACRO },
                  { "c", "p", "2", METASTASIS_ITC },   { "d", "q", "", METASTASIS_MICRO },
                  { "e", "q", "", METASTASIS_MICRO },  { "f", "q", "1", METASTASIS_NONE },
                  { "g", "p", "1", METASTASIS_NONE },  { "h", "r", "1", METASTASIS_NONE } };
    const size_t n = sizeof given / sizeof *given;
    struct staged_cohort cohort = { .slides = calloc(n, sizeof *cohort.slides), .n = n };
    for (size_t i = 0; i < n; i++) {
        cohort.slides[i].slide = strdup(given[i].slide);
        cohort.slides[i].patient = strdup(given[i].patient);
        cohort.slides[i].node = strdup(given[i].node);
        cohort.slides[i].type = given[i].type;
    }
    assert_true(stage_patients(&cohort, NULL));
    assert_int_equal(cohort.n_patients, 3);
    assert_int_equal(cohort.patients[0].nodes, 2);
    assert_int_equal(cohort.patients[0].slides, 4);
    assert_int_equal(cohort.patients[0].stage, STAGE_PN1);
    assert_int_equal(cohort.patients[1].nodes, 3);
    assert_int_equal(cohort.patients[1].stage, STAGE_PN1MI);
    assert_int_equal(cohort.patients[2].stage, STAGE_PN0);
    staged_cohort_free(&cohort);
}

static char *write_stages(const char *name, const double *values, size_t n)
{
    char *path = scratch_path(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("patient,stage\n", file);
    for (size_t i = 0; i < n; i++)
        fprintf(file, "patient_%03d.zip,%s\n", (int)i, stage_names[(int)values[i]]);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void kappa_is_as_in_scikit_learn(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/stage.json");
    const json_t *cases = json_object_get(golden, "kappa");
    assert_int_equal(json_array_size(cases), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *want = json_array_get(cases, i);
        struct stage_comparison got;
        struct err err = { 0 };
        size_t n;
        double *truth = golden_numbers(want, "truth", &n);
        double *called = golden_numbers(want, "called", NULL);
        char *truth_path = write_stages("truth.csv", truth, n);
        char *path = write_stages("called.csv", called, n);
        if (!stage_compare(path, truth_path, false, 500, 1, &got, &err))
            fail_msg("%s", err.text);
        const struct confusion *confusion = &got.patients.confusion;
        const double kappa = confusion_kappa(confusion->counts, 5, KAPPA_QUADRATIC);
        assert_near(kappa, golden_number(want, "kappa", 0), 1e-12, "kappa");
        assert_true(got.with_patients && !got.with_slides && got.left_out == 0);
        assert_true(got.patients.low < kappa && kappa < got.patients.high);
        stage_comparison_free(&got);
        free(truth), free(called), free(truth_path), free(path);
    }
    json_decref(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_as_in_skimage),  cmocka_unit_test(types_follow_the_diameter),
        cmocka_unit_test(a_disc_has_its_diameter),  cmocka_unit_test(stages_follow_the_rules),
        cmocka_unit_test(slides_of_a_node_are_one), cmocka_unit_test(kappa_is_as_in_scikit_learn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
