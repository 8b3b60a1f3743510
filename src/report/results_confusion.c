/* results_confusion.c: reads confusion matrices (results.h). */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "report/results.h"

#define MOST_COUNT 1e15

/* Rows and columns are the same classes in the same order. */
static bool is_matrix(const struct csv *csv)
{
    size_t n = (size_t)csv->n_columns - 1;
    bool same = csv->n_columns > 2 && csv->n_rows == n;
    for (size_t i = 0; same && i < n; i++)
        same = strcmp(csv_cell(csv, i, 0), csv->names[i + 1]) == 0;
    return same;
}

static bool fill(const struct csv *csv, struct confusion *out, bool *counts, struct err *err)
{
    struct class_list classes = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < csv->n_rows; i++)
        ok = class_list_add(&classes, csv->names[i + 1], strlen(csv->names[i + 1]), err);
    ok = ok && confusion_new(&classes, out, err);
    *counts = ok;
    for (size_t i = 0; ok && i < csv->n_rows * csv->n_rows; i++) {
        char *end;
        const char *cell = csv_cell(csv, i / csv->n_rows, (int)(i % csv->n_rows) + 1);
        double count = strtod(cell, &end);
        *counts = *counts && end != cell && *end == '\0' && count >= 0 && count < MOST_COUNT;
        out->counts[i] = *counts ? (int64_t)count : 0;
    }
    class_list_free(&classes);
    return ok;
}

/* "folder/run1/confusion.csv" -> "run1/confusion"; the caller's. */
static char *short_name(const char *path)
{
    const char *file = strrchr(path, '/'), *folder = file;
    while (folder && folder > path && folder[-1] != '/')
        folder--;
    const char *from = folder ? folder : path, *dot = strrchr(from, '.');
    return text_format("%.*s", (int)(dot ? dot - from : (long)strlen(from)), from);
}

/* The same matrix may be in two files: that of --plot and a copy. */
static bool is_known(const struct results *results, const struct confusion *matrix)
{
    size_t n = matrix->classes.n;
    for (size_t i = 0; i < results->n_confusions; i++) {
        const struct confusion *other = &results->confusions[i].matrix;
        bool same = other->classes.n == n &&
                    memcmp(other->counts, matrix->counts, n * n * sizeof *matrix->counts) == 0;
        for (size_t c = 0; same && c < n; c++)
            same = strcmp(other->classes.names[c], matrix->classes.names[c]) == 0;
        if (same)
            return true;
    }
    return false;
}

bool results_take_confusion(struct results *results, const char *path, struct err *err)
{
    struct csv csv = { 0 };
    struct confusion matrix = { 0 };
    bool counts = false, ok = true;
    if (csv_read(path, &csv, NULL) && is_matrix(&csv))
        ok = fill(&csv, &matrix, &counts, err);
    csv_free(&csv);
    if (ok && counts && !is_known(results, &matrix) &&
        (ok = results_room(&results->confusions, results->n_confusions, &results->confusions_room,
                           sizeof *results->confusions, err))) {
        struct result_confusion *out = &results->confusions[results->n_confusions++];
        *out = (struct result_confusion){ .name = short_name(path), .matrix = matrix };
        return out->name || err_memory(err, path);
    }
    confusion_free(&matrix);
    return ok;
}
