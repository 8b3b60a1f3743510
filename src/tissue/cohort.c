/* cohort.c: tissue_cohort (cohort.h): slides in parallel; existing results are kept, failures are
 * recorded. */
#include "tissue/cohort.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "slide/slide_identity.h"
#include "base/text.h"
#include "base/clock.h"

#define NOTE_BAR " | "

/* One slide's share of the work, filled in by a thread. */
struct task {
    const struct tissue_request *request;
    const char *how; /* all options that affect the files */
    struct console *console;
    struct tissue_row row;
};

enum { MASK_FILE, PICTURE_FILE, OUTLINE_FILE, N_FILES };

static bool name_files(const struct task *task, char *paths[N_FILES], struct err *err)
{
    static const char *const endings[N_FILES] = { "mask.png", "tissue.png", "tissue.geojson" };
    bool ok = true;
    for (int i = 0; i < N_FILES; i++) {
        paths[i] =
            text_format("%s/%s_%s", task->request->folder, task->row.entry->name, endings[i]);
        ok = ok && paths[i];
    }
    return ok || err_memory(err, "file names");
}

static bool tissue_inputs(const char *slide, char out[INPUTS_ROOM], struct err *err)
{
    struct identity identity;
    out[0] = 0;
    if (!slide_identity(slide, &identity, err))
        return false;
    inputs_add(out, "slide", &identity);
    return true;
}

/* A mask's note is the options and the inputs, separated by a bar. Terminates the options there and
 * returns the inputs, "" if there are none. */
static char *cut_inputs(char *note)
{
    char *bar = strstr(note, NOTE_BAR);
    if (!bar)
        return note + strlen(note);
    *bar = 0;
    return bar + strlen(NOTE_BAR);
}

bool tissue_check_slide(const char *mask, const char *slide, struct err *err)
{
    char *note = NULL, now[INPUTS_ROOM];
    if (!image_read_png_note(mask, &note, err))
        return false;
    const char *then = cut_inputs(note);
    bool ok = !*then || tissue_inputs(slide, now, err);
    if (ok && *then && strcmp(then, now) != 0)
        ok = err_set(err, ERR_USAGE,
                     "%s: was made from a slide other than %s (then %s, now %s); recreate it with "
                     "'microtome tissue --overwrite'",
                     mask, slide, then, now);
    free(note);
    return ok;
}

static char *describe_options(const struct tissue_request *request)
{
    char *text = tissue_options_text(&request->options);
    char *how = text ? text_format("%s slide-mpp=%g", text, request->slide_mpp) : NULL;
    free(text);
    return how;
}

/* Masks made with other options or from another slide are neither reused nor overwritten. */
static bool check_existing(const struct tissue_request *request, const char *how, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && !request->overwrite && i < request->slides->n; i++) {
        char *note = NULL;
        char *path =
            text_format("%s/%s_mask.png", request->folder, request->slides->entries[i].name);
        if (!path)
            return err_memory(err, "file names");
        if (file_exists(path))
            ok = image_read_png_note(path, &note, err);
        char *inputs = note ? cut_inputs(note) : NULL;
        if (ok && note && strcmp(note, how) != 0)
            ok = err_set(err, ERR_USAGE,
                         "%s: was made with other options; pass --overwrite or another -o folder\n"
                         "  then: %.300s\n  now:  %.300s",
                         path, note, how);
        const char *slide = request->slides->entries[i].path;
        char now[INPUTS_ROOM];
        if (ok && note && file_exists(slide))
            ok = tissue_inputs(slide, now, err) && inputs_check(path, inputs, now, err);
        free(note);
        free(path);
    }
    return ok;
}

static bool make_files(const struct task *task, struct slide *slide, char *paths[N_FILES],
                       struct tissue_mask *mask, struct err *err)
{
    char inputs[INPUTS_ROOM], later[INPUTS_ROOM], *note = NULL;
    const char *path = task->row.entry->path;
    /* The mask is written last: if it exists, the slide is complete. */
    bool ok = tissue_inputs(path, inputs, err) &&
              tissue_find(slide, &task->request->options, mask, err) &&
              tissue_write_geojson(mask, paths[OUTLINE_FILE], err) &&
              tissue_write_overlay(mask, paths[PICTURE_FILE], err) &&
              tissue_inputs(path, later, err) &&
              inputs_hold(path, inputs, later, "run again", err) &&
              ((note = text_format("%s" NOTE_BAR "%s", task->how, inputs)) ||
               err_memory(err, "a mask")) &&
              image_write_png_noted(paths[MASK_FILE], &mask->mask, note, err);
    free(note);
    return ok;
}

static bool do_slide(struct task *task, struct err *err)
{
    const struct tissue_request *request = task->request;
    struct tissue_row *row = &task->row;
    char *paths[N_FILES] = { 0 };
    struct slide *slide = NULL;
    bool ok = name_files(task, paths, err) &&
              slide_open_entry(row->entry, request->slide_mpp, &slide, err);
    if (ok)
        slide_warn_mpp(slide, task->console);
    if (ok && !request->overwrite && file_exists(paths[MASK_FILE]) &&
        file_exists(paths[PICTURE_FILE]) && file_exists(paths[OUTLINE_FILE])) {
        row->state = RUN_KEPT;
        ok = tissue_read(slide, paths[MASK_FILE], &row->measures, err);
    } else if (ok) {
        ok = make_files(task, slide, paths, &row->measures, err);
    }
    image_free(&row->measures.mask);
    image_free(&row->measures.overview);
    slide_close(slide);
    for (int i = 0; i < N_FILES; i++)
        free(paths[i]);
    return ok;
}

/* A slide that fails does not stop the others. */
static bool do_task(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    struct tissue_row *row = &((struct task *)arg + index)->row;
    double began = clock_monotonic_s();
    row->state = RUN_DONE;
    if (!do_slide((struct task *)arg + index, &row->err)) {
        row->state = RUN_FAILED;
        row->measures = (struct tissue_mask){ 0 };
    } else if (row->measures.tissue_px == 0) {
        row->state = RUN_NO_TISSUE;
    }
    row->seconds = clock_monotonic_s() - began;
    return true;
}

static void warn(const struct ctx *ctx, const struct tissue_row *row)
{
    if (row->state == RUN_FAILED)
        console_warn(ctx->console, "%s", row->err.text);
    else if (!(row->measures.mpp > 0))
        console_warn(ctx->console,
                     "%s: no resolution in the file; assumed %.2f um/px for sizes; pass "
                     "--slide-mpp",
                     row->entry->path, TISSUE_ASSUMED_MPP);
}

static bool record(const struct tissue_request *request, struct run *run,
                   const struct tissue_row *row, struct err *err)
{
    const struct tissue_mask *mask = &row->measures;
    bool failed = row->state == RUN_FAILED;
    struct run_item item = {
        .name = row->entry->name,
        .path = row->entry->path,
        .state = row->state,
        .seconds = row->seconds,
        .error = failed ? row->err.text : NULL,
        .facts = { { "area_mm2", mask->area_mm2 },
                   { "fraction", mask->fraction },
                   { "box_x", (double)mask->box_x },
                   { "box_y", (double)mask->box_y },
                   { "box_width", (double)mask->box_width },
                   { "box_height", (double)mask->box_height } },
        .n_facts = failed ? 0 : 6,
    };
    if (request->on_slide)
        request->on_slide(request->arg, row);
    return run_add(run, &item, err);
}

static bool run_slides(const struct tissue_request *request, const char *how, struct run *run,
                       const struct ctx *ctx, struct err *err)
{
    const struct slide_list *list = request->slides;
    size_t at_once = (size_t)pool_workers(ctx->pool);
    struct task *tasks = calloc(at_once, sizeof *tasks);
    bool ok = tasks || err_memory(err, "the list of slides");
    console_begin(ctx->console, "tissue", (int64_t)list->n, "slides");
    for (size_t first = 0; ok && first < list->n; first += at_once) {
        size_t n = list->n - first < at_once ? list->n - first : at_once;
        for (size_t i = 0; i < n; i++)
            tasks[i] = (struct task){ .request = request,
                                      .how = how,
                                      .console = ctx->console,
                                      .row.entry = &list->entries[first + i] };
        ok = pool_for(ctx->pool, (int64_t)n, do_task, tasks, ctx->stop, err);
        for (size_t i = 0; ok && i < n; i++) {
            warn(ctx, &tasks[i].row);
            ok = record(request, run, &tasks[i].row, err);
        }
        console_advance(ctx->console, (int64_t)n);
    }
    console_end(ctx->console);
    free(tasks);
    return ok;
}

bool tissue_cohort(const struct tissue_request *request, const struct ctx *ctx, struct err *err)
{
    struct run *run = NULL;
    char *how = describe_options(request);
    bool ok =
        (how || err_memory(err, "options")) && file_make_folder(request->folder, err) &&
        check_existing(request, how, err) &&
        run_begin(request->folder, request->slides->n, request->argc, request->argv, &run, err) &&
        run_slides(request, how, run, ctx, err) && run_finish(run, err);
    run_free(run);
    free(how);
    return ok;
}
