/* evaluate_froc.c: `microtome evaluate froc`: folders of lesion lists -> FROC curves and scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/json.h"
#include "base/console.h"
#include "cli/evaluate.h"
#include "plot/curves.h"
#include "verdict/froc_cohort.h"
#include "base/text.h"

#define MOST_CURVES 64
#define DRAWN_POINTS 400

struct froc_curve {
    char *name;
    struct froc_cohort cohort;
};

static void print_text(FILE *out, const struct froc_curve *curves, int n)
{
    int width = 5;
    for (int i = 0; i < n; i++)
        width = (int)strlen(curves[i].name) > width ? (int)strlen(curves[i].name) : width;
    fprintf(out,
            "%-*s  slides  lesions  isolated  calls   FROC    at 1/4  1/2     1       2       4    "
            "   8\n",
            width, "curve");
    for (int i = 0; i < n; i++) {
        const struct froc_cohort *c = &curves[i].cohort;
        fprintf(out, "%-*s  %6lld  %7lld  %8lld  %5lld   %.4f ", width, curves[i].name,
                (long long)c->slides, (long long)c->lesions, (long long)c->isolated,
                (long long)c->calls, c->froc.score);
        for (int k = 0; k < FROC_RATES; k++)
            fprintf(out, " %.4f%s", c->froc.at[k], k + 1 < FROC_RATES ? " " : "\n");
    }
}

static void print_csv(FILE *out, const struct froc_curve *curves, int n)
{
    fputs("curve,slides,slides_with_tumour,lesions,isolated,calls,calls_ignored,froc", out);
    for (int k = 0; k < FROC_RATES; k++)
        fprintf(out, ",at_%g", froc_rates[k]);
    fputc('\n', out);
    for (int i = 0; i < n; i++) {
        const struct froc_cohort *c = &curves[i].cohort;
        csv_write_cell(out, curves[i].name);
        fprintf(out, ",%lld,%lld,%lld,%lld,%lld,%lld,%.10g", (long long)c->slides,
                (long long)c->with_tumour, (long long)c->lesions, (long long)c->isolated,
                (long long)c->calls, (long long)c->ignored, c->froc.score);
        for (int k = 0; k < FROC_RATES; k++)
            fprintf(out, ",%.10g", c->froc.at[k]);
        fputc('\n', out);
    }
}

static void print_json(FILE *out, enum froc_ties ties, const struct froc_curve *curves, int n)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_text(&json, "ties", froc_ties_names[ties]);
    json_out_array(&json, "curves");
    for (int i = 0; i < n; i++) {
        const struct froc_cohort *c = &curves[i].cohort;
        json_out_object(&json, NULL);
        json_out_text(&json, "curve", curves[i].name);
        json_out_int(&json, "slides", c->slides);
        json_out_int(&json, "slides_with_tumour", c->with_tumour);
        json_out_int(&json, "lesions", c->lesions);
        json_out_int(&json, "isolated", c->isolated);
        json_out_int(&json, "calls", c->calls);
        json_out_int(&json, "calls_ignored", c->ignored);
        json_out_real(&json, "froc", c->froc.score);
        json_out_object_line(&json, "sensitivity_at");
        for (int k = 0; k < FROC_RATES; k++) {
            char rate[16];
            snprintf(rate, sizeof rate, "%g", froc_rates[k]);
            json_out_real(&json, rate, c->froc.at[k]);
        }
        json_out_close_object(&json);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

static void write_points(FILE *out, const void *all, int n)
{
    const struct froc_curve *curves = all;
    fputs("curve,false_positives_per_slide,sensitivity,threshold\n", out);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < curves[i].cohort.froc.n_points; k++) {
            const struct froc_point *point = &curves[i].cohort.froc.points[k];
            csv_write_cell(out, curves[i].name);
            fprintf(out, ",%.10g,%.10g,%.17g\n", point->wrong_per_slide, point->sensitivity,
                    point->threshold);
        }
}

/* The curve between 1/4 and 8 false positives per slide, as interpolated for the score. */
static bool plot(const struct evaluate_options *o, const struct froc_curve *curves, int n,
                 struct err *err)
{
    struct chart_curve drawn[MOST_CURVES];
    double x[DRAWN_POINTS];
    char *names[MOST_CURVES] = { 0 };
    double *y = calloc((size_t)n * DRAWN_POINTS, sizeof *y);
    bool ok = y || err_memory(err, "the curves");
    const double low = froc_rates[0], high = froc_rates[FROC_RATES - 1];
    for (int k = 0; k < DRAWN_POINTS; k++)
        x[k] = low * pow(high / low, (double)k / (DRAWN_POINTS - 1));
    for (int i = 0; ok && i < n; i++) {
        names[i] = text_format("%s: FROC %.3f", curves[i].name, curves[i].cohort.froc.score);
        ok = names[i] || err_memory(err, "the curves");
        for (int k = 0; k < DRAWN_POINTS; k++)
            y[i * DRAWN_POINTS + k] = froc_sensitivity(&curves[i].cohort.froc, x[k]);
        drawn[i] = (struct chart_curve){ names[i], x, y + i * DRAWN_POINTS, DRAWN_POINTS, i >= 6 };
    }
    const struct chart chart = { .title = "FROC",
                                 .x_label = "false positives per slide",
                                 .y_label = "sensitivity for lesions",
                                 .curves = drawn,
                                 .n_curves = n,
                                 .x_low = low,
                                 .x_high = high,
                                 .y_high = 1,
                                 .log_x = true };
    ok = ok && evaluate_plot(o, "", &chart, err);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(y);
    return ok;
}

static bool compute(struct app *app, const struct evaluate_options *o, char *const *folders, int n,
                    struct froc_curve *curves, struct err *err)
{
    struct truth_list truth = { 0 };
    struct class_map *class_map = NULL;
    struct froc_rules rules = froc_camelyon16();
    rules.mpp = o->mpp, rules.downsample = o->downsample, rules.isolated_um = o->isolated;
    rules.ties = (enum froc_ties)o->ties;
    bool ok = class_map_parse(o->class_map, &class_map, err) &&
              truth_list_read(o->truth, o->slide, class_map, &truth, err);
    for (int i = 0; ok && i < n; i++) {
        char *folder = strdup(folders[i]);
        for (size_t k = folder ? strlen(folder) : 0; k > 1 && folder[k - 1] == '/'; k--)
            folder[k - 1] = 0;
        const char *slash = folder ? strrchr(folder, '/') : NULL;
        curves[i].name = folder ? strdup(slash ? slash + 1 : folder) : NULL;
        ok = curves[i].name || err_memory(err, "the curves");
        ok = ok && froc_of_folder(folder, &truth, &rules, o->allow_missing, &app->ctx,
                                  &curves[i].cohort, err);
        if (ok && curves[i].cohort.left_out > 0)
            console_warn(app->ctx.console,
                         "%s: slides skipped because they have no truth or no list: %lld", folder,
                         (long long)curves[i].cohort.left_out);
        free(folder);
    }
    truth_list_free(&truth);
    class_map_free(class_map);
    return ok;
}

bool evaluate_froc(struct app *app, const void *options, char *const *folders, int n_folders,
                   struct err *err)
{
    const struct evaluate_options *o = options;
    if (!o->truth)
        return err_set(err, ERR_USAGE,
                       "froc needs --truth: a folder of annotations or masks, or a slide list");
    if (n_folders > MOST_CURVES)
        return err_set(err, ERR_USAGE, "more than %d curves; compare fewer at once", MOST_CURVES);
    struct froc_curve *curves = calloc((size_t)n_folders, sizeof *curves);
    bool ok = (curves || err_memory(err, "the curves")) &&
              compute(app, o, folders, n_folders, curves, err) &&
              evaluate_points(o, "", write_points, curves, n_folders, err) &&
              plot(o, curves, n_folders, err);
    if (ok && o->json)
        print_json(app->out, (enum froc_ties)o->ties, curves, n_folders);
    else if (ok)
        (o->csv ? print_csv : print_text)(app->out, curves, n_folders);
    for (int i = 0; curves && i < n_folders; i++)
        free(curves[i].name), froc_free(&curves[i].cohort.froc);
    free(curves);
    return ok;
}
