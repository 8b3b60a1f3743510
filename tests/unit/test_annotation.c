/* test_annotation.c: drawings of every format against masks from rational arithmetic, what classes
 * mean, and agreement of point, count and mask. Bad files are in test_annotation_formats.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/annotation.h"
#include "annotation/classes.h"
#include "annotation/orient.h"
#include "base/file.h"
#include "base/rng.h"
#include "tests/unit/support/drawings.h"
#include "tests/unit/support/paths.h"
#include "base/text.h"
#include "base/clock.h"

struct golden {
    double x_l0, y_l0, step_l0;
    int64_t width, height;
    long long regions, repaired, ignored;
    struct annotation_slide slide;
    char *text;
    const char *rows;
};

static void read_golden(const char *path, struct golden *golden)
{
    struct err err = { 0 };
    if (!file_read(path, 1 << 20, &golden->text, NULL, &err))
        fail_msg("%s", err.text);
    long long width, height, width_l0 = 0, height_l0 = 0;
    golden->rows = strchr(golden->text, '\n') + 1;
    golden->text[golden->rows - golden->text - 1] = 0;
    int n = sscanf(golden->text, "%lf %lf %lf %lld %lld %lld %lld %lld %lld %lld", &golden->x_l0,
                   &golden->y_l0, &golden->step_l0, &width, &height, &golden->regions,
                   &golden->repaired, &golden->ignored, &width_l0, &height_l0);
    assert_true(n == 8 || n == 10);
    golden->width = width, golden->height = height;
    golden->slide = (struct annotation_slide){ NULL, width_l0, height_l0 };
    assert_int_equal(strlen(golden->rows), (width + 1) * height);
}

/* The mask, the count and the point test each against the golden rows. */
static void compare_with_golden(const char *path, const struct annotation *annotation,
                                const struct golden *golden)
{
    struct image mask;
    int64_t inside = 0;
    assert_true(annotation_mask(annotation, golden->x_l0, golden->y_l0, golden->step_l0,
                                golden->width, golden->height, &mask, NULL));
    for (int64_t j = 0; j < golden->height; j++)
        for (int64_t i = 0; i < golden->width; i++) {
            bool want = golden->rows[j * (golden->width + 1) + i] == '#';
            double x = golden->x_l0 + ((double)i + 0.5) * golden->step_l0;
            double y = golden->y_l0 + ((double)j + 0.5) * golden->step_l0;
            if (*image_at(&mask, i, j) != (want ? 255 : 0))
                fail_msg("%s: mask differs at column %d, row %d", path, (int)i, (int)j);
            assert_int_equal(annotation_contains(annotation, x, y), want);
            inside += want;
        }
    assert_int_equal(annotation_count(annotation, golden->x_l0, golden->y_l0, golden->step_l0,
                                      golden->width, golden->height),
                     inside);
    image_free(&mask);
}

static void masks_are_those_of_rational_arithmetic(void **state)
{
    (void)state;
    char *folder = source_path("tests/golden/annotation");
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    struct class_map *map =
        must_map("stroma=ignore,Necrosis=ignore,=tumor,1=tumor,2=ignore,3=ignore");
    int cases = 0;
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (entry->d_name[0] == '.' || !strcmp(file_extension(entry->d_name), ".mask"))
            continue;
        char *path = text_format("%s/%s", folder, entry->d_name);
        char *mask_path = text_format("%s.mask", path);
        struct annotation *annotation = NULL;
        struct err err = { 0 };
        struct golden golden;
        char *name = file_stem(path);
        read_golden(mask_path, &golden);
        golden.slide.name = name;
        if (!annotation_read(path, &golden.slide, map, &annotation, &err))
            fail_msg("%s", err.text);
        compare_with_golden(path, annotation, &golden);
        if (golden.regions >= 0)
            assert_int_equal(annotation_regions(annotation), golden.regions);
        if (golden.repaired >= 0)
            assert_int_equal(annotation_repaired(annotation), golden.repaired);
        assert_int_equal(annotation_ignored(annotation, NULL), golden.ignored);
        annotation_free(annotation);
        free(golden.text), free(path), free(mask_path), free(name);
        cases++;
    }
    closedir(listing);
    free(folder);
    class_map_free(map);
    assert_int_equal(cases, 13);
}

static void names_mean_what_the_table_says(void **state)
{
    (void)state;
    assert_int_equal(class_meaning(NULL, NULL), 1);
    assert_int_equal(class_meaning(NULL, " Tumor "), 1);
    assert_int_equal(class_meaning(NULL, "METASTASES"), 1);
    assert_int_equal(class_meaning(NULL, "Tumor: Positive"), 1);
    assert_int_equal(class_meaning(NULL, "_2"), REGION_EXCLUSION);
    assert_int_equal(class_meaning(NULL, "Normal"), REGION_EXCLUSION);
    assert_int_equal(class_meaning(NULL, "Stroma"), REGION_UNKNOWN);
    assert_int_equal(class_meaning(NULL, "Non-tumor"), REGION_UNKNOWN);
}

static void a_map_comes_before_the_table(void **state)
{
    (void)state;
    struct class_map *map = must_map(" Invasive Carcinoma = tumour ,a\\,b\\=c\\\\=ignore,"
                                     "Tumor: In situ=normal,LESION=exclusion,None=IGNORE");
    assert_int_equal(class_meaning(map, "invasive carcinoma"), 1);
    assert_int_equal(class_meaning(map, "Invasive carcinoma: G3"), 1);
    assert_int_equal(class_meaning(map, "A,B=C\\"), REGION_IGNORED);
    assert_int_equal(class_meaning(map, "Tumor: in situ"), REGION_EXCLUSION);
    assert_int_equal(class_meaning(map, "Tumor: other"), 1);
    assert_int_equal(class_meaning(map, "Lesion"), REGION_EXCLUSION);
    assert_int_equal(class_meaning(map, NULL), REGION_IGNORED);
    assert_int_equal(class_meaning(map, " "), REGION_IGNORED);
    assert_int_equal(class_meaning(map, "Stroma"), REGION_UNKNOWN);
    assert_string_equal(class_map_text(map),
                        "=ignore,a\\,b\\=c\\\\=ignore,invasive carcinoma=tumor,lesion=exclusion,"
                        "tumor: in situ=exclusion");
    struct class_map *again = must_map(class_map_text(map));
    assert_string_equal(class_map_text(again), class_map_text(map));
    class_map_free(again);
    class_map_free(map);
    assert_string_equal(class_map_text(NULL), "");
    static const char *const wrong[][2] = {
        { "DCIS", "'DCIS' has no meaning" },
        { "DCIS=", "'DCIS' has no meaning" },
        { "a=b=tumor", "a second '='" },
        { "DCIS=tumor,dcis=ignore", "'dcis' has two meanings, tumor and ignore" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err err = { 0 };
        assert_false(class_map_parse(wrong[i][0], &map, &err));
        assert_null(map);
        if (!strstr(err.text, wrong[i][1]))
            fail_msg("expected \"%s\" in \"%s\"", wrong[i][1], err.text);
    }
}

/* Taken as anything else they would make tumour normal, or the other way round. */
static void classes_without_a_meaning_are_refused(void **state)
{
    (void)state;
    must_refuse("[" FEATURE(NAMED("Invasive carcinoma"), SQUARE) "," FEATURE(
                    NAMED("Str\\noma"), SQUARE) "," FEATURE(NAMED("Str\\noma"), SQUARE) "]",
                "drawing: regions of unknown class: 'Invasive "
                "carcinoma' (1), 'Str?oma' (2); pass --class-map \"Invasive "
                "carcinoma=MEANING,Str?oma=MEANING\"");
    must_refuse("[" FEATURE(NAMED("Tumor"), SQUARE) "," FEATURE(NAMED("DCIS, low=1"), SQUARE) "]",
                "--class-map \"DCIS\\, low\\=1=MEANING\"");
    must_refuse("[" FEATURE("\"classification\":{\"names\":[\"Immune\",\"CD8\"]}", SQUARE) "]",
                "'Immune: CD8' (1)");
    must_refuse("[" FEATURE(NAMED("Tumor"), SQUARE) "," FEATURE("", SQUARE) "]",
                "no class (1) beside named tumour regions; pass --class-map \"=MEANING\"");
    must_refuse("<ASAP_Annotations><Annotations><Annotation Type=\"Polygon\" "
                "PartOfGroup=\"stroma\"/></Annotations></ASAP_Annotations>",
                "'stroma' (1)");
    must_refuse("<Annotations><Annotation Name=\"Necrosis\"><Regions><Region Type=\"0\"/>"
                "</Regions></Annotation></Annotations>",
                "'Necrosis' (1)");
    must_refuse("<Annotations><Annotation Name=\"\"><Attributes><Attribute Name=\"Description\" "
                "Value=\"stroma\"/></Attributes><Regions><Region Type=\"0\"/></Regions>"
                "</Annotation></Annotations>",
                "'stroma' (1)");
    must_refuse("<Annotations><Annotation Name=\"\"><Regions><Region Type=\"0\" Text=\"fat\"/>"
                "</Regions></Annotation></Annotations>",
                "'fat' (1)");
}

static void what_is_drawn_but_no_area_is_refused(void **state)
{
    (void)state;
    must_refuse("[" FEATURE("\"objectType\":\"detection\"," NAMED("Tumor"), SQUARE) "]",
                "contains no area (objects drawn: 1, the first is 'detection')");
    must_refuse("[{\"type\":\"Feature\",\"id\":\"PathCellObject\",\"geometry\":{\"type\":"
                "\"Polygon\",\"coordinates\":[" SQUARE "]},\"properties\":{}}]",
                "the first is 'cell'");
    must_refuse("[{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":[1,2]},"
                "\"properties\":{" NAMED("Stroma") "}}]",
                "the first is 'Point'");
}

static void a_map_says_what_regions_are(void **state)
{
    (void)state;
    static const char text[] =
        "[" FEATURE(NAMED("Invasive carcinoma"), "[[0,0],[20,0],[20,10],[0,10]]") "," FEATURE(
            NAMED("Fat"),
            "[[0,0],[5,0],[5,10],[0,10]]") "," FEATURE(NAMED("Stroma"),
                                                       "[[10,0],[20,0],[20,10],[10,10]]") "]";
    static const struct {
        const char *map;
        double area;
    } cases[] = { { "Invasive carcinoma=tumor,fat=exclusion,stroma=ignore", 150 },
                  { "Invasive carcinoma=ignore,fat=tumor,stroma=tumor", 150 },
                  { "Invasive carcinoma=tumor,fat=ignore,stroma=ignore", 200 },
                  { "Invasive carcinoma=ignore,fat=ignore,stroma=ignore", 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct class_map *map = must_map(cases[i].map);
        struct annotation *annotation = NULL;
        struct err err = { 0 };
        if (!annotation_parse(text, strlen(text), "drawing", NULL, map, &annotation, &err))
            fail_msg("%s", err.text);
        assert_true(annotation_area_px(annotation) == cases[i].area);
        assert_int_equal(annotation_ignored(annotation, NULL), 0);
        annotation_free(annotation);
        class_map_free(map);
    }
}

static void formats_are_told_by_content(void **state)
{
    (void)state;
    static const struct {
        const char *text, *format;
    } known[] = {
        { "{\"images\":[{\"id\":1,\"file_name\":\"a.svs\"}],\"annotations\":[]}", "COCO" },
        { "{\"type\":\"Polygon\",\"coordinates\":[" SQUARE "]}", "GeoJSON" },
        { "<Annotations><Annotation Id=\"1\"><Regions><Region Type=\"0\"><Vertices>"
          "<Vertex X='0' Y='0'/><Vertex X='9' Y='0'/><Vertex X='9' Y='9'/>"
          "</Vertices></Region></Regions></Annotation></Annotations>",
          "ImageScope" },
        { "\xef\xbb\xbf<?xml version=\"1.0\"?><!-- by hand --><ASAP_Annotations/>", "ASAP" },
        { "<Annotations MicronsPerPixel=\"0.25\"></Annotations>", "ImageScope" },
        { "<Annotations><Annotation><Regions><Region Type='Polygon' NegativeROA='0'><Vertices>"
          "<V X='0' Y='0'/><V X='9,5' Y='0'/><V X='9' Y='9'/>"
          "</Vertices></Region></Regions></Annotation></Annotations>",
          "HALO" },
        { " \n {\"type\":\"FeatureCollection\",\"features\":[]}", "GeoJSON" },
        { FEATURE("", SQUARE), "GeoJSON" },
        { "[]", "GeoJSON" },
        { "\xef\xbb\xbf{\"positive\":[],\"negative\":[]}", "NCRF" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct annotation *annotation = must_parse(known[i].text, NULL);
        assert_string_equal(annotation_format(annotation), known[i].format);
        annotation_free(annotation);
    }
}

static void an_empty_annotation_is_empty(void **state)
{
    (void)state;
    struct annotation *annotation =
        must_parse("<ASAP_Annotations><Annotations/></ASAP_Annotations>", NULL);
    double box[4];
    struct image mask;
    assert_false(annotation_bounds(annotation, &box[0], &box[1], &box[2], &box[3]));
    assert_int_equal(annotation_count(annotation, 0, 0, 1, 1000, 1000), 0);
    assert_false(annotation_contains(annotation, 5, 5));
    assert_true(annotation_mask(annotation, 0, 0, 1, 8, 8, &mask, NULL));
    for (size_t i = 0; i < image_bytes(&mask); i++)
        assert_int_equal(mask.px[i], 0);
    image_free(&mask);
    annotation_free(annotation);
}

static void bounds_and_area_are_exact(void **state)
{
    (void)state;
    struct annotation *annotation =
        must_parse("{\"positive\":[{\"vertices\":[[-5,2],[15,2],[15,22],[-5,22]]}],"
                   "\"negative\":[{\"vertices\":[[0,7],[10,7],[10,12],[0,12]]}]}",
                   NULL);
    double x0, y0, x1, y1;
    assert_true(annotation_bounds(annotation, &x0, &y0, &x1, &y1));
    assert_true(x0 == -5 && y0 == 2 && x1 == 15 && y1 == 22);
    assert_true(annotation_area_px(annotation) == 350);
    assert_int_equal(annotation_count(annotation, -100, -100, 1, 1000, 1000), 350);
    assert_int_equal(annotation_count(annotation, -100, -100, 1, 0, 10), 0);
    assert_int_equal(annotation_count(annotation, NAN, 0, 1, 10, 10), 0);
    /* a window far larger than any memory still counts */
    assert_int_equal(annotation_count(annotation, -1e8, -1e8, 1, 200000000, 200000000), 350);
    struct image mask;
    struct err err = { 0 };
    assert_false(annotation_mask(annotation, 0, 0, 0, 10, 10, &mask, &err));
    annotation_free(annotation);
}

/* A scribble of n points, every line across the others: n * n / 6 crossings. */
static void a_tangle_is_refused_quickly(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    struct rng rng = rng_new(3, 0, 0);
    fputs("{\"positive\":[{\"vertices\":[", stream);
    for (int i = 0; i < 5000; i++)
        fprintf(stream, "%s[%.3f,%.3f]", i ? "," : "", rng_between(&rng, 0, 1e5),
                rng_between(&rng, 0, 1e5));
    fputs("]}]}", stream);
    fclose(stream);
    must_refuse(text, "positive region 1: the outlines here cross themselves or others more than");
    free(text);
}

static void orientation_is_exact(void **state)
{
    (void)state;
    assert_int_equal(orient(0, 0, 0, 1, 1, 0), -1); /* right of a line that goes to greater y */
    assert_int_equal(orient(0, 0, 0, 1, -1, 0), 1);
    /* points beside a diagonal by the last bit, where plain doubles give 0 or the wrong sign */
    for (int i = 0; i < 256; i++)
        for (int k = 0; k < 256; k++) {
            double x = 0.5 + i * 0x1p-53, y = 0.5 + k * 0x1p-53;
            assert_int_equal(orient(12, 12, 24, 24, x, y), (k > i) - (k < i));
        }
}

/* A wavy ring of n points around (5e4, 5e4) as NCRF JSON, the caller's. */
static char *wavy_ring(int n)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    fputs("{\"positive\":[{\"vertices\":[", stream);
    for (int i = 0; i < n; i++) {
        double angle = 2 * acos(-1) * i / n;
        double radius = 3e4 + 8e3 * sin(7 * angle) + 40 * sin(1999 * angle);
        fprintf(stream, "%s[%.3f,%.3f]", i ? "," : "", 5e4 + radius * cos(angle),
                5e4 + radius * sin(angle));
    }
    fputs("]}]}", stream);
    fclose(stream);
    return text;
}

static void points_counts_and_masks_agree(void **state)
{
    (void)state;
    char *text = wavy_ring(200000);
    struct annotation *annotation = must_parse(text, NULL);
    struct rng rng = rng_new(1, 0, 0);
    int64_t mixed = 0;
    for (int k = 0; k < 300; k++) {
        double angle = rng_between(&rng, 0, 6.3), step = rng_between(&rng, 0.3, 40);
        double radius = 3e4 + 8e3 * sin(7 * angle) + rng_between(&rng, -300, 300);
        double x = 5e4 + radius * cos(angle), y = 5e4 + radius * sin(angle);
        struct image mask;
        int64_t inside = 0;
        assert_true(annotation_mask(annotation, x, y, step, 37, 29, &mask, NULL));
        for (int64_t j = 0; j < 29; j++)
            for (int64_t i = 0; i < 37; i++) {
                bool in = annotation_contains(annotation, x + ((double)i + 0.5) * step,
                                              y + ((double)j + 0.5) * step);
                assert_int_equal(*image_at(&mask, i, j), in ? 255 : 0);
                inside += in;
            }
        assert_int_equal(annotation_count(annotation, x, y, step, 37, 29), inside);
        mixed += inside > 0 && inside < 37 * 29;
        image_free(&mask);
    }
    assert_true(mixed > 20);
    double begin = clock_monotonic_s();
    int64_t total = 0;
    for (int k = 0; k < 10000; k++)
        total +=
            annotation_count(annotation, 1e4 + 800 * (k % 100), 1e4 + 800 * (k / 100), 1, 224, 224);
    double each_us = (clock_monotonic_s() - begin) / 10000 * 1e6;
    begin = clock_monotonic_s();
    total += annotation_count(annotation, 5e4, 0, 1, 1, 100000); /* rows that meet every edge */
    double all_us = (clock_monotonic_s() - begin) * 1e6;
    print_message(
        "%d vertices: a count of 224 x 224 pixels takes %.1f us, one over all rows %.0f\n", 200000,
        each_us, all_us);
    assert_true(total > 0);
    assert_true(20 * each_us < all_us);
    annotation_free(annotation);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_those_of_rational_arithmetic),
        cmocka_unit_test(names_mean_what_the_table_says),
        cmocka_unit_test(a_map_comes_before_the_table),
        cmocka_unit_test(classes_without_a_meaning_are_refused),
        cmocka_unit_test(what_is_drawn_but_no_area_is_refused),
        cmocka_unit_test(a_map_says_what_regions_are),
        cmocka_unit_test(formats_are_told_by_content),
        cmocka_unit_test(an_empty_annotation_is_empty),
        cmocka_unit_test(bounds_and_area_are_exact),
        cmocka_unit_test(a_tangle_is_refused_quickly),
        cmocka_unit_test(orientation_is_exact),
        cmocka_unit_test(points_counts_and_masks_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
