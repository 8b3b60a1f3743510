/* run.c: see run.h. */
#include "base/run.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/claim.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/version.h"
#include "base/clock.h"

#define TIME_TEXT RUN_TIME_TEXT
#define SAVE_EVERY_S 1 /* saving writes all slides: after each one it would be quadratic */

struct run {
    char *folder;
    struct claim *claim; /* on the folder */
    char **argv;
    int argc;
    char host[HOST_NAME_MAX + 1];
    char began[TIME_TEXT], ended[TIME_TEXT]; /* ended is "" while running */
    double began_s, saved_s;
    double spent_s;         /* CPU of other processes */
    struct run_item *items; /* own their texts */
    size_t n, room, planned;
};

const char *const run_state_names[] = { "done", "kept", "failed", "no tissue" };

static void text_of_time(time_t at, char out[TIME_TEXT])
{
    struct tm parts;
    gmtime_r(&at, &parts);
    strftime(out, TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static void time_text(char out[TIME_TEXT])
{
    text_of_time(time(NULL), out);
}

bool run_begin(const char *folder, size_t planned, int argc, char *const *argv, struct run **out,
               struct err *err)
{
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return err_memory(err, "the run record");
    run->planned = planned;
    run->folder = strdup(folder);
    run->argv = calloc((size_t)argc + 1, sizeof *run->argv);
    bool ok = run->folder && run->argv;
    for (int i = 0; ok && i < argc; i++, run->argc++)
        ok = (run->argv[i] = strdup(argv[i])) != NULL;
    if (!ok) {
        run_free(run);
        return err_memory(err, "the run record");
    }
    if (!claim_take(folder, &run->claim, err)) {
        run_free(run);
        return false;
    }
    gethostname(run->host, sizeof run->host - 1);
    time_text(run->began);
    run->began_s = clock_monotonic_s();
    *out = run;
    return true;
}

static void write_item(struct json_out *json, const struct run_item *item)
{
    json_out_object_line(json, NULL);
    json_out_text(json, "name", item->name);
    json_out_text(json, "path", item->path);
    if (item->modified[0])
        json_out_text(json, "modified", item->modified);
    json_out_text(json, "state", run_state_names[item->state]);
    json_out_real(json, "seconds", item->seconds);
    for (size_t i = 0; i < item->n_facts; i++)
        json_out_real(json, item->facts[i].name, item->facts[i].value);
    if (item->error)
        json_out_text(json, "error", item->error);
    json_out_close_object(json);
}

void run_put_command(struct json_out *json, int argc, char *const *argv, const char *host)
{
    json_out_text(json, "program", "microtome");
    json_out_text(json, "version", MICROTOME_VERSION);
    json_out_array_line(json, "arguments");
    for (int i = 0; i < argc; i++)
        json_out_text(json, NULL, argv[i]);
    json_out_close_array(json);
    json_out_text(json, "host", host);
}

static bool save_json(const struct run *run, struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, run->folder, "run.json", err))
        return false;
    struct json_out json;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    run_put_command(&json, run->argc, run->argv, run->host);
    json_out_text(&json, "began", run->began);
    json_out_text(&json, "ended", run->ended[0] ? run->ended : NULL);
    json_out_real(&json, "seconds", clock_monotonic_s() - run->began_s);
    json_out_real(&json, "cpu_seconds", clock_cpu_s() + run->spent_s);
    json_out_int(&json, "planned", (int64_t)run->planned);
    json_out_array(&json, "slides");
    for (size_t i = 0; i < run->n; i++)
        write_item(&json, &run->items[i]);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

/* The names of the facts are taken from the first item that has any; failed slides have none. */
static const struct run_item *item_with_facts(const struct run *run)
{
    for (size_t i = 0; i < run->n; i++)
        if (run->items[i].n_facts > 0)
            return &run->items[i];
    return NULL;
}

static void write_csv(const struct run *run, FILE *stream)
{
    const struct run_item *model = item_with_facts(run);
    size_t n_facts = model ? model->n_facts : 0;
    fputs("slide,name,state,seconds", stream);
    for (size_t i = 0; i < n_facts; i++) {
        fputc(',', stream);
        csv_write_cell(stream, model->facts[i].name);
    }
    fputs(",error\n", stream);
    for (size_t i = 0; i < run->n; i++) {
        const struct run_item *item = &run->items[i];
        csv_write_cell(stream, item->path);
        fputc(',', stream);
        csv_write_cell(stream, item->name);
        fprintf(stream, ",%s,%.3f", run_state_names[item->state], item->seconds);
        for (size_t j = 0; j < n_facts; j++) {
            fputc(',', stream);
            if (j < item->n_facts && !isnan(item->facts[j].value))
                fprintf(stream, "%.10g", item->facts[j].value);
        }
        fputc(',', stream);
        csv_write_cell(stream, item->error ? item->error : "");
        fputc('\n', stream);
    }
}

static bool save(const struct run *run, struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, run->folder, "slides.csv", err))
        return false;
    write_csv(run, out.stream);
    return file_out_commit(&out, err) && save_json(run, err);
}

bool run_add(struct run *run, const struct run_item *item, struct err *err)
{
    if (run->n == run->room) {
        size_t room = run->room ? 2 * run->room : 32;
        struct run_item *more = realloc(run->items, room * sizeof *more);
        if (!more)
            return err_memory(err, "the run record");
        run->items = more;
        run->room = room;
    }
    run->spent_s += item->cpu_s;
    struct run_item copy = *item;
    copy.name = strdup(item->name);
    copy.path = file_absolute(item->path);
    copy.error = item->error ? strdup(item->error) : NULL;
    struct stat status;
    if (stat(item->path, &status) == 0)
        text_of_time(status.st_mtime, copy.modified);
    run->items[run->n++] = copy;
    if (!copy.name || !copy.path || (item->error && !copy.error))
        return err_memory(err, "the run record");
    if (run->n > 1 && clock_monotonic_s() - run->saved_s < SAVE_EVERY_S)
        return true;
    run->saved_s = clock_monotonic_s();
    return save(run, err);
}

bool run_finish(struct run *run, struct err *err)
{
    time_text(run->ended);
    if (!save(run, err))
        return false;
    size_t failed = 0;
    for (size_t i = 0; i < run->n; i++)
        failed += run->items[i].state == RUN_FAILED;
    if (failed == 0)
        return true;
    return err_set(err, ERR_FORMAT, "%zu of %zu slides failed; the reasons are in %s/slides.csv",
                   failed, run->n, run->folder);
}

void run_free(struct run *run)
{
    if (!run)
        return;
    claim_release(run->claim);
    for (size_t i = 0; i < run->n; i++) {
        free((char *)run->items[i].name);
        free((char *)run->items[i].path);
        free((char *)run->items[i].error);
    }
    for (int i = 0; i < run->argc; i++)
        free(run->argv[i]);
    free(run->argv);
    free(run->items);
    free(run->folder);
    free(run);
}
