/* test_slide_list.c: files, folders, globs and tables -> the slides of a cohort. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "slide/slide_list.h"
#include "tests/unit/support/paths.h"
#include "base/text.h"

static char
    *folder; /* holds b.SVS, a.tiff, c.ndpi, notes.txt, a folder d.svs and an empty folder */

static char *in_folder(const char *name)
{
    return text_format("%s/%s", folder, name);
}

static void touch(const char *name)
{
    char *path = in_folder(name);
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    fclose(stream);
    free(path);
}

static int make_folder(void **state)
{
    (void)state;
    folder = scratch_path("slide-list");
    char *inner = in_folder("d.svs"), *empty = in_folder("empty");
    bool ok = file_make_folder(inner, NULL) && file_make_folder(empty, NULL);
    touch("b.SVS");
    touch("a.tiff");
    touch("c.ndpi");
    touch("notes.txt");
    free(inner);
    free(empty);
    return ok ? 0 : -1;
}

static int free_folder(void **state)
{
    (void)state;
    free(folder);
    return 0;
}

static struct slide_list read_one(const char *operand)
{
    struct slide_list list;
    struct err err = { 0 };
    char *copy = strdup(operand);
    if (!slide_list_read(&copy, 1, &list, &err))
        fail_msg("%s", err.text);
    free(copy);
    return list;
}

static void expect_error(char *const *operands, int n, const char *word)
{
    struct slide_list list;
    struct err err = { 0 };
    assert_false(slide_list_read(operands, n, &list, &err));
    if (!strstr(err.text, word))
        fail_msg("said '%s', not '%s'", err.text, word);
}

static void folders_and_globs_are_sorted(void **state)
{
    (void)state;
    struct slide_list list = read_one(folder);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.entries[0].name, "a");
    assert_string_equal(list.entries[1].name, "b");
    assert_string_equal(list.entries[2].name, "c");
    assert_string_equal(list.entries[2].label, "");
    char *last = in_folder("c.ndpi"), *pattern = in_folder("[abc].*");
    assert_string_equal(list.entries[2].path, last);
    slide_list_free(&list);
    list = read_one(pattern);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.entries[0].name, "a");
    assert_string_equal(list.entries[1].name, "b");
    slide_list_free(&list);
    free(last);
    free(pattern);
}

static void nothing_found_is_an_error(void **state)
{
    (void)state;
    char *empty = in_folder("empty"), *pattern = in_folder("*.bif"), *table = in_folder("no.csv");
    expect_error(&empty, 1, "no slides in this folder");
    expect_error(&pattern, 1, "no file matches");
    expect_error(&table, 1, "No such file");
    free(empty);
    free(pattern);
    free(table);
    struct slide_list list = read_one("gone.svs"); /* recorded by the run, not here */
    assert_int_equal(list.n, 1);
    assert_string_equal(list.entries[0].name, "gone");
    slide_list_free(&list);
}

static bool parse(const char *text, struct slide_list *list, struct err *err)
{
    return slide_list_parse(text, strlen(text), "cohort/list.csv", list, err);
}

static void tables_are_read(void **state)
{
    (void)state;
    struct slide_list list;
    struct err err = { 0 };
    assert_true(parse("mpp,slide,annotation,colour,patient,node,center,split,label\n"
                      "0.25,slides/a.svs,a.xml,red,p1,2,3,train,tumor\n"
                      ",/data/b.tiff\n",
                      &list, &err));
    assert_int_equal(list.n, 2);
    const struct slide_entry *a = &list.entries[0], *b = &list.entries[1];
    assert_string_equal(a->path, "cohort/slides/a.svs");
    assert_string_equal(a->annotation, "cohort/a.xml");
    assert_string_equal(a->patient, "p1");
    assert_string_equal(a->node, "2");
    assert_string_equal(a->center, "3");
    assert_string_equal(a->split, "train");
    assert_string_equal(a->label, "tumor");
    assert_true(a->mpp == 0.25);
    assert_string_equal(b->path, "/data/b.tiff");
    assert_string_equal(b->annotation, "");
    assert_true(b->mpp == 0);
    slide_list_free(&list);
}

static void bad_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } bad[] = {
        { "", "no column 'slide'" },
        { "path,mpp\na.svs,1\n", "no column 'slide'" },
        { "slide\n", "lists no slides" },
        { "slide,mpp\na.svs,1\n,2\n", "list.csv:3: the column 'slide' is empty" },
        { "slide,mpp\na.svs,1\nb.svs,fast\n", "list.csv:3: mpp 'fast'" },
        { "slide,mpp\na.svs,-1\n", "list.csv:2: mpp '-1'" },
        { "slide,mpp\na.svs,nan\n", "list.csv:2: mpp 'nan'" },
        { "slide;mpp\na.svs;0,25\n", "list.csv:2: mpp '0,25' has a decimal comma" },
        { "slide,age,age\na.svs,1,2\n", "list.csv:1: 2 columns are named 'age'" },
        { "Slide,mpp,MPP\na.svs,1,2\n", "list.csv:1: 2 columns are named 'mpp'" },
        { "slide\n\"a\nb.svs\"\n", "the name has a line break" },
        { "slide\na.svs\nb.svs\nx/a.tif\n", "named 'a': cohort/list.csv:2 and cohort/list.csv:4" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct slide_list list;
        struct err err = { 0 };
        assert_false(parse(bad[i].text, &list, &err));
        if (!strstr(err.text, bad[i].word))
            fail_msg("said '%s', not '%s'", err.text, bad[i].word);
    }
}

static struct slide_list parsed(const char *text)
{
    struct slide_list list;
    struct err err = { 0 };
    if (!slide_list_parse(text, strlen(text), "cohort.csv", &list, &err))
        fail_msg("%s", err.text);
    return list;
}

static const char many_columns[] = ",slide,Grade,age,label,stage,grade text\n"
                                   "0,a.svs,2,61.5,tumor,pT1,\"a, b\"\n"
                                   "1,b.svs,,\"4,5\",normal,pT2,\n";

static void other_columns_are_carried(void **state)
{
    (void)state;
    struct slide_list list = parsed(many_columns), again;
    char *path = in_folder("saved.csv");
    assert_int_equal(list.entries[0].n_cells, 4);
    assert_string_equal(list.entries[0].cells[0].column, "Grade");
    assert_string_equal(list.entries[0].cells[3].value, "a, b");
    assert_int_equal(list.entries[1].n_cells, 2);
    assert_string_equal(slide_entry_value(&list.entries[0], "grade"), "2");
    assert_string_equal(slide_entry_value(&list.entries[0], "Label"), "tumor");
    assert_string_equal(slide_entry_value(&list.entries[1], "grade"), "");
    assert_true(slide_list_save(&list, path, NULL));
    assert_true(slide_list_load(path, &again, NULL));
    for (size_t i = 0; i < list.n; i++) {
        assert_int_equal(again.entries[i].n_cells, list.entries[i].n_cells);
        for (size_t k = 0; k < list.entries[i].n_cells; k++) {
            assert_string_equal(again.entries[i].cells[k].column, list.entries[i].cells[k].column);
            assert_string_equal(again.entries[i].cells[k].value, list.entries[i].cells[k].value);
        }
    }
    slide_list_free(&list);
    slide_list_free(&again);
    free(path);
}

static void any_column_is_a_label_or_a_number(void **state)
{
    (void)state;
    struct slide_list list = parsed(many_columns);
    struct err err = { 0 };
    double value = 0;
    bool given = false;
    assert_true(slide_entry_number(&list.entries[0], "AGE", &value, &given, &err));
    assert_true(given && value == 61.5);
    assert_true(slide_entry_number(&list.entries[1], "Grade", &value, &given, &err));
    assert_false(given);
    assert_false(slide_entry_number(&list.entries[1], "age", &value, &given, &err));
    assert_string_equal(
        err.text, "cohort.csv:3: column 'age': '4,5' has a decimal comma; use a decimal point");
    assert_false(slide_entry_number(&list.entries[0], "stage", &value, &given, &err));
    assert_string_equal(err.text, "cohort.csv:2: column 'stage': 'pT1' is not a number");
    assert_true(slide_list_label_by(&list, NULL, &err));
    assert_string_equal(list.entries[1].label, "normal");
    assert_false(slide_list_label_by(&list, "stge", &err));
    assert_string_equal(err.text,
                        "cohort.csv: no column 'stge' for --label-column (columns: slide, "
                        "Grade, age, label, stage, grade text); did you mean 'stage'?");
    assert_true(slide_list_label_by(&list, "Stage", &err));
    assert_string_equal(list.entries[1].label, "pT2");
    slide_list_free(&list);
    list = read_one(folder);
    assert_false(slide_list_label_by(&list, "stage", &err));
    assert_string_equal(err.text, "--label-column stage: needs a slide list (CSV) with that column "
                                  "instead of slides");
    slide_list_free(&list);
}

static void one_name_twice_is_refused(void **state)
{
    (void)state;
    char *twice[] = { (char *)"x/a.svs", (char *)"b.svs", (char *)"y/a.tif" };
    expect_error(twice, 3, "x/a.svs and y/a.tif");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_and_globs_are_sorted),
        cmocka_unit_test(nothing_found_is_an_error),
        cmocka_unit_test(tables_are_read),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(other_columns_are_carried),
        cmocka_unit_test(any_column_is_a_label_or_a_number),
        cmocka_unit_test(one_name_twice_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, free_folder);
}
