/* evaluate_roc.c: `microtome evaluate roc`: tables of scores -> areas, intervals, tests, curves. */
#include "cli/evaluate_roc.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/console.h"
#include "base/text.h"

static bool read_scores(const struct roc_run *run, const char *path, const char *column,
                        struct scores *out, struct err *err)
{
    const struct evaluate_options *o = run->o;
    const struct scores_request request = { .path = path,
                                            .slide_column = o->slide,
                                            .score_column = column,
                                            .label_column = o->label,
                                            .positive_word = o->positive,
                                            .truth_path = o->truth,
                                            .allow_missing = o->allow_missing,
                                            .patient_column =
                                                o->patient_column ? o->patient_column : "patient",
                                            .patient_column_needed =
                                                o->patient_column || o->patient,
                                            .patient_needed = o->patient,
                                            .group_column = o->by };
    if (!scores_read(&request, out, err))
        return false;
    if (out->without_label + out->without_score > 0)
        console_warn(run->app->ctx.console,
                     "%s: slides skipped: %lld without a label, %lld without a score", path,
                     (long long)out->without_label, (long long)out->without_score);
    return !o->patient || scores_by_patient(out, (enum patient_score)o->patient_score, err) ||
           err_prefix(err, path);
}

static bool judge(const struct roc_run *run, struct roc_curve *curve, struct err *err)
{
    const struct evaluate_options *o = run->o;
    const struct judgement_options options = { o->bootstrap, (uint64_t)o->seed, o->calibration };
    struct scores_part part;
    if (!scores_part(&curve->scores, NULL, &part, err))
        return false;
    bool ok = (judgement_make(&part, &options, &run->app->ctx, &curve->all, err) &&
               (!o->by || judged_groups_make(&curve->scores, &options, &run->app->ctx,
                                             &curve->groups, err))) ||
              err_prefix(err, curve->path);
    scores_part_free(&part);
    return ok;
}

static void tell(const struct roc_run *run, const struct roc_curve *curve)
{
    struct console *console = run->app->ctx.console;
    if (!curve->all.calibration.probabilities)
        console_note(console,
                     "%s: no Brier score or calibration curve, because scores outside 0 to 1 are "
                     "not probabilities",
                     curve->name);
    if (curve->all.clustered)
        console_note(console,
                     "%s: %lld slides of %lld patients: DeLong's interval and test treat slides as "
                     "independent%s",
                     curve->name, (long long)curve->all.n, (long long)curve->all.patients,
                     curve->all.roc.replicates > 0 ? "; the bootstrap draws patients" : "");
}

static bool add_curve(struct roc_run *run, const char *path, const char *column, const char *name,
                      struct err *err)
{
    if (run->n == MOST_CURVES)
        return err_set(err, ERR_USAGE, "more than %d curves; compare fewer at once", MOST_CURVES);
    struct roc_curve *curve = &run->curves[run->n++];
    *curve = (struct roc_curve){ .name = strdup(name), .path = path };
    if (!curve->name)
        return err_memory(err, path);
    if (!read_scores(run, path, column, &curve->scores, err) || !judge(run, curve, err))
        return false;
    tell(run, curve);
    return true;
}

/* A curve is named after its file, its column, or both, whichever distinguishes it from the others.
 */
static bool add_file(struct roc_run *run, const char *path, bool many_files, struct err *err)
{
    const struct arg_texts *columns = &run->o->scores;
    bool ok = true;
    for (size_t k = 0; ok && k < (columns->n ? columns->n : 1); k++) {
        const char *column = columns->n ? columns->items[k] : "score";
        char *stem = file_stem(path);
        char *both = stem ? text_format("%s %s", stem, column) : NULL;
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

bool evaluate_roc_calibrated(const struct roc_run *run)
{
    for (int i = 0; i < run->n; i++)
        if (run->curves[i].all.calibration.n_bins > 0)
            return true;
    return false;
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
    ok = ok && evaluate_roc_draw(run, err) && evaluate_roc_print(run, err);
    for (int i = 0; run && i < run->n; i++) {
        free(run->curves[i].name);
        scores_free(&run->curves[i].scores);
        judgement_free(&run->curves[i].all);
        judged_groups_free(&run->curves[i].groups);
    }
    free(run);
    return ok;
}
