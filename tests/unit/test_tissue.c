/* test_tissue.c: masks against skimage and OpenCV (tests/golden/tissue/make.py), measures and
 * shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "tests/unit/support/golden_image.h"
#include "tests/unit/support/paths.h"
#include "stain/colour.h"
#include "tissue/method.h"
#include "tissue/morphology.h"
#include "tissue/otsu.h"

static struct image golden(const char *name, int channels)
{
    return golden_image("tissue", name, channels);
}

static void assert_same(const struct image *got, const char *name)
{
    struct image want = golden(name, 1);
    assert_int_equal(got->width, want.width);
    assert_int_equal(got->height, want.height);
    int64_t differ = 0;
    for (size_t i = 0; i < image_bytes(&want); i++)
        differ += got->px[i] != want.px[i];
    if (differ)
        fail_msg("%s: %lld pixels differ", name, (long long)differ);
    image_free(&want);
}

static void hsv_is_that_of_opencv(void **state)
{
    (void)state;
    struct image pair = golden("hsv", 3);
    assert_int_equal(pair.height, 2);
    for (int64_t i = 0; i < pair.width; i++) {
        struct colour_hsv got = colour_hsv(image_at(&pair, i, 0));
        const uint8_t *want = image_at(&pair, i, 1);
        assert_int_equal(got.hue, want[0]);
        assert_int_equal(got.saturation, want[1]);
        assert_int_equal(got.value, want[2]);
    }
    image_free(&pair);
}

static struct tissue_options bare(enum tissue_method method)
{
    return (struct tissue_options){ .method = method, .downsample = 32 };
}

static void methods_agree_with_the_references(void **state)
{
    (void)state;
    static const struct {
        enum tissue_method method;
        bool use_value;
        const char *name;
    } cases[] = {
        { TISSUE_FDA, false, "fda" },
        { TISSUE_FDA, true, "fda_value" },
        { TISSUE_PROCESS, false, "process" },
        { TISSUE_NCRF, false, "ncrf" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tissue_options options = bare(cases[i].method);
        options.use_value = cases[i].use_value;
        struct image overview = golden("overview", 3);
        struct tissue_mask mask;
        assert_true(tissue_find_in(&overview, 2220, 2967, 0.499, &options, &mask, NULL));
        assert_null(overview.px);
        assert_same(&mask.mask, cases[i].name);
        tissue_mask_free(&mask);
    }
}

static void morphology_agrees_with_skimage(void **state)
{
    (void)state;
    static const struct {
        bool (*change)(struct image *, double, struct err *);
        double size;
        const char *name;
    } cases[] = {
        { morphology_dilate, 3, "blobs_dilate" },
        { morphology_erode, 3, "blobs_erode" },
        { morphology_close, 3, "blobs_close" },
        { morphology_open, 3, "blobs_open" },
        { morphology_remove_small, 60, "blobs_large" },
        { morphology_fill_holes, 25, "blobs_filled" },
        { morphology_dilate, 0.9, "blobs" },
        { morphology_remove_small, 1, "blobs" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image blobs = golden("blobs", 1);
        assert_true(cases[i].change(&blobs, cases[i].size, NULL));
        assert_same(&blobs, cases[i].name);
        image_free(&blobs);
    }
}

static void a_radius_larger_than_the_mask_is_fine(void **state)
{
    (void)state;
    struct image mask;
    assert_true(image_new(&mask, 5, 3, 1, NULL));
    mask.px[7] = 255;
    assert_true(morphology_dilate(&mask, 1e9, NULL));
    for (int i = 0; i < 15; i++)
        assert_int_equal(mask.px[i], 255);
    assert_true(morphology_erode(&mask, 1e9, NULL));
    assert_int_equal(mask.px[0], 255);
    image_free(&mask);
}

static struct image plain(int64_t width, int64_t height, uint8_t r, uint8_t g, uint8_t b)
{
    struct image image;
    assert_true(image_new(&image, width, height, 3, NULL));
    for (int64_t i = 0; i < width * height; i++)
        image.px[3 * i] = r, image.px[3 * i + 1] = g, image.px[3 * i + 2] = b;
    return image;
}

static void paint(struct image *image, int64_t x0, int64_t y0, int64_t x1, int64_t y1, uint8_t r,
                  uint8_t g, uint8_t b)
{
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            uint8_t *px = image_at(image, x, y);
            px[0] = r, px[1] = g, px[2] = b;
        }
}

static void glass_alone_is_an_empty_mask(void **state)
{
    (void)state;
    for (int method = TISSUE_FDA; method <= TISSUE_NCRF; method++)
        for (int noisy = 0; noisy < 2; noisy++) {
            struct image glass = plain(60, 40, noisy ? 240 : 255, noisy ? 240 : 255, 255);
            struct rng rng = rng_new(1, 2, 3);
            for (size_t i = 0; noisy && i < image_bytes(&glass); i++)
                glass.px[i] = (uint8_t)(238 + rng_below(&rng, 5));
            struct tissue_options options = tissue_defaults();
            options.method = (enum tissue_method)method;
            struct tissue_mask mask;
            assert_true(tissue_find_in(&glass, 1900, 1280, 0.25, &options, &mask, NULL));
            assert_int_equal(mask.tissue_px, 0);
            assert_true(mask.fraction == 0 && mask.area_mm2 == 0);
            assert_int_equal(mask.box_width, 0);
            tissue_mask_free(&mask);
        }
}

/* A scanner's white may be any grey, and the light falls off to one side. */
static void grey_glass_is_an_empty_mask(void **state)
{
    (void)state;
    for (int method = TISSUE_FDA; method <= TISSUE_NCRF; method++)
        for (int grey = 190; grey <= 240; grey += 10) {
            struct image glass = plain(60, 40, 255, 255, 255);
            struct rng rng = rng_new(1, 2, 3);
            for (int64_t i = 0; i < 60 * 40; i++) {
                int value = grey + (int)(i % 60) / 10 + (int)rng_below(&rng, 4);
                memset(glass.px + 3 * i, value, 3);
            }
            struct tissue_options options = tissue_defaults();
            options.method = (enum tissue_method)method;
            struct tissue_mask mask;
            assert_true(tissue_find_in(&glass, 1900, 1280, 0.25, &options, &mask, NULL));
            if (mask.tissue_px != 0)
                fail_msg("method %d, grey %d: %lld pixels", method, grey,
                         (long long)mask.tissue_px);
            tissue_mask_free(&mask);
        }
}

/* A strand of the real slide, at 20x: as dark as tissue, but only one or two mask pixels wide. */
static void the_thin_strand_of_the_real_slide_is_found(void **state)
{
    (void)state;
    struct image overview = golden("overview", 3);
    struct tissue_options options = tissue_defaults();
    struct tissue_mask mask;
    int64_t dark = 0, found = 0;
    assert_true(tissue_find_in(&overview, 2220, 2967, 0.499, &options, &mask, NULL));
    for (int64_t y = 47; y < 60; y++)
        for (int64_t x = 3; x < 43; x++) {
            const uint8_t *px = image_at(&mask.overview, x, y);
            bool tissue = px[0] + px[1] + px[2] < 3 * 220; /* glass has 243 */
            dark += tissue;
            found += tissue && *image_at(&mask.mask, x, y);
        }
    assert_true(dark > 50);
    if (found * 10 < dark * 8)
        fail_msg("%lld of %lld pixels of the strand", (long long)found, (long long)dark);
    tissue_mask_free(&mask);
}

/* Paints a strand over most of a slide with a large piece on it; returns how much of it is in the
 * mask. */
static double share_of_strand(enum tissue_method method, double mpp, int64_t width, bool diagonal)
{
    struct image slide = plain(120, 100, 242, 240, 243);
    struct tissue_options options = tissue_defaults();
    struct tissue_mask mask;
    int64_t all = 0, found = 0, end = 85;
    options.method = method;
    options.min_area_um2 = 5000;
    paint(&slide, 70, 5, 110, 35, 190, 120, 175);
    for (int64_t x = 5; x < end; x++) {
        int64_t y = diagonal ? 10 + x : 60;
        paint(&slide, x, y, x + 1, y + width, 190, 120, 175);
    }
    assert_true(tissue_find_in(&slide, 3840, 3200, mpp, &options, &mask, NULL));
    for (int64_t x = 5; x < end; x++)
        for (int64_t k = 0; k < width; k++, all++)
            found += *image_at(&mask.mask, x, (diagonal ? 10 + x : 60) + k) != 0;
    tissue_mask_free(&mask);
    return (double)found / (double)all;
}

/* --open 10 drops strands thinner than 20 um where pixels are fine enough to tell, and none where
 * they are not; a strand that runs aslant is one piece. */
static void opening_takes_no_more_than_was_asked_for(void **state)
{
    (void)state;
    for (int method = TISSUE_FDA; method <= TISSUE_NCRF; method++)
        for (int diagonal = 0; diagonal < 2; diagonal++) {
            /* 16, 8 and 4 um a mask pixel */
            assert_true(share_of_strand((enum tissue_method)method, 0.5, 1, diagonal) > 0.9);
            assert_true(share_of_strand((enum tissue_method)method, 0.25, 2, diagonal) > 0.9);
            if (!diagonal) {
                assert_true(share_of_strand((enum tissue_method)method, 0.125, 6, false) > 0.9);
                assert_true(share_of_strand((enum tissue_method)method, 0.125, 4, false) < 0.1);
            }
        }
}

/* Pen goes, tissue stays, whatever the method; thresholds are those of the slide without pen. */
static void pen_goes_and_tissue_stays(void **state)
{
    (void)state;
    static const uint8_t inks[][3] = {
        { 40, 60, 170 }, { 45, 30, 140 }, { 30, 120, 190 }, { 20, 130, 70 },
        { 90, 170, 60 }, { 205, 30, 40 }, { 25, 25, 28 },   { 0, 0, 0 },
    };
    for (size_t ink = 0; ink < sizeof inks / sizeof *inks; ink++)
        for (int method = TISSUE_FDA; method <= TISSUE_NCRF; method++) {
            struct image slide = plain(100, 80, 242, 240, 243);
            paint(&slide, 20, 20, 60, 50, 205, 140, 190);
            paint(&slide, 30, 25, 45, 40, 120, 70, 150); /* lymphocytes */
            paint(&slide, 50, 40, 56, 46, 196, 84, 100); /* blood */
            paint(&slide, 70, 5, 76, 70, inks[ink][0], inks[ink][1], inks[ink][2]);
            struct tissue_options options = tissue_defaults();
            options.method = (enum tissue_method)method;
            options.open_um = 0;
            struct tissue_mask mask;
            assert_true(tissue_find_in(&slide, 3200, 2560, 0.25, &options, &mask, NULL));
            assert_int_equal(*image_at(&mask.mask, 72, 30), 0);
            assert_int_equal(*image_at(&mask.mask, 35, 30), 255);
            if (mask.tissue_px != 40 * 30)
                fail_msg("ink %zu method %d: %lld pixels of tissue", ink, method,
                         (long long)mask.tissue_px);
            assert_int_equal(mask.box_x, 640);
            assert_int_equal(mask.box_y, 640);
            assert_int_equal(mask.box_width, 1280);
            assert_int_equal(mask.box_height, 960);
            assert_true(fabs(mask.area_mm2 - 1200 * 64e-6) < 1e-12);
            tissue_mask_free(&mask);
        }
}

static void no_tissue_of_the_real_slide_is_taken_for_pen(void **state)
{
    (void)state;
    struct image overview = golden("overview", 3), pen;
    assert_true(image_new(&pen, overview.width, overview.height, 1, NULL));
    assert_true(method_find_pen(&overview, &pen, NULL));
    for (size_t i = 0; i < image_bytes(&pen); i++)
        assert_int_equal(pen.px[i], 0);
    image_free(&pen);
    image_free(&overview);
}

static void sizes_without_resolution_assume_a_quarter_micrometre(void **state)
{
    (void)state;
    struct tissue_options options = tissue_defaults();
    options.open_um = 0;
    options.min_area_um2 = 0.25 * 0.25 * 32 * 32 * 100; /* 100 mask pixels at 0.25 um/px */
    for (int side = 9; side <= 10; side++) {
        struct image slide = plain(50, 50, 242, 240, 243);
        paint(&slide, 20, 20, 20 + side, 20 + side, 205, 140, 190);
        struct tissue_mask mask;
        assert_true(tissue_find_in(&slide, 1600, 1600, 0, &options, &mask, NULL));
        assert_true(mask.mpp == 0 && mask.area_mm2 == 0);
        assert_int_equal(mask.tissue_px, side == 10 ? 100 : 0);
        tissue_mask_free(&mask);
    }
}

/* Against a sum over parts of pixels. */
static double slow_fraction(const struct tissue_mask *mask, double x, double y, double w, double h)
{
    double tissue = 0;
    for (int64_t j = 0; j < mask->mask.height; j++)
        for (int64_t i = 0; i < mask->mask.width; i++) {
            double x0 = (double)i * mask->l0_per_px_x, x1 = (double)(i + 1) * mask->l0_per_px_x;
            double y0 = (double)j * mask->l0_per_px_y, y1 = (double)(j + 1) * mask->l0_per_px_y;
            double dx = fmin(x + w, x1) - fmax(x, x0), dy = fmin(y + h, y1) - fmax(y, y0);
            if (*image_at(&mask->mask, i, j) && dx > 0 && dy > 0)
                tissue += dx * dy;
        }
    return tissue / (w * h);
}

static void shares_count_parts_of_pixels(void **state)
{
    (void)state;
    struct tissue_options options = bare(TISSUE_FDA);
    struct image overview = golden("overview", 3);
    struct tissue_mask mask;
    struct tissue_sums *sums;
    assert_true(tissue_find_in(&overview, 2220, 2967, 0.499, &options, &mask, NULL));
    assert_true(tissue_sums_new(&mask, &sums, NULL));
    struct rng rng = rng_new(5, 6, 7);
    for (int i = 0; i < 100; i++) {
        double x = rng_between(&rng, -300, 2300), y = rng_between(&rng, -300, 3000);
        double w = rng_between(&rng, 1, 900), h = rng_between(&rng, 1, 900);
        double got = tissue_fraction(sums, x, y, w, h);
        assert_true(fabs(got - slow_fraction(&mask, x, y, w, h)) < 1e-9);
    }
    assert_true(fabs(tissue_fraction(sums, 0, 0, 2220, 2967) - mask.fraction) < 1e-12);
    assert_true(tissue_fraction(sums, -500, -500, 400, 400) == 0);
    tissue_sums_free(sums);
    tissue_mask_free(&mask);
}

static void otsu_of_little_is_defined(void **state)
{
    (void)state;
    int64_t counts[256] = { 0 };
    assert_int_equal(otsu_of_counts(counts), -1);
    counts[7] = 3;
    assert_int_equal(otsu_of_counts(counts), 7);
    counts[9] = 3;
    assert_int_equal(otsu_of_counts(counts), 7);
}

static double ring_area(const json_t *ring)
{
    double sum = 0;
    size_t n = json_array_size(ring);
    assert_true(json_equal(json_array_get(ring, 0), json_array_get(ring, n - 1)));
    for (size_t i = 0; i + 1 < n; i++) {
        const json_t *a = json_array_get(ring, i), *b = json_array_get(ring, i + 1);
        sum += json_number_value(json_array_get(a, 0)) * json_number_value(json_array_get(b, 1)) -
               json_number_value(json_array_get(b, 0)) * json_number_value(json_array_get(a, 1));
    }
    return fabs(sum) / 2;
}

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void geojson_is_what_qupath_reads(void **state)
{
    (void)state;
    struct tissue_options options = bare(TISSUE_FDA);
    struct image overview = golden("overview", 3);
    struct tissue_mask mask;
    char *path = scratch_path("a_tissue.geojson");
    assert_true(tissue_find_in(&overview, 2220, 2967, 0.499, &options, &mask, NULL));
    assert_true(tissue_write_geojson(&mask, path, NULL));
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_string_equal(text_at(root, "type"), "FeatureCollection");
    const json_t *features = json_object_get(root, "features");
    double area = 0;
    for (size_t i = 0; i < json_array_size(features); i++) {
        const json_t *feature = json_array_get(features, i);
        const json_t *properties = json_object_get(feature, "properties");
        const json_t *geometry = json_object_get(feature, "geometry");
        assert_string_equal(text_at(feature, "type"), "Feature");
        assert_int_equal(strlen(text_at(feature, "id")), 36);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(text_at(feature, "id"),
                                    text_at(json_array_get(features, j), "id"));
        assert_string_equal(text_at(properties, "objectType"), "annotation");
        assert_string_equal(text_at(json_object_get(properties, "classification"), "name"),
                            "Tissue");
        assert_string_equal(text_at(geometry, "type"), "Polygon");
        const json_t *rings = json_object_get(geometry, "coordinates");
        for (size_t j = 0; j < json_array_size(rings); j++)
            area += (j == 0 ? 1 : -1) * ring_area(json_array_get(rings, j));
    }
    double want = (double)mask.tissue_px * mask.l0_per_px_x * mask.l0_per_px_y;
    assert_true(fabs(area / want - 1) < 1e-3); /* points are rounded to a hundredth */
    json_decref(root);
    free(path);
    tissue_mask_free(&mask);
}

static void overlay_keeps_the_overview_and_draws_the_border(void **state)
{
    (void)state;
    struct tissue_options options = bare(TISSUE_FDA);
    struct image slide = plain(600, 20, 242, 240, 243), picture;
    struct tissue_mask mask;
    char *path = scratch_path("overlay.png");
    paint(&slide, 20, 5, 60, 15, 205, 140, 190);
    assert_true(tissue_find_in(&slide, 6000, 200, 0.25, &options, &mask, NULL));
    assert_true(tissue_write_overlay(&mask, path, NULL));
    assert_true(image_read_png(path, 3, &picture, NULL));
    int64_t changed = 0;
    assert_int_equal(picture.width, 600);
    for (int64_t i = 0; i < 600 * 20; i++)
        changed += memcmp(picture.px + 3 * i, mask.overview.px + 3 * i, 3) != 0;
    /* 40 x 10: an inner ring of 96 pixels and an outer one without its corners */
    assert_int_equal(changed, 96 + 100);
    image_free(&picture);
    free(path);
    tissue_mask_free(&mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(otsu_of_little_is_defined),
        cmocka_unit_test(hsv_is_that_of_opencv),
        cmocka_unit_test(methods_agree_with_the_references),
        cmocka_unit_test(morphology_agrees_with_skimage),
        cmocka_unit_test(a_radius_larger_than_the_mask_is_fine),
        cmocka_unit_test(glass_alone_is_an_empty_mask),
        cmocka_unit_test(grey_glass_is_an_empty_mask),
        cmocka_unit_test(the_thin_strand_of_the_real_slide_is_found),
        cmocka_unit_test(opening_takes_no_more_than_was_asked_for),
        cmocka_unit_test(pen_goes_and_tissue_stays),
        cmocka_unit_test(no_tissue_of_the_real_slide_is_taken_for_pen),
        cmocka_unit_test(sizes_without_resolution_assume_a_quarter_micrometre),
        cmocka_unit_test(shares_count_parts_of_pixels),
        cmocka_unit_test(geojson_is_what_qupath_reads),
        cmocka_unit_test(overlay_keeps_the_overview_and_draws_the_border),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
