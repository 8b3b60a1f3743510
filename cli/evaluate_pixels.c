/* evaluate_pixels.c: `microtome evaluate pixels`: heatmaps and the truth -> pixel AUC, Dice, IoU.
 */
#include <math.h>
#include "base/csv.h"
#include "base/json.h"
#include "cli/evaluate.h"
#include "verdict/pixels_cohort.h"

static void put(FILE *out, const char *format, const char *empty, double value)
{
    if (isfinite(value))
        fprintf(out, format, value);
    else
        fputs(empty, out);
}

static void print_text(FILE *out, const struct pixel_cohort *cohort)
{
    int width = 5;
    for (size_t i = 0; i < cohort->n; i++)
        width =
            (int)strlen(cohort->rows[i].slide) > width ? (int)strlen(cohort->rows[i].slide) : width;
    fprintf(out, "%-*s      cells     tumour     AUC    Dice     IoU\n", width, "slide");
    for (size_t i = 0; i <= cohort->n; i++) {
        const struct pixel_row *row = &cohort->rows[i];
        fprintf(out, "%-*s %10lld %10lld  ", width, row->slide ? row->slide : "all",
                (long long)row->scored, (long long)row->tumour);
        put(out, "%6.4f  ", "     -  ", row->measures.auc);
        put(out, "%6.4f  ", "     -  ", row->measures.dice);
        put(out, "%6.4f\n", "     -\n", row->measures.iou);
    }
}

static void print_csv(FILE *out, const struct pixel_cohort *cohort)
{
    fputs("slide,scored,tumour,auc,auc_error,dice,iou\n", out);
    for (size_t i = 0; i <= cohort->n; i++) {
        const struct pixel_row *row = &cohort->rows[i];
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

static void print_json(FILE *out, const struct pixel_cohort *cohort)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_array(&json, "slides");
    for (size_t i = 0; i <= cohort->n; i++) {
        const struct pixel_row *row = &cohort->rows[i];
        if (i == cohort->n)
            json_out_close_array(&json);
        json_out_object_line(&json, i == cohort->n ? "all" : NULL);
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
    struct pixel_rules rules = { .class_name = o->class_name,
                                 .downsample = o->downsample,
                                 .threshold = o->threshold,
                                 .allow_missing = o->allow_missing };
    struct truth_list truth = { 0 };
    struct pixel_cohort cohort = { 0 };
    if (!o->truth)
        return err_set(err, ERR_USAGE,
                       "pixels needs --truth: a folder of annotations or masks, or a slide list");
    struct class_map *class_map = NULL;
    bool ok = class_map_parse(o->class_map, &class_map, err) &&
              truth_list_read(o->truth, o->slide, class_map, &truth, err) &&
              pixels_of_folders(paths, n_paths, &truth, &rules, &app->ctx, &cohort, err);
    if (ok)
        (o->json ? print_json : o->csv ? print_csv : print_text)(app->out, &cohort);
    pixel_cohort_free(&cohort);
    truth_list_free(&truth);
    class_map_free(class_map);
    return ok;
}
