/* stage_compare.c: see stage_compare.h. */
#include "verdict/stage_compare.h"

#include <math.h>
#include <string.h>

/* Rows of one kind in the two tables. */
struct rows {
    const char *kind; /* "patient" */
    const struct stage_row *called, *truth;
    size_t n_called, n_truth;
};

static bool new_agreement(const char *const *names, struct stage_agreement *out, struct err *err)
{
    struct class_list classes = { 0 };
    bool ok = true;
    for (int i = 0; ok && names[i]; i++)
        ok = class_list_add(&classes, names[i], strlen(names[i]), err);
    ok = ok && confusion_new(&classes, &out->confusion, err);
    class_list_free(&classes);
    return ok;
}

static bool interval(struct stage_agreement *agreement, int64_t replicates, uint64_t seed,
                     struct err *err)
{
    const struct confusion *confusion = &agreement->confusion;
    const double kappa = confusion_kappa(confusion->counts, confusion->classes.n, KAPPA_QUADRATIC);
    if (replicates == 0 || isnan(kappa))
        return true;
    agreement->replicates = replicates;
    return confusion_kappa_interval(confusion, KAPPA_QUADRATIC, replicates, seed, &agreement->low,
                                    &agreement->high, err);
}

static bool compare(const struct rows *rows, const char *path, const char *truth_path,
                    bool allow_missing, struct stage_agreement *out, int64_t *left_out,
                    struct err *err)
{
    size_t found = 0;
    for (size_t i = 0; i < rows->n_truth; i++) {
        const struct stage_row *truth = &rows->truth[i];
        const struct stage_row *called = stage_row_find(rows->called, rows->n_called, truth->name);
        if (called) {
            confusion_add(&out->confusion, truth->value, called->value, 1);
            found++;
        } else if (!allow_missing) {
            return err_set(
                err, ERR_MISSING,
                "%s: %s '%s' of %s is missing; stage it, or pass --allow-missing to skip "
                "it",
                path, rows->kind, truth->name, truth_path);
        }
    }
    for (size_t i = 0; i < rows->n_called && !allow_missing; i++)
        if (!stage_row_find(rows->truth, rows->n_truth, rows->called[i].name))
            return err_set(
                err, ERR_MISSING,
                "%s: %s '%s' is not in %s; add it there, or pass --allow-missing to skip "
                "it",
                path, rows->kind, rows->called[i].name, truth_path);
    *left_out += (int64_t)(rows->n_truth + rows->n_called - 2 * found);
    return found > 0 || err_set(err, ERR_MISSING, "%s and %s have no %s in common", path,
                                truth_path, rows->kind);
}

bool stage_compare(const char *path, const char *truth_path, bool allow_missing, int64_t replicates,
                   uint64_t seed, struct stage_comparison *out, struct err *err)
{
    struct stage_table called = { 0 }, truth = { 0 };
    *out = (struct stage_comparison){ 0 };
    bool ok = stage_table_read(path, &called, err) && stage_table_read(truth_path, &truth, err);
    const struct rows patients = { "patient", called.patients, truth.patients, called.n_patients,
                                   truth.n_patients };
    const struct rows slides = { "slide", called.slides, truth.slides, called.n_slides,
                                 truth.n_slides };
    out->with_patients = patients.n_called > 0 && patients.n_truth > 0;
    out->with_slides = slides.n_called > 0 && slides.n_truth > 0;
    if (ok && !out->with_patients && !out->with_slides)
        ok = err_set(
            err, ERR_MISSING,
            "%s and %s have nothing to compare: one has stages of patients, the other types "
            "of slides",
            path, truth_path);
    if (ok && out->with_patients)
        ok = new_agreement(stage_names, &out->patients, err) &&
             compare(&patients, path, truth_path, allow_missing, &out->patients, &out->left_out,
                     err) &&
             interval(&out->patients, replicates, seed, err);
    if (ok && out->with_slides)
        ok = new_agreement(metastasis_names, &out->slides, err) &&
             compare(&slides, path, truth_path, allow_missing, &out->slides, &out->left_out, err) &&
             interval(&out->slides, replicates, seed, err);
    stage_table_free(&called);
    stage_table_free(&truth);
    if (!ok)
        stage_comparison_free(out);
    return ok;
}

void stage_comparison_free(struct stage_comparison *comparison)
{
    confusion_free(&comparison->patients.confusion);
    confusion_free(&comparison->slides.confusion);
    *comparison = (struct stage_comparison){ 0 };
}
