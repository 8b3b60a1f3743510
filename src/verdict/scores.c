/* scores.c: see scores.h. */
#include "verdict/scores.h"

#include <stdlib.h>
#include <string.h>

/* The labels of a table: [n] each; numbers only with request->classes. */
struct labels {
    bool *positive;
    int *numbers;
};

static bool new_labels(const struct scores_request *request, size_t n, struct labels *out,
                       struct err *err)
{
    *out = (struct labels){ calloc(n + 1, sizeof *out->positive),
                            request->classes ? calloc(n + 1, sizeof *out->numbers) : NULL };
    return (out->positive && (out->numbers || !request->classes)) || err_memory(err, request->path);
}

static void free_labels(struct labels *labels)
{
    free(labels->positive), free(labels->numbers);
}

static bool read_labels(const struct scores_request *request, const struct slide_table *table,
                        const struct labels *labels, struct err *err)
{
    int column = 0;
    const char *remedy =
        request->truth_path
            ? "name the label column with --label"
            : "name the label column with --label, or pass a table of labels with --truth";
    if (!slide_table_column(table, request->label_column, remedy, &column, err))
        return false;
    if (!request->classes)
        return slide_table_labels(table, column, request->positive_word, labels->positive, err);
    if (!slide_table_classes(table, column, request->classes, labels->numbers, err))
        return false;
    for (size_t i = 0; i < table->n; i++)
        labels->positive[i] = labels->numbers[i] == (int)request->class_index;
    return true;
}

static bool read_values(const struct scores_request *request, struct scores *out, struct err *err)
{
    int column = 0;
    const char *remedy = request->scores_are_classes
                             ? "name the column of predicted classes with --predicted"
                             : "name the score column with --score";
    if (!slide_table_column(&out->table, request->score_column, remedy, &column, err))
        return false;
    if (!request->scores_are_classes)
        return slide_table_numbers(&out->table, column, out->values, err);
    int *numbers = calloc(out->table.n, sizeof *numbers);
    bool ok = (numbers || err_memory(err, request->path)) &&
              slide_table_classes(&out->table, column, request->classes, numbers, err);
    for (size_t i = 0; ok && i < out->table.n; i++)
        out->values[i] = numbers[i];
    free(numbers);
    return ok;
}

/* Slides of the truth that have no score: an error, or counted. */
static bool check_truth(const struct scores_request *request, const struct slide_table *truth,
                        struct scores *out, struct err *err)
{
    for (size_t i = 0; i < truth->n; i++) {
        if (slide_table_find(&out->table, truth->slides[i]) >= 0)
            continue;
        if (!request->allow_missing)
            return err_set(err, ERR_MISSING,
                           "%s:%d: slide '%s' has no score in %s; score it, or pass "
                           "--allow-missing to skip it",
                           request->truth_path, truth->csv.lines[truth->rows[i]], truth->slides[i],
                           request->path);
        out->without_score++;
    }
    return true;
}

/* Where a requested column is: in the truth, else in the scores. */
struct extra {
    int in_truth, in_scores; /* -1: absent */
};

static struct extra find_extra(const struct scores *scores, const char *name)
{
    struct extra extra = { -1, -1 };
    if (name && scores->truth.n > 0)
        extra.in_truth = csv_column(&scores->truth.csv, name);
    if (name && extra.in_truth < 0)
        extra.in_scores = csv_column(&scores->table.csv, name);
    return extra;
}

static bool is_there(struct extra extra)
{
    return extra.in_truth >= 0 || extra.in_scores >= 0;
}

/* The cell for row i of the scores and row `at` of the truth. */
static const char *extra_cell(const struct scores *scores, struct extra extra, size_t i, size_t at)
{
    return extra.in_truth >= 0
               ? csv_cell(&scores->truth.csv, scores->truth.rows[at], extra.in_truth)
               : csv_cell(&scores->table.csv, scores->table.rows[i], extra.in_scores);
}

/* Allocates patients and groups if their columns exist. */
static bool find_extras(const struct scores_request *request, struct scores *out,
                        struct extra extras[2], struct err *err)
{
    static const char *const remedies[2] = {
        "name the patient column with --patient-column",
        "name a column of the truth or the scores with --by",
    };
    const char *const names[2] = { request->patient_column, request->group_column };
    const bool needed[2] = { request->patient_column_needed, request->group_column != NULL };
    const char ***const places[2] = { &out->patients, &out->groups };
    const struct slide_table *table = out->truth.n > 0 ? &out->truth : &out->table;
    for (int k = 0; k < 2; k++) {
        int column = 0;
        extras[k] = find_extra(out, names[k]);
        if (needed[k] && !is_there(extras[k]))
            return slide_table_column(table, names[k], remedies[k], &column, err);
        if (!is_there(extras[k]))
            continue;
        *places[k] = calloc(out->table.n, sizeof **places[k]);
        if (!*places[k])
            return err_memory(err, request->path);
    }
    return true;
}

/* Patient and group of row i of the scores become those of row `kept`. */
static bool take_extras(const struct scores_request *request, const struct extra extras[2],
                        size_t i, size_t at, int64_t kept, struct scores *out, struct err *err)
{
    if (out->groups)
        out->groups[kept] = extra_cell(out, extras[1], i, at);
    if (!out->patients)
        return true;
    out->patients[kept] = extra_cell(out, extras[0], i, at);
    if (request->patient_needed && !*out->patients[kept]) {
        const struct csv *csv = extras[0].in_truth >= 0 ? &out->truth.csv : &out->table.csv;
        size_t row = extras[0].in_truth >= 0 ? out->truth.rows[at] : out->table.rows[i];
        return err_set(err, ERR_FORMAT, "%s:%d: slide '%s' has no patient in column '%s'",
                       csv->path, csv->lines[row], out->slides[kept], request->patient_column);
    }
    return true;
}

/* Moves the labels of `truth` to the slides of the scores and drops slides without one. */
static bool join(const struct scores_request *request, const struct labels *labels,
                 struct scores *out, struct err *err)
{
    const struct slide_table *truth = &out->truth;
    int64_t kept = 0;
    struct extra extras[2];
    if (!find_extras(request, out, extras, err))
        return false;
    for (int64_t i = 0; i < out->n; i++) {
        long at = slide_table_find(truth, out->slides[i]);
        if (at < 0 && !request->allow_missing)
            return err_set(err, ERR_MISSING,
                           "%s:%d: slide '%s' has no label in %s; add it there, or pass "
                           "--allow-missing to skip it",
                           request->path, out->table.csv.lines[out->table.rows[i]], out->slides[i],
                           request->truth_path);
        if (at < 0) {
            out->without_label++;
            continue;
        }
        out->slides[kept] = out->slides[i];
        out->values[kept] = out->values[i];
        out->positive[kept] = labels->positive[at];
        if (out->labels)
            out->labels[kept] = labels->numbers[at];
        if (!take_extras(request, extras, (size_t)i, (size_t)at, kept++, out, err))
            return false;
    }
    out->n = kept;
    if (kept == 0)
        return err_set(err, ERR_MISSING, "%s and %s have no slide in common", request->path,
                       request->truth_path);
    return check_truth(request, truth, out, err);
}

static bool join_truth(const struct scores_request *request, struct scores *out, struct err *err)
{
    struct labels labels = { 0 };
    if (!slide_table_read(request->truth_path, request->slide_column, &out->truth, err))
        return false;
    bool ok = new_labels(request, out->truth.n, &labels, err) &&
              read_labels(request, &out->truth, &labels, err) && join(request, &labels, out, err);
    free_labels(&labels);
    return ok;
}

/* Reads everything from a single table. */
static bool take_table(const struct scores_request *request, struct scores *out, struct err *err)
{
    struct extra extras[2];
    const struct labels labels = { out->positive, out->labels };
    bool ok =
        read_labels(request, &out->table, &labels, err) && find_extras(request, out, extras, err);
    for (int64_t i = 0; ok && i < out->n; i++)
        ok = take_extras(request, extras, (size_t)i, 0, i, out, err);
    return ok;
}

bool scores_read(const struct scores_request *request, struct scores *out, struct err *err)
{
    struct labels labels = { 0 };
    *out = (struct scores){ 0 };
    if (!slide_table_read(request->path, request->slide_column, &out->table, err))
        return false;
    out->n = (int64_t)out->table.n;
    out->slides = calloc(out->table.n, sizeof *out->slides);
    out->values = calloc(out->table.n, sizeof *out->values);
    bool ok = (out->slides && out->values) || err_memory(err, request->path);
    ok = ok && new_labels(request, out->table.n, &labels, err);
    out->positive = labels.positive, out->labels = labels.numbers;
    if (ok)
        memcpy(out->slides, out->table.slides, out->table.n * sizeof *out->slides);
    ok = ok && read_values(request, out, err) &&
         (request->truth_path ? join_truth(request, out, err) : take_table(request, out, err));
    out->n_slides = out->n;
    if (!ok)
        scores_free(out);
    return ok;
}

void scores_free(struct scores *scores)
{
    slide_table_free(&scores->table);
    slide_table_free(&scores->truth);
    free(scores->slides);
    free(scores->values);
    free(scores->positive);
    free(scores->labels);
    free(scores->patients);
    free(scores->groups);
    *scores = (struct scores){ 0 };
}

bool scores_are_paired(const struct scores *a, const struct scores *b)
{
    if (a->n != b->n)
        return false;
    for (int64_t i = 0; i < a->n; i++)
        if (a->positive[i] != b->positive[i] || strcmp(a->slides[i], b->slides[i]) != 0)
            return false;
    return true;
}
