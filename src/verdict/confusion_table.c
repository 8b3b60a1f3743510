/* confusion_table.c: see confusion_table.h. */
#include "verdict/confusion_table.h"

#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "verdict/scores.h"

/* How rows are called. */
struct plan {
    struct class_list classes; /* empty: a single score of classes without names */
    bool highest;              /* the class with the highest score of the columns prob_<class> */
    bool predicted;            /* the class that a column names */
    const char *column;        /* that column, or the one of a single score */
    char *second;              /* owned: the score of the second of two classes */
};

static struct scores_request base_request(const struct confusion_table_request *request)
{
    return (struct scores_request){ .path = request->path,
                                    .slide_column = request->slide_column,
                                    .label_column = request->label_column,
                                    .positive_word = request->positive_word,
                                    .truth_path = request->truth_path,
                                    .allow_missing = request->allow_missing };
}

static bool copy_classes(const struct class_list *from, struct class_list *to, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < from->n; i++)
        ok = class_list_add(to, from->names[i], strlen(from->names[i]), err);
    return ok;
}

/* Adds the values of a column that are not in the list yet. */
static bool add_values(const struct csv *csv, const char *name, struct class_list *list,
                       struct err *err)
{
    const int column = csv_column(csv, name);
    for (size_t row = 0; column >= 0 && row < csv->n_rows; row++) {
        const char *cell = csv_cell(csv, row, column);
        bool known = !*cell;
        for (size_t i = 0; i < list->n && !known; i++)
            known = strcmp(list->names[i], cell) == 0;
        if (!known && !class_list_add(list, cell, strlen(cell), err))
            return err_set(err, ERR_FORMAT,
                           "%s: column '%s' has more than %d different values; is it the column of "
                           "the classes?",
                           csv->path, name, CLASS_LIST_MOST);
    }
    return true;
}

/* All classes of the labels and of the predictions. */
static bool find_values(const struct confusion_table_request *request, const struct csv *csv,
                        const char *column, struct class_list *list, struct err *err)
{
    struct csv truth;
    bool ok = add_values(csv, column, list, err);
    if (ok && request->truth_path) {
        ok = csv_read(request->truth_path, &truth, err);
        if (ok) {
            ok = add_values(&truth, request->label_column, list, err);
            csv_free(&truth);
        }
    } else if (ok) {
        ok = add_values(csv, request->label_column, list, err);
    }
    if (ok)
        qsort(list->names, list->n, sizeof *list->names, scores_group_order);
    return ok;
}

static bool make_plan(const struct confusion_table_request *request, const struct csv *csv,
                      struct plan *plan, struct err *err)
{
    struct class_list columns;
    bool ok = class_list_of_columns(csv, &columns, err);
    const bool open = !request->predicted_column && !request->score_column;
    const bool highest = open && columns.n > 1;
    plan->predicted =
        request->predicted_column ||
        (open && !highest && csv_column(csv, "score") < 0 && csv_column(csv, "predicted") >= 0);
    plan->column = request->predicted_column ? request->predicted_column
                   : request->score_column   ? request->score_column
                   : plan->predicted         ? "predicted"
                                             : "score";
    if (ok && request->classes)
        ok = copy_classes(request->classes, &plan->classes, err);
    else if (ok && highest)
        ok = copy_classes(&columns, &plan->classes, err);
    else if (ok && plan->predicted)
        ok = find_values(request, csv, plan->column, &plan->classes, err);
    plan->highest = highest;
    if (ok && highest && plan->classes.n == 2) { /* the score of the second decides */
        plan->highest = false;
        plan->column = plan->second = text_format("prob_%s", plan->classes.names[1]);
        ok = plan->second || err_memory(err, csv->path);
    }
    class_list_free(&columns);
    return ok;
}

static void note_skipped(const struct scores *scores, struct confusion_table *out)
{
    out->without_label = scores->without_label;
    out->without_score = scores->without_score;
}

static bool call_predicted(const struct confusion_table_request *request, const struct plan *plan,
                           struct confusion_table *out, struct err *err)
{
    struct scores_request one = base_request(request);
    struct scores scores;
    one.classes = &plan->classes, one.scores_are_classes = true;
    one.score_column = plan->column;
    if (!scores_read(&one, &scores, err))
        return false;
    bool ok = confusion_new(&plan->classes, &out->confusion, err);
    for (int64_t i = 0; ok && i < scores.n; i++)
        confusion_add(&out->confusion, scores.labels[i], (int)scores.values[i], 1);
    note_skipped(&scores, out);
    scores_free(&scores);
    return ok;
}

/* The two classes of a single score. */
static bool two_classes(const struct confusion_table_request *request, const struct plan *plan,
                        struct class_list *out, struct err *err)
{
    if (plan->classes.n > 2)
        return err_set(err, ERR_USAGE,
                       "%s: a single score (column '%s') separates two classes, but there are %zu; "
                       "the table needs a column prob_<class> for each, or name the column of "
                       "predicted classes with --predicted",
                       request->path, plan->column, plan->classes.n);
    if (plan->classes.n == 2)
        return copy_classes(&plan->classes, out, err);
    const char *word = request->positive_word ? request->positive_word : "tumor";
    char *rest = request->positive_word ? text_format("not %s", word) : strdup("normal");
    bool ok = (rest || err_memory(err, request->path)) &&
              class_list_add(out, rest, strlen(rest), err) &&
              class_list_add(out, word, strlen(word), err);
    free(rest);
    return ok;
}

static bool call_score(const struct confusion_table_request *request, const struct plan *plan,
                       struct confusion_table *out, struct err *err)
{
    struct scores_request one = base_request(request);
    struct class_list classes = { 0 };
    struct scores scores = { 0 };
    one.score_column = plan->column;
    one.classes = plan->classes.n == 2 ? &classes : NULL, one.class_index = 1;
    bool ok = two_classes(request, plan, &classes, err) && scores_read(&one, &scores, err) &&
              confusion_new(&classes, &out->confusion, err);
    for (int64_t i = 0; ok && i < scores.n; i++)
        confusion_add(&out->confusion, scores.positive[i], scores.values[i] >= request->threshold,
                      1);
    note_skipped(&scores, out);
    scores_free(&scores);
    class_list_free(&classes);
    return ok;
}

/* Reads a class after the other; every row keeps its highest score so far. */
static bool call_highest(const struct confusion_table_request *request, const struct plan *plan,
                         struct confusion_table *out, struct err *err)
{
    struct scores best = { 0 };
    int *called = NULL;
    bool ok = confusion_new(&plan->classes, &out->confusion, err);
    for (size_t k = 0; ok && k < plan->classes.n; k++) {
        struct scores_request one = base_request(request);
        struct scores scores = { 0 };
        char *column = text_format("prob_%s", plan->classes.names[k]);
        one.classes = &plan->classes, one.score_column = column;
        ok = (column || err_memory(err, request->path)) && scores_read(&one, &scores, err);
        free(column);
        if (ok && k == 0) {
            best = scores;
            called = calloc((size_t)best.n + 1, sizeof *called);
            ok = called || err_memory(err, request->path);
            continue;
        }
        for (int64_t i = 0; ok && i < scores.n; i++)
            if (scores.values[i] > best.values[i])
                best.values[i] = scores.values[i], called[i] = (int)k;
        scores_free(&scores);
    }
    for (int64_t i = 0; ok && i < best.n; i++)
        confusion_add(&out->confusion, best.labels[i], called[i], 1);
    note_skipped(&best, out);
    scores_free(&best);
    free(called);
    return ok;
}

bool confusion_of_table(const struct confusion_table_request *request, struct confusion_table *out,
                        struct err *err)
{
    struct plan plan = { 0 };
    struct csv csv;
    *out = (struct confusion_table){ 0 };
    if (!slide_csv_read(request->path, &csv, err))
        return false;
    bool ok = make_plan(request, &csv, &plan, err);
    csv_free(&csv);
    ok = ok && (plan.predicted ? call_predicted(request, &plan, out, err)
                : plan.highest ? call_highest(request, &plan, out, err)
                               : call_score(request, &plan, out, err));
    class_list_free(&plan.classes);
    free(plan.second);
    if (!ok)
        confusion_free(&out->confusion);
    return ok;
}
