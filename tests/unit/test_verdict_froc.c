/* test_verdict_froc.c: regions against skimage, CAMELYON16's FROC rules against scipy and skimage
 * (tests/golden/verdict_froc.py), toy cases, lesion lists, truth from files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiff.h>
#include "base/file.h"
#include "support/golden_json.h"
#include "support/paths.h"
#include "support/tiff_maker.h"
#include "tissue/morphology.h"
#include "verdict/froc.h"
#include "verdict/lesions.h"
#include "verdict/regions.h"
#include "verdict/truth_mask.h"
#include "base/text.h"

static void mask_of(const json_t *want, struct image *mask)
{
    struct err err = { 0 };
    json_t *runs = json_object_get(want, "mask");
    assert_true(image_new(mask, (int64_t)golden_number(want, "width", 0),
                          (int64_t)golden_number(want, "height", 0), 1, &err));
    for (size_t i = 0; i < json_array_size(runs); i++) {
        json_t *run = json_array_get(runs, i);
        json_int_t first = json_integer_value(json_array_get(run, 0));
        json_int_t n = json_integer_value(json_array_get(run, 1));
        memset(mask->px + first, 255, (size_t)n);
    }
}

static void check_regions(const json_t *want)
{
    struct image mask;
    struct err err = { 0 };
    int32_t *labels, n;
    struct region_measure *regions;
    mask_of(want, &mask);
    assert_true(morphology_label(&mask, true, &labels, &n, &err));
    json_t *rows = json_object_get(want, "regions");
    assert_int_equal(n, json_array_size(rows));
    double *numbers = golden_numbers(want, "values", NULL);
    float *values = malloc((size_t)(mask.width * mask.height) * sizeof *values);
    for (int64_t i = 0; i < mask.width * mask.height; i++)
        values[i] = (float)numbers[i];
    struct regions_input input = { labels, values, mask.width, mask.height, n };
    assert_true(regions_measure(&input, &regions, &err));
    for (int32_t k = 0; k < n; k++) {
        const struct region_measure *r = &regions[k];
        const double got[] = { (double)r->area, (double)r->y0, (double)r->x0, (double)r->y1,
                               (double)r->x1,   r->centre_y,   r->centre_x,   r->major_axis,
                               r->eccentricity, r->extent,     r->solidity,   r->perimeter,
                               r->least,        r->mean,       r->most };
        static const char *const names[] = { "area",         "y0",       "x0",       "y1",
                                             "x1",           "centre y", "centre x", "major axis",
                                             "eccentricity", "extent",   "solidity", "perimeter",
                                             "least",        "mean",     "most" };
        for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
            json_t *number = json_array_get(json_array_get(rows, (size_t)k), i);
            /* Values are float32 there; an eccentricity of nearly 0 is a root of rounding. */
            double tolerance = i >= 12 ? 1e-6 : i == 8 ? 1e-6 : 1e-9;
            assert_near(got[i], json_number_value(number), tolerance, names[i]);
        }
    }
    free(regions), free(values), free(numbers), free(labels);
    image_free(&mask);
}

static void regions_are_as_in_skimage(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/regions.json");
    json_t *cases = json_object_get(golden, "cases");
    assert_int_equal(json_array_size(cases), 4);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_regions(json_array_get(cases, i));
    json_decref(golden);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_slide(const json_t *want, const struct froc_rules *rules, struct froc_data *data)
{
    struct image mask;
    struct err err = { 0 };
    struct froc_truth truth;
    struct lesion_list calls = { 0 };
    mask_of(want, &mask);
    assert_true(froc_truth_of_mask(&mask, rules, &truth, &err));
    int64_t sum = 0, labelled = 0;
    for (int64_t i = 0; i < mask.width * mask.height; i++)
        sum += truth.labels[i], labelled += truth.labels[i] > 0;
    assert_int_equal(labelled, golden_number(want, "labelled", 0));
    assert_int_equal(sum, golden_number(want, "labels_sum", 0));
    assert_int_equal(truth.counted, golden_number(want, "lesions", 0));
    json_t *isolated = json_object_get(want, "isolated");
    assert_int_equal(truth.n, json_array_size(isolated));
    for (int32_t i = 0; i < truth.n; i++)
        assert_int_equal(truth.isolated[i], json_is_true(json_array_get(isolated, (size_t)i)));
    json_t *list = json_object_get(want, "calls");
    for (size_t i = 0; i < json_array_size(list); i++) {
        double v[3];
        for (size_t k = 0; k < 3; k++)
            v[k] = json_number_value(json_array_get(json_array_get(list, i), k));
        assert_true(lesions_add(&calls, (struct lesion){ v[0], v[1], v[2] }, &err));
    }
    struct froc_slide counts;
    int64_t before = data->n_wrong;
    assert_true(froc_add(data, &truth, &calls, &counts, &err));
    size_t n_wrong;
    double *wrong = golden_numbers(want, "wrong", &n_wrong);
    assert_int_equal(counts.wrong, n_wrong);
    qsort(wrong, n_wrong, sizeof *wrong, by_value);
    qsort(data->wrong + before, n_wrong, sizeof *wrong, by_value);
    for (size_t i = 0; i < n_wrong; i++)
        assert_true(wrong[i] == data->wrong[before + (int64_t)i]);
    free(wrong), lesions_free(&calls), froc_truth_free(&truth), image_free(&mask);
}

static void the_rules_are_those_of_camelyon16(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/froc.json");
    json_t *cases = json_object_get(golden, "cases");
    assert_int_equal(json_array_size(cases), 3);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *want = json_array_get(cases, i), *slides = json_object_get(want, "slides");
        struct froc_rules rules = froc_camelyon16();
        struct froc_data data = { 0 };
        struct froc froc;
        struct err err = { 0 };
        rules.mpp = golden_number(want, "mpp", 0);
        rules.downsample = golden_number(want, "downsample", 0);
        for (size_t k = 0; k < json_array_size(slides); k++)
            check_slide(json_array_get(slides, k), &rules, &data);
        assert_true(froc_compute(&data, FROC_TIES_EQUAL, &froc, &err));
        assert_int_equal(data.lesions, golden_number(want, "lesions", 0));
        assert_int_equal(froc.n_points, golden_number(want, "points", 0));
        assert_near(froc.score, golden_number(want, "score", 0), 1e-12, "score");
        for (size_t k = 0; k < FROC_RATES; k++)
            assert_near(froc.at[k], golden_number(want, "at", k), 1e-12, "sensitivity");
        froc_free(&froc), froc_data_free(&data);
    }
    json_decref(golden);
}

/* 4 slides, 4 lesions, two of them on one slide; the score is published with the rules. */
static void the_toy(void **state)
{
    (void)state;
    double wrong[] = { .9, .3, .6, .2, .1 }, found[] = { .95, .4, .7, 0 };
    struct froc_data data = {
        .wrong = wrong, .n_wrong = 5, .found = found, .n_found = 4, .slides = 4, .lesions = 4
    };
    struct froc froc;
    struct err err = { 0 };
    assert_true(froc_compute(&data, FROC_TIES_EQUAL, &froc, &err));
    assert_near(froc.score, .7083333333, 1e-9, "score");
    assert_int_equal(froc.n_points, 9);
    froc_free(&froc);
    data.n_found = 0, data.lesions = 0;
    assert_false(froc_compute(&data, FROC_TIES_EQUAL, &froc, &err));
    assert_non_null(strstr(err.text, "no lesion in the"));
    assert_non_null(strstr(err.text, "--truth"));
}

static void nothing_found_is_zero(void **state)
{
    (void)state;
    double found[] = { 0, 0 };
    struct froc_data data = { .found = found, .n_found = 2, .slides = 1, .lesions = 2 };
    struct froc froc;
    assert_true(froc_compute(&data, FROC_TIES_EQUAL, &froc, NULL));
    assert_true(froc.score == 0 && froc.n_points == 1);
    froc_free(&froc);
}

static void check_ties(const struct froc_data *data, enum froc_ties ties, const json_t *want)
{
    struct froc froc;
    struct err err = { 0 };
    const json_t *points = json_object_get(want, "points");
    const json_t *rates = json_array_get(points, 0), *sensitivities = json_array_get(points, 1);
    assert_true(froc_compute(data, ties, &froc, &err));
    assert_int_equal(froc.n_points, json_array_size(rates));
    for (size_t i = 0; i < json_array_size(rates); i++) {
        assert_near(froc.points[i].wrong_per_slide, json_number_value(json_array_get(rates, i)),
                    1e-12, "false positives");
        assert_near(froc.points[i].sensitivity, json_number_value(json_array_get(sensitivities, i)),
                    1e-12, "sensitivity");
    }
    for (size_t k = 0; k < FROC_RATES; k++)
        assert_near(froc.at[k], golden_number(want, "at", k), 1e-12, "sensitivity at a rate");
    assert_near(froc.score, golden_number(want, "score", 0), 1e-12, "score");
    froc_free(&froc);
}

/* Lesions and false positives of the same score (tests/golden/verdict_froc_ties.py). */
static void ties_are_broken_as_asked(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/froc_ties.json");
    json_t *cases = json_object_get(golden, "cases");
    double largest = 0;
    assert_int_equal(json_array_size(cases), 19);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *want = json_array_get(cases, i);
        const json_t *rules[2] = { json_object_get(want, "equal"),
                                   json_object_get(want, "official") };
        size_t n_wrong, n_found;
        struct froc_data data = { .wrong = golden_numbers(want, "wrong", &n_wrong),
                                  .found = golden_numbers(want, "found", &n_found),
                                  .slides = (int64_t)golden_number(want, "slides", 0),
                                  .lesions = (int64_t)golden_number(want, "lesions", 0) };
        data.n_wrong = (int64_t)n_wrong, data.n_found = (int64_t)n_found;
        check_ties(&data, FROC_TIES_EQUAL, rules[0]);
        check_ties(&data, FROC_TIES_OFFICIAL, rules[1]);
        largest = fmax(largest, fabs(golden_number(rules[0], "score", 0) -
                                     golden_number(rules[1], "score", 0)));
        froc_data_free(&data);
    }
    assert_true(largest > .04); /* the two rules do differ here */
    json_decref(golden);
}

/* Two squares 75 um apart are two lesions, closer ones are one; a lesion of 274 um is isolated
 * cells. At 1 um per pixel the numbers of the rules are pixels. */
static void sizes_are_in_um(void **state)
{
    (void)state;
    const struct froc_rules rules = { 1, 1, 75, 275, FROC_TIES_EQUAL };
    for (int64_t gap = 73; gap <= 76; gap++) {
        struct image mask;
        struct froc_truth truth;
        assert_true(image_new(&mask, 400, 400, 1, NULL));
        for (int64_t y = 100; y < 300; y++) {
            memset(image_at(&mask, 60, y), 255, 40);
            memset(image_at(&mask, 100 + gap, y), 255, 40);
        }
        assert_true(froc_truth_of_mask(&mask, &rules, &truth, NULL));
        /* Each side reaches 37 px (37 < 37.5); they touch if the gap is 74 or less. */
        assert_int_equal(truth.n, gap <= 74 ? 1 : 2);
        froc_truth_free(&truth), image_free(&mask);
    }
    for (int64_t length = 150; length <= 200; length += 50) {
        struct image mask;
        struct froc_truth truth;
        assert_true(image_new(&mask, 400, 100, 1, NULL));
        memset(image_at(&mask, 50, 50), 255, (size_t)length);
        assert_true(froc_truth_of_mask(&mask, &rules, &truth, NULL));
        assert_int_equal(truth.n, 1);
        /* A bar of 150 + 74 px has an axis of some 255 um, one of 200 + 74 px more than 275. */
        assert_int_equal(truth.isolated[0], length == 150);
        froc_truth_free(&truth), image_free(&mask);
    }
}

static void lists_are_read_as_they_come(void **state)
{
    (void)state;
    struct lesion_list list;
    struct err err = { 0 };
    static const char bare[] = "0.9,100,200\n0.5,7,8\n", headed[] = "x,y,score\r\n1,2,0.25\r\n";
    assert_true(lesions_parse(bare, sizeof bare - 1, "a.csv", &list, &err));
    assert_int_equal(list.n, 2);
    assert_true(list.items[0].score == 0.9 && list.items[1].y_l0 == 8);
    lesions_free(&list);
    assert_true(lesions_parse(headed, sizeof headed - 1, "a.csv", &list, &err));
    assert_true(list.n == 1 && list.items[0].score == 0.25 && list.items[0].x_l0 == 1);
    lesions_free(&list);
    assert_true(lesions_parse("", 0, "a.csv", &list, &err));
    assert_int_equal(list.n, 0);
    assert_false(lesions_parse("0.9,1,2\n0.8,nan,3\n", 18, "a.csv", &list, &err));
    assert_string_equal(err.text, "a.csv:2: column 2 (x): 'nan' is not a finite number");
    assert_false(lesions_parse("p,x,y\n", 6, "a.csv", &list, &err));
    assert_non_null(strstr(err.text, "score, x and y"));
}

/* The same square as an annotation and as a PNG gives the same pixels. */
static void truth_comes_from_drawings_and_masks(void **state)
{
    (void)state;
    char *drawn = scratch_path("froc_truth.xml"), *painted = scratch_path("froc_truth.png");
    struct err err = { 0 };
    struct truth_mask from_drawing, from_mask;
    struct image mask;
    FILE *file = fopen(drawn, "w");
    assert_non_null(file);
    fputs("<ASAP_Annotations><Annotations><Annotation Name=\"a\" PartOfGroup=\"Tumor\" "
          "Type=\"Polygon\"><Coordinates><Coordinate Order=\"0\" X=\"640\" Y=\"320\"/><Coordinate "
          "Order=\"1\" X=\"960\" Y=\"320\"/><Coordinate Order=\"2\" X=\"960\" Y=\"640\"/>"
          "<Coordinate Order=\"3\" X=\"640\" Y=\"640\"/></Coordinates></Annotation></Annotations>"
          "</ASAP_Annotations>",
          file);
    assert_int_equal(fclose(file), 0);
    assert_true(image_new(&mask, 40, 30, 1, &err));
    for (int64_t y = 10; y < 20; y++)
        memset(image_at(&mask, 20, y), 1, 10);
    assert_true(image_write_png(painted, &mask, &err));
    assert_true(truth_mask_read(drawn, NULL, NULL, 32, 3, &from_drawing, &err));
    assert_true(truth_mask_read(painted, NULL, NULL, 32, 3, &from_mask, &err));
    assert_int_equal(from_drawing.origin_x, 17);
    assert_int_equal(from_drawing.origin_y, 7);
    assert_int_equal(from_mask.mask.width, 40);
    int64_t set = 0;
    for (int64_t y = 0; y < 30; y++)
        for (int64_t x = 0; x < 40; x++) {
            int64_t u = x - 17, v = y - 7;
            bool in = u >= 0 && v >= 0 && u < from_drawing.mask.width &&
                      v < from_drawing.mask.height && *image_at(&from_drawing.mask, u, v);
            assert_int_equal(in, *image_at(&from_mask.mask, x, y) == 255);
            set += in;
        }
    assert_int_equal(set, 100);
    image_free(&mask), image_free(&from_drawing.mask), image_free(&from_mask.mask);
    free(drawn), free(painted);
}

/* A level of a pyramid is read band by band; the error names a missing one. */
static void truth_comes_from_pyramids(void **state)
{
    (void)state;
    char *path = scratch_path("froc_truth_mask.tif");
    const struct tiff_flavour flavour = { .mode = "w",
                                          .compression = COMPRESSION_LZW,
                                          .photometric = PHOTOMETRIC_RGB,
                                          .tile_px = 64,
                                          .width = 400,
                                          .height = 1600,
                                          .ratios = { 4 } };
    struct truth_mask mask;
    struct image drawn;
    struct err err = { 0 };
    tiff_maker_write(path, &flavour);
    tiff_maker_draw(100, 400, &drawn);
    if (!truth_mask_read(path, NULL, NULL, 4, 5, &mask, &err))
        fail_msg("%s", err.text);
    assert_true(mask.mask.width == 100 && mask.mask.height == 400);
    assert_true(mask.origin_x == 0 && mask.origin_y == 0);
    for (int64_t i = 0; i < 100 * 400; i++)
        assert_int_equal(mask.mask.px[i], drawn.px[3 * i] >= 128 ? 255 : 0);
    image_free(&mask.mask), image_free(&drawn);
    assert_false(truth_mask_read(path, NULL, NULL, 32, 5, &mask, &err));
    assert_non_null(strstr(err.text, "no level with downsample 32 (its levels range from 1 to 4)"));
    free(path);
}

/* Ten annotations of CAMELYON16: pixels, joined pixels, lesions and isolated cells. */
static void real_annotations(void **state)
{
    (void)state;
    const char *shared = getenv("SHARED");
    char *folder = text_format("%s/data/camelyon16/polygons", shared ? shared : "");
    if (!file_is_folder(folder)) {
        print_message("skipped: no %s\n", folder);
        free(folder);
        skip();
    }
    json_t *golden = golden_json("tests/golden/verdict/froc_real.json");
    assert_int_equal(json_object_size(golden), 10);
    const char *name;
    json_t *want;
    json_object_foreach(golden, name, want)
    {
        char *path = text_format("%s/%s", folder, name);
        const struct froc_rules rules = froc_camelyon16();
        struct truth_mask mask;
        struct froc_truth truth;
        struct err err = { 0 };
        int64_t tumour = 0, joined = 0;
        if (!truth_mask_read(path, NULL, NULL, rules.downsample, 7, &mask, &err))
            fail_msg("%s", err.text);
        const int64_t n = mask.mask.width * mask.mask.height;
        for (int64_t i = 0; i < n; i++)
            tumour += mask.mask.px[i] != 0;
        assert_true(froc_truth_of_mask(&mask.mask, &rules, &truth, &err));
        for (int64_t i = 0; i < n; i++)
            joined += truth.labels[i] != 0;
        const int64_t got[] = { tumour, joined, truth.n, truth.n - truth.counted };
        /* Where a line crosses itself the two point tests differ by a few pixels. */
        for (size_t k = 0; k < 4; k++) {
            double wanted = json_number_value(json_array_get(want, k));
            assert_near((double)got[k], wanted, k < 2 ? 1e-3 : 0, name);
        }
        froc_truth_free(&truth), image_free(&mask.mask), free(path);
    }
    json_decref(golden), free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_as_in_skimage),
        cmocka_unit_test(the_rules_are_those_of_camelyon16),
        cmocka_unit_test(the_toy),
        cmocka_unit_test(nothing_found_is_zero),
        cmocka_unit_test(ties_are_broken_as_asked),
        cmocka_unit_test(sizes_are_in_um),
        cmocka_unit_test(lists_are_read_as_they_come),
        cmocka_unit_test(truth_comes_from_drawings_and_masks),
        cmocka_unit_test(truth_comes_from_pyramids),
        cmocka_unit_test(real_annotations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
