/* page.c: an audit as one page to read, as JSON, as a table of scores and as ROC curves. */
#include <math.h>
#include <stdlib.h>
#include "audit/page_put.h"
#include "audit/study.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "plot/curves.h"

#define DRAWN_STEP 1e-3 /* points of a picture that are closer than this are merged */
#define LOG_LOW 1e-3    /* where the axes of the logarithmic picture begin */
#define BOUND_POINTS 200

/* --- curves --- */

/* The points of a curve that can be told apart, the caller's; *n of them. */
static bool thin(const struct roc *roc, double **x, double **y, int64_t *n, struct err *err)
{
    *x = calloc((size_t)roc->n_points + 1, sizeof **x);
    *y = calloc((size_t)roc->n_points + 1, sizeof **y);
    *n = 0;
    if (!*x || !*y)
        return err_memory(err, "the curves");
    for (int64_t k = 0; k < roc->n_points; k++) {
        double fpr = roc->points[k].fpr, tpr = roc->points[k].tpr;
        bool near = *n > 0 && fabs(fpr - (*x)[*n - 1]) < DRAWN_STEP &&
                    fabs(tpr - (*y)[*n - 1]) < DRAWN_STEP && fpr > 0.02;
        if (near && k + 1 < roc->n_points)
            continue;
        (*x)[*n] = fpr;
        (*y)[(*n)++] = tpr;
    }
    return true;
}

/* What the promise allows: TPR = e^epsilon FPR + delta. */
static void bound_curve(struct promise promise, double *x, double *y)
{
    for (int k = 0; k < BOUND_POINTS; k++) {
        x[k] = k == 0 ? 0 : pow(10, -4 + 4.0 * k / (BOUND_POINTS - 1));
        y[k] = fmin(1, exp(promise.epsilon) * x[k] + promise.delta);
    }
}

static bool draw(const struct study *study, const char *folder, bool decades, struct err *err)
{
    struct chart_curve curves[STUDY_ATTACKS + 2] = { { 0 } };
    double *x[STUDY_ATTACKS] = { 0 }, *y[STUDY_ATTACKS] = { 0 };
    double bound_x[BOUND_POINTS], bound_y[BOUND_POINTS];
    int n = 0;
    bool ok = true;
    for (int i = 0; ok && i < study->n_attacks; i++) {
        ok = thin(&study->attacks[i].power.roc, &x[i], &y[i], &curves[n].n, err);
        curves[n] = (struct chart_curve){ study->attacks[i].name, x[i], y[i], curves[n].n,
                                          study->attacks[i].control };
        n++;
    }
    if (isfinite(study->promise.epsilon)) {
        bound_curve(study->promise, bound_x, bound_y);
        curves[n++] = (struct chart_curve){ "what the promised epsilon allows", bound_x, bound_y,
                                            BOUND_POINTS, true };
    }
    struct chart chart = { .title = "members found",
                           .x_label = "false alarms (share of others)",
                           .y_label = "members found (share); dashed: controls",
                           .curves = curves,
                           .n_curves = n,
                           .x_low = decades ? LOG_LOW : 0,
                           .y_low = decades ? LOG_LOW : 0,
                           .x_high = 1,
                           .y_high = 1,
                           .decades = decades,
                           .square = true,
                           .diagonal = true };
    char *svg = text_format("%s/%s.svg", folder, decades ? "roc_log" : "roc");
    char *png = text_format("%s/%s.png", folder, decades ? "roc_log" : "roc");
    ok = ok && ((svg && png) || err_memory(err, folder)) && curves_chart(svg, png, &chart, err);
    for (int i = 0; i < study->n_attacks; i++) {
        free(x[i]);
        free(y[i]);
    }
    free(svg);
    free(png);
    return ok;
}

/* --- JSON --- */

static void put_share(struct json_out *json, const char *key, struct share share)
{
    json_out_object_line(json, key);
    json_out_real(json, "value", share.value);
    json_out_real(json, "low", share.low);
    json_out_real(json, "high", share.high);
    json_out_close_object(json);
}

static void put_attack(struct json_out *json, const struct study_attack *a, bool coins)
{
    static const char *const points[POWER_POINTS] = { "at_1_percent", "at_0.1_percent" };
    json_out_object(json, NULL);
    json_out_text(json, "name", a->name);
    json_out_bool(json, "control", a->control);
    json_out_real(json, "auc", a->power.roc.auc);
    json_out_real(json, "auc_low", a->power.roc.delong_low);
    json_out_real(json, "auc_high", a->power.roc.delong_high);
    json_out_bool(json, "chance", a->power.chance);
    for (int p = 0; p < POWER_POINTS; p++) {
        json_out_object(json, points[p]);
        put_share(json, "tpr", a->power.at[p].tpr);
        put_share(json, "fpr", a->power.at[p].fpr);
        json_out_bool(json, "above_bound", a->power.at[p].above);
        json_out_close_object(json);
    }
    if (coins && !a->control) {
        json_out_object_line(json, "one_run");
        json_out_int(json, "canaries", a->power.one_run.canaries);
        json_out_int(json, "guesses", a->power.one_run.guesses);
        json_out_int(json, "correct", a->power.one_run.correct);
        json_out_real(json, "epsilon_lower", a->power.one_run.epsilon);
        json_out_close_object(json);
    }
    json_out_close_object(json);
}

static void put_nearest(struct json_out *json, const struct nearest *nearest)
{
    json_out_object(json, "nearest");
    json_out_int(json, "samples", nearest->samples);
    json_out_real(json, "median_ratio", nearest->median);
    put_share(json, "nearer_to_training", nearest->nearer);
    put_share(json, "copies", nearest->copies);
    put_share(json, "planted_duplicates_noticed", nearest->noticed);
    json_out_close_object(json);
}

void study_put_json(const struct study *study, const char *model, FILE *stream)
{
    static const char *const verdicts[] = { "quiet", "leaks", "broken", "shifted" };
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "model", model);
    json_out_text(&json, "kind", study->kind);
    json_out_text(&json, "verdict", verdicts[study->verdict]);
    json_out_text(&json, "sentence", study->sentence);
    json_out_int(&json, "members", study->set.n_members);
    json_out_int(&json, "others", study->set.n - study->set.n_members);
    json_out_bool(&json, "fair_coins", study->set.coins);
    json_out_bool(&json, "same_patients", study->set.same_patients);
    json_out_real(&json, "epsilon", study->promise.epsilon);
    json_out_real(&json, "delta", study->promise.delta);
    json_out_array(&json, "attacks");
    for (int i = 0; i < study->n_attacks; i++)
        put_attack(&json, &study->attacks[i], study->set.coins);
    json_out_close_array(&json);
    if (study->looked)
        put_nearest(&json, &study->nearest);
    json_out_array(&json, "not_tried");
    for (int i = 0; i < study->n_untried; i++)
        json_out_text(&json, NULL, study->untried[i]);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

/* --- files --- */

static void put_scores(const struct study *study, FILE *stream)
{
    fputs("sample,member", stream);
    for (int i = 0; i < study->n_attacks; i++) {
        fputc(',', stream);
        csv_write_cell(stream, study->attacks[i].name);
    }
    fputc('\n', stream);
    for (int64_t s = 0; s < study->set.n; s++) {
        csv_write_cell(stream, study->set.names[s]);
        fprintf(stream, ",%d", study->set.member[s]);
        for (int i = 0; i < study->n_attacks; i++)
            fprintf(stream, ",%.9g", study->attacks[i].scores[s]);
        fputc('\n', stream);
    }
}

bool study_write(const struct study *study, const char *model, const char *folder, struct err *err)
{
    struct file_out json, csv, page;
    if (!draw(study, folder, false, err) || !draw(study, folder, true, err) ||
        !file_out_open_in(&json, folder, "audit.json", err))
        return false;
    study_put_json(study, model, json.stream);
    if (!file_out_commit(&json, err) || !file_out_open_in(&csv, folder, "scores.csv", err))
        return false;
    put_scores(study, csv.stream);
    if (!file_out_commit(&csv, err) || !file_out_open_in(&page, folder, "audit.html", err))
        return false;
    page_put_audit(study, model, page.stream);
    return file_out_commit(&page, err);
}
