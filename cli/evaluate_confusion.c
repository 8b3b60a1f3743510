/* evaluate_confusion.c: `microtome evaluate confusion`: true and predicted classes -> a table of
 * counts, accuracy, kappa, and precision and recall of every class. */
#include <stdlib.h>
#include "base/console.h"
#include "cli/evaluate.h"
#include "cli/evaluate_confusion.h"
#include "verdict/confusion_table.h"

static bool of_table(struct app *app, const struct evaluate_options *o, const char *path,
                     const struct class_list *classes, struct confusion *out, struct err *err)
{
    struct confusion_table table;
    const struct confusion_table_request request = {
        .path = path,
        .slide_column = o->slide,
        .label_column = o->label,
        .truth_path = o->truth,
        .allow_missing = o->allow_missing,
        .predicted_column = o->predicted,
        .score_column = o->scores.n ? o->scores.items[0] : NULL,
        .threshold = o->threshold,
        .positive_word = o->positive,
        .classes = classes->n ? classes : NULL,
    };
    if (!confusion_of_table(&request, &table, err))
        return false;
    if (table.without_label + table.without_score > 0)
        console_warn(app->ctx.console,
                     "%s: slides skipped: %lld without a label, %lld without a score", path,
                     (long long)table.without_label, (long long)table.without_score);
    *out = table.confusion;
    return true;
}

static bool show(struct app *app, const struct evaluate_options *o,
                 const struct confusion *confusion, const char *unit, struct err *err)
{
    const enum kappa_weights weights = (enum kappa_weights)o->weights;
    struct confusion_measures measures;
    if (!confusion_measure(confusion, weights, &measures, err))
        return false;
    bool ok = confusion_draw(o, "", confusion, err);
    if (ok && o->json) {
        struct json_out json;
        json_out_begin(&json, app->out);
        json_out_object(&json, NULL);
        confusion_print_json(&json, confusion, &measures, weights);
        json_out_close_object(&json);
        json_out_end(&json);
    } else if (ok && o->csv) {
        confusion_print_csv(app->out, confusion, &measures);
    } else if (ok) {
        confusion_print_text(app->out, confusion, &measures, unit, weights);
    }
    free(measures.classes);
    return ok;
}

bool evaluate_confusion(struct app *app, const void *options, char *const *paths, int n_paths,
                        struct err *err)
{
    const struct evaluate_options *o = options;
    struct confusion confusion = { 0 };
    struct class_list classes = { 0 };
    if (n_paths > 1)
        return err_set(err, ERR_USAGE, "confusion reads one table of scores; evaluate each alone");
    if (o->scores.n > 1)
        return err_set(err, ERR_USAGE, "confusion reads one --score column; evaluate each alone");
    bool ok = (!o->classes || class_list_parse(o->classes, "classes", &classes, err)) &&
              of_table(app, o, paths[0], &classes, &confusion, err) &&
              show(app, o, &confusion, "slides", err);
    confusion_free(&confusion);
    class_list_free(&classes);
    return ok;
}
