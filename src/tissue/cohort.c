/* cohort.c: tissue_cohort (cohort.h): slides in parallel; existing results are kept, failures are
 * recorded. */
#include "tissue/cohort.h"

#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/run_each.h"
#include "slide/slide_identity.h"
#include "base/text.h"

#define NOTE_BAR " | "

struct cohort {
    const struct tissue_request *request;
    char *how; /* all options that affect the files */
    struct console *console;
    struct tissue_row *rows; /* [slides] */
};

enum { MASK_FILE, PICTURE_FILE, OUTLINE_FILE, N_FILES };

static bool name_files(const struct tissue_request *request, const char *slide,
                       char *paths[N_FILES], struct err *err)
{
    static const char *const endings[N_FILES] = { "mask.png", "tissue.png", "tissue.geojson" };
    bool ok = true;
    for (int i = 0; i < N_FILES; i++) {
        paths[i] = text_format("%s/%s_%s", request->folder, slide, endings[i]);
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

static bool make_files(const struct cohort *cohort, struct slide *slide, const char *path,
                       char *paths[N_FILES], struct tissue_mask *mask, struct err *err)
{
    char inputs[INPUTS_ROOM], later[INPUTS_ROOM], *note = NULL;
    /* The mask is written last: if it exists, the slide is complete. */
    bool ok = tissue_inputs(path, inputs, err) &&
              tissue_find(slide, &cohort->request->options, mask, err) &&
              tissue_write_geojson(mask, paths[OUTLINE_FILE], err) &&
              tissue_write_overlay(mask, paths[PICTURE_FILE], err) &&
              tissue_inputs(path, later, err) &&
              inputs_hold(path, inputs, later, "run again", err) &&
              ((note = text_format("%s" NOTE_BAR "%s", cohort->how, inputs)) ||
               err_memory(err, "a mask")) &&
              image_write_png_noted(paths[MASK_FILE], &mask->mask, note, err);
    free(note);
    return ok;
}

static bool make_slide(void *arg, size_t i, struct err *err)
{
    const struct cohort *cohort = arg;
    const struct tissue_request *request = cohort->request;
    struct tissue_row *row = &cohort->rows[i];
    char *paths[N_FILES] = { 0 };
    struct slide *slide = NULL;
    struct slide_access access = { request->slide_mpp, request->cache, request->folder };
    bool ok = name_files(request, row->entry->name, paths, err) &&
              slide_open_entry(row->entry, &access, &slide, err);
    if (ok)
        slide_warn_mpp(slide, cohort->console);
    if (ok && !request->overwrite && file_exists(paths[MASK_FILE]) &&
        file_exists(paths[PICTURE_FILE]) && file_exists(paths[OUTLINE_FILE])) {
        row->state = RUN_KEPT;
        ok = tissue_read(slide, paths[MASK_FILE], &row->measures, err);
    } else if (ok) {
        ok = make_files(cohort, slide, row->entry->path, paths, &row->measures, err);
    }
    image_free(&row->measures.mask);
    image_free(&row->measures.overview);
    slide_close(slide);
    for (int k = 0; k < N_FILES; k++)
        free(paths[k]);
    return ok;
}

static void tell_slide(void *arg, size_t i, const struct err *why, struct run_item *item)
{
    const struct cohort *cohort = arg;
    struct tissue_row *row = &cohort->rows[i];
    row->seconds = item->seconds;
    item->name = row->entry->name;
    item->path = row->entry->path;
    if (why) {
        row->state = RUN_FAILED;
        row->error = why->text;
        row->measures = (struct tissue_mask){ 0 };
    } else {
        const struct tissue_mask *mask = &row->measures;
        if (!(mask->mpp > 0))
            console_warn(cohort->console,
                         "%s: no resolution in the file; assumed %.2f um/px for sizes; pass "
                         "--slide-mpp",
                         row->entry->path, TISSUE_ASSUMED_MPP);
        if (mask->tissue_px == 0)
            row->state = RUN_NO_TISSUE;
        item->state = row->state;
        item->facts[item->n_facts++] = (struct run_fact){ "area_mm2", mask->area_mm2 };
        item->facts[item->n_facts++] = (struct run_fact){ "fraction", mask->fraction };
        item->facts[item->n_facts++] = (struct run_fact){ "box_x", (double)mask->box_x };
        item->facts[item->n_facts++] = (struct run_fact){ "box_y", (double)mask->box_y };
        item->facts[item->n_facts++] = (struct run_fact){ "box_width", (double)mask->box_width };
        item->facts[item->n_facts++] = (struct run_fact){ "box_height", (double)mask->box_height };
    }
    if (cohort->request->on_slide)
        cohort->request->on_slide(cohort->request->arg, row);
}

bool tissue_cohort(const struct tissue_request *request, const struct ctx *ctx, struct err *err)
{
    size_t n = request->slides->n, reached;
    struct run *run = NULL;
    struct cohort cohort = { .request = request, .console = ctx->console };
    struct run_each each = { .n = n,
                             .together = true,
                             .label = "tissue",
                             .make = make_slide,
                             .tell = tell_slide,
                             .arg = &cohort };
    cohort.how = describe_options(request);
    cohort.rows = calloc(n + 1, sizeof *cohort.rows);
    bool ok = (cohort.how && cohort.rows) || err_memory(err, "the list of slides");
    for (size_t i = 0; ok && i < n; i++)
        cohort.rows[i].entry = &request->slides->entries[i];
    ok = ok && file_make_folder(request->folder, err) && check_existing(request, cohort.how, err) &&
         run_begin(request->folder, n, request->argc, request->argv, &run, err) &&
         run_each(run, &each, ctx, &reached, err);
    run_free(run);
    free(cohort.how);
    free(cohort.rows);
    return ok;
}
