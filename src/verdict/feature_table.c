/* feature_table.c: see feature_table.h. */
#include "verdict/feature_table.h"

#include <stdlib.h>
#include <string.h>

static bool is_ignored(const struct feature_request *r, const char *name)
{
    if (!*name || strcmp(name, r->slide_column) == 0 ||
        (r->label_column && strcmp(name, r->label_column) == 0))
        return true;
    for (size_t i = 0; r->ignored && i < r->ignored->n; i++)
        if (strcmp(name, r->ignored->items[i]) == 0)
            return true;
    return false;
}

static bool choose_names(const struct feature_request *r, const struct csv *first,
                         struct feature_table *out, struct err *err)
{
    size_t room = r->names ? r->n_names : first->n_columns;
    out->names = calloc(room + 1, sizeof *out->names);
    if (!out->names)
        return err_memory(err, first->path);
    for (size_t i = 0; i < room; i++) {
        const char *name = r->names ? r->names[i] : first->names[i];
        if (!r->names && is_ignored(r, name))
            continue;
        if (!(out->names[out->n_features] = strdup(name)))
            return err_memory(err, first->path);
        out->n_features++;
    }
    return out->n_features > 0 || err_set(err, ERR_FORMAT, "%s:1: no feature columns", first->path);
}

/* Allocates the rows of a table. */
static bool enlarge(struct feature_table *out, size_t rows, bool labels, struct err *err)
{
    size_t n = (size_t)out->n + rows;
    char **slides = realloc(out->slides, n * sizeof *slides);
    out->slides = slides ? slides : out->slides;
    double *values = realloc(out->values, n * (size_t)out->n_features * sizeof *values);
    out->values = values ? values : out->values;
    bool *positive = labels ? realloc(out->positive, n * sizeof *positive) : NULL;
    out->positive = positive ? positive : out->positive;
    return (slides && values && (positive || !labels)) || err_memory(err, "the features");
}

static bool take_values(const struct slide_table *table, struct feature_table *out, struct err *err)
{
    double *column = calloc(table->n, sizeof *column);
    bool ok = column || err_memory(err, "the features");
    for (int64_t k = 0; ok && k < out->n_features; k++) {
        int at = 0;
        ok = slide_table_column(
                 table, out->names[k],
                 "all tables need the same features, and a forest needs those it was trained with",
                 &at, err) &&
             slide_table_numbers(table, at, column, err);
        for (size_t i = 0; ok && i < table->n; i++)
            out->values[(out->n + (int64_t)i) * out->n_features + k] = column[i];
    }
    free(column);
    if (!ok && err->kind == ERR_FORMAT && strstr(err->text, "is not a number")) {
        size_t length = strlen(err->text);
        snprintf(err->text + length, sizeof err->text - length,
                 "; if this column is not a feature, pass --ignore");
    }
    return ok;
}

static bool take_labels(const struct feature_request *r, const struct slide_table *table,
                        const struct slide_table *truth, const bool *truth_labels,
                        struct feature_table *out, struct err *err)
{
    int at = 0;
    if (!r->label_column)
        return true;
    if (!truth)
        return slide_table_column(
                   table, r->label_column,
                   "name the label column with --label, or pass a table of labels with --truth",
                   &at, err) &&
               slide_table_labels(table, at, r->positive_word, out->positive + out->n, err);
    for (size_t i = 0; i < table->n; i++) {
        long row = slide_table_find(truth, table->slides[i]);
        if (row < 0)
            return err_set(err, ERR_MISSING, "%s:%d: slide '%s' has no label in %s; add it there",
                           table->csv.path, table->csv.lines[table->rows[i]], table->slides[i],
                           r->truth_path);
        out->positive[out->n + (int64_t)i] = truth_labels[row];
    }
    return true;
}

static bool add_table(const struct feature_request *r, const char *path,
                      const struct slide_table *truth, const bool *truth_labels,
                      struct feature_table *out, struct err *err)
{
    struct slide_table table;
    if (!slide_table_read(path, r->slide_column, &table, err))
        return false;
    bool ok = (out->names || choose_names(r, &table.csv, out, err)) &&
              enlarge(out, table.n, r->label_column, err) && take_values(&table, out, err) &&
              take_labels(r, &table, truth, truth_labels, out, err);
    for (size_t i = 0; ok && i < table.n; i++) {
        for (int64_t k = 0; ok && r->n_paths > 1 && k < out->n - (int64_t)i; k++)
            if (strcmp(out->slides[k], table.slides[i]) == 0)
                ok = err_set(err, ERR_FORMAT, "%s:%d: slide '%s' is already in an earlier table",
                             path, table.csv.lines[table.rows[i]], table.slides[i]);
        out->slides[out->n] = ok ? strdup(table.slides[i]) : NULL;
        ok = ok && (out->slides[out->n] || err_memory(err, path));
        out->n += ok;
    }
    slide_table_free(&table);
    return ok;
}

bool feature_table_read(const struct feature_request *request, struct feature_table *out,
                        struct err *err)
{
    struct slide_table truth = { 0 };
    bool *labels = NULL, ok = true;
    int at = 0;
    *out = (struct feature_table){ 0 };
    if (request->label_column && request->truth_path) {
        ok = slide_table_read(request->truth_path, request->slide_column, &truth, err);
        labels = ok ? calloc(truth.n, sizeof *labels) : NULL;
        ok = ok && (labels || err_memory(err, request->truth_path)) &&
             slide_table_column(&truth, request->label_column, "name the label column with --label",
                                &at, err) &&
             slide_table_labels(&truth, at, request->positive_word, labels, err);
    }
    for (size_t i = 0; ok && i < request->n_paths; i++)
        ok = add_table(request, request->paths[i], labels ? &truth : NULL, labels, out, err);
    slide_table_free(&truth);
    free(labels);
    if (!ok)
        feature_table_free(out);
    return ok;
}

void feature_table_free(struct feature_table *table)
{
    for (int64_t i = 0; table->slides && i < table->n; i++)
        free(table->slides[i]);
    for (int64_t i = 0; table->names && i < table->n_features; i++)
        free(table->names[i]);
    free(table->slides);
    free(table->names);
    free(table->values);
    free(table->positive);
    *table = (struct feature_table){ 0 };
}
