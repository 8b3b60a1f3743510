/* evaluate_roc.c: `microtome evaluate roc`: tables of scores -> areas, intervals, tests, curves. */
#include "cli/evaluate_roc.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/console.h"
#include "base/text.h"

static bool read_scores(const struct roc_run *run, const char *path, const char *column,
                        const struct class_list *classes, size_t class_index, struct scores *out,
                        struct err *err)
{
    const struct evaluate_options *o = run->o;
    const struct scores_request request = { .path = path,
                                            .slide_column = o->slide,
                                            .score_column = column,
                                            .label_column = o->label,
                                            .positive_word = o->positive,
                                            .classes = classes,
                                            .class_index = class_index,
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
    const struct roc_curve *curve = &run->curves[run->n - 1];
    bool again = curve->table >= 0 && run->n - 1 > run->tables[curve->table].first;
    if (!again && out->without_label + out->without_score > 0)
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
    if (curve->all.clustered && curve->all.patients == 1 && curve->all.roc.replicates > 0)
        console_warn(
            console,
            "%s: all slides are of one patient: the bootstrap, which draws patients, gives "
            "an interval without width",
            curve->name);
}

bool evaluate_roc_add(struct roc_run *run, const char *path, const char *column, char *name,
                      const struct class_list *classes, size_t class_index, struct err *err)
{
    if (!name)
        return err_memory(err, path);
    if (run->n == MOST_CURVES) {
        free(name);
        return err_set(err, ERR_USAGE, "more than %d curves; compare fewer at once", MOST_CURVES);
    }
    const bool many = classes && classes->n > 2;
    struct roc_curve *curve = &run->curves[run->n++];
    *curve = (struct roc_curve){ .name = name,
                                 .path = path,
                                 .table = many ? run->n_tables - 1 : -1,
                                 .class_index = many ? (int)class_index : -1 };
    return read_scores(run, path, column, classes, class_index, &curve->scores, err);
}

bool evaluate_roc_judge(struct roc_run *run, struct err *err)
{
    struct roc_curve *curve = &run->curves[run->n - 1];
    if (!judge(run, curve, err))
        return false;
    if (curve->table < 0 || run->tables[curve->table].first == run->n - 1)
        tell(run, curve);
    return true;
}

void evaluate_roc_drop(struct roc_run *run)
{
    struct roc_curve *curve = &run->curves[--run->n];
    free(curve->name);
    scores_free(&curve->scores);
    judgement_free(&curve->all);
    judged_groups_free(&curve->groups);
}

/* The classes of a table that has no column `score`, if --score is not given. */
static bool find_classes(const struct roc_run *run, const char *path, struct class_list *out,
                         struct err *err)
{
    struct csv csv;
    *out = (struct class_list){ 0 };
    if (run->o->scores.n > 0)
        return true;
    if (!slide_csv_read(path, &csv, err))
        return false;
    bool ok = csv_column(&csv, "score") >= 0 || class_list_of_columns(&csv, out, err);
    csv_free(&csv);
    return ok;
}

/* A curve is named after its file, its column, or both, whichever distinguishes it from the others.
 */
static bool add_columns(struct roc_run *run, const char *path, const char *stem, bool many_files,
                        struct err *err)
{
    const struct arg_texts *columns = &run->o->scores;
    bool ok = true;
    for (size_t k = 0; ok && k < (columns->n ? columns->n : 1); k++) {
        const char *column = columns->n ? columns->items[k] : "score";
        char *name = columns->n < 2 ? strdup(stem)
                     : many_files   ? text_format("%s %s", stem, column)
                                    : strdup(column);
        ok =
            evaluate_roc_add(run, path, column, name, NULL, 0, err) && evaluate_roc_judge(run, err);
    }
    return ok;
}

static bool add_file(struct roc_run *run, const char *path, bool many_files, struct err *err)
{
    struct class_list classes = { 0 };
    char *stem = file_stem(path);
    bool ok = (stem || err_memory(err, path)) && find_classes(run, path, &classes, err) &&
              (classes.n > 1 ? evaluate_roc_classes(run, path, many_files, &classes, err)
                             : add_columns(run, path, stem, many_files, err));
    class_list_free(&classes);
    free(stem);
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
    for (int i = 0; run && i < run->n_tables; i++)
        free(run->tables[i].name);
    while (run && run->n > 0)
        evaluate_roc_drop(run);
    free(run);
    return ok;
}
