/* evaluate_roc_classes.c: `microtome evaluate roc` of tables with a score per class: a curve for
 * each class against the others, and the means of their areas (evaluate_roc.h). */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/evaluate_roc.h"

static bool average(const struct roc_run *run, struct roc_table *table, struct err *err)
{
    const struct roc_curve *curves = &run->curves[table->first];
    struct roc_class *classes = calloc((size_t)table->n, sizeof *classes);
    struct scores_part part = { 0 };
    bool ok = (classes || err_memory(err, "the classes")) &&
              scores_part(&curves[0].scores, NULL, &part, err);
    if (ok) {
        const struct roc_options options = { judgement_replicates(run->o->bootstrap,
                                                                  table->n * part.n),
                                             (uint64_t)run->o->seed, part.clusters };
        for (int k = 0; k < table->n; k++)
            classes[k] = (struct roc_class){ curves[k].scores.values, curves[k].scores.positive };
        ok = roc_classes_compute(classes, table->n, part.n, &options, &run->app->ctx, &table->means,
                                 err) ||
             err_prefix(err, curves[0].path);
    }
    scores_part_free(&part);
    free(classes);
    return ok;
}

/* The curve of a class, unless no slide is of that class. */
static bool add_class(struct roc_run *run, const char *path, bool many_files,
                      const struct class_list *classes, size_t k, struct err *err)
{
    const struct roc_table *table = &run->tables[run->n_tables - 1];
    const char *name = classes->names[k];
    char *column = text_format("prob_%s", name);
    bool ok = (column || err_memory(err, path)) &&
              evaluate_roc_add(run, path, column,
                               many_files ? text_format("%s %s", table->name, name) : strdup(name),
                               classes, k, err);
    free(column);
    if (!ok)
        return false;
    const struct scores *scores = &run->curves[run->n - 1].scores;
    int64_t positives = 0;
    for (int64_t i = 0; i < scores->n; i++)
        positives += scores->positive[i];
    if (positives == scores->n)
        return err_set(err, ERR_FORMAT,
                       "%s: all %lld slides are of class '%s': an ROC curve needs at least two "
                       "classes; add slides of other classes, or check the label column",
                       path, (long long)positives, name);
    if (positives > 0)
        return evaluate_roc_judge(run, err);
    console_warn(run->app->ctx.console,
                 "%s: no slide is of class '%s': it has no AUC, and the means are over the other "
                 "classes",
                 path, name);
    evaluate_roc_drop(run);
    return true;
}

/* Of two classes only the second: the curve of the first is its mirror image. */
static bool add_second(struct roc_run *run, const char *path, const struct class_list *classes,
                       struct err *err)
{
    char *column = text_format("prob_%s", classes->names[1]);
    bool ok = (column || err_memory(err, path)) &&
              evaluate_roc_add(run, path, column, file_stem(path), classes, 1, err) &&
              evaluate_roc_judge(run, err);
    free(column);
    return ok;
}

bool evaluate_roc_classes(struct roc_run *run, const char *path, bool many_files,
                          const struct class_list *classes, struct err *err)
{
    if (classes->n == 2)
        return add_second(run, path, classes, err);
    if (run->o->patient)
        return err_set(
            err, ERR_USAGE,
            "%s: --patient needs a single score, but the table has %zu classes; name the "
            "column of one of them with --score, and its label with --positive",
            path, classes->n);
    if (run->o->positive)
        return err_set(err, ERR_USAGE,
                       "%s: --positive needs a single score, but the table has %zu classes; name "
                       "the column of that class with --score",
                       path, classes->n);
    if (run->n_tables == MOST_CURVES)
        return err_set(err, ERR_USAGE, "more than %d tables; compare fewer at once", MOST_CURVES);
    struct roc_table *table = &run->tables[run->n_tables++];
    *table = (struct roc_table){ .name = file_stem(path), .first = run->n };
    bool ok = table->name || err_memory(err, path);
    for (size_t k = 0; ok && k < classes->n; k++)
        ok = add_class(run, path, many_files, classes, k, err);
    table->n = run->n - table->first;
    return ok && average(run, table, err);
}
