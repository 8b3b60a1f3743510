/* Axes and combinations of sweeps, names of their folders, and the choice of the best. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "support/cohort.h"
#include "sweep/sweep.h"

static void combinations_follow_the_axes(void **state)
{
    (void)state;
    static const char *const texts[] = { "lr=0.1,0.01",
                                         "network.name=resnet18,resnet50,googlenet" };
    struct sweep sweep;
    struct err err = { 0 };
    if (!sweep_new(texts, 2, "dir", &sweep, &err))
        fail_msg("%s", err.text);
    assert_int_equal(sweep.n, 6);
    assert_string_equal(sweep.items[0].name, "lr=0.1,network.name=resnet18");
    assert_string_equal(sweep.items[2].name, "lr=0.1,network.name=googlenet");
    assert_string_equal(sweep.items[5].name, "lr=0.01,network.name=googlenet");
    assert_int_equal(sweep_value(&sweep, 4, 0), 1);
    assert_int_equal(sweep_value(&sweep, 4, 1), 1);
    assert_true(sweep.axes[0].numbers && sweep.axes[0].numbers[1] == 0.01);
    assert_null(sweep.axes[1].numbers);
    char **settings = sweep_settings(&sweep, 4);
    assert_string_equal(settings[0], "schedule.learning_rate=0.01");
    assert_string_equal(settings[1], "network.name=resnet50");
    sweep_settings_free(settings, 2);
    sweep_free(&sweep);
}

/* Commas in brackets and quotes belong to a value. */
static void values_are_split_at_commas(void **state)
{
    (void)state;
    static const char *const texts[] = { "mean=[0.1,0.2,0.3],[0.4, 0.5, 0.6]",
                                         "network.weights='a,b','c'",
                                         "data.train=[[x.h5,y.h5],z.h5]" };
    struct sweep sweep;
    struct err err = { 0 };
    assert_true(sweep_new(texts, 2, "dir", &sweep, &err));
    assert_int_equal(sweep.n, 4);
    assert_string_equal(sweep.axes[0].values[1], "[0.4, 0.5, 0.6]");
    assert_string_equal(sweep.axes[1].values[0], "'a,b'");
    assert_string_equal(sweep.axes[1].values[1], "'c'");
    sweep_free(&sweep);
    assert_false(sweep_new(texts + 2, 1, "dir", &sweep, &err)); /* a list in a list */
    sweep_free(&sweep);
}

/* A name is safe, short and unlike any other. */
static void names_are_safe(void **state)
{
    (void)state;
    char text[2000], longer[301] = "";
    const char *texts[] = { text };
    struct sweep sweep;
    struct err err = { 0 };
    memset(longer, 'x', 300);
    snprintf(text, sizeof text, "weights=a/b c,a/b_c,../../$HOME,%s,%sy", longer, longer);
    assert_true(sweep_new(texts, 1, "dir", &sweep, &err));
    assert_int_equal(sweep.n, 5);
    for (size_t i = 0; i < sweep.n; i++) {
        const char *name = sweep.items[i].name;
        assert_null(strpbrk(name, "/ $'\""));
        assert_true(strlen(name) <= 120);
        assert_memory_equal(name, "weights=", 8);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(name, sweep.items[j].name);
    }
    sweep_free(&sweep);
}

static void write_result(const struct sweep *sweep, size_t i, const char *text)
{
    struct file_out out;
    struct err err = { 0 };
    char *folder = sweep_folder(sweep, i);
    assert_true(file_make_folder(folder, &err));
    assert_true(file_out_open_in(&out, folder, SWEEP_RESULT, &err));
    fputs(text, out.stream);
    assert_true(file_out_commit(&out, &err));
    free(folder);
}

/* By validation, never by test; the first of equals; by the loss where there is no other. */
static void the_best_is_that_of_validation(void **state)
{
    (void)state;
    static const char *const texts[] = { "lr=1,2,3,4" };
    char *folder = cohort_folder("sweep_best");
    struct sweep sweep;
    struct err err = { 0 };
    assert_true(sweep_new(texts, 1, folder, &sweep, &err));
    sweep.measure = "auc", sweep.lowest = false;
    assert_true(sweep_read(&sweep, &err));
    assert_int_equal(sweep_best(&sweep), 4); /* none */
    write_result(&sweep, 0, "{\"val\": {\"loss\": 1, \"auc\": 0.7}, \"test\": {\"auc\": 0.99}}");
    write_result(&sweep, 2, "{\"val\": {\"loss\": 3, \"auc\": 0.9}, \"test\": {\"auc\": 0.1}}");
    write_result(&sweep, 3, "{\"val\": {\"loss\": 2, \"auc\": 0.9}, \"test\": {\"auc\": 0.2}}");
    assert_true(sweep_read(&sweep, &err));
    assert_int_equal(sweep.items[1].state, COMBINATION_LEFT);
    assert_int_equal(sweep_best(&sweep), 2);
    assert_true(isnan(sweep_score(&sweep, 1)));
    sweep.measure = "r2"; /* which none has */
    assert_true(sweep_read(&sweep, &err));
    assert_string_equal(sweep.measure, "loss");
    assert_int_equal(sweep_best(&sweep), 0);
    sweep_free(&sweep);
    free(folder);
}

static void test_data_alone_choose_none(void **state)
{
    (void)state;
    static const char *const texts[] = { "lr=1,2" };
    char *folder = cohort_folder("sweep_test_only");
    struct sweep sweep;
    struct err err = { 0 };
    assert_true(sweep_new(texts, 1, folder, &sweep, &err));
    sweep.measure = "auc", sweep.lowest = false;
    write_result(&sweep, 0, "{\"val\": {}, \"test\": {\"auc\": 0.9}}");
    write_result(&sweep, 1, "{\"val\": {}, \"test\": {\"auc\": 0.8}}");
    assert_true(sweep_read(&sweep, &err));
    assert_int_equal(sweep_best(&sweep), sweep.n);
    assert_true(sweep_write(&sweep, &err));
    char *link = text_format("%s/best", folder);
    assert_false(file_exists(link));
    free(link);
    sweep_free(&sweep);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combinations_follow_the_axes),
        cmocka_unit_test(values_are_split_at_commas),
        cmocka_unit_test(names_are_safe),
        cmocka_unit_test(the_best_is_that_of_validation),
        cmocka_unit_test(test_data_alone_choose_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
