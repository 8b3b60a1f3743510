/* evaluate_confusion.c: `microtome evaluate confusion`: true and predicted classes -> a table of
 * counts, accuracy, kappa, and precision and recall of every class. */
#include <stdlib.h>
#include "base/console.h"
#include "base/csv.h"
#include "base/file.h"
#include "cli/evaluate.h"
#include "cli/evaluate_confusion.h"
#include "verdict/confusion_cohort.h"
#include "verdict/confusion_table.h"

static bool of_table(struct app *app, const struct evaluate_options *o, const char *path,
                     const struct class_list *classes, struct confusion *out, struct err *err)
{
    struct confusion_table table;
    const struct confusion_table_request request = {
        .path = path,
        .slide_column = o->slide,
        .label_column = o->label,
        .truth_path = o->truth,
        .allow_missing = o->allow_missing,
        .predicted_column = o->predicted,
        .score_column = o->scores.n ? o->scores.items[0] : NULL,
        .threshold = o->threshold,
        .positive_word = o->positive,
        .classes = classes->n ? classes : NULL,
    };
    if (!confusion_of_table(&request, &table, err))
        return false;
    if (table.without_label + table.without_score > 0)
        console_warn(app->ctx.console,
                     "%s: slides skipped: %lld without a label, %lld without a score", path,
                     (long long)table.without_label, (long long)table.without_score);
    *out = table.confusion;
    return true;
}

/* Of heatmaps and tiles. */
static void json_slides(struct json_out *json, const struct confusion_cohort *cohort)
{
    json_out_array(json, "slides");
    for (size_t i = 0; i < cohort->n; i++) {
        const struct confusion_slide *slide = &cohort->slides[i];
        json_out_object_line(json, NULL);
        json_out_text(json, "slide", slide->slide);
        json_out_int(json, "n", slide->counted);
        json_out_int(json, "right", slide->right);
        json_out_int(json, "unlabelled", slide->unlabelled);
        json_out_int(json, "unscored", slide->unscored);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void csv_slides(FILE *out, const struct confusion_cohort *cohort)
{
    fputs("\nslide,n,right,unlabelled,unscored\n", out);
    for (size_t i = 0; i < cohort->n; i++) {
        const struct confusion_slide *slide = &cohort->slides[i];
        csv_write_cell(out, slide->slide);
        fprintf(out, ",%lld,%lld,%lld,%lld\n", (long long)slide->counted, (long long)slide->right,
                (long long)slide->unlabelled, (long long)slide->unscored);
    }
}

/* cohort NULL: of a table of scores. */
static bool show(struct app *app, const struct evaluate_options *o,
                 const struct confusion *confusion, const char *unit,
                 const struct confusion_cohort *cohort, struct err *err)
{
    const enum kappa_weights weights = (enum kappa_weights)o->weights;
    struct confusion_measures measures;
    if (!confusion_measure(confusion, weights, &measures, err))
        return false;
    bool ok = confusion_draw(o, "", confusion, err);
    if (ok && o->json) {
        struct json_out json;
        json_out_begin(&json, app->out);
        json_out_object(&json, NULL);
        confusion_print_json(&json, confusion, &measures, weights);
        if (cohort)
            json_slides(&json, cohort);
        json_out_close_object(&json);
        json_out_end(&json);
    } else if (ok && o->csv) {
        confusion_print_csv(app->out, confusion, &measures);
        if (cohort)
            csv_slides(app->out, cohort);
    } else if (ok) {
        confusion_print_text(app->out, confusion, &measures, unit, weights);
    }
    free(measures.classes);
    return ok;
}

static bool table(struct app *app, const struct evaluate_options *o, char *const *paths,
                  int n_paths, struct err *err)
{
    struct confusion confusion = { 0 };
    struct class_list classes = { 0 };
    if (n_paths > 1)
        return err_set(err, ERR_USAGE, "confusion reads one table of scores; evaluate each alone");
    if (o->scores.n > 1)
        return err_set(err, ERR_USAGE, "confusion reads one --score column; evaluate each alone");
    bool ok = (!o->classes || class_list_parse(o->classes, "classes", &classes, err)) &&
              of_table(app, o, paths[0], &classes, &confusion, err) &&
              show(app, o, &confusion, "slides", NULL, err);
    confusion_free(&confusion);
    class_list_free(&classes);
    return ok;
}

/* Heatmaps or tables of tiles. */
static bool slides(struct app *app, const struct evaluate_options *o, char *const *paths,
                   int n_paths, struct err *err)
{
    const struct confusion_rules rules = { .downsample = o->downsample,
                                           .threshold = o->threshold,
                                           .tile = (enum tile_rule)o->tile,
                                           .allow_missing = o->allow_missing };
    struct truth_list truth = { 0 };
    struct confusion_cohort cohort = { 0 };
    struct class_map *class_map = NULL;
    if (!o->truth)
        return err_set(err, ERR_USAGE,
                       "confusion of heatmaps or tiles needs --truth: a folder of annotations or "
                       "masks, or a slide list");
    if (o->predicted || o->classes || o->scores.n > 0)
        return err_set(err, ERR_USAGE,
                       "--predicted, --classes and --score work with tables of scores, not with "
                       "heatmaps or tiles");
    bool ok = (o->class_map ? class_map_parse(o->class_map, &class_map, err)
                            : confusion_class_map(paths, n_paths, &class_map, err)) &&
              truth_list_read(o->truth, o->slide, class_map, &truth, err) &&
              confusion_of_slides(paths, n_paths, &truth, &rules, &app->ctx, &cohort, err) &&
              show(app, o, &cohort.confusion, confusion_is_tiles(paths[0]) ? "tiles" : "cells",
                   &cohort, err);
    confusion_cohort_free(&cohort);
    truth_list_free(&truth);
    class_map_free(class_map);
    return ok;
}

bool evaluate_confusion(struct app *app, const void *options, char *const *paths, int n_paths,
                        struct err *err)
{
    const struct evaluate_options *o = options;
    return (file_is_folder(paths[0]) || confusion_is_tiles(paths[0]) ? slides : table)(
        app, o, paths, n_paths, err);
}
