/* test_likeness_features.c: the 57 features against numpy (tests/golden/likeness.py), at the sizes
 * 32, 50 and 64 px and of a large, not square patch; what a grid, a blur and a size change in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "likeness/features.h"
#include "support/golden_image.h"
#include "support/golden_json.h"

static int feature_named(const char *name)
{
    for (int i = 0; i < LIKENESS_FEATURES; i++)
        if (strcmp(likeness_features[i].name, name) == 0)
            return i;
    fail_msg("no feature %s", name);
    return -1;
}

static void measure(const struct image *image, double *out)
{
    struct err err = { 0 };
    if (!features_measure(image, out, &err))
        fail_msg("%s", err.text);
}

static void test_golden(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/likeness.json");
    const json_t *names = json_object_get(golden, "names"), *want;
    const char *key;
    assert_int_equal(json_array_size(names), LIKENESS_FEATURES);
    json_object_foreach(json_object_get(golden, "features"), key, want)
    {
        struct image image = golden_image("likeness", key, 3);
        double got[LIKENESS_FEATURES];
        measure(&image, got);
        for (size_t i = 0; i < LIKENESS_FEATURES; i++) {
            assert_string_equal(likeness_features[i].name,
                                json_string_value(json_array_get(names, i)));
            assert_near(got[i], json_number_value(json_array_get(want, i)), 1e-9,
                        likeness_features[i].name);
        }
        image_free(&image);
    }
    json_decref(golden);
}

static void test_standardised(void **state)
{
    (void)state;
    double values[LIKENESS_FEATURES];
    for (int i = 0; i < LIKENESS_FEATURES; i++) {
        assert_true(likeness_features[i].std > 0);
        values[i] = likeness_features[i].mean + likeness_features[i].std * (i % 5 - 2);
    }
    values[7] = 1e9;
    features_standardise(values);
    for (int i = 0; i < LIKENESS_FEATURES; i++)
        assert_near(values[i], i == 7 ? LIKENESS_MOST_SPREAD : i % 5 - 2, 1e-12, "standardised");
}

static void test_too_small(void **state)
{
    (void)state;
    struct image image = { 0 };
    struct err err = { 0 };
    double values[LIKENESS_FEATURES];
    assert_true(image_new(&image, 50, 31, 3, &err));
    assert_false(features_measure(&image, values, &err));
    assert_non_null(strstr(err.text, "50 x 31"));
    image_free(&image);
}

/* What generators do wrong moves the features that are meant to show it. */
static void test_artefacts(void **state)
{
    (void)state;
    struct image plain = golden_image("likeness", "64x64", 3), changed = { 0 };
    struct err err = { 0 };
    double before[LIKENESS_FEATURES], after[LIKENESS_FEATURES];
    measure(&plain, before);
    assert_true(image_new(&changed, 64, 64, 3, &err));
    for (int64_t y = 0; y < 64; y++)
        for (int64_t x = 0; x < 64; x++)
            for (int c = 0; c < 3; c++) { /* a checkerboard of 4 of 255 levels */
                int value = image_at(&plain, x, y)[c] + ((x + y) % 2 ? 4 : -4);
                image_at(&changed, x, y)[c] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
            }
    measure(&changed, after);
    assert_true(after[feature_named("grid.2px")] > before[feature_named("grid.2px")] + 0.7);
    image_free(&changed);
    struct image half = { 0 };
    assert_true(image_resize(&plain, 32, 32, &half, &err));
    assert_true(image_resize(&half, 64, 64, &changed, &err)); /* a blur */
    measure(&changed, after);
    assert_true(after[feature_named("power.2_4px")] < before[feature_named("power.2_4px")] - 0.7);
    assert_near(after[feature_named("red.mean")], before[feature_named("red.mean")], 0.01, "mean");
    image_free(&half);
    image_free(&changed);
    image_free(&plain);
}

/* Parts of a patch have the features of the whole, but for chance. */
static void test_sizes(void **state)
{
    (void)state;
    struct image large = golden_image("likeness", "150x70", 3), part = { 0 };
    struct err err = { 0 };
    double whole[LIKENESS_FEATURES], mean[LIKENESS_FEATURES] = { 0 }, apart = 0;
    measure(&large, whole);
    features_standardise(whole);
    assert_true(image_new(&part, 50, 35, 3, &err));
    for (int64_t i = 0; i < 6; i++) {
        double values[LIKENESS_FEATURES];
        for (int64_t y = 0; y < 35; y++)
            memcpy(image_at(&part, 0, y), image_at(&large, i % 3 * 50, i / 3 * 35 + y), 150);
        measure(&part, values);
        features_standardise(values);
        for (int k = 0; k < LIKENESS_FEATURES; k++)
            mean[k] += values[k] / 6;
    }
    for (int k = 0; k < LIKENESS_FEATURES; k++)
        apart += fabs(mean[k] - whole[k]) / LIKENESS_FEATURES;
    assert_true(apart < 0.4);
    image_free(&part);
    image_free(&large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),    cmocka_unit_test(test_standardised),
        cmocka_unit_test(test_too_small), cmocka_unit_test(test_artefacts),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
