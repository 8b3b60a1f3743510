/* cohort.c: tissue_cohort (cohort.h): slides in parallel; existing results are kept, failures are
 * recorded. */
#include "tissue/cohort.h"

#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_each.h"
#include "slide/slide_identity.h"
#include "base/text.h"

#define NOTE_BAR " | "

struct cohort {
    const struct tissue_request *request;
    char *how; /* all options that affect the files */
    const struct ctx *ctx;
    struct tissue_row *rows; /* [slides] */
};

enum {
    MASK_FILE,
    PICTURE_FILE,
    OUTLINE_FILE,
    QUALITY_FILE,
    QUALITY_PICTURE_FILE,
    QUALITY_OUTLINE_FILE,
    N_FILES
};

static const char *const endings[N_FILES] = {
    "mask.png",    "tissue.png",          "tissue.geojson",
    "quality.png", "quality_overlay.png", "quality.geojson"
};

static int n_files(const struct tissue_request *request)
{
    return request->quality ? N_FILES : QUALITY_FILE;
}

static bool name_files(const struct tissue_request *request, const char *slide,
                       char *paths[N_FILES], struct err *err)
{
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
    char *how = text ? text_format("%s slide-mpp=%g%s", text, request->slide_mpp,
                                   request->icc ? " icc=srgb" : "")
                     : NULL;
    free(text);
    return how;
}

static bool check_file(const struct tissue_request *request, const struct slide_entry *entry,
                       const char *ending, const char *how, struct err *err)
{
    char *note = NULL;
    char *path = text_format("%s/%s_%s", request->folder, entry->name, ending);
    if (!path)
        return err_memory(err, "file names");
    bool ok = !file_exists(path) || image_read_png_note(path, &note, err);
    char *inputs = note ? cut_inputs(note) : NULL;
    if (ok && note && strcmp(note, how) != 0)
        ok = err_set(err, ERR_USAGE,
                     "%s: was made with other options; pass --overwrite or another -o folder\n"
                     "  then: %.300s\n  now:  %.300s",
                     path, note, how);
    char now[INPUTS_ROOM];
    if (ok && note && file_exists(entry->path))
        ok = tissue_inputs(entry->path, now, err) && inputs_check(path, inputs, now, err);
    free(note);
    free(path);
    return ok;
}

/* Masks made with other options or from another slide are neither reused nor overwritten. */
static bool check_existing(const struct tissue_request *request, const char *how, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && !request->overwrite && i < request->slides->n; i++) {
        const struct slide_entry *entry = &request->slides->entries[i];
        ok = check_file(request, entry, endings[MASK_FILE], how, err) &&
             (!request->quality || check_file(request, entry, endings[QUALITY_FILE], how, err));
    }
    return ok;
}

static bool make_quality(const struct cohort *cohort, struct slide *slide, char *paths[N_FILES],
                         const char *note, struct tissue_row *row, struct err *err)
{
    const struct tissue_mask *mask = &row->measures;
    struct quality_map *quality = &row->quality;
    return quality_find(slide, mask, QUALITY_ALL, cohort->ctx, quality, err) &&
           quality_write_geojson(quality, mask, paths[QUALITY_OUTLINE_FILE], err) &&
           quality_write_overlay(quality, mask, paths[QUALITY_PICTURE_FILE], err) &&
           image_write_png_noted(paths[QUALITY_FILE], &quality->kinds, note, err);
}

/* Slides that are made together have a thread each. */
static bool find_tissue(const struct cohort *cohort, struct slide *slide, struct tissue_mask *mask,
                        struct err *err)
{
    struct pool *alone = cohort->request->quality ? NULL : pool_new(1);
    struct ctx ctx = { .pool = alone ? alone : cohort->ctx->pool, .stop = cohort->ctx->stop };
    if (!alone && !cohort->request->quality)
        return err_memory(err, "tissue");
    bool ok = tissue_find(slide, &cohort->request->options, &ctx, mask, err);
    pool_free(alone);
    return ok;
}

static bool make_files(const struct cohort *cohort, struct slide *slide, char *paths[N_FILES],
                       struct tissue_row *row, struct err *err)
{
    char inputs[INPUTS_ROOM], later[INPUTS_ROOM], *note = NULL;
    const char *path = row->entry->path;
    struct tissue_mask *mask = &row->measures;
    /* The mask is written last: if it exists, the slide is complete. */
    bool ok = tissue_inputs(path, inputs, err) &&
              ((note = text_format("%s" NOTE_BAR "%s", cohort->how, inputs)) ||
               err_memory(err, "a mask")) &&
              find_tissue(cohort, slide, mask, err) &&
              tissue_write_geojson(mask, paths[OUTLINE_FILE], err) &&
              tissue_write_overlay(mask, paths[PICTURE_FILE], err) &&
              (!cohort->request->quality || make_quality(cohort, slide, paths, note, row, err)) &&
              tissue_inputs(path, later, err) &&
              inputs_hold(path, inputs, later, "run again", err) &&
              image_write_png_noted(paths[MASK_FILE], &mask->mask, note, err);
    free(note);
    return ok;
}

/* What a run before this one made. */
static bool read_files(const struct cohort *cohort, struct slide *slide, char *paths[N_FILES],
                       struct tissue_row *row, struct err *err)
{
    struct image *kinds = &row->quality.kinds;
    row->state = RUN_KEPT;
    if (!tissue_read(slide, paths[MASK_FILE], &row->measures, err))
        return false;
    if (!cohort->request->quality)
        return true;
    if (!image_read_png(paths[QUALITY_FILE], 1, kinds, err))
        return false;
    if (kinds->width != row->measures.mask.width || kinds->height != row->measures.mask.height)
        return err_set(err, ERR_FORMAT, "%s: differs in size from the tissue mask; delete it",
                       paths[QUALITY_FILE]);
    return quality_measure(&row->quality, &row->measures, err);
}

static bool make_slide(void *arg, size_t i, struct err *err)
{
    const struct cohort *cohort = arg;
    const struct tissue_request *request = cohort->request;
    struct tissue_row *row = &cohort->rows[i];
    char *paths[N_FILES] = { 0 };
    struct slide *slide = NULL;
    struct slide_access access = { .mpp = request->slide_mpp,
                                   .cache = request->cache,
                                   .results = request->folder,
                                   .icc = request->icc };
    bool ok = name_files(request, row->entry->name, paths, err) &&
              slide_open_entry(row->entry, &access, &slide, err);
    if (ok)
        slide_warn(slide, cohort->ctx->console);
    bool complete = ok && !request->overwrite;
    for (int k = 0; complete && k < n_files(request); k++)
        complete = file_exists(paths[k]);
    if (ok)
        ok = complete ? read_files(cohort, slide, paths, row, err)
                      : make_files(cohort, slide, paths, row, err);
    image_free(&row->measures.mask);
    image_free(&row->measures.overview);
    image_free(&row->quality.kinds);
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
        row->quality = (struct quality_map){ 0 };
    } else {
        const struct tissue_mask *mask = &row->measures;
        bool sizes = cohort->request->options.method != TISSUE_NONE || cohort->request->quality;
        if (!(mask->mpp > 0) && sizes)
            console_warn(cohort->ctx->console,
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
        for (int kind = 1; cohort->request->quality && kind < QUALITY_KINDS; kind++)
            item->facts[item->n_facts++] =
                (struct run_fact){ quality_share_names[kind], row->quality.share[kind] };
    }
    if (cohort->request->on_slide)
        cohort->request->on_slide(cohort->request->arg, row);
}

bool tissue_cohort(const struct tissue_request *request, const struct ctx *ctx, struct err *err)
{
    size_t n = request->slides->n, reached;
    struct run *run = NULL;
    struct cohort cohort = { .request = request, .ctx = ctx };
    struct run_each each = { .n = n,
                             .together = !request->quality,
                             .label = request->quality ? NULL : "tissue",
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
