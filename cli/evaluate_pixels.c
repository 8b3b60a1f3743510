/* evaluate_pixels.c: `microtome evaluate pixels`: heatmaps and the truth -> pixel AUC, Dice, IoU.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/console.h"
#include "cli/evaluate.h"
#include "verdict/pixels.h"

struct pixel_row {
    char *slide;
    int64_t scored, tumour;
    struct pixel_measures measures;
};

struct pixel_run {
    struct app *app;
    const struct evaluate_options *o;
    struct truth_list truth;
    struct pixel_counts one, all;
    struct pixel_row *rows; /* [n], then one for all slides */
    size_t n;
    int64_t left_out;
};

static struct pixel_row row_of(char *slide, const struct pixel_counts *counts)
{
    return (struct pixel_row){ slide, counts->scored, counts->tumour, pixel_measures(counts) };
}

static bool do_slide(struct pixel_run *run, struct heatmap *heatmap, struct err *err)
{
    const struct evaluate_options *o = run->o;
    const char *slide = heatmap_info(heatmap)->slide;
    const struct truth_entry *entry = truth_list_find(&run->truth, slide);
    int64_t class_index = 0;
    if (!entry && run->truth.lists_all && !o->allow_missing)
        return err_set(err, ERR_MISSING,
                       "slide '%s' is not in %s; add it there, or pass --allow-missing to skip it",
                       slide, run->truth.source);
    if (!entry && run->truth.lists_all) {
        run->left_out++;
        return true;
    }
    pixel_counts_clear(&run->one);
    if (!heat_class(heatmap, o->class_name, &class_index, err) ||
        !pixel_counts_add(heatmap, class_index, entry ? entry->path : NULL, run->truth.class_map,
                          o->downsample, o->threshold, &run->app->ctx, &run->one, err))
        return false;
    pixel_counts_join(&run->all, &run->one);
    run->rows[run->n] = row_of(strdup(slide), &run->one);
    return run->rows[run->n++].slide || err_memory(err, slide);
}

/* Checks that every slide of the truth has a heatmap. */
static bool check_truth(struct pixel_run *run, struct err *err)
{
    size_t found = 0;
    for (size_t i = 0; i < run->truth.n; i++) {
        bool there = false;
        for (size_t k = 0; k < run->n && !there; k++)
            there = strcmp(run->rows[k].slide, run->truth.entries[i].slide) == 0;
        found += there;
        run->left_out += !there;
        if (!there && !run->o->allow_missing)
            return err_set(err, ERR_MISSING,
                           "%s: slide '%s' has truth but no heatmap; predict it, or pass "
                           "--allow-missing to skip it",
                           run->truth.source, run->truth.entries[i].slide);
    }
    return found > 0 || err_set(err, ERR_MISSING, "the heatmaps and %s have no slide in common",
                                run->truth.source);
}

static bool do_all(struct pixel_run *run, char *const *paths, int n_paths, struct err *err)
{
    char **folders = NULL;
    size_t n = 0, unfinished = 0;
    if (!heat_list(paths, n_paths, &folders, &n, &unfinished, err))
        return false;
    run->rows = calloc(n + 1, sizeof *run->rows);
    bool ok = run->rows || err_memory(err, "the list of heatmaps");
    if (unfinished > 0)
        console_warn(run->app->ctx.console, "slides without a heatmap yet: %zu", unfinished);
    console_begin(run->app->ctx.console, "pixels", (int64_t)n, "slides");
    for (size_t i = 0; ok && i < n; i++) {
        struct heatmap *heatmap = NULL;
        ok = heatmap_open(folders[i], &heatmap, err) && do_slide(run, heatmap, err);
        heatmap_close(heatmap);
        console_advance(run->app->ctx.console, 1);
    }
    console_end(run->app->ctx.console);
    folder_names_free(folders, n);
    ok = ok && check_truth(run, err);
    if (ok)
        run->rows[run->n] = row_of(NULL, &run->all);
    if (ok && run->left_out > 0)
        console_warn(run->app->ctx.console,
                     "slides skipped because they have no truth or no heatmap: %lld",
                     (long long)run->left_out);
    return ok;
}

static void put(FILE *out, const char *format, const char *empty, double value)
{
    if (isfinite(value))
        fprintf(out, format, value);
    else
        fputs(empty, out);
}

static void print_text(FILE *out, const struct pixel_run *run)
{
    int width = 5;
    for (size_t i = 0; i < run->n; i++)
        width = (int)strlen(run->rows[i].slide) > width ? (int)strlen(run->rows[i].slide) : width;
    fprintf(out, "%-*s      cells     tumour     AUC    Dice     IoU\n", width, "slide");
    for (size_t i = 0; i <= run->n; i++) {
        const struct pixel_row *row = &run->rows[i];
        fprintf(out, "%-*s %10lld %10lld  ", width, row->slide ? row->slide : "all",
                (long long)row->scored, (long long)row->tumour);
        put(out, "%6.4f  ", "     -  ", row->measures.auc);
        put(out, "%6.4f  ", "     -  ", row->measures.dice);
        put(out, "%6.4f\n", "     -\n", row->measures.iou);
    }
}

static void print_csv(FILE *out, const struct pixel_run *run)
{
    fputs("slide,scored,tumour,auc,auc_error,dice,iou\n", out);
    for (size_t i = 0; i <= run->n; i++) {
        const struct pixel_row *row = &run->rows[i];
        csv_write_cell(out, row->slide ? row->slide : "all");
        fprintf(out, ",%lld,%lld,", (long long)row->scored, (long long)row->tumour);
        put(out, "%.10g", "", row->measures.auc);
        fprintf(out, ",%.3g,", row->measures.auc_error);
        put(out, "%.10g", "", row->measures.dice);
        fputc(',', out);
        put(out, "%.10g", "", row->measures.iou);
        fputc('\n', out);
    }
}

static void print_json(FILE *out, const struct pixel_run *run)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_array(&json, "slides");
    for (size_t i = 0; i <= run->n; i++) {
        const struct pixel_row *row = &run->rows[i];
        if (i == run->n)
            json_out_close_array(&json);
        json_out_object_line(&json, i == run->n ? "all" : NULL);
        if (row->slide)
            json_out_text(&json, "slide", row->slide);
        json_out_int(&json, "scored", row->scored);
        json_out_int(&json, "tumour", row->tumour);
        json_out_real(&json, "auc", row->measures.auc);
        json_out_real(&json, "auc_error", row->measures.auc_error);
        json_out_real(&json, "dice", row->measures.dice);
        json_out_real(&json, "iou", row->measures.iou);
        json_out_close_object(&json);
    }
    json_out_close_object(&json);
    json_out_end(&json);
}

bool evaluate_pixels(struct app *app, const void *options, char *const *paths, int n_paths,
                     struct err *err)
{
    const struct evaluate_options *o = options;
    struct pixel_run run = { .app = app, .o = o };
    if (!o->truth)
        return err_set(err, ERR_USAGE,
                       "pixels needs --truth: a folder of annotations or masks, or a slide list");
    struct class_map *class_map = NULL;
    bool ok = class_map_parse(o->class_map, &class_map, err) &&
              truth_list_read(o->truth, o->slide, class_map, &run.truth, err) &&
              pixel_counts_new(&run.one, err) && pixel_counts_new(&run.all, err) &&
              do_all(&run, paths, n_paths, err);
    if (ok)
        (o->json ? print_json : o->csv ? print_csv : print_text)(app->out, &run);
    for (size_t i = 0; i < run.n; i++)
        free(run.rows[i].slide);
    free(run.rows);
    pixel_counts_free(&run.one), pixel_counts_free(&run.all);
    truth_list_free(&run.truth);
    class_map_free(class_map);
    return ok;
}
