/* test_annotation_formats.c: annotation files that are wrong, each refused with the place; COCO,
 * HALO and label images in particular. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/annotation.h"
#include "base/file.h"
#include "base/png_labels.h"
#include "base/text.h"
#include "tests/unit/support/drawings.h"
#include "tests/unit/support/paths.h"

#define ASAP(points)                                                                               \
    "<?xml version=\"1.0\"?>\n<ASAP_Annotations>\n<Annotations>\n"                                 \
    "<Annotation Name=\"a\" Type=\"Polygon\" PartOfGroup=\"Tumor\">\n<Coordinates>\n" points       \
    "</Coordinates>\n</Annotation>\n</Annotations>\n</ASAP_Annotations>\n"
#define AT(x, y) "<Coordinate X=\"" x "\" Y=\"" y "\"/>\n"

static void bad_xml_is_refused_with_the_line(void **state)
{
    (void)state;
    must_refuse(ASAP(AT("0", "0") AT("1", "0")),
                "drawing:4: a polygon has fewer than 3 distinct points");
    must_refuse(ASAP(AT("0", "0") AT("1", "0") AT("0", "0") AT("1", "0")), "fewer than 3 distinct");
    must_refuse(ASAP(AT("0", "0") AT("1", "1") AT("2", "2")), "drawing:4: a polygon has no area");
    must_refuse(ASAP(""), "drawing:4: a polygon has fewer than 3");
    must_refuse(ASAP(AT("0", "0") AT("nan", "0") AT("1", "1")),
                "drawing:7: X=\"nan\" is not a number");
    must_refuse(ASAP(AT("0", "0") AT("1", "") AT("1", "1")), "drawing:7: Y=\"\" is not a number");
    must_refuse(ASAP(AT("0", "0") "<Coordinate X=\"1\"/>"), "drawing:7: <Coordinate> has no Y");
    must_refuse(ASAP(AT("0", "0") AT("1e300", "0") AT("1", "1")),
                "drawing:4: the point (1e+300, 0)");
    must_refuse(ASAP(AT("0", "0") "<Coordinate X=\"&big;\" Y=\"0\"/>"),
                "drawing:7: not well-formed");
    must_refuse("<Annotations><Annotation><Regions>\n<Region Type='1'><Vertices>"
                "<Vertex X='1' Y='1'/></Vertices></Region></Regions></Annotation></Annotations>",
                "drawing:2: a polygon has fewer than 3");
    must_refuse("<html><body/></html>", "its root is <html>");
    must_refuse("<ASAP_Annotations>\n<Annotations>", "drawing:2: not well-formed XML");
    const char *whole = ASAP(AT("0", "0") AT("9", "0") AT("9", "9"));
    for (size_t cut = 1; cut + 2 < strlen(whole); cut++)
        must_refuse_bytes(whole, cut, "drawing:");
}

static void an_entity_bomb_is_refused_unopened(void **state)
{
    (void)state;
    must_refuse(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE ASAP_Annotations [\n<!ENTITY a \"aaaaaaaaaa\">\n"
        "<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">\n"
        "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\">\n"
        "<!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">\n"
        "<!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;\">\n"
        "<!ENTITY f \"&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;\">\n"
        "<!ENTITY g \"&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;\">\n]>\n"
        "<ASAP_Annotations Name=\"&g;\">&g;</ASAP_Annotations>",
        "document type, which could contain an entity bomb");
    must_refuse("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><ASAP_Annotations/>", "document type");
}

static void bad_json_is_refused_with_the_place(void **state)
{
    (void)state;
    must_refuse("[\n" FEATURE("", "[[0,0],[NaN,0],[1,1]]") "]",
                "drawing: feature 1: point 2 of a ring is not [x, y]");
    must_refuse("[" FEATURE("", "[[0,0],[1e999,0],[1,1]]") "]", "not JSON");
    must_refuse("[" FEATURE("", "[[0,0],[1e30,0],[1,1]]") "]", "feature 1: the point (1e+30, 0)");
    must_refuse("[" FEATURE("", SQUARE) "," FEATURE("", "[[0,0],[1,0],[0,0]]") "]",
                "drawing: feature 2: a polygon has fewer than 3 distinct points");
    must_refuse("[" FEATURE("", "[[0,0],[5,0],[9,0],[0,0]]") "]",
                "feature 1: a polygon has no area");
    must_refuse("[" FEATURE("", "[[0,0],[5,\"a\"],[9,0]]") "]", "point 2 of a ring is not [x, y]");
    must_refuse("[" FEATURE("", "7") "]", "feature 1: a ring of the polygon is not a list");
    must_refuse("[" FEATURE("", SQUARE) ",3]", "feature 2: not an object");
    must_refuse("{\"type\":\"Feature\",\"geometry\":{\"type\":\"Blob\"}}", "not a GeoJSON type");
    must_refuse("{\"type\":\"FeatureCollection\"}", "has no list of features");
    must_refuse("{\"positive\":[{\"vertices\":[[0,0],[1,0]]}]}",
                "positive region 1: a polygon has");
    must_refuse("{\"positive\":7}", "\"positive\" is not a list");
    must_refuse("{\"positive\":[], \"negative\":[{}]}", "negative region 1: no list");
    must_refuse("{\"a\":1}", "this JSON is not an annotation");
    must_refuse("[", "drawing:1: not JSON");
    char deep[100001];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    must_refuse(deep, "not JSON");
}

/* One image of 4 x 3 px, slide "a". */
#define COCO(annotation)                                                                           \
    "{\"images\":[{\"id\":1,\"file_name\":\"a.svs\",\"width\":4,\"height\":3}],"                   \
    "\"categories\":[{\"id\":1,\"name\":\"Tumor\"}],\"annotations\":[" annotation "]}"
#define OBJECT(rest) "{\"image_id\":1,\"category_id\":1," rest "}"

static void bad_coco_is_refused_with_the_place(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { OBJECT("\"segmentation\":[[0,0,1,0]]"), "drawing: annotation 1: a polygon of" },
        { OBJECT("\"segmentation\":[[0,0,1,0,1,null]]"), "coordinates 5 and 6 of a polygon" },
        { OBJECT("\"segmentation\":[],\"bbox\":[1,1,0,2]"), "the bbox is not [x, y," },
        { OBJECT("\"segmentation\":{\"size\":[3,4],\"counts\":[5,2]}"), "add up to 7 of 12" },
        { OBJECT("\"segmentation\":{\"size\":[3,4],\"counts\":[5,-2,9]}"), "more than its" },
        { OBJECT("\"segmentation\":{\"size\":[3,4],\"counts\":[5,9]}"), "more than its pixels" },
        { OBJECT("\"segmentation\":{\"size\":[3,4],\"counts\":\"5 2\"}"), "neither run lengths" },
        { OBJECT("\"segmentation\":{\"size\":[3,4],\"counts\":\"ooooooooooo\"}"), "neither run" },
        { OBJECT("\"segmentation\":{\"size\":[3,4]}"), "neither run lengths" },
        { OBJECT("\"segmentation\":{\"counts\":[12]}"), "\"size\" of the mask is not" },
        { OBJECT("\"segmentation\":{\"size\":[4,3],\"counts\":[12]}"),
          "the mask is 3 x 4 px, but the image is 4 x 3 px" },
        { "{\"image_id\":1,\"category_id\":5,\"bbox\":[0,0,1,1]}",
          "annotation 1: category_id 5 is not in the list" },
        { "{\"category_id\":1,\"bbox\":[0,0,1,1]}", "annotation 1: has no image_id" },
        { OBJECT("\"keypoints\":[1,1,2]"), "contains no area" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = text_format(COCO("%s"), cases[i][0]);
        must_refuse(text, cases[i][1]);
        free(text);
    }
}

/* Packed numbers are differences, whose sums must not overflow. */
static void huge_packed_numbers_are_refused(void **state)
{
    (void)state;
    static const char number[] = "oooooooo?"; /* 2^44 - 1 */
    enum { N = 1 << 21, LENGTH = sizeof number - 1 };
    char *packed = malloc((size_t)N * LENGTH + 1);
    assert_non_null(packed);
    for (size_t i = 0; i < N; i++)
        memcpy(packed + i * LENGTH, number, sizeof number);
    char *text =
        text_format(COCO(OBJECT("\"segmentation\":{\"size\":[3,4],\"counts\":\"%s\"}")), packed);
    must_refuse(text, "more than its pixels");
    free(text), free(packed);
}

static void a_mask_gives_the_size_if_the_image_does_not(void **state)
{
    (void)state;
    static const char text[] =
        "{\"images\":[{\"id\":1,\"file_name\":\"a.svs\"}],\"annotations\":[{\"image_id\":1,"
        "\"segmentation\":{\"size\":[3,4],\"counts\":[4,1,7]}}]}";
    struct annotation_slide slide = { "a", 40, 30 }, other = { "a", 40, 80 };
    struct annotation *annotation = NULL;
    assert_true(annotation_parse(text, strlen(text), "drawing", &slide, NULL, &annotation, NULL));
    assert_true(annotation_contains(annotation, 15, 15));
    assert_true(annotation_area_px(annotation) == 100);
    annotation_free(annotation);
    annotation = NULL;
    struct err err = { 0 };
    assert_false(annotation_parse(text, strlen(text), "drawing", &other, NULL, &annotation, &err));
    assert_non_null(strstr(err.text, "of other proportions"));
}

/* Each hole of a layer is found by every region it may touch, whatever their order and size. */
static void holes_of_many_regions_are_found(void **state)
{
    (void)state;
    enum { N = 400 };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fprintf(out, "<Annotations><Annotation Name=\"Tumor\"><Regions>");
    for (int i = 0; i < 2 * N; i++) { /* squares of 20 px with a hole of 2 or 18 px */
        int k = i * 7 % (2 * N), hole = k % 2, inset = !hole ? 0 : k % 3 ? 1 : 9;
        int x0 = 30 * (k / 2 % 20) + inset, y0 = 30 * (k / 2 / 20) + inset, side = 20 - 2 * inset;
        fprintf(out,
                "<Region Type=\"Rectangle\" HasEndcaps=\"0\" NegativeROA=\"%d\"><Vertices><V "
                "X=\"%d\" Y=\"%d\"/><V X=\"%d\" Y=\"%d\"/></Vertices></Region>",
                hole, x0, y0, x0 + side, y0 + side);
    }
    fprintf(out, "</Regions></Annotation></Annotations>");
    assert_int_equal(fclose(out), 0);
    struct annotation *annotation = must_parse(text, NULL);
    for (int k = 0; k < N; k++) {
        int large = (2 * k + 1) % 3 != 0;
        double x = 30 * (k % 20), y = 30.0 * (k / 20);
        assert_false(annotation_contains(annotation, x + 10, y + 10));
        assert_int_equal(annotation_contains(annotation, x + 5, y + 5), !large);
        assert_true(annotation_contains(annotation, x + 0.5, y + 0.5));
    }
    annotation_free(annotation);
    free(text);
}

static void must_refuse_for(const char *text, const struct annotation_slide *slide,
                            const char *expected)
{
    struct annotation *annotation = NULL;
    struct err err = { 0 };
    assert_false(annotation_parse(text, strlen(text), "drawing", slide, NULL, &annotation, &err));
    if (!strstr(err.text, expected))
        fail_msg("expected \"%s\" in \"%s\"", expected, err.text);
}

static void an_image_is_found_by_the_slide_and_has_its_shape(void **state)
{
    (void)state;
    static const char one[] = COCO(OBJECT("\"bbox\":[1,1,2,1]"));
    struct annotation_slide slide = { "a", 40, 31 };
    struct annotation *annotation = NULL;
    double x0, y0, x1, y1;
    assert_true(annotation_parse(one, strlen(one), "drawing", &slide, NULL, &annotation, NULL));
    assert_true(annotation_bounds(annotation, &x0, &y0, &x1, &y1));
    assert_true(x0 == 10 && y0 == 10 && x1 == 30 && y1 == 20);
    annotation_free(annotation);
    must_refuse_for(one, &(struct annotation_slide){ "b", 40, 30 },
                    "drawing: none of its images is named after the slide 'b'; it has 'a.svs'");
    must_refuse_for(one, &(struct annotation_slide){ "a", 40, 60 },
                    "drawing: is 4 x 3 px, but the slide is 40 x 60 px");
    static const char two[] = "{\"images\":[{\"id\":1,\"file_name\":\"x/a.svs\"},{\"id\":2,"
                              "\"file_name\":\"a.png\"}],\"annotations\":[]}";
    must_refuse_for(two, &slide, "two images are named after the slide 'a': 'x/a.svs' and 'a.png'");
    must_refuse_for(two, NULL, "it has 'x/a.svs', 'a.png'; which of them is meant is unknown");
}

static void bad_halo_is_refused_with_the_line(void **state)
{
    (void)state;
#define HALO(region)                                                                               \
    "<Annotations><Annotation Name='Tumor'><Regions>\n" region                                     \
    "</Regions></Annotation></Annotations>"
    must_refuse(HALO("<Region Type='Ellipse'><Vertices><V X='1' Y='1'/></Vertices></Region>"),
                "drawing:2: a rectangle or an ellipse needs two corners");
    must_refuse(HALO("<Region Type='Polygon'><Vertices><V X='1'/></Vertices></Region>"),
                "drawing:2: <V> has no Y");
    must_refuse(HALO("<Region Type='Polygon'><Vertices><V X='1' Y='1'/></Vertices></Region>"),
                "drawing:2: a polygon has fewer than 3 distinct points");
    must_refuse(HALO("<Region Type='Ruler'><Vertices><V X='1' Y='1'/></Vertices></Region>"),
                "contains no area (objects drawn: 1, the first is 'Ruler')");
    must_refuse(HALO("<Region Type='Polygon' NegativeROA='1'><Vertices><V X='1' Y='1'/>"
                     "</Vertices></Region>"),
                "the first is 'NegativeROA in a layer without other regions'");
}

struct pixels {
    int64_t width, height;
    uint16_t labels[64 * 64];
};

static bool begin_pixels(void *arg, int64_t width, int64_t height, struct err *err)
{
    struct pixels *pixels = arg;
    (void)err;
    pixels->width = width, pixels->height = height;
    return width <= 64 && height <= 64;
}

static bool take_pixels(void *arg, int64_t y, const uint16_t *labels, struct err *err)
{
    struct pixels *pixels = arg;
    (void)err;
    memcpy(pixels->labels + y * pixels->width, labels, (size_t)pixels->width * sizeof *labels);
    return true;
}

/* Numbers 1 and 3 are one class, so that their common edges are inside it. */
static void numbers_of_a_label_image_are_classes(void **state)
{
    (void)state;
    static const int classes[] = { -1, 0, 1, 0 };
    char *path = source_path("tests/golden/annotation/labels.png"), *bytes = NULL;
    size_t size = 0;
    struct pixels pixels;
    struct png_labels_taker taker = { begin_pixels, take_pixels, &pixels };
    assert_true(file_read(path, 1 << 20, &bytes, &size, NULL));
    assert_true(png_labels_read(bytes, size, path, &taker, NULL));
    struct annotation_slide slide = { "a", 4 * pixels.width, 4 * pixels.height };
    struct class_map *map = must_map("{classes: [a, b], names: {1: a, 3: a, 2: b}}");
    struct annotation *annotation = NULL;
    assert_true(annotation_parse(bytes, size, path, &slide, map, &annotation, NULL));
    int64_t counts[2] = { 0 }, all[3] = { 0 };
    for (int64_t y = 0; y < pixels.height; y++)
        for (int64_t x = 0; x < pixels.width; x++) {
            int class = classes[pixels.labels[y * pixels.width + x]];
            double x_l0 = 4 * (double)x, y_l0 = 4 * (double)y;
            int at = annotation_class_at(annotation, x_l0 + 1.5, y_l0 + 2.5);
            assert_int_equal(at, class < 0 ? ANNOTATION_UNDRAWN : class);
            assert_int_equal(annotation_class_at(annotation, x_l0, y_l0), at);
            all[class + 1]++;
        }
    annotation_class_counts(annotation, 0, 0, 1, slide.width_l0, slide.height_l0, counts);
    assert_true(all[1] > 0 && all[2] > 0);
    assert_int_equal(counts[0], 16 * all[1]);
    assert_int_equal(counts[1], 16 * all[2]);
    annotation_free(annotation);
    class_map_free(map);
    free(bytes), free(path);
}

static void bad_label_images_are_refused(void **state)
{
    (void)state;
    char *path = source_path("tests/golden/annotation/labels.png"), *bytes = NULL;
    size_t size = 0;
    struct annotation *annotation = NULL;
    struct err err = { 0 };
    assert_true(file_read(path, 1 << 20, &bytes, &size, NULL));
    must_refuse_bytes(bytes, size, "the size of the slide is unknown");
    struct annotation_slide slide = { "a", 37, 29 };
    assert_false(annotation_parse(bytes, size, "drawing", &slide, NULL, &annotation, &err));
    assert_non_null(strstr(err.text, "regions of unknown class: '"));
    assert_non_null(strstr(err.text, "1=MEANING"));
    slide.height_l0 = 40;
    assert_false(annotation_parse(bytes, size, "drawing", &slide, NULL, &annotation, &err));
    assert_non_null(strstr(err.text, "drawing: is 37 x 29 px, but the slide is 37 x 40 px"));
    slide.height_l0 = 29;
    for (size_t cut = 8; cut < size; cut += size / 7) {
        assert_false(annotation_parse(bytes, cut, "drawing", &slide, NULL, &annotation, &err));
        assert_non_null(strstr(err.text, "drawing: not a readable label image"));
    }
    bytes[25] = 2; /* the colour type: RGB */
    assert_false(annotation_parse(bytes, size, "drawing", &slide, NULL, &annotation, &err));
    free(bytes), free(path);
}

static void what_is_no_annotation_is_refused(void **state)
{
    (void)state;
    must_refuse("", "drawing: the file is empty");
    must_refuse(" \n\t", "drawing: the file is empty");
    must_refuse("x,y\n1,2\n", "not an annotation");
    must_refuse_bytes("\0\1\2\3\4\5", 6, "not an annotation");
    must_refuse_bytes("II*\0\20\0\0\0\377\330\377\340", 12, "not an annotation");
    must_refuse_bytes("\xff\xfe\0\0", 4, "drawing:");
    struct annotation *annotation = NULL;
    struct err err = { 0 };
    assert_false(annotation_read("no/such/file.xml", NULL, NULL, &annotation, &err));
    assert_non_null(strstr(err.text, "no/such/file.xml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_annotation_is_refused),
        cmocka_unit_test(bad_xml_is_refused_with_the_line),
        cmocka_unit_test(an_entity_bomb_is_refused_unopened),
        cmocka_unit_test(bad_json_is_refused_with_the_place),
        cmocka_unit_test(bad_coco_is_refused_with_the_place),
        cmocka_unit_test(huge_packed_numbers_are_refused),
        cmocka_unit_test(a_mask_gives_the_size_if_the_image_does_not),
        cmocka_unit_test(holes_of_many_regions_are_found),
        cmocka_unit_test(an_image_is_found_by_the_slide_and_has_its_shape),
        cmocka_unit_test(bad_halo_is_refused_with_the_line),
        cmocka_unit_test(numbers_of_a_label_image_are_classes),
        cmocka_unit_test(bad_label_images_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
