/* evaluate_stage.c: `microtome evaluate stage`: predicted and true pN stages -> quadratic weighted
 * kappa and confusion matrices. */
#include <stdlib.h>
#include "base/console.h"
#include "cli/evaluate_confusion.h"
#include "verdict/stage_compare.h"

/* One of the two matrices with its kappa. */
struct part {
    const char *key, *unit, *ending;
    const struct stage_agreement *agreement;
    struct confusion_measures measures;
};

static void print_part(FILE *out, const struct part *part)
{
    const struct stage_agreement *a = part->agreement;
    confusion_print_text(out, &a->confusion, &part->measures, part->unit, KAPPA_QUADRATIC);
    if (a->replicates > 0)
        fprintf(out, "quadratic kappa: 95 %% bootstrap %.4f to %.4f\n", a->low, a->high);
}

static void json_part(struct json_out *json, const struct part *part)
{
    const struct stage_agreement *a = part->agreement;
    json_out_object(json, part->key);
    confusion_print_json(json, &a->confusion, &part->measures, KAPPA_QUADRATIC);
    json_out_int(json, "bootstrap_replicates", a->replicates);
    if (a->replicates > 0) {
        json_out_array_line(json, "kappa_95");
        json_out_real(json, NULL, a->low);
        json_out_real(json, NULL, a->high);
        json_out_close_array(json);
    }
    json_out_close_object(json);
}

static void print_all(struct app *app, const struct evaluate_options *o, const struct part *parts,
                      int n)
{
    struct json_out json;
    if (o->json) {
        json_out_begin(&json, app->out);
        json_out_object(&json, NULL);
    }
    for (int i = 0; i < n; i++) {
        if (!o->json && i > 0)
            fputc('\n', app->out);
        if (o->json)
            json_part(&json, &parts[i]);
        else if (o->csv)
            confusion_print_csv(app->out, &parts[i].agreement->confusion, &parts[i].measures);
        else
            print_part(app->out, &parts[i]);
    }
    if (o->json) {
        json_out_close_object(&json);
        json_out_end(&json);
    }
}

static bool show(struct app *app, const struct evaluate_options *o,
                 const struct stage_comparison *comparison, struct err *err)
{
    struct part parts[2] = { { "patients", "patients", "", &comparison->patients, { 0 } },
                             { "slides", "slides", "_slides", &comparison->slides, { 0 } } };
    const struct part *shown = comparison->with_patients ? parts : parts + 1;
    const int n = comparison->with_patients + comparison->with_slides;
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        struct part *part = &parts[shown - parts + i];
        ok =
            confusion_measure(&part->agreement->confusion, KAPPA_QUADRATIC, &part->measures, err) &&
            confusion_draw(o, part->ending, &part->agreement->confusion, err);
    }
    if (ok)
        print_all(app, o, shown, n);
    free(parts[0].measures.classes), free(parts[1].measures.classes);
    return ok;
}

bool evaluate_stage(struct app *app, const void *options, char *const *paths, int n_paths,
                    struct err *err)
{
    const struct evaluate_options *o = options;
    struct stage_comparison comparison = { 0 };
    if (n_paths > 1)
        return err_set(err, ERR_USAGE, "stage reads one table of stages; evaluate each alone");
    if (!o->truth)
        return err_set(err, ERR_USAGE,
                       "stage needs --truth: a CSV with the columns patient and stage");
    bool ok = stage_compare(paths[0], o->truth, o->allow_missing, o->bootstrap, (uint64_t)o->seed,
                            &comparison, err);
    if (ok && comparison.left_out > 0)
        console_warn(app->ctx.console,
                     "patients or slides skipped because only one of the tables has them: %lld",
                     (long long)comparison.left_out);
    ok = ok && show(app, o, &comparison, err);
    stage_comparison_free(&comparison);
    return ok;
}
