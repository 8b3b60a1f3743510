/* test_nuclei_labels_in.c: nuclei of other programs: label images and outlines show the same, in
 * any window; each program's own ways; files that are refused, with the message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/label_image.h"
#include "base/pool.h"
#include "nuclei/labels_in.h"
#include "phantom/phantom_nuclei.h"
#include "tests/unit/support/paths.h"

enum { SIZE = 1024 };

static const struct nuclei_source_slide unknown = { 0 };

static struct nuclei_source *opened(const char *name, const struct nuclei_source_slide *slide)
{
    struct nuclei_source *source = NULL;
    struct err err = { 0 };
    char *path = scratch_path(name);
    if (!nuclei_source_open(path, slide, &source, &err))
        fail_msg("%s", err.text);
    free(path);
    return source;
}

static struct nuclei_source *parsed(const char *text, double objective)
{
    struct nuclei_source_slide slide = { .objective = objective };
    struct nuclei_source *source = NULL;
    struct err err = { 0 };
    if (!nuclei_source_parse(text, strlen(text), "a.json", &slide, &source, &err))
        fail_msg("%s", err.text);
    return source;
}

static struct nuclei_labels window(const struct nuclei_source *source, double x, double y,
                                   double step, int64_t width, int64_t height)
{
    struct nuclei_labels labels;
    struct err err = { 0 };
    assert_true(nuclei_source_window(source, x, y, step, width, height, &labels, NULL, &err));
    return labels;
}

/* The phantom's nuclei as an image of 16 bits, an image of half the size, and outlines. */
static void write_phantom(void)
{
    struct phantom_scene scene;
    struct ctx ctx = { .pool = pool_new(1) };
    struct err err = { 0 };
    char *png = scratch_path("whole.png"), *json = scratch_path("whole.geojson");
    struct label_image image = { malloc(sizeof(int32_t) * SIZE * SIZE), SIZE, SIZE };
    phantom_scene_make(3, 0, SIZE, 0, &scene);
    assert_true(phantom_nuclei_labels(&scene, 0, 0, SIZE, SIZE, image.px, &err));
    for (int i = 0; i < SIZE * SIZE; i++) /* 16 bits: any numbers that differ */
        image.px[i] = image.px[i] ? 1 + image.px[i] % 65521 : 0;
    assert_true(label_image_write_png(png, &image, &err));
    assert_true(phantom_nuclei_write(json, &scene, &ctx, &err));
    label_image_free(&image);
    pool_free(ctx.pool);
    free(png), free(json);
}

static void images_and_outlines_show_the_same(void **state)
{
    (void)state;
    static const double windows[][5] = { /* x, y, step, width, height */
                                         { 0, 0, 1, SIZE, SIZE },
                                         { 401.25, 333, 1, 77, 150 },
                                         { -20, 500, 2, 300, 60 },
                                         { 440, 440, 0.5, 300, 301 }
    };
    write_phantom();
    struct nuclei_source_slide slide = { .width_l0 = SIZE, .height_l0 = SIZE };
    struct nuclei_source *image = opened("whole.png", &slide),
                         *outlines = opened("whole.geojson", &slide);
    assert_int_equal(nuclei_source_count(image), nuclei_source_count(outlines));
    assert_true(nuclei_source_count(image) > 100);
    for (size_t k = 0; k < sizeof windows / sizeof *windows; k++) {
        const double *w = windows[k];
        struct nuclei_labels a = window(image, w[0], w[1], w[2], (int64_t)w[3], (int64_t)w[4]);
        struct nuclei_labels b = window(outlines, w[0], w[1], w[2], (int64_t)w[3], (int64_t)w[4]);
        assert_true(a.n > 1 && a.n == b.n);
        assert_memory_equal(a.labels, b.labels, (size_t)(a.width * a.height) * sizeof *a.labels);
        nuclei_labels_free(&a), nuclei_labels_free(&b);
    }
    nuclei_source_free(image), nuclei_source_free(outlines);
}

/* A label image of half the slide's size: every pixel is two wide. */
static void a_smaller_image_is_enlarged(void **state)
{
    (void)state;
    int32_t px[2][3] = { { 0, 900, 900 }, { 7, 7, 0 } };
    static const int32_t want[4][6] = {
        { 0, 0, 1, 1, 1, 1 }, { 0, 0, 1, 1, 1, 1 }, { 2, 2, 2, 2, 0, 0 }, { 2, 2, 2, 2, 0, 0 }
    };
    struct label_image image = { px[0], 3, 2 };
    struct nuclei_source_slide slide = { .width_l0 = 6, .height_l0 = 4 };
    struct err err = { 0 };
    char *path = scratch_path("half.png");
    assert_true(label_image_write_png(path, &image, &err));
    struct nuclei_source *source = opened("half.png", &slide);
    struct nuclei_labels labels = window(source, 0, 0, 1, 6, 4);
    assert_memory_equal(labels.labels, want, sizeof want);
    nuclei_labels_free(&labels), nuclei_source_free(source);
    slide.height_l0 = 9;
    assert_false(nuclei_source_open(path, &slide, &source, &err));
    assert_non_null(strstr(err.text, "is 3 x 2 px, but the slide is 6 x 9 px"));
    free(path);
}

static void contours_of_hover_net_include_their_pixels(void **state)
{
    (void)state;
    static const char text[] = "{\"mag\": 20, \"nuc\": {\"1\": {\"bbox\": [[1, 1], [4, 4]], "
                               "\"centroid\": [2, 2], \"contour\": [[1,1],[1,3],[3,3],[3,1]], "
                               "\"type_prob\": 0.9, \"type\": 2}, "
                               "\"7\": {\"contour\": [[5,0],[5,3],[7,3]], \"type\": \"stroma\"}, "
                               "\"8\": {\"contour\": [[0,7],[1,7]]}, "
                               "\"9\": {\"contour\": [[0,9],[0,10],[1,9]], \"type\": null}}}";
    static const char *const want[] = { "00000200", "01110220", "01110220", "01110222",
                                        "00000000" };
    struct nuclei_source *source = parsed(text, 0);
    assert_int_equal(nuclei_source_count(source), 3);
    assert_string_equal(nuclei_source_kind(source, 0), "2");
    assert_string_equal(nuclei_source_kind(source, 1), "stroma");
    assert_string_equal(nuclei_source_kind(source, 2), "");
    struct nuclei_labels labels = window(source, 0, 0, 1, 8, 5);
    /* numbered by first pixels: the second begins above */
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 8; x++) {
            int label = want[y][x] - '0';
            assert_int_equal(labels.labels[y * 8 + x], label == 0 ? 0 : 3 - label);
        }
    nuclei_labels_free(&labels), nuclei_source_free(source);
    source = parsed(text, 40); /* level 0 is twice as fine */
    labels = window(source, 0, 0, 2, 8, 5);
    for (int i = 0; i < 40; i++)
        assert_int_equal(labels.labels[i] != 0, want[i / 8][i % 8] != '0');
    nuclei_labels_free(&labels), nuclei_source_free(source);
}

static void qupath_has_cells_and_regions(void **state)
{
    (void)state;
    static const char text[] =
        "{\"type\":\"FeatureCollection\",\"features\":[\n"
        "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":"
        "[[[0,0],[50,0],[50,50],[0,50],[0,0]]]},\"properties\":{\"objectType\":\"annotation\"}},\n"
        "{\"type\":\"Feature\",\"properties\":{\"objectType\":\"cell\",\"classification\":"
        "{\"names\":[\"Tumor\",\"Positive\"],\"color\":[1,2,3]},\"measurements\":{\"a\":NaN}},"
        "\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[20,0],[20,20],[0,20]]]},"
        "\"nucleusGeometry\":{\"type\":\"Polygon\",\"coordinates\":"
        "[[[2,2],[8,2],[8,8],[2,8],[2,2]],[[4,4],[5,4],[5,5],[4,5],[4,4]]]}},\n"
        "{\"type\":\"Feature\",\"id\":\"PathDetectionObject\",\"geometry\":{\"type\":"
        "\"MultiPolygon\",\"coordinates\":[[[[30,2],[32,2],[32,4],[30,4]]],"
        "[[[33,2],[34,2],[34,3],[33,3]]]]},\"properties\":{\"classification\":\"Other\"}},\n"
        "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":[1,2]},"
        "\"properties\":{\"objectType\":\"detection\"}}\n]}";
    struct nuclei_source *source = parsed(text, 0);
    assert_int_equal(nuclei_source_count(source), 2);
    struct nuclei_labels labels;
    struct err err = { 0 };
    int64_t *nuclei = NULL, px[3] = { 0 };
    assert_true(nuclei_source_window(source, 0, 0, 1, 50, 50, &labels, &nuclei, &err));
    assert_int_equal(labels.n, 2);
    for (int i = 0; i < 50 * 50; i++)
        px[labels.labels[i]]++;
    assert_int_equal(px[1], 36 - 1);
    assert_int_equal(px[2], 4 + 1);
    assert_string_equal(nuclei_source_kind(source, nuclei[0]), "Tumor");
    assert_string_equal(nuclei_source_kind(source, nuclei[1]), "Other");
    free(nuclei), nuclei_labels_free(&labels), nuclei_source_free(source);
}

static void without_detections_annotations_are_the_nuclei(void **state)
{
    (void)state;
    struct nuclei_source *source =
        parsed("[{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":"
               "[[[1,1],[3,1],[3,3],[1,3]]]},\"properties\":{\"objectType\":\"annotation\","
               "\"childObjects\":[{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\","
               "\"coordinates\":[[[5,1],[7,1],[7,3],[5,3]]]},\"properties\":{\"objectType\":"
               "\"annotation\"}}]}}]",
               0);
    assert_int_equal(nuclei_source_count(source), 2);
    struct nuclei_labels labels = window(source, 0, 0, 1, 8, 4);
    assert_int_equal(labels.n, 2);
    assert_int_equal(labels.labels[8 + 1], 1);
    assert_int_equal(labels.labels[8 + 5], 2);
    nuclei_labels_free(&labels), nuclei_source_free(source);
    source = parsed("{\"type\":\"FeatureCollection\",\"features\":[]}", 0);
    labels = window(source, 0, 0, 1, 3, 3);
    assert_int_equal(labels.n, 0);
    nuclei_labels_free(&labels), nuclei_source_free(source);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "", "a.json:1: neither a label image nor JSON with outlines" },
        { "{}", "a.json:1: neither GeoJSON features nor HoVer-Net's \"nuc\"" },
        { "{\"nuc\": {\"1\": {\"bbox\": []}}}",
          "a.json:1: a nucleus of HoVer-Net without \"contour\"" },
        { "{\"nuc\": {\"1\": {\"contour\":\n [[1, 2], [3, NaN]]}}}",
          "a.json:2: a number is expected" },
        { "{\"nuc\": {\"1\": {\"contour\": [[1, 2], [3, 1e12]]}}}",
          "a.json:1: a coordinate beyond the extent of any slide" },
        { "{\"nuc\": {\"1\": {\"contour\": [[1, 2], [3]]}}}",
          "a.json:1: a point [x, y] is expected" },
        { "{\"features\": [\n\n{\"geometry\": {", "a.json:3: the file is truncated" },
        { "{\"features\": [{\"id\": \"abc", "a.json:1: the file is truncated" },
        { "{\"features\": [3]}", "a.json:1: a feature is expected" },
        { "{\"features\": [{]}", "a.json:1: not JSON: a bracket that nothing opened" },
        { "{\"features\": {}}", "a.json:1: a list of features is expected" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nuclei_source *source = NULL;
        struct err err = { 0 };
        assert_false(nuclei_source_parse(cases[i][0], strlen(cases[i][0]), "a.json", &unknown,
                                         &source, &err));
        assert_string_equal(err.text, cases[i][1]);
        assert_null(source);
    }
}

static void a_slides_file_is_found(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *folder = scratch_path("found"), *path = NULL, *wanted = scratch_path("found/x.json");
    assert_true(file_make_folder(folder, &err));
    assert_false(nuclei_source_find(folder, "x", &path, &err));
    assert_non_null(strstr(err.text, "no nuclei of x in this folder; expected x_labels.png"));
    struct file_out out;
    assert_true(file_out_open(&out, wanted, &err) && file_out_commit(&out, &err));
    assert_true(nuclei_source_find(folder, "x", &path, &err));
    assert_string_equal(path, wanted);
    remove(path);
    free(folder), free(path), free(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_and_outlines_show_the_same),
        cmocka_unit_test(a_smaller_image_is_enlarged),
        cmocka_unit_test(contours_of_hover_net_include_their_pixels),
        cmocka_unit_test(qupath_has_cells_and_regions),
        cmocka_unit_test(without_detections_annotations_are_the_nuclei),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(a_slides_file_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
