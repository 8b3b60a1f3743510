/* test_nuclei_measure.c: the features of nuclei against scikit-image on the same label image
 * (tests/golden/nuclei/make.py), texture against published numbers, and odd nuclei. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "nuclei/glcm.h"
#include "nuclei/nuclei.h"
#include "tests/unit/support/golden_image.h"
#include "tests/unit/support/golden_json.h"

/* All pixels of an image have the label 1; the caller's. */
static struct nuclei_labels one_label(int64_t width, int64_t height)
{
    struct nuclei_labels labels = { .width = width, .height = height, .n = 1 };
    labels.labels = malloc((size_t)(width * height) * sizeof *labels.labels);
    for (int64_t i = 0; i < width * height; i++)
        labels.labels[i] = 1;
    return labels;
}

static struct glcm_texture texture_of(const uint8_t *levels, int64_t width, int64_t height,
                                      int n_levels, int dx, int dy)
{
    struct nuclei_labels labels = one_label(width, height);
    int32_t *px = malloc((size_t)(width * height) * sizeof *px);
    for (int32_t i = 0; i < width * height; i++)
        px[i] = i;
    uint32_t counts[32 * 32];
    struct glcm_pixels pixels = { &labels, px, width * height };
    int64_t total = glcm_count(&pixels, levels, n_levels, dx, dy, counts);
    struct glcm_texture texture = glcm_texture(counts, n_levels, total);
    free(px);
    nuclei_labels_free(&labels);
    return texture;
}

static void texture_of_the_known_matrix(void **state)
{
    (void)state;
    static const uint8_t levels[] = { 0, 0, 1, 1, 0, 0, 1, 1, 0, 2, 2, 2, 2, 2, 3, 3 };
    struct glcm_texture t = texture_of(levels, 4, 4, 4, 1, 0);
    assert_near(t.second_moment, 0.1458333333, 1e-9, "angular second moment");
    assert_near(t.contrast, 0.5833333333, 1e-9, "contrast");
    assert_near(t.correlation, 0.7195325543, 1e-9, "correlation");
}

static void texture_of_rectangles_is_that_of_skimage(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/nuclei/features.json");
    const json_t *r = json_object_get(golden, "rectangle");
    size_t n, cases;
    double *values = golden_numbers(r, "levels", &n), *dx = golden_numbers(r, "dx", &cases);
    int64_t width = (int64_t)golden_number(r, "width", 0);
    uint8_t *levels = malloc(n);
    for (size_t i = 0; i < n; i++)
        levels[i] = (uint8_t)values[i];
    assert_int_equal(cases, 4);
    for (size_t k = 0; k < cases; k++) {
        struct glcm_texture t = texture_of(levels, width, (int64_t)n / width, 8, (int)dx[k],
                                           (int)golden_number(r, "dy", k));
        assert_near(t.second_moment, golden_number(r, "asm", k), 1e-12, "asm");
        assert_near(t.contrast, golden_number(r, "contrast", k), 1e-12, "contrast");
        assert_near(t.correlation, golden_number(r, "correlation", k), 1e-12, "correlation");
    }
    free(levels);
    free(values);
    free(dx);
    json_decref(golden);
}

static void one_level_has_correlation_1(void **state)
{
    (void)state;
    static const uint8_t levels[] = { 7, 7, 7, 7, 7, 7 };
    struct glcm_texture t = texture_of(levels, 3, 2, 8, 1, 0);
    assert_near(t.second_moment, 1, 0, "asm");
    assert_near(t.contrast, 0, 0, "contrast");
    assert_near(t.correlation, 1, 0, "correlation");
}

static void assert_nucleus(const struct nucleus *got, const json_t *want)
{
    for (int f = 0; f < NUCLEUS_FEATURES; f++) {
        const char *name = nucleus_features[f].name;
        if (json_is_null(json_object_get(want, name)))
            assert_true(isnan(got->features[f]));
        else /* amounts of haematoxylin are floats */
            assert_near(got->features[f], golden_number(want, name, 0),
                        f == NUCLEUS_HEMATOXYLIN ? 1e-6 : 1e-9, name);
    }
    assert_near(got->x_px, golden_number(want, "x", 0), 1e-12, "x");
    assert_near(got->y_px, golden_number(want, "y", 0), 1e-12, "y");
    assert_near((double)got->left, golden_number(want, "left", 0), 0, "left");
    assert_near((double)got->top, golden_number(want, "top", 0), 0, "top");
    assert_near((double)got->right, golden_number(want, "right", 0), 0, "right");
    assert_near((double)got->bottom, golden_number(want, "bottom", 0), 0, "bottom");
}

static void features_are_those_of_skimage(void **state)
{
    (void)state;
    struct image rgb = golden_image("nuclei", "rgb", 3), grey = golden_image("nuclei", "labels", 1);
    json_t *golden = golden_json("tests/golden/nuclei/features.json");
    const json_t *nuclei = json_object_get(golden, "nuclei");
    struct nuclei_labels labels = { .width = grey.width, .height = grey.height, .n = 12 };
    labels.labels = malloc(image_bytes(&grey) * sizeof *labels.labels);
    for (size_t i = 0; i < image_bytes(&grey); i++)
        labels.labels[i] = grey.px[i];
    struct nucleus *got;
    assert_true(nuclei_measure(&rgb, golden_number(golden, "mpp", 0), &labels, &got, NULL));
    assert_int_equal(json_array_size(nuclei), labels.n);
    for (int32_t k = 0; k < labels.n; k++) {
        assert_int_equal(got[k].label, k + 1);
        assert_nucleus(&got[k], json_array_get(nuclei, (size_t)k));
        assert_int_equal(got[k].touches_border, k == 7 || k == 11);
    }
    free(got);
    nuclei_labels_free(&labels);
    json_decref(golden);
    image_free(&grey);
    image_free(&rgb);
}

static void lengths_are_in_um(void **state)
{
    (void)state;
    struct image rgb;
    assert_true(image_new(&rgb, 40, 20, 3, NULL));
    memset(rgb.px, 100, image_bytes(&rgb));
    struct nuclei_labels labels = one_label(40, 20);
    struct nucleus *fine, *coarse;
    assert_true(nuclei_measure(&rgb, 0.25, &labels, &fine, NULL));
    assert_true(nuclei_measure(&rgb, 0.5, &labels, &coarse, NULL));
    assert_near(fine->features[NUCLEUS_AREA], 50, 1e-12, "area");
    assert_near(coarse->features[NUCLEUS_AREA], 200, 1e-12, "area");
    assert_near(coarse->features[NUCLEUS_PERIMETER], 2 * fine->features[NUCLEUS_PERIMETER], 1e-12,
                "perimeter");
    assert_near(coarse->features[NUCLEUS_MAJOR_AXIS], 2 * fine->features[NUCLEUS_MAJOR_AXIS], 1e-12,
                "major axis");
    assert_near(coarse->features[NUCLEUS_SOLIDITY], 1, 0, "solidity");
    free(fine);
    free(coarse);
    nuclei_labels_free(&labels);
    image_free(&rgb);
}

static void odd_labels(void **state)
{
    (void)state;
    struct image rgb;
    struct err err;
    struct nucleus *got;
    assert_true(image_new(&rgb, 1, 1, 3, NULL));
    struct nuclei_labels labels = one_label(1, 1);
    assert_true(nuclei_measure(&rgb, 0.5, &labels, &got, NULL));
    assert_near(got->features[NUCLEUS_AREA], 0.25, 0, "area");
    assert_near(got->features[NUCLEUS_ECCENTRICITY], 0, 0, "eccentricity");
    assert_near(got->features[NUCLEUS_SOLIDITY], 1, 0, "solidity");
    assert_true(isnan(got->features[NUCLEUS_CONTRAST]));
    free(got);
    labels.n = 2; /* and the second has no pixels */
    assert_true(nuclei_measure(&rgb, 0.5, &labels, &got, NULL));
    assert_near(got[1].features[NUCLEUS_AREA], 0, 0, "area");
    assert_true(isnan(got[1].features[NUCLEUS_SOLIDITY]));
    free(got);
    labels.n = 0;
    labels.labels[0] = 0;
    assert_true(nuclei_measure(&rgb, 0.5, &labels, &got, NULL));
    assert_null(got);
    labels.n = 1, labels.labels[0] = 3;
    assert_false(nuclei_measure(&rgb, 0.5, &labels, &got, &err));
    assert_string_equal(err.text, "label 3 where labels are from 0 to 1");
    labels.width = 2;
    assert_false(nuclei_measure(&rgb, 0.5, &labels, &got, &err));
    assert_string_equal(err.text, "labels of 2 x 1 px do not fit an image of 1 x 1 px");
    assert_false(nuclei_measure(&rgb, 0, &labels, &got, &err));
    assert_string_equal(err.text, "0 is not a resolution in um/px");
    nuclei_labels_free(&labels);
    image_free(&rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texture_of_the_known_matrix),
        cmocka_unit_test(texture_of_rectangles_is_that_of_skimage),
        cmocka_unit_test(one_level_has_correlation_1),
        cmocka_unit_test(features_are_those_of_skimage),
        cmocka_unit_test(lengths_are_in_um),
        cmocka_unit_test(odd_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
