/* evaluate_roc_print.c: what `microtome evaluate roc` prints (evaluate_roc.h). */
#include <math.h>
#include <string.h>
#include "base/csv.h"
#include "base/json.h"
#include "base/console.h"
#include "cli/evaluate_roc.h"

static const char *value_name(const char *value)
{
    return *value ? value : "(none)";
}

static int wider(int width, const char *text)
{
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

static int name_width(const struct roc_run *run)
{
    int width = 5;
    for (int i = 0; i < run->n; i++)
        width = wider(width, run->curves[i].name);
    return width;
}

/* What a row is. */
static const char *unit(const struct roc_run *run)
{
    return run->o->patient ? "patients" : "slides";
}

/* "0.1234 to 0.5678", or "-" without a bootstrap. */
static const char *bootstrap_text(const struct roc *roc, char text[40])
{
    snprintf(text, 40, "-");
    if (roc->replicates > 0)
        snprintf(text, 40, "%.4f to %.4f", roc->bootstrap_low, roc->bootstrap_high);
    return text;
}

static void print_text(const struct roc_run *run)
{
    FILE *out = run->app->out;
    int width = name_width(run);
    fprintf(out,
            "%-*s  %8s  positive  AUC     SE      95 %% DeLong       95 %% bootstrap    PR-AUC  "
            "Brier   best threshold: sensitivity, specificity\n",
            width, "curve", unit(run));
    for (int i = 0; i < run->n; i++) {
        const struct judgement *j = &run->curves[i].all;
        const struct roc *roc = &j->roc;
        char interval[40], brier[16] = "-";
        if (isfinite(j->calibration.brier))
            snprintf(brier, sizeof brier, "%.4f", j->calibration.brier);
        fprintf(out,
                "%-*s  %8lld  %8lld  %.4f  %.4f  %.4f to %.4f  %-16s  %.4f  %-6s  %g: %.4f, %.4f\n",
                width, run->curves[i].name, (long long)j->n, (long long)j->positives, roc->auc,
                roc->se, roc->delong_low, roc->delong_high, bootstrap_text(roc, interval),
                j->precision.average, brier, roc->best.threshold, roc->best.tpr, 1 - roc->best.fpr);
    }
}

/* "few: ...", "no positives", ...; "" if the group is large enough, or for all slides. */
static const char *note_of(const struct judged_group *group, char text[80])
{
    text[0] = 0;
    if (group && group->flaw)
        snprintf(text, 80, "%s", group->flaw);
    else if (group && group->small)
        snprintf(text, 80, "few: %lld positive, %lld negative",
                 (long long)group->judgement.positives,
                 (long long)(group->judgement.n - group->judgement.positives));
    return text;
}

/* group NULL: all slides. */
static void print_group(FILE *out, const int widths[2], const char *curve, const char *value,
                        const struct judgement *j, const struct judged_group *group)
{
    char area[16] = "-", delong[40] = "-", bootstrap[40] = "-", note[80];
    if (!group || !group->flaw) {
        snprintf(area, sizeof area, "%.4f", j->roc.auc);
        snprintf(delong, sizeof delong, "%.4f to %.4f", j->roc.delong_low, j->roc.delong_high);
        bootstrap_text(&j->roc, bootstrap);
    }
    note_of(group, note);
    fprintf(out, "%-*s  %-*s  %8lld  %8lld  %-6s  %-16s  %-*s%s\n", widths[0], curve, widths[1],
            value, (long long)j->n, (long long)j->positives, area, delong, *note ? 18 : 0,
            bootstrap, note);
}

static void print_groups(const struct roc_run *run)
{
    FILE *out = run->app->out;
    int widths[2] = { name_width(run), wider(3, run->o->by) };
    for (int i = 0; i < run->n; i++)
        for (size_t k = 0; k < run->curves[i].groups.n; k++)
            widths[1] = wider(widths[1], value_name(run->curves[i].groups.items[k].value));
    fprintf(out,
            "\n%-*s  %-*s  %8s  positive  AUC     95 %% DeLong       95 %% bootstrap    note\n",
            widths[0], "curve", widths[1], run->o->by, unit(run));
    for (int i = 0; i < run->n; i++) {
        const struct roc_curve *curve = &run->curves[i];
        for (size_t k = 0; k < curve->groups.n; k++) {
            const struct judged_group *group = &curve->groups.items[k];
            print_group(out, widths, curve->name, value_name(group->value), &group->judgement,
                        group);
        }
        print_group(out, widths, curve->name, "all", &curve->all, NULL);
    }
}

static void print_calibration(const struct roc_run *run)
{
    FILE *out = run->app->out;
    int width = name_width(run);
    fprintf(out, "\n%-*s  scores            %8s  positive  mean score  share positive\n", width,
            "curve", unit(run));
    for (int i = 0; i < run->n; i++)
        for (int64_t k = 0; k < run->curves[i].all.calibration.n_bins; k++) {
            const struct calibration_bin *bin = &run->curves[i].all.calibration.bins[k];
            fprintf(out, "%-*s  %.4f to %.4f  %8lld  %8lld", width, run->curves[i].name, bin->low,
                    bin->high, (long long)bin->n, (long long)bin->positives);
            if (bin->n > 0)
                fprintf(out, "  %10.4f  %14.4f\n", bin->score, bin->share);
            else
                fprintf(out, "  %10s  %14s\n", "-", "-");
        }
}

/* After the name of a curve. */
static void put_header(const struct roc_run *run, const char *before)
{
    fprintf(run->app->out,
            "%s,%s,positives,auc,se,delong_low,delong_high,bootstrap_replicates,bootstrap_low,"
            "bootstrap_high,best_threshold,best_sensitivity,best_specificity,average_precision,"
            "brier,bootstrap_patients",
            before, unit(run));
}

static void put_real(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.10g", value);
    else
        fputc(',', out);
}

/* The columns of the header, each after a comma; empty if there is no value. */
static void put_measures(FILE *out, const struct judgement *j, bool judged)
{
    const struct roc *roc = &j->roc;
    fprintf(out, ",%lld,%lld", (long long)j->n, (long long)j->positives);
    const double areas[] = { roc->auc, roc->se, roc->delong_low, roc->delong_high };
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
        put_real(out, judged ? areas[i] : NAN);
    bool drawn = judged && roc->replicates > 0;
    fprintf(out, ",%lld", (long long)roc->replicates);
    const double rest[] = { drawn ? roc->bootstrap_low : NAN,
                            drawn ? roc->bootstrap_high : NAN,
                            roc->best.threshold,
                            roc->best.tpr,
                            1 - roc->best.fpr,
                            j->precision.average,
                            j->calibration.brier };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        put_real(out, judged ? rest[i] : NAN);
    fputc(',', out);
    if (drawn && j->clustered)
        fprintf(out, "%lld", (long long)j->patients);
}

static void csv_groups(const struct roc_run *run)
{
    FILE *out = run->app->out;
    put_header(run, "\ncurve,by,value");
    fputs(",note\n", out);
    for (int i = 0; i < run->n; i++)
        for (size_t k = 0; k < run->curves[i].groups.n; k++) {
            const struct judged_group *group = &run->curves[i].groups.items[k];
            csv_write_cell(out, run->curves[i].name);
            fputc(',', out);
            csv_write_cell(out, run->o->by);
            fputc(',', out);
            csv_write_cell(out, group->value);
            put_measures(out, &group->judgement, !group->flaw);
            fputc(',', out);
            fputs(group->flaw ? group->flaw : group->small ? "few" : "", out);
            fputc('\n', out);
        }
}

static void csv_calibration(const struct roc_run *run)
{
    FILE *out = run->app->out;
    fprintf(out, "\ncurve,low,high,%s,positives,mean_score,share_positive\n", unit(run));
    for (int i = 0; i < run->n; i++)
        for (int64_t k = 0; k < run->curves[i].all.calibration.n_bins; k++) {
            const struct calibration_bin *bin = &run->curves[i].all.calibration.bins[k];
            csv_write_cell(out, run->curves[i].name);
            fprintf(out, ",%.10g,%.10g,%lld,%lld", bin->low, bin->high, (long long)bin->n,
                    (long long)bin->positives);
            put_real(out, bin->score);
            put_real(out, bin->share);
            fputc('\n', out);
        }
}

static void print_csv(const struct roc_run *run)
{
    FILE *out = run->app->out;
    put_header(run, "curve");
    fputc('\n', out);
    for (int i = 0; i < run->n; i++) {
        const struct roc_curve *curve = &run->curves[i];
        csv_write_cell(out, curve->name);
        put_measures(out, &curve->all, true);
        fputc('\n', out);
    }
}

/* Means over the classes of a table. */
static void print_means(const struct roc_run *run)
{
    FILE *out = run->app->out;
    int width = 5;
    for (int i = 0; i < run->n_tables; i++)
        width = wider(width, run->tables[i].name);
    fprintf(out, "\n%-*s  mean over classes       AUC     95 %% bootstrap\n", width, "table");
    for (int i = 0; i < 2 * run->n_tables; i++) {
        const struct roc_table *table = &run->tables[i / 2];
        const struct roc_mean *mean = i % 2 ? &table->means.weighted : &table->means.macro;
        fprintf(out, "%-*s  %-22s  %.4f  ", width, table->name,
                i % 2 ? "weighted by class size" : "macro", mean->area);
        if (table->means.replicates > 0)
            fprintf(out, "%.4f to %.4f\n", mean->low, mean->high);
        else
            fputs("-\n", out);
    }
}

static void csv_means(const struct roc_run *run)
{
    FILE *out = run->app->out;
    fputs("\ntable,classes,macro_auc,macro_low,macro_high,weighted_auc,weighted_low,weighted_high,"
          "bootstrap_replicates\n",
          out);
    for (int i = 0; i < run->n_tables; i++) {
        const struct roc_classes *means = &run->tables[i].means;
        csv_write_cell(out, run->tables[i].name);
        fprintf(out, ",%d", means->n_classes);
        for (int k = 0; k < 2; k++) {
            const struct roc_mean *mean = k ? &means->weighted : &means->macro;
            put_real(out, mean->area);
            put_real(out, means->replicates > 0 ? mean->low : NAN);
            put_real(out, means->replicates > 0 ? mean->high : NAN);
        }
        fprintf(out, ",%lld\n", (long long)means->replicates);
    }
}

static void json_interval(struct json_out *json, const char *key, double low, double high)
{
    json_out_array_line(json, key);
    json_out_real(json, NULL, low);
    json_out_real(json, NULL, high);
    json_out_close_array(json);
}

/* Areas and intervals; nulls if there is no judgement. */
static void json_measures(struct json_out *json, const struct judgement *j, bool judged)
{
    const struct roc *roc = &j->roc;
    json_out_int(json, "positives", j->positives);
    json_out_real(json, "auc", judged ? roc->auc : NAN);
    json_out_real(json, "se", judged ? roc->se : NAN);
    json_interval(json, "delong_95", judged ? roc->delong_low : NAN,
                  judged ? roc->delong_high : NAN);
    json_out_int(json, "bootstrap_replicates", roc->replicates);
    if (judged && roc->replicates > 0) {
        json_out_text(json, "bootstrap_draws", j->clustered ? "patients" : "rows");
        json_interval(json, "bootstrap_95", roc->bootstrap_low, roc->bootstrap_high);
    }
    json_out_real(json, "best_threshold", judged ? roc->best.threshold : NAN);
    json_out_real(json, "best_sensitivity", judged ? roc->best.tpr : NAN);
    json_out_real(json, "best_specificity", judged ? 1 - roc->best.fpr : NAN);
    json_out_real(json, "average_precision", judged ? j->precision.average : NAN);
    json_out_real(json, "brier", judged ? j->calibration.brier : NAN);
}

static void json_groups(struct json_out *json, const struct roc_run *run,
                        const struct judged_groups *groups)
{
    json_out_text(json, "by", run->o->by);
    json_out_array(json, "groups");
    for (size_t i = 0; i < groups->n; i++) {
        const struct judged_group *group = &groups->items[i];
        json_out_object(json, NULL);
        json_out_text(json, "value", group->value);
        json_out_int(json, unit(run), group->judgement.n);
        json_measures(json, &group->judgement, !group->flaw);
        json_out_bool(json, "small", group->small);
        json_out_text(json, "flaw", group->flaw);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void json_calibration(struct json_out *json, const struct calibration *calibration)
{
    json_out_array(json, "calibration");
    for (int64_t k = 0; k < calibration->n_bins; k++) {
        const struct calibration_bin *bin = &calibration->bins[k];
        json_out_object_line(json, NULL);
        json_interval(json, "scores", bin->low, bin->high);
        json_out_int(json, "n", bin->n);
        json_out_int(json, "positives", bin->positives);
        json_out_real(json, "mean_score", bin->score);
        json_out_real(json, "share_positive", bin->share);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void json_curve(struct json_out *json, const struct roc_run *run,
                       const struct roc_curve *curve)
{
    json_out_object(json, NULL);
    json_out_text(json, "curve", curve->name);
    json_out_int(json, "slides", curve->scores.n_slides);
    if (curve->all.patients > 0)
        json_out_int(json, "patients", curve->all.patients);
    json_measures(json, &curve->all, true);
    if (run->o->calibration > 0)
        json_calibration(json, &curve->all.calibration);
    if (run->o->by)
        json_groups(json, run, &curve->groups);
    json_out_close_object(json);
}

static void json_means(struct json_out *json, const struct roc_run *run)
{
    json_out_array(json, "means");
    for (int i = 0; i < run->n_tables; i++) {
        const struct roc_classes *means = &run->tables[i].means;
        json_out_object(json, NULL);
        json_out_text(json, "table", run->tables[i].name);
        json_out_int(json, "classes", means->n_classes);
        json_out_real(json, "macro_auc", means->macro.area);
        if (means->replicates > 0)
            json_interval(json, "macro_95", means->macro.low, means->macro.high);
        json_out_real(json, "weighted_auc", means->weighted.area);
        if (means->replicates > 0)
            json_interval(json, "weighted_95", means->weighted.low, means->weighted.high);
        json_out_int(json, "bootstrap_replicates", means->replicates);
        json_out_close_object(json);
    }
    json_out_close_array(json);
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
            "%s - %s: difference in AUC %.4f (95 %% %.4f to %.4f), DeLong z %.3f, p %.4g\n", a, b,
            test->difference, test->low, test->high, test->z, test->p);
}

/* Two curves of the same class, or of two classes. */
static bool has_pairs(const struct roc_run *run)
{
    for (int i = 0; i < run->n; i++)
        for (int j = i + 1; j < run->n; j++)
            if (run->curves[i].class_index == run->curves[j].class_index)
                return true;
    return false;
}

/* Every pair of curves over the same slides. */
static bool test_pairs(struct roc_run *run, struct json_out *json, struct err *err)
{
    for (int i = 0; i < run->n; i++)
        for (int j = i + 1; j < run->n; j++) {
            const struct roc_curve *a = &run->curves[i], *b = &run->curves[j];
            struct roc_test test;
            if (a->class_index != b->class_index)
                continue;
            if (!scores_are_paired(&a->scores, &b->scores)) {
                console_note(run->app->ctx.console,
                             "%s and %s cover different slides: their difference is not tested",
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

bool evaluate_roc_print(struct roc_run *run, struct err *err)
{
    struct json_out json = { 0 };
    const struct evaluate_options *o = run->o;
    if (!o->json) {
        (o->csv ? print_csv : print_text)(run);
        if (o->by)
            (o->csv ? csv_groups : print_groups)(run);
        if (evaluate_roc_calibrated(run))
            (o->csv ? csv_calibration : print_calibration)(run);
        if (run->n_tables > 0)
            (o->csv ? csv_means : print_means)(run);
        if (o->csv && has_pairs(run)) /* one more table, after an empty line */
            fputs("\na,b,difference,se,difference_low,difference_high,z,p\n", run->app->out);
        return test_pairs(run, &json, err);
    }
    json_out_begin(&json, run->app->out);
    json_out_object(&json, NULL);
    json_out_array(&json, "curves");
    for (int i = 0; i < run->n; i++)
        json_curve(&json, run, &run->curves[i]);
    json_out_close_array(&json);
    if (run->n_tables > 0)
        json_means(&json, run);
    json_out_array(&json, "tests");
    bool ok = test_pairs(run, &json, err);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return ok;
}
