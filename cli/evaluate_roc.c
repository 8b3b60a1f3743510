/* evaluate_roc.c: `microtome evaluate roc`: tables of scores -> areas, intervals, tests, curves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/report.h"
#include "cli/evaluate.h"
#include "plot/curves.h"
#include "verdict/roc.h"
#include "verdict/scores.h"

#define MOST_CURVES 64
#define MOST_DRAWS 200000000 /* of a bootstrap; with more scores there are fewer replicates */
#define LEAST_REPLICATES 200
#define DRAWN_STEP 5e-4 /* points of a picture that are nearer than this are one */

struct roc_curve {
    char *name;
    const char *path;
    struct scores scores;
    struct roc roc;
};

struct roc_run {
    struct app *app;
    const struct evaluate_options *o;
    struct roc_curve curves[MOST_CURVES];
    int n;
};

static bool add_curve(struct roc_run *run, const char *path, const char *column, const char *name,
                      struct err *err)
{
    const struct evaluate_options *o = run->o;
    if (run->n == MOST_CURVES)
        return err_set(err, ERR_USAGE, "more than %d curves; compare fewer at a time", MOST_CURVES);
    struct roc_curve *curve = &run->curves[run->n++];
    *curve = (struct roc_curve){ .name = strdup(name), .path = path };
    struct scores_request request = { path,        o->slide, column,          o->label,
                                      o->positive, o->truth, o->allow_missing };
    if (!curve->name)
        return err_memory(err, path);
    if (!scores_read(&request, &curve->scores, err))
        return false;
    int64_t left_out = curve->scores.without_label + curve->scores.without_score;
    if (left_out > 0)
        report_warn(run->app->ctx.report,
                    "%s: slides left out: %lld without a label, %lld without a score", path,
                    (long long)curve->scores.without_label, (long long)curve->scores.without_score);
    struct roc_options options = { o->bootstrap, (uint64_t)o->seed };
    if (options.replicates * curve->scores.n > MOST_DRAWS) {
        int64_t fitting = MOST_DRAWS / curve->scores.n;
        int64_t fewer = fitting > LEAST_REPLICATES ? fitting : LEAST_REPLICATES;
        options.replicates = fewer < options.replicates ? fewer : options.replicates;
    }
    return roc_compute(curve->scores.values, curve->scores.positive, curve->scores.n, &options,
                       &run->app->ctx, &curve->roc, err) ||
           err_prefix(err, path);
}

/* A curve is called after its file, its column, or both, whatever tells it from the others. */
static bool add_file(struct roc_run *run, const char *path, bool many_files, struct err *err)
{
    const struct arg_texts *columns = &run->o->scores;
    bool ok = true;
    for (size_t k = 0; ok && k < (columns->n ? columns->n : 1); k++) {
        const char *column = columns->n ? columns->items[k] : "score";
        char *stem = file_stem(path);
        char *both = stem ? file_format("%s %s", stem, column) : NULL;
        if (!both)
            ok = err_memory(err, path);
        else
            ok = add_curve(run, path, column,
                           columns->n < 2 ? stem
                           : many_files   ? both
                                          : column,
                           err);
        free(stem), free(both);
    }
    return ok;
}

static int name_width(const struct roc_run *run)
{
    int width = 5;
    for (int i = 0; i < run->n; i++)
        width = (int)strlen(run->curves[i].name) > width ? (int)strlen(run->curves[i].name) : width;
    return width;
}

static void print_text(struct roc_run *run)
{
    FILE *out = run->app->out;
    int width = name_width(run);
    fprintf(out,
            "%-*s  slides  positive  AUC     SE      95 %% DeLong       95 %% bootstrap    "
            "best threshold: sensitivity, specificity\n",
            width, "curve");
    for (int i = 0; i < run->n; i++) {
        const struct roc *roc = &run->curves[i].roc;
        char interval[40] = "-";
        if (roc->replicates > 0)
            snprintf(interval, sizeof interval, "%.4f to %.4f", roc->bootstrap_low,
                     roc->bootstrap_high);
        fprintf(out, "%-*s  %6lld  %8lld  %.4f  %.4f  %.4f to %.4f  %-16s  %g: %.4f, %.4f\n", width,
                run->curves[i].name, (long long)(roc->positives + roc->negatives),
                (long long)roc->positives, roc->auc, roc->se, roc->delong_low, roc->delong_high,
                interval, roc->best.threshold, roc->best.tpr, 1 - roc->best.fpr);
    }
}

static void print_csv(struct roc_run *run)
{
    FILE *out = run->app->out;
    fputs("curve,slides,positives,auc,se,delong_low,delong_high,bootstrap_replicates,bootstrap_low,"
          "bootstrap_high,best_threshold,best_sensitivity,best_specificity\n",
          out);
    for (int i = 0; i < run->n; i++) {
        const struct roc *roc = &run->curves[i].roc;
        csv_write_cell(out, run->curves[i].name);
        fprintf(out, ",%lld,%lld,%.10g,%.10g,%.10g,%.10g,%lld,",
                (long long)(roc->positives + roc->negatives), (long long)roc->positives, roc->auc,
                roc->se, roc->delong_low, roc->delong_high, (long long)roc->replicates);
        if (roc->replicates > 0)
            fprintf(out, "%.10g,%.10g,", roc->bootstrap_low, roc->bootstrap_high);
        else
            fputs(",,", out);
        fprintf(out, "%.10g,%.10g,%.10g\n", roc->best.threshold, roc->best.tpr, 1 - roc->best.fpr);
    }
}

static void json_interval(struct json_out *json, const char *key, double low, double high)
{
    json_out_array_line(json, key);
    json_out_real(json, NULL, low);
    json_out_real(json, NULL, high);
    json_out_close_array(json);
}

static void print_json_curve(struct json_out *json, const struct roc_curve *curve)
{
    const struct roc *roc = &curve->roc;
    json_out_object(json, NULL);
    json_out_text(json, "curve", curve->name);
    json_out_int(json, "slides", roc->positives + roc->negatives);
    json_out_int(json, "positives", roc->positives);
    json_out_real(json, "auc", roc->auc);
    json_out_real(json, "se", roc->se);
    json_interval(json, "delong_95", roc->delong_low, roc->delong_high);
    json_out_int(json, "bootstrap_replicates", roc->replicates);
    if (roc->replicates > 0)
        json_interval(json, "bootstrap_95", roc->bootstrap_low, roc->bootstrap_high);
    json_out_real(json, "best_threshold", roc->best.threshold);
    json_out_real(json, "best_sensitivity", roc->best.tpr);
    json_out_real(json, "best_specificity", 1 - roc->best.fpr);
    json_out_close_object(json);
}

static void print_test_row(FILE *out, const char *a, const char *b, const struct roc_test *test)
{
    csv_write_cell(out, a);
    fputc(',', out);
    csv_write_cell(out, b);
    fprintf(out, ",%.10g,%.10g,%.10g,%.10g,%.10g,%.10g\n", test->difference, test->se, test->low,
            test->high, test->z, test->p);
}

static void print_test(struct roc_run *run, struct json_out *json, const char *a, const char *b,
                       const struct roc_test *test)
{
    if (json->stream) {
        json_out_object_line(json, NULL);
        json_out_text(json, "a", a);
        json_out_text(json, "b", b);
        json_out_real(json, "difference", test->difference);
        json_out_real(json, "se", test->se);
        json_interval(json, "difference_95", test->low, test->high);
        json_out_real(json, "z", test->z);
        json_out_real(json, "p", test->p);
        json_out_close_object(json);
        return;
    }
    if (run->o->csv) {
        print_test_row(run->app->out, a, b, test);
        return;
    }
    fprintf(run->app->out,
            "%s - %s: difference of the areas %.4f (95 %% %.4f to %.4f), DeLong z %.3f, p %.4g\n",
            a, b, test->difference, test->low, test->high, test->z, test->p);
}

/* Every pair of curves over the same slides. */
static bool test_pairs(struct roc_run *run, struct json_out *json, struct err *err)
{
    for (int i = 0; i < run->n; i++)
        for (int j = i + 1; j < run->n; j++) {
            const struct roc_curve *a = &run->curves[i], *b = &run->curves[j];
            struct roc_test test;
            if (!scores_are_paired(&a->scores, &b->scores)) {
                report_note(run->app->ctx.report,
                            "%s and %s are not of the same slides: no test of their difference",
                            a->name, b->name);
                continue;
            }
            if (!roc_delong_test(a->scores.values, b->scores.values, a->scores.positive,
                                 a->scores.n, &test, err))
                return false;
            print_test(run, json, a->name, b->name, &test);
        }
    return true;
}

static bool print(struct roc_run *run, struct err *err)
{
    struct json_out json = { 0 };
    if (run->o->csv) {
        print_csv(run);
        if (run->n > 1) /* a second table, after an empty line */
            fputs("\na,b,difference,se,difference_low,difference_high,z,p\n", run->app->out);
        return test_pairs(run, &json, err);
    }
    if (!run->o->json) {
        print_text(run);
        return test_pairs(run, &json, err);
    }
    json_out_begin(&json, run->app->out);
    json_out_object(&json, NULL);
    json_out_array(&json, "curves");
    for (int i = 0; i < run->n; i++)
        print_json_curve(&json, &run->curves[i]);
    json_out_close_array(&json);
    json_out_array(&json, "tests");
    bool ok = test_pairs(run, &json, err);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return ok;
}

static bool write_points(const struct roc_run *run, struct err *err)
{
    struct file_out file;
    if (!run->o->points)
        return true;
    if (!file_out_open(&file, run->o->points, err))
        return false;
    fputs("curve,false_positive_rate,true_positive_rate,threshold\n", file.stream);
    for (int i = 0; i < run->n; i++)
        for (int64_t k = 0; k < run->curves[i].roc.n_points; k++) {
            const struct roc_point *point = &run->curves[i].roc.points[k];
            csv_write_cell(file.stream, run->curves[i].name);
            fprintf(file.stream, ",%.10g,%.10g,%.17g\n", point->fpr, point->tpr, point->threshold);
        }
    return file_out_commit(&file, err);
}

/* Points that can be told apart in a picture. Returns how many; x and y have room for all. */
static int64_t thin_out(const struct roc *roc, double *x, double *y)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < roc->n_points; k++) {
        const struct roc_point *point = &roc->points[k];
        if (kept > 0 && k + 1 < roc->n_points && point->fpr - x[kept - 1] < DRAWN_STEP &&
            point->tpr - y[kept - 1] < DRAWN_STEP)
            continue;
        x[kept] = point->fpr, y[kept++] = point->tpr;
    }
    return kept;
}

static bool plot(struct roc_run *run, struct err *err)
{
    struct chart_curve curves[MOST_CURVES];
    double *xy[MOST_CURVES] = { 0 };
    char *names[MOST_CURVES] = { 0 };
    bool ok = true;
    if (!run->o->plot)
        return true;
    for (int i = 0; ok && i < run->n; i++) {
        const struct roc *roc = &run->curves[i].roc;
        xy[i] = calloc(2 * (size_t)roc->n_points, sizeof **xy);
        names[i] = file_format("%s: AUC %.3f (%.3f to %.3f)", run->curves[i].name, roc->auc,
                               roc->delong_low, roc->delong_high);
        ok = (xy[i] && names[i]) || err_memory(err, "the curves");
        if (ok) {
            double *y = xy[i] + roc->n_points;
            curves[i] = (struct chart_curve){ names[i], xy[i], y, thin_out(roc, xy[i], y), i >= 6 };
        }
    }
    const struct chart chart = { .title = "ROC",
                                 .x_label = "1 - specificity",
                                 .y_label = "sensitivity",
                                 .curves = curves,
                                 .n_curves = run->n,
                                 .x_high = 1,
                                 .y_high = 1,
                                 .square = true,
                                 .diagonal = true };
    ok = ok && evaluate_plot(run->o, &chart, err);
    for (int i = 0; i < run->n; i++)
        free(xy[i]), free(names[i]);
    return ok;
}

bool evaluate_roc(struct app *app, const void *options, char *const *files, int n_files,
                  struct err *err)
{
    const struct evaluate_options *o = options;
    struct roc_run *run = calloc(1, sizeof *run);
    bool ok = run || err_memory(err, "the curves");
    if (ok)
        run->app = app, run->o = o;
    for (int i = 0; ok && i < n_files; i++)
        ok = add_file(run, files[i], n_files > 1, err);
    ok = ok && write_points(run, err) && plot(run, err) && print(run, err);
    for (int i = 0; run && i < run->n; i++) {
        free(run->curves[i].name);
        scores_free(&run->curves[i].scores);
        roc_free(&run->curves[i].roc);
    }
    free(run);
    return ok;
}
