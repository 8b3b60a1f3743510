/* test_run.c: the record of a run, and the loop over a cohort: what it makes and records, one after
 * another or several at once, and how it ends after failures and stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/run_each.h"
#include "base/text.h"
#include "tests/unit/support/paths.h"

static void a_run_leaves_its_record(void **state)
{
    (void)state;
    char *folder = scratch_path("run");
    struct err err = { 0 };
    struct run *run = NULL;
    assert_true(file_make_folder(folder, &err));
    assert_true(run_begin(folder, 3, 2, (char *[]){ "microtome", "extract" }, &run, &err));
    struct run_item good = { .name = "a",
                             .path = "/y/a.svs",
                             .seconds = 1.5,
                             .cpu_s = 5000,
                             .n_facts = 1,
                             .facts = { { "patches", 12 } } };
    struct run_item bad = { .name = "b",
                            .path = "x/b.svs",
                            .state = RUN_FAILED,
                            .cpu_s = 5000,
                            .error = "x/b.svs: broken, badly" };
    assert_true(run_add(run, &bad, &err));
    assert_true(run_add(run, &good, &err));
    assert_false(run_finish(run, &err));
    assert_non_null(strstr(err.text, "1 of 2 slides failed"));
    run_free(run);
    char *path = text_format("%s/slides.csv", folder), *text = NULL, *here = getcwd(NULL, 0);
    char *want = text_format("slide,name,state,seconds,patches,error\n"
                             "%s/x/b.svs,b,failed,0.000,,\"x/b.svs: broken, badly\"\n"
                             "/y/a.svs,a,done,1.500,12,\n",
                             here);
    assert_true(file_read(path, 10000, &text, NULL, &err));
    assert_string_equal(text, want);
    free(path), free(text);
    path = text_format("%s/run.json", folder);
    assert_true(file_read(path, 10000, &text, NULL, &err));
    assert_non_null(strstr(text, "\"planned\": 3"));
    const char *spent = strstr(text, "\"cpu_seconds\": "); /* other processes' and its own */
    assert_non_null(spent);
    double cpu_s = strtod(spent + strlen("\"cpu_seconds\": "), NULL);
    assert_true(cpu_s > 10000 && cpu_s < 11000);
    free(want);
    free(here);
    free(text);
    free(path);
    free(folder);
}

enum { SLIDES = 7, BROKEN = 2 };
static const char *const names[SLIDES] = { "a", "b", "c", "d", "e", "f", "g" };

struct cohort {
    atomic_bool stop;
    int stop_at; /* slide during which the user stops; -1: none */
    bool sees;   /* that slide notices it itself */
    atomic_int made;
    size_t told, ended;
};

static bool make(void *arg, size_t i, struct err *err)
{
    struct cohort *cohort = arg;
    cohort->made++;
    if ((int)i == cohort->stop_at) {
        cohort->stop = true;
        if (cohort->sees)
            return err_stopped(err);
    }
    return i != BROKEN || err_set(err, ERR_FORMAT, "c: broken");
}

static void tell(void *arg, size_t i, const struct err *why, struct run_item *item)
{
    struct cohort *cohort = arg;
    assert_int_equal(i, cohort->told++); /* in the order of the list */
    assert_true((why != NULL) == (i == BROKEN));
    assert_int_equal(item->state, why ? RUN_FAILED : RUN_DONE);
    item->name = item->path = names[i];
    item->seconds = 1 + (double)i;
    if (!why) {
        item->state = i == 0 ? RUN_KEPT : RUN_DONE;
        item->facts[item->n_facts++] = (struct run_fact){ "index", (double)i };
    }
}

static bool end(void *arg, size_t reached, struct err *err)
{
    struct cohort *cohort = arg;
    cohort->ended = reached;
    return reached != 1 || err_set(err, ERR_IO, "not written");
}

/* The rows of slides.csv without the paths, "" if the run stopped before the first. */
static char *run_cohort(struct cohort *cohort, bool together, bool *ok, size_t *reached,
                        struct err *err)
{
    char *folder = scratch_path("each"), *text = NULL;
    struct run *run = NULL;
    struct ctx ctx = { .pool = pool_new(3), .stop = &cohort->stop };
    struct run_each each = {
        .n = SLIDES, .together = together, .make = make, .tell = tell, .end = end, .arg = cohort
    };
    assert_true(file_make_folder(folder, err));
    assert_true(run_begin(folder, SLIDES, 1, (char *[]){ "microtome" }, &run, err));
    *ok = run_each(run, &each, &ctx, reached, err);
    run_free(run);
    char *path = text_format("%s/run.json", folder);
    assert_true(file_read(path, 10000, &text, NULL, NULL));
    assert_null(strstr(text, "\"ended\": null")); /* also after a stop */
    free(path), free(text);
    path = text_format("%s/slides.csv", folder);
    assert_true(file_read(path, 10000, &text, NULL, NULL));
    char *rows = calloc(1, strlen(text) + 1), *at = rows;
    for (const char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        const char *row = strchr(line, ',') + 1;
        size_t n = (size_t)(strchr(row, '\n') - row);
        memcpy(at, row, n);
        at[n] = ';';
        at += n + 1;
    }
    pool_free(ctx.pool);
    free(path), free(text), free(folder);
    return rows;
}

static void all_slides_are_recorded_in_order(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        struct cohort cohort = { .stop_at = -1 };
        struct err err = { 0 };
        size_t reached = 0;
        bool ok = true;
        char *rows = run_cohort(&cohort, together, &ok, &reached, &err);
        assert_string_equal(rows, "a,kept,1.000,0,;b,done,2.000,1,;c,failed,3.000,,c: broken;"
                                  "d,done,4.000,3,;e,done,5.000,4,;f,done,6.000,5,;"
                                  "g,done,7.000,6,;");
        assert_false(ok); /* at the end, of the one that failed */
        assert_non_null(strstr(err.text, "1 of 7 slides failed"));
        assert_int_equal(reached, SLIDES);
        assert_int_equal(cohort.ended, SLIDES);
        free(rows);
    }
}

static void a_stop_keeps_what_is_made(void **state)
{
    (void)state;
    struct cohort between = { .stop_at = 1 }, within = { .stop_at = 1, .sees = true };
    struct cohort waves = { .stop_at = 3 };
    struct err err = { 0 };
    size_t reached = 0;
    bool ok = true;
    char *rows = run_cohort(&between, false, &ok, &reached, &err);
    assert_string_equal(rows, "a,kept,1.000,0,;b,done,2.000,1,;"); /* b was whole */
    assert_true(!ok && err.kind == ERR_STOPPED && reached == 2 && between.made == 2);
    free(rows);
    rows = run_cohort(&within, false, &ok, &reached, &err);
    assert_string_equal(rows, "a,kept,1.000,0,;");
    /* the stop is told, not that the end failed after it */
    assert_true(!ok && err.kind == ERR_STOPPED && reached == 1 && within.ended == 1);
    free(rows);
    rows = run_cohort(&waves, true, &ok, &reached, &err);
    assert_true(!ok && reached >= 3 && reached < SLIDES && waves.made < SLIDES);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_leaves_its_record),
        cmocka_unit_test(all_slides_are_recorded_in_order),
        cmocka_unit_test(a_stop_keeps_what_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
