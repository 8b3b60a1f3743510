/* cmd_tissue.c: slides -> masks, pictures and outlines of their tissue. Slides are worked on in
 * parallel, as many at a time as there are threads, and reported in the order they were given. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/run.h"
#include "cli/app.h"
#include "slide/slide_list.h"
#include "tissue/tissue.h"

struct options {
    struct common_options common;
    const char *output;
    int method;
    bool use_value, no_pen, overwrite, json;
    double close_um, open_um, min_area_um2, min_hole_um2, downsample, slide_mpp;
};

#define REAL_ARG(word, field, unit, start, low, high, text)                                        \
    {                                                                                              \
        .name = word, .type = ARG_REAL, .offset = offsetof(struct options, field), .value = unit,  \
        .initial = start, .min = low, .max = high, .help = text                                    \
    }
#define FLAG_ARG(word, field, text)                                                                \
    {                                                                                              \
        .name = word, .type = ARG_FLAG, .offset = offsetof(struct options, field), .help = text    \
    }

static const struct arg args[] = {
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = offsetof(struct options, output),
      .value = "DIR",
      .required = true,
      .help = "folder for the results" },
    { .name = "method",
      .type = ARG_CHOICE,
      .offset = offsetof(struct options, method),
      .value = "NAME",
      .initial = "fda",
      .choices = tissue_method_names,
      .help = "fda: Otsu on hue and saturation; process: on grey; ncrf: on RGB and saturation" },
    FLAG_ARG("use-value", use_value, "fda: also drop what is pale or black, as for training"),
    FLAG_ARG("no-pen", no_pen, "leave marker and black areas in"),
    REAL_ARG("close", close_um, "UM", "20", 0, 1e6, "close gaps of up to twice this radius"),
    REAL_ARG("open", open_um, "UM", "10", 0, 1e6, "drop strands thinner than twice this radius"),
    REAL_ARG("min-area", min_area_um2, "UM2", "10000", 0, 1e12, "drop smaller pieces of tissue"),
    REAL_ARG("min-hole", min_hole_um2, "UM2", "20000", 0, 1e12, "fill smaller holes"),
    REAL_ARG("downsample", downsample, "N", "32", 1, 1024, "level-0 pixels per mask pixel"),
    SLIDE_MPP_ARG(struct options, slide_mpp),
    FLAG_ARG("json", json, "print the results as JSON"),
    FLAG_ARG("overwrite", overwrite, "make again what is there already"),
    COMMON_ARGS(struct options),
};

/* One slide's share of the work, filled in by a thread. */
struct task {
    const struct slide_entry *entry;
    const struct options *options;
    const char *how;         /* all options that decide what is in the files */
    struct tissue_mask mask; /* its measures; the images are freed */
    enum run_state state;
    double seconds;
    struct err err;
};

enum { MASK_FILE, PICTURE_FILE, OUTLINE_FILE, N_FILES };

static bool name_files(const struct task *task, char *paths[N_FILES], struct err *err)
{
    static const char *const endings[N_FILES] = { "mask.png", "tissue.png", "tissue.geojson" };
    bool ok = true;
    for (int i = 0; i < N_FILES; i++) {
        paths[i] = file_format("%s/%s_%s", task->options->output, task->entry->name, endings[i]);
        ok = ok && paths[i];
    }
    return ok || err_memory(err, "file names");
}

static struct tissue_options tissue_options(const struct options *o)
{
    return (struct tissue_options){
        .method = (enum tissue_method)o->method,
        .use_value = o->use_value,
        .remove_pen = !o->no_pen,
        .close_um = o->close_um,
        .open_um = o->open_um,
        .min_area_um2 = o->min_area_um2,
        .min_hole_um2 = o->min_hole_um2,
        .downsample = o->downsample,
    };
}

static char *describe_options(const struct options *o)
{
    struct tissue_options options = tissue_options(o);
    char *text = tissue_options_text(&options);
    char *how = text ? file_format("%s slide-mpp=%g", text, o->slide_mpp) : NULL;
    free(text);
    return how;
}

/* Masks that were made in another way are neither kept nor lost. */
static bool check_existing(const struct options *o, const struct slide_list *list, const char *how,
                           struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && !o->overwrite && i < list->n; i++) {
        char *note = NULL;
        char *path = file_format("%s/%s_mask.png", o->output, list->entries[i].name);
        if (!path)
            return err_memory(err, "file names");
        if (file_exists(path))
            ok = image_read_png_note(path, &note, err);
        if (ok && note && strcmp(note, how) != 0)
            ok = err_set(err, ERR_USAGE,
                         "%s: was made with other options; pass --overwrite or another -o folder\n"
                         "  then: %.300s\n  now:  %.300s",
                         path, note, how);
        free(note);
        free(path);
    }
    return ok;
}

static bool make_files(const struct task *task, struct slide *slide, char *paths[N_FILES],
                       struct tissue_mask *mask, struct err *err)
{
    struct tissue_options options = tissue_options(task->options);
    /* The mask comes last: where it exists, the slide is complete. */
    return tissue_find(slide, &options, mask, err) &&
           tissue_write_geojson(mask, paths[OUTLINE_FILE], err) &&
           tissue_write_overlay(mask, paths[PICTURE_FILE], err) &&
           image_write_png_noted(paths[MASK_FILE], &mask->mask, task->how, err);
}

static bool do_slide(struct task *task, struct err *err)
{
    const struct options *o = task->options;
    char *paths[N_FILES] = { 0 };
    struct slide *slide = NULL;
    double mpp = o->slide_mpp > 0 ? o->slide_mpp : task->entry->mpp;
    bool ok = name_files(task, paths, err) && slide_open(task->entry->path, mpp, &slide, err);
    if (ok && !o->overwrite && file_exists(paths[MASK_FILE]) && file_exists(paths[PICTURE_FILE]) &&
        file_exists(paths[OUTLINE_FILE])) {
        task->state = RUN_KEPT;
        ok = tissue_read(slide, paths[MASK_FILE], &task->mask, err);
    } else if (ok) {
        ok = make_files(task, slide, paths, &task->mask, err);
    }
    image_free(&task->mask.mask);
    image_free(&task->mask.overview);
    slide_close(slide);
    for (int i = 0; i < N_FILES; i++)
        free(paths[i]);
    return ok;
}

/* A slide that fails does not stop the others. */
static bool do_task(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    struct task *task = (struct task *)arg + index;
    double began = report_clock_s();
    task->state = RUN_DONE;
    if (!do_slide(task, &task->err))
        task->state = RUN_FAILED;
    task->seconds = report_clock_s() - began;
    return true;
}

static void print_json(struct json_out *json, const struct task *task)
{
    const struct tissue_mask *mask = &task->mask;
    json_out_object_line(json, NULL);
    json_out_text(json, "slide", task->entry->name);
    if (task->state == RUN_FAILED) {
        json_out_text(json, "error", task->err.text);
    } else {
        if (mask->mpp > 0)
            json_out_real(json, "area_mm2", mask->area_mm2);
        else
            json_out_text(json, "area_mm2", NULL);
        json_out_real(json, "fraction", mask->fraction);
        json_out_array_line(json, "box_l0");
        json_out_int(json, NULL, mask->box_x);
        json_out_int(json, NULL, mask->box_y);
        json_out_int(json, NULL, mask->box_width);
        json_out_int(json, NULL, mask->box_height);
        json_out_close_array(json);
    }
    json_out_close_object(json);
}

static void print_line(FILE *stream, const struct task *task)
{
    const struct tissue_mask *mask = &task->mask;
    if (task->state == RUN_FAILED)
        return;
    fprintf(stream, "%s: ", task->entry->name);
    if (mask->tissue_px == 0) {
        fprintf(stream, "no tissue\n");
        return;
    }
    if (mask->mpp > 0)
        fprintf(stream, "%.3f mm2, ", mask->area_mm2);
    fprintf(stream, "%.2f %% of the slide, box %lld,%lld %lldx%lld\n", 100 * mask->fraction,
            (long long)mask->box_x, (long long)mask->box_y, (long long)mask->box_width,
            (long long)mask->box_height);
}

static bool record(struct app *app, struct run *run, const struct task *task, struct json_out *json,
                   struct err *err)
{
    const struct tissue_mask *mask = &task->mask;
    bool failed = task->state == RUN_FAILED;
    struct run_item item = {
        .name = task->entry->name,
        .path = task->entry->path,
        .state = task->state,
        .seconds = task->seconds,
        .error = failed ? task->err.text : NULL,
        .facts = { { "area_mm2", mask->area_mm2 },
                   { "fraction", mask->fraction },
                   { "box_x", (double)mask->box_x },
                   { "box_y", (double)mask->box_y },
                   { "box_width", (double)mask->box_width },
                   { "box_height", (double)mask->box_height } },
        .n_facts = failed ? 0 : 6,
    };
    if (failed)
        report_warn(app->ctx.report, "%s", task->err.text);
    else if (!(mask->mpp > 0))
        report_warn(app->ctx.report,
                    "%s: no resolution in the file; sizes were taken at %.2f um/px; pass "
                    "--slide-mpp",
                    task->entry->path, TISSUE_ASSUMED_MPP);
    if (json->stream)
        print_json(json, task);
    else
        print_line(app->out, task);
    return run_add(run, &item, err);
}

static bool run_all(struct app *app, const struct options *o, const char *how,
                    const struct slide_list *list, struct run *run, struct json_out *json,
                    struct err *err)
{
    size_t at_once = (size_t)pool_workers(app->ctx.pool);
    struct task *tasks = calloc(at_once, sizeof *tasks);
    bool ok = tasks || err_memory(err, "the list of slides");
    report_begin(app->ctx.report, "tissue", (int64_t)list->n, "slides");
    for (size_t first = 0; ok && first < list->n; first += at_once) {
        size_t n = list->n - first < at_once ? list->n - first : at_once;
        for (size_t i = 0; i < n; i++)
            tasks[i] =
                (struct task){ .entry = &list->entries[first + i], .options = o, .how = how };
        ok = pool_for(app->ctx.pool, (int64_t)n, do_task, tasks, app->ctx.stop, err);
        for (size_t i = 0; ok && i < n; i++)
            ok = record(app, run, &tasks[i], json, err);
        report_advance(app->ctx.report, (int64_t)n);
    }
    report_end(app->ctx.report);
    free(tasks);
    return ok;
}

static bool run_command(struct app *app, const void *options, const struct args_result *operands,
                        struct err *err)
{
    const struct options *o = options;
    struct slide_list list = { 0 };
    struct run *run = NULL;
    struct json_out json = { 0 };
    char *how = describe_options(o);
    bool ok = (how || err_memory(err, "options")) &&
              slide_list_read(operands->operands, operands->n_operands, &list, err) &&
              file_make_folder(o->output, err) && check_existing(o, &list, how, err) &&
              run_begin(o->output, app->argc, app->argv, &run, err);
    if (ok && o->json) {
        json_out_begin(&json, app->out);
        json_out_array(&json, NULL);
    }
    ok = ok && run_all(app, o, how, &list, run, &json, err) && run_finish(run, err);
    if (json.stream) {
        json_out_close_array(&json);
        json_out_end(&json);
    }
    run_free(run);
    slide_list_free(&list);
    free(how);
    return ok;
}

const struct command cmd_tissue = {
    .spec = { .name = "tissue",
              .summary = "find the tissue on slides",
              .operands = "SLIDES...",
              .min_operands = 1,
              .max_operands = 1 << 20,
              .description =
                  "Looks for tissue on an overview of every slide and writes <slide>_mask.png, "
                  "<slide>_tissue.png (the outline on the overview, for people) and "
                  "<slide>_tissue.geojson (outlines in level-0 pixels, for QuPath). " SLIDES_ARE
                  " Prints area, "
                  "share and bounding box of the tissue. What is there already is kept; a slide "
                  "that cannot be read is reported and skipped.",
              .example = "microtome tissue cohort/slides -o masks\n"
                         "microtome tissue a.svs -o masks --method ncrf --min-area 50000 --json",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct options),
    .run = run_command,
};
