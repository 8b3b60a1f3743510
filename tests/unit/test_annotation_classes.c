/* test_annotation_classes.c: class maps (pairs, YAML, bad ones), and drawings of several classes:
 * precedence, exclusions, and agreement of point, counts and mask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/annotation.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/unit/support/drawings.h"

static void must_have(const char *map_text, const char *json, const char *precedence,
                      int unlabelled, int positive)
{
    struct class_map *map = must_map(map_text);
    char *names = class_map_json(map), order[64] = "";
    assert_string_equal(names, json);
    for (int i = 0; i < class_map_n(map); i++)
        snprintf(order + strlen(order), sizeof order - strlen(order), "%d",
                 class_map_precedence(map, i));
    assert_string_equal(order, precedence);
    assert_int_equal(class_map_unlabelled(map), unlabelled);
    assert_int_equal(class_map_positive(map), positive);
    struct class_map *again = must_map(class_map_text(map));
    char *same = class_map_json(again);
    assert_string_equal(class_map_text(again), class_map_text(map));
    assert_string_equal(same, names);
    assert_int_equal(class_map_unlabelled(again), unlabelled);
    assert_int_equal(class_map_is_plain(again), class_map_is_plain(map));
    free(names);
    free(same);
    class_map_free(again);
    class_map_free(map);
}

static void maps_list_classes_in_order(void **state)
{
    (void)state;
    must_have("", "[\"normal\", \"tumor\"]", "10", 0, 1);
    must_have("DCIS=tumor,Stroma=normal", "[\"normal\", \"tumor\"]", "10", 0, 1);
    must_have("Invasive carcinoma=tumor,DCIS=Tumour,Stroma=stroma,Necrosis=ignore,Fold=exclusion",
              "[\"stroma\", \"tumor\"]", "10", -1, 1);
    must_have("a=tumor,b=fat,c=stroma,d=Normal,e=FAT",
              "[\"normal\", \"fat\", \"stroma\", "
              "\"tumor\"]",
              "3210", 0, 3);
    must_have("a=grade 3,b=grade 4", "[\"grade 3\", \"grade 4\"]", "10", -1, 1);
    must_have("{classes: [stroma, lymphoid, tumor]}", "[\"stroma\", \"lymphoid\", \"tumor\"]",
              "210", -1, 2);
    must_have("{classes: [tumor, stroma], names: {DCIS: tumor, Ink: ignore}, precedence: [tumor]}",
              "[\"tumor\", \"stroma\"]", "01", -1, 0);
    must_have("{classes: [normal, tumor], unlabelled: omit}", "[\"normal\", \"tumor\"]", "10", -1,
              1);
    must_have("{classes: [tumor]}", "[\"normal\", \"tumor\"]", "10", 0, 1);
    must_have("{names: {Gland: gland, '': gland}, unlabelled: rest}", "[\"rest\", \"gland\"]", "10",
              0, 1);
    struct class_map *map = must_map("{names: {a: tumor, b: exclusion}}");
    assert_true(class_map_is_plain(map)); /* as a=tumor,b=exclusion */
    assert_string_equal(class_map_text(map), "a=tumor,b=exclusion");
    class_map_free(map);
    const char *const blanks[] = { " a = tumor , b =exclusion", "\\ a\\ =tumor,b\\ =exclusion",
                                   "{names: {' a ': tumor, 'b ': exclusion}}" };
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++) {
        map = must_map(blanks[i]);
        assert_string_equal(class_map_text(map), "a=tumor,b=exclusion");
        class_map_free(map);
    }
    map = must_map("b=stroma,a=exclusion");
    assert_string_equal(class_map_text(map),
                        "{\"classes\": [\"stroma\"], \"names\": {\"a\": \"exclusion\", \"b\": "
                        "\"stroma\"}, \"precedence\": [\"stroma\"], \"unlabelled\": \"omit\"}");
    class_map_free(map);
}

static void names_of_classes_need_no_entry(void **state)
{
    (void)state;
    struct class_map *map = must_map("{classes: [stroma, lymphoid, tumor, normal], names: "
                                     "{Lymphocytes: lymphoid, Stroma: ignore}}");
    assert_int_equal(class_meaning(map, " LYMPHOID "), 1);
    assert_int_equal(class_meaning(map, "lymphocytes: dense"), 1);
    assert_int_equal(class_meaning(map, "stroma"), REGION_IGNORED);
    assert_int_equal(class_meaning(map, "Metastases"), 2);
    assert_int_equal(class_meaning(map, "Normal"), 3);
    assert_int_equal(class_meaning(map, "_2"), REGION_EXCLUSION);
    assert_int_equal(class_meaning(map, "Ignore*"), REGION_EXCLUSION);
    assert_int_equal(class_meaning(map, ""), REGION_UNKNOWN);
    assert_int_equal(class_meaning(map, "fat"), REGION_UNKNOWN);
    class_map_free(map);
    map = must_map("a=stroma,b=fat,=fat");
    assert_int_equal(class_meaning(map, "Tumor"), REGION_UNKNOWN);
    assert_int_equal(class_meaning(map, "normal"), REGION_UNKNOWN);
    assert_int_equal(class_meaning(map, NULL), 1);
    class_map_free(map);
}

static void bad_maps_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        { "{classes: [a, b]", "--class-map: not YAML: " },
        { "[classes]", "--class-map: '[classes]' has no meaning" },
        { "{unlabelled: omit}", "no class; name at least one" },
        { "{class: [a]}", "no key 'class'; did you mean classes?" },
        { "{colours: [a]}", "the keys are classes, names, precedence and unlabelled" },
        { "{classes: a}", "classes must be a list" },
        { "{classes: []}", "classes must be a list" },
        { "{classes: [[a]]}", "classes: a class must be a name" },
        { "{classes: [a, A]}", "class 'A' is listed twice" },
        { "{classes: [a], classes: [b]}", "'classes' is given twice" },
        { "{classes: [a, ignore]}", "'ignore' has another meaning" },
        { "{classes: [a, '']}", "a class has no name" },
        { "{classes: [a/b]}", "class 'a/b' has a slash" },
        { "{classes: [stroma, tumor], names: {x: stoma}}",
          "'stoma' is not one of the classes stroma, tumor; did you mean stroma?" },
        { "{classes: [a, b], names: [a]}", "names must consist of" },
        { "{classes: [a, b], names: {x: [a]}}", "names: a class must be a name" },
        { "{classes: [a, b], names: {x: a, X: b}}", "'X' has two meanings, a and b" },
        { "{classes: [a, b], precedence: [a, c]}", "'c' is not one of the classes a, b" },
        { "{classes: [a, b], precedence: [a, a]}", "precedence lists 'a' twice" },
        { "{classes: [a, b], unlabelled: c}", "'c' is not one of the classes" },
        { "{classes: [a, b], unlabelled: [a]}", "unlabelled: a class must be a name" },
        { "{classes: [a, b], names: {x: normal}}", "'normal' is not one of the classes" },
        { "x=label", "'label' has another meaning" },
        { "x=stroma,a\nb=fat", "name 2 is not UTF-8 text, or has a control character" },
        { "x=stroma,a\xff=fat", "name 2 is not UTF-8 text" },
        { "x=str\xc3", "a class is not UTF-8 text" },
        { "{classes: [a, \"b\\x7f\"]}", "a class is not UTF-8 text, or has a control character" },
        { "x=unlabelled", "'unlabelled' has another meaning" },
        { "x=stroma,X=fat", "'X' has two meanings, stroma and fat" },
        { "no/such.yaml", "no/such.yaml: " },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err err = { 0 };
        struct class_map *map = NULL;
        if (class_map_parse(wrong[i][0], &map, &err))
            fail_msg("accepted: %s", wrong[i][0]);
        assert_null(map);
        if (!strstr(err.text, wrong[i][1]))
            fail_msg("expected \"%s\" in \"%s\"", wrong[i][1], err.text);
    }
    static const char lines[] = "classes: [a, b]\nnames:\n  x: a\n  y: d\n";
    struct class_map *map = NULL;
    struct err err = { 0 };
    assert_false(class_map_parse_yaml(lines, strlen(lines), "map.yaml", &map, &err));
    assert_string_equal(err.text,
                        "map.yaml:4: 'd' is not one of the classes a, b; did you mean a?");
    char *many = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&many, &size);
    for (int i = 0; i <= CLASS_MOST; i++)
        fprintf(stream, "n%d=c%d,", i, i);
    fclose(stream);
    assert_false(class_map_parse(many, &map, &err));
    assert_non_null(strstr(err.text, "more than 120 classes"));
    free(many);
}

#define BOX(class, left, right)                                                                    \
    FEATURE(NAMED(class), "[[" left ",0],[" right ",0],[" right ",10],[" left ",10]]")

static const char boxes[] = "[" BOX("Stroma", "0", "20") "," BOX("Lymphoid", "5", "15") "," BOX(
    "Tumor", "10", "25") "," BOX("Fold", "18", "22") "]";

static char sign_of(int class)
{
    return class == ANNOTATION_UNDRAWN    ? '.'
           : class == ANNOTATION_EXCLUDED ? 'x'
                                          : (char)('0' + class);
}

static void precedence_decides_where_classes_overlap(void **state)
{
    (void)state;
    static const struct {
        const char *map;
        const char *pieces[6]; /* what is at x = 0.5, 1.5, ... 29.5 */
    } cases[] = {
        { "{classes: [stroma, lymphoid, tumor], names: {fold: exclusion}}",
          { "00000", "11111", "22222222", "xxxx", "222", "....." } },
        { "{classes: [stroma, lymphoid, tumor], names: {fold: ignore}}",
          { "00000", "11111", "2222222222", "22222", ".....", "" } },
        { "{classes: [stroma, lymphoid, tumor], names: {fold: exclusion}, precedence: [lymphoid, "
          "stroma]}",
          { "00000", "1111111111", "000", "xxxx", "222", "....." } },
        { "{classes: [tumor, stroma, lymphoid], names: {fold: stroma}}",
          { "11111", "2222222222", "1111111", "000", ".....", "" } },
        { "Fold=tumor,Lymphoid=lymphoid,Stroma=stroma",
          { "1111111111", "2222222222", "22222", ".....", "", "" } },
        { "Fold=exclusion,Stroma=ignore,Lymphoid=normal", /* two classes: holes */
          { "...............", "111", "....", "111", ".....", "" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct annotation *annotation = must_parse(boxes, cases[i].map);
        char want[31], got[31] = "";
        int64_t counts[3] = { 0 }, want_counts[3] = { 0 }, excluded = 0;
        snprintf(want, sizeof want, "%s%s%s%s%s%s", cases[i].pieces[0], cases[i].pieces[1],
                 cases[i].pieces[2], cases[i].pieces[3], cases[i].pieces[4], cases[i].pieces[5]);
        for (int x = 0; x < 30; x++) {
            got[x] = sign_of(annotation_class_at(annotation, x, 0));
            excluded += 10 * (want[x] == 'x');
            if (want[x] >= '0' && want[x] <= '2')
                want_counts[want[x] - '0'] += 10;
        }
        assert_string_equal(got, want);
        assert_int_equal(annotation_class_counts(annotation, 0, 0, 1, 30, 10, counts), excluded);
        assert_memory_equal(counts, want_counts, sizeof counts);
        /* the same with nothing but one class, or one class and nothing, in the window */
        assert_int_equal(annotation_class_counts(annotation, 0, -10, 1, 30, 10, counts), 0);
        assert_int_equal(counts[0] + counts[1] + counts[2], 0);
        annotation_class_counts(annotation, 0, -5, 1, 5, 10, counts);
        for (int c = 0; c < 3; c++)
            assert_int_equal(counts[c], want[0] == '0' + c ? 25 : 0);
        annotation_free(annotation);
    }
}

static void unknown_classes_show_what_to_add(void **state)
{
    (void)state;
    struct class_map *map = must_map("{classes: [stroma, tumor], names: {fold: ignore}}");
    struct annotation *annotation = NULL;
    struct err err = { 0 };
    assert_false(annotation_parse(boxes, strlen(boxes), "drawing", NULL, map, &annotation, &err));
    assert_string_equal(err.text,
                        "drawing: regions of unknown class: 'Lymphoid' (1); add "
                        "\"Lymphoid=MEANING\" to --class-map (in YAML: NAME: MEANING, under "
                        "names), where MEANING is stroma, tumor, exclusion or ignore");
    class_map_free(map);
}

#define N_CLASSES 4
static const char *const names[N_CLASSES + 1] = { "a", "b", "c", "d", "hole" };

/* Stars that cross themselves and each other, of every class and the exclusion; `only` >= 0: those
 * of one class. */
static char *stars(int only)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct rng rng = rng_new(17, 0, 0);
    bool first = true;
    fputs("[", stream);
    for (int k = 0; k < 60; k++) {
        int class = k % (N_CLASSES + 1);
        double x = rng_between(&rng, 0, 1000), y = rng_between(&rng, 0, 1000);
        double radius = rng_between(&rng, 20, class == N_CLASSES ? 60 : 250);
        bool wanted = only < 0 || only == class;
        if (wanted)
            fprintf(stream,
                    "%s{\"type\":\"Feature\",\"properties\":{\"classification\":{\"name\":\"%s\"}}"
                    ",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[",
                    first ? "" : ",", names[class]);
        for (int i = 0; i <= 7; i++) {
            double angle = 2 * acos(-1) * (3 * i % 7) / 7 + x;
            if (wanted)
                fprintf(stream, "%s[%.2f,%.2f]", i ? "," : "", x + radius * cos(angle),
                        y + radius * sin(angle));
        }
        if (wanted)
            fputs("]]}}", stream), first = false;
    }
    fputs("]", stream);
    fclose(stream);
    return text;
}

/* The class by the drawings of one class each. */
static int by_single_drawings(struct annotation *const *single, const int *precedence, double x,
                              double y)
{
    if (annotation_contains(single[N_CLASSES], x, y))
        return ANNOTATION_EXCLUDED;
    for (int rank = 0; rank < N_CLASSES; rank++)
        if (annotation_contains(single[precedence[rank]], x, y))
            return precedence[rank];
    return ANNOTATION_UNDRAWN;
}

static void points_counts_and_masks_agree(void **state)
{
    (void)state;
    static const int precedence[N_CLASSES] = { 2, 0, 3, 1 };
    char *text = stars(-1);
    struct annotation *all =
        must_parse(text, "{classes: [a, b, c, d], names: {hole: exclusion}, precedence: [c, a]}");
    struct annotation *single[N_CLASSES + 1];
    free(text);
    for (int c = 0; c <= N_CLASSES; c++) {
        text = stars(c);
        single[c] = must_parse(text, "a=tumor,b=tumor,c=tumor,d=tumor,hole=tumor");
        free(text);
    }
    struct rng rng = rng_new(5, 0, 0);
    int64_t seen[N_CLASSES + 2] = { 0 };
    for (int k = 0; k < 60; k++) {
        double x = rng_between(&rng, -50, 950), y = rng_between(&rng, -50, 950);
        double step = rng_between(&rng, 0.01, 3);
        int64_t width = k < 50 ? 41 : 600, height = k < 50 ? 37 : 61; /* one block, or several */
        int64_t counts[N_CLASSES], want[N_CLASSES + 2] = { 0 };
        struct image mask;
        assert_true(annotation_class_mask(all, x, y, step, width, height, &mask, NULL));
        for (int64_t i = 0; i < width * height; i++) {
            double px = x + ((double)(i % width) + 0.5) * step;
            double py = y + ((double)(i / width) + 0.5) * step;
            int class = annotation_class_at(all, px, py);
            assert_int_equal(class, by_single_drawings(single, precedence, px, py));
            int place = class == ANNOTATION_UNDRAWN    ? N_CLASSES
                        : class == ANNOTATION_EXCLUDED ? N_CLASSES + 1
                                                       : class;
            assert_int_equal(mask.px[i], class == ANNOTATION_UNDRAWN    ? 255
                                         : class == ANNOTATION_EXCLUDED ? 254
                                                                        : class);
            want[place]++;
            seen[place]++;
        }
        assert_int_equal(annotation_class_counts(all, x, y, step, width, height, counts),
                         want[N_CLASSES + 1]);
        assert_memory_equal(counts, want, sizeof counts);
        assert_int_equal(annotation_count(all, x, y, step, width, height), want[3]);
        image_free(&mask);
    }
    for (int i = 0; i < N_CLASSES + 2; i++)
        assert_true(seen[i] > 1000);
    annotation_free(all);
    for (int c = 0; c <= N_CLASSES; c++)
        annotation_free(single[c]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_list_classes_in_order),
        cmocka_unit_test(names_of_classes_need_no_entry),
        cmocka_unit_test(bad_maps_are_refused),
        cmocka_unit_test(precedence_decides_where_classes_overlap),
        cmocka_unit_test(unknown_classes_show_what_to_add),
        cmocka_unit_test(points_counts_and_masks_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
