/* evaluate_roc_plot.c: the curves of `microtome evaluate roc` as pictures and as tables of points
 * (evaluate_roc.h). */
#include <math.h>
#include <stdlib.h>
#include "base/csv.h"
#include "cli/evaluate_roc.h"
#include "plot/curves.h"
#include "base/text.h"

#define DRAWN_STEP 5e-4 /* points of a picture that are closer than this are merged */

static void write_roc(FILE *out, const void *all, int n)
{
    const struct roc_curve *curves = all;
    fputs("curve,false_positive_rate,true_positive_rate,threshold\n", out);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < curves[i].all.roc.n_points; k++) {
            const struct roc_point *point = &curves[i].all.roc.points[k];
            csv_write_cell(out, curves[i].name);
            fprintf(out, ",%.10g,%.10g,%.17g\n", point->fpr, point->tpr, point->threshold);
        }
}

static void write_precision(FILE *out, const void *all, int n)
{
    const struct roc_curve *curves = all;
    fputs("curve,recall,precision,threshold\n", out);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < curves[i].all.precision.n_points; k++) {
            const struct precision_point *point = &curves[i].all.precision.points[k];
            csv_write_cell(out, curves[i].name);
            fprintf(out, ",%.10g,%.10g,%.17g\n", point->recall, point->precision, point->threshold);
        }
}

/* Empty bins are omitted. */
static void write_calibration(FILE *out, const void *all, int n)
{
    const struct roc_curve *curves = all;
    fputs("curve,mean_score,share_positive,low,high,slides,positives\n", out);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < curves[i].all.calibration.n_bins; k++) {
            const struct calibration_bin *bin = &curves[i].all.calibration.bins[k];
            if (bin->n == 0)
                continue;
            csv_write_cell(out, curves[i].name);
            fprintf(out, ",%.10g,%.10g,%.10g,%.10g,%lld,%lld\n", bin->score, bin->share, bin->low,
                    bin->high, (long long)bin->n, (long long)bin->positives);
        }
}

/* What a plot of one kind of curve needs to know about each curve. */
struct picture {
    int64_t (*count)(const struct judgement *judgement);
    void (*point)(const struct judgement *judgement, int64_t k, double *x, double *y);
    char *(*name)(const struct roc_curve *curve); /* in the legend; the caller's */
};

static int64_t roc_count(const struct judgement *j)
{
    return j->roc.n_points;
}

static void roc_point(const struct judgement *j, int64_t k, double *x, double *y)
{
    *x = j->roc.points[k].fpr, *y = j->roc.points[k].tpr;
}

static char *roc_name(const struct roc_curve *curve)
{
    const struct roc *roc = &curve->all.roc;
    return text_format("%s: AUC %.3f (%.3f to %.3f)", curve->name, roc->auc, roc->delong_low,
                       roc->delong_high);
}

static int64_t precision_count(const struct judgement *j)
{
    return j->precision.n_points;
}

static void precision_at(const struct judgement *j, int64_t k, double *x, double *y)
{
    *x = j->precision.points[k].recall, *y = j->precision.points[k].precision;
}

static char *precision_name(const struct roc_curve *curve)
{
    return text_format("%s: average precision %.3f", curve->name, curve->all.precision.average);
}

static int64_t calibration_count(const struct judgement *j)
{
    return j->calibration.n_bins;
}

static void calibration_at(const struct judgement *j, int64_t k, double *x, double *y)
{
    *x = j->calibration.bins[k].score, *y = j->calibration.bins[k].share;
}

static char *calibration_name(const struct roc_curve *curve)
{
    const struct calibration *calibration = &curve->all.calibration;
    return calibration->probabilities
               ? text_format("%s: Brier score %.3f", curve->name, calibration->brier)
               : text_format("%s: not probabilities", curve->name);
}

/* The finite points that can be distinguished. Returns how many; x and y have room for all.
 */
static int64_t thin_out(const struct picture *picture, const struct judgement *judgement, double *x,
                        double *y)
{
    const int64_t n = picture->count(judgement);
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        double at_x, at_y;
        picture->point(judgement, k, &at_x, &at_y);
        bool near = kept > 0 && k + 1 < n && fabs(at_x - x[kept - 1]) < DRAWN_STEP &&
                    fabs(at_y - y[kept - 1]) < DRAWN_STEP;
        if (!near && isfinite(at_x) && isfinite(at_y))
            x[kept] = at_x, y[kept++] = at_y;
    }
    return kept;
}

static bool draw(const struct roc_run *run, const char *ending, const struct picture *picture,
                 struct chart *chart, struct err *err)
{
    struct chart_curve curves[MOST_CURVES];
    double *xy[MOST_CURVES] = { 0 };
    char *names[MOST_CURVES] = { 0 };
    bool ok = true;
    for (int i = 0; ok && i < run->n; i++) {
        const int64_t n = picture->count(&run->curves[i].all);
        xy[i] = calloc(2 * (size_t)n + 1, sizeof **xy);
        names[i] = picture->name(&run->curves[i]);
        ok = (xy[i] && names[i]) || err_memory(err, "the curves");
        if (ok)
            curves[i] =
                (struct chart_curve){ names[i], xy[i], xy[i] + n,
                                      thin_out(picture, &run->curves[i].all, xy[i], xy[i] + n),
                                      i >= 6 };
    }
    chart->curves = curves, chart->n_curves = run->n;
    chart->x_high = chart->y_high = 1, chart->square = true;
    ok = ok && evaluate_plot(run->o, ending, chart, err);
    for (int i = 0; i < run->n; i++)
        free(xy[i]), free(names[i]);
    return ok;
}

static bool draw_all(const struct roc_run *run, struct err *err)
{
    static const struct picture roc = { roc_count, roc_point, roc_name };
    static const struct picture precision = { precision_count, precision_at, precision_name };
    static const struct picture calibration = { calibration_count, calibration_at,
                                                calibration_name };
    struct chart roc_chart = {
        .title = "ROC", .x_label = "1 - specificity", .y_label = "sensitivity", .diagonal = true
    };
    struct chart precision_chart = { .title = "Precision and recall",
                                     .x_label = "recall",
                                     .y_label = "precision" };
    struct chart calibration_chart = { .title = "Calibration",
                                       .x_label = "mean score of a bin",
                                       .y_label = "share of positives",
                                       .diagonal = true };
    return draw(run, "", &roc, &roc_chart, err) &&
           draw(run, "_pr", &precision, &precision_chart, err) &&
           (!evaluate_roc_calibrated(run) ||
            draw(run, "_calibration", &calibration, &calibration_chart, err));
}

bool evaluate_roc_draw(const struct roc_run *run, struct err *err)
{
    const struct evaluate_options *o = run->o;
    return evaluate_points(o, "", write_roc, run->curves, run->n, err) &&
           evaluate_points(o, "_pr", write_precision, run->curves, run->n, err) &&
           (!evaluate_roc_calibrated(run) ||
            evaluate_points(o, "_calibration", write_calibration, run->curves, run->n, err)) &&
           (!o->plot || draw_all(run, err));
}
