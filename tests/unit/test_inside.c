/* test_inside.c: outlines and label images as masks of windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "explain/inside.h"
#include "support/cohort.h"

/* A square from 8 to 16, both ways, in level-0 px. */
static const char square[] =
    "{\"type\":\"FeatureCollection\",\"features\":[{\"type\":\"Feature\",\"geometry\":{\"type\":"
    "\"Polygon\",\"coordinates\":[[[8,8],[16,8],[16,16],[8,16],[8,8]]]},\"properties\":{}}]}";

/* SCRATCH/inside with a.geojson; the caller's. */
static char *write_square(void)
{
    char *folder = cohort_folder("inside");
    char path[4096];
    snprintf(path, sizeof path, "%s/a.geojson", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(square, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return folder;
}

static void assert_mask(struct inside *inside, const char *name, double step, const char *want)
{
    struct err err = { 0 };
    const struct inside_window window = { name, 4, 4, step, 4, 4 };
    uint8_t mask[16];
    char got[17] = "";
    if (!inside_mask(inside, &window, mask, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 16; i++)
        got[i] = mask[i] ? '#' : '.';
    assert_string_equal(got, want);
}

static void test_windows(void **state)
{
    (void)state;
    char *folder = write_square();
    struct err err = { 0 };
    struct inside *inside = NULL;
    assert_true(inside_new(folder, &inside, &err));
    assert_mask(inside, "a", 4, ".....##..##.....");
    inside_free(inside);
    free(folder);
}

static void test_one_file_for_all(void **state)
{
    (void)state;
    char *folder = write_square();
    char path[4096];
    snprintf(path, sizeof path, "%s/a.geojson", folder);
    struct err err = { 0 };
    struct inside *inside = NULL;
    assert_true(inside_new(path, &inside, &err));
    assert_mask(inside, "b", 2, "..........##..##");
    inside_free(inside);
    free(folder);
}

static void test_no_file(void **state)
{
    (void)state;
    char *folder = write_square();
    struct err err = { 0 };
    struct inside *inside = NULL;
    uint8_t mask[16];
    assert_true(inside_new(folder, &inside, &err));
    assert_false(inside_mask(inside, &(struct inside_window){ "b", 0, 0, 1, 4, 4 }, mask, &err));
    assert_non_null(strstr(err.text, "no nuclei of b in this folder"));
    assert_mask(inside, "a", 4, ".....##..##.....");
    inside_free(inside);
    assert_false(inside_new("missing", &inside, &err));
    assert_string_equal(err.text, "missing: there is no such file or folder");
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_one_file_for_all),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
