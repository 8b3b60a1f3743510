/* test_verdict_features.c: features and lesions of heatmaps against numpy, scipy and skimage
 * (tests/golden/verdict_features.py); heatmap files, their classes and places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/folder.h"
#include "support/golden_json.h"
#include "support/heatmaps.h"
#include "support/paths.h"
#include "verdict/features.h"
#include "verdict/lesion_finder.h"
#include "base/text.h"

static struct heat_field field_of(const json_t *want)
{
    struct heat_field field = { .width = (int64_t)golden_number(want, "width", 0),
                                .height = (int64_t)golden_number(want, "height", 0) };
    const json_t *values = json_object_get(want, "values");
    assert_int_equal(json_array_size(values), field.width * field.height);
    field.values = calloc(json_array_size(values), sizeof *field.values);
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        field.tissue += json_is_number(value);
        field.values[i] = (float)json_number_value(value); /* null: 0 */
    }
    assert_int_equal(field.tissue, golden_number(want, "tissue", 0));
    return field;
}

static void check_set(const struct feature_set *set, const struct heat_field *field,
                      const json_t *want)
{
    double values[FEATURES_MOST];
    struct err err = { 0 };
    assert_int_equal(json_array_size(json_object_get(want, set->name)), set->n);
    assert_true(set->compute(field, golden_number(want, "threshold", 0), values, &err));
    for (int k = 0; k < set->n; k++) /* mean probabilities are float32 there */
        assert_near(values[k], golden_number(want, set->name, (size_t)k), 2e-6, set->names[k]);
}

static void features_are_as_published(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/features.json");
    json_t *cases = json_object_get(golden, "cases");
    assert_int_equal(json_array_size(cases), 4);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *want = json_array_get(cases, i);
        struct heat_field field = field_of(want);
        for (int k = 0; feature_sets[k]; k++) {
            assert_string_equal(feature_sets[k]->name, feature_set_names[k]);
            check_set(feature_sets[k], &field, want);
        }
        free(field.values);
    }
    json_decref(golden);
}

static void check_components(const struct heat_field *field, const json_t *want)
{
    struct lesion_list list;
    struct err err = { 0 };
    json_t *scores = json_object_get(want, "scores");
    assert_true(lesions_by_components(field, 0.6, golden_number(want, "open", 0),
                                      golden_number(want, "close", 0), &list, &err));
    assert_int_equal(list.n, json_array_size(scores));
    for (int64_t i = 0; i < list.n; i++) {
        const struct lesion *lesion = &list.items[i];
        assert_near(lesion->score, golden_number(want, "scores", (size_t)i), 1e-6, "score");
        int64_t cell = (int64_t)lesion->y_l0 * field->width + (int64_t)lesion->x_l0;
        assert_true((double)field->values[cell] == lesion->score);
    }
    lesions_free(&list);
}

static void check_suppression(const struct heat_field *field, const json_t *want)
{
    struct lesion_list list;
    struct err err = { 0 };
    json_t *lesions = json_object_get(want, "suppression");
    assert_true(lesions_by_suppression(field, 0.5, 4.5, &list, &err));
    assert_int_equal(list.n, json_array_size(lesions));
    for (int64_t i = 0; i < list.n; i++) {
        json_t *lesion = json_array_get(lesions, (size_t)i);
        assert_near(list.items[i].score, json_number_value(json_array_get(lesion, 0)), 1e-6,
                    "score");
        assert_int_equal(list.items[i].x_l0, json_integer_value(json_array_get(lesion, 1)));
        assert_int_equal(list.items[i].y_l0, json_integer_value(json_array_get(lesion, 2)));
    }
    lesions_free(&list);
}

static void lesions_are_as_in_numpy_and_skimage(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/verdict/features.json");
    json_t *cases = json_object_get(golden, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *want = json_array_get(cases, i), *ways = json_object_get(want, "components");
        struct heat_field field = field_of(want);
        assert_int_equal(json_array_size(ways), 4);
        for (size_t k = 0; k < json_array_size(ways); k++)
            check_components(&field, json_array_get(ways, k));
        check_suppression(&field, want);
        free(field.values);
    }
    json_decref(golden);
}

/* A plateau of equal scores is placed in its middle, not at its first cell. */
static void a_plateau_is_placed_in_its_middle(void **state)
{
    (void)state;
    float values[15 * 15] = { 0 };
    struct heat_field field = { values, 15, 15, 225 };
    struct lesion_list list;
    for (int y = 3; y < 10; y++)
        for (int x = 5; x < 12; x++)
            values[15 * y + x] = 1;
    assert_true(lesions_by_components(&field, 0.9, 0, 0, &list, NULL));
    assert_int_equal(list.n, 1);
    assert_true(list.items[0].x_l0 == 8 && list.items[0].y_l0 == 6);
    const struct heatmap_info info = { .width_l0 = 480,
                                       .height_l0 = 480,
                                       .downsample = 2,
                                       .stride = 16,
                                       .origin_x = 8,
                                       .origin_y = 8 };
    lesions_place(&list, &info);
    assert_true(list.items[0].x_l0 == 2 * (8 + 16 * 8) && list.items[0].y_l0 == 2 * (8 + 16 * 6));
    lesions_free(&list);
}

/* If more than half of a cell is beyond the slide, so is its centre. */
static void lesions_lie_on_the_slide(void **state)
{
    (void)state;
    struct lesion at = { 1, 3, 2 };
    struct lesion_list list = { .items = &at, .n = 1 };
    const struct heatmap_info info = { .width_l0 = 3 * 64 + 10,
                                       .height_l0 = 2 * 64 + 1,
                                       .downsample = 1,
                                       .stride = 64,
                                       .origin_x = 32,
                                       .origin_y = 32 };
    lesions_place(&list, &info);
    assert_true(at.x_l0 == 3 * 64 + 9 && at.y_l0 == 2 * 64);
}

static void write_heatmap(const char *folder, const char *slide, int64_t n_classes)
{
    static char *names[] = { "normal", "tumour", "other" };
    struct heatmap_info info = heatmaps_facts(slide, 64, 48, n_classes); /* 4 x 3 cells */
    info.class_names = names;
    struct heatmap_writer *writer;
    struct err err = { 0 };
    float rows[12 * 3];
    for (int i = 0; i < 12 * (int)n_classes; i++)
        rows[i] = i < 2 * (int)n_classes ? NAN : (float)(i % (int)n_classes) / 4;
    if (!file_make_folder(folder, &err) || !heatmap_create(folder, &info, &writer, &err) ||
        !heatmap_write_rows(writer, rows, 3, &err) || !heatmap_commit(writer, &err))
        fail_msg("%s", err.text);
}

static void heatmaps_are_found_and_read(void **state)
{
    (void)state;
    char *root = scratch_path("verdict_heatmaps");
    char *two = text_format("%s/two", root), *three = text_format("%s/three", root);
    char *empty = text_format("%s/empty", root);
    char **folders;
    size_t n, unfinished;
    struct err err = { 0 };
    struct heatmap *heatmap;
    struct heat_field field;
    int64_t index;
    write_heatmap(two, "two", 2);
    write_heatmap(three, "three", 3);
    assert_true(file_make_folder(empty, &err));
    assert_true(heat_list(&root, 1, &folders, &n, &unfinished, &err));
    assert_int_equal(n, 2);
    assert_int_equal(unfinished, 0);
    assert_string_equal(folders[0], three);
    folder_names_free(folders, n);
    assert_false(heat_list(&empty, 1, &folders, &n, &unfinished, &err));
    assert_non_null(
        strstr(err.text, "no heatmaps in this folder; create them with 'microtome predict"));

    assert_true(heatmap_open(two, &heatmap, &err));
    assert_true(heat_class(heatmap, NULL, &index, &err) && index == 1);
    assert_true(heat_class(heatmap, "normal", &index, &err) && index == 0);
    assert_true(heat_class(heatmap, "1", &index, &err) && index == 1);
    assert_false(heat_class(heatmap, "tumor", &index, &err));
    assert_string_equal(err.text, "two: has no class 'tumor'; --class may be normal, tumour");
    assert_true(heat_field_read(heatmap, 1, &field, &err));
    assert_true(field.width == 4 && field.height == 3 && field.tissue == 10);
    assert_true(field.values[0] == 0 && field.values[1] == 0 && field.values[2] == 0.25f);
    free(field.values);
    heatmap_close(heatmap);
    assert_true(heatmap_open(three, &heatmap, &err));
    assert_false(heat_class(heatmap, NULL, &index, &err));
    assert_non_null(
        strstr(err.text, "more than two classes (normal, tumour, other); pass --class"));
    heatmap_close(heatmap);
    free(root), free(two), free(three), free(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_as_published),
        cmocka_unit_test(lesions_are_as_in_numpy_and_skimage),
        cmocka_unit_test(a_plateau_is_placed_in_its_middle),
        cmocka_unit_test(lesions_lie_on_the_slide),
        cmocka_unit_test(heatmaps_are_found_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
