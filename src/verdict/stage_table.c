/* stage_table.c: tables of stages (stage_table.h). */
#include "verdict/stage_table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/csv.h"
#include "base/names.h"
#include "verdict/slide_table.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct stage_row *)a)->name, ((const struct stage_row *)b)->name);
}

/* -1: not in the list. */
static int place_in(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(names[i], word) == 0)
            return i;
    return -1;
}

/* "patient_000.zip" -> "patient_000", in place. */
static char *bare_name(char *name)
{
    char *dot = strrchr(name, '.');
    if (dot && strcasecmp(dot, ".zip") == 0)
        *dot = 0;
    return slide_table_name(name);
}

static bool take_row(struct csv *csv, size_t row, int name_column, int value_column,
                     struct stage_table *out, struct err *err)
{
    const char *word = csv_cell(csv, row, value_column);
    char *name = bare_name(csv->cells[row * csv->n_columns + (size_t)name_column]);
    const int stage = place_in(stage_names, word), type = place_in(metastasis_names, word);
    if (!*name)
        return err_set(err, ERR_FORMAT, "%s:%d: column '%s': no name", csv->path, csv->lines[row],
                       csv->names[name_column]);
    if (stage >= 0)
        out->patients[out->n_patients++] = (struct stage_row){ name, stage };
    else if (type >= 0)
        out->slides[out->n_slides++] = (struct stage_row){ name, type };
    else
        return err_set(err, ERR_FORMAT,
                       "%s:%d: column '%s': '%.60s' is not a stage (pN0, pN0(i+), pN1mi, pN1, pN2) "
                       "or a type of slide (negative, itc, micro, macro)",
                       csv->path, csv->lines[row], csv->names[value_column], word);
    return true;
}

static bool sort_rows(const char *path, struct stage_row *rows, size_t n, struct err *err)
{
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&rows[i - 1], &rows[i]) == 0)
            return err_set(err, ERR_FORMAT, "%s: '%s' is listed twice; keep one row", path,
                           rows[i].name);
    return true;
}

static bool find_columns(const struct csv *csv, int *name, int *value, struct err *err)
{
    char there[400];
    *name = csv_column(csv, "patient"), *value = csv_column(csv, "stage");
    if (*value < 0)
        *name = csv_column(csv, "slide"), *value = csv_column(csv, "type");
    if (*name < 0 || *value < 0)
        return err_set(
            err, ERR_FORMAT,
            "%s:1: no columns 'patient' and 'stage', or 'slide' and 'type' (columns: %s)",
            csv->path,
            names_join((const char *const *)csv->names, csv->n_columns, there, sizeof there));
    return csv->n_rows > 0 || err_set(err, ERR_FORMAT, "%s: no rows below the header", csv->path);
}

/* The rows of out->csv. */
static bool take_rows(struct stage_table *out, struct err *err)
{
    int name = 0, value = 0;
    const char *path = out->csv.path;
    bool ok = find_columns(&out->csv, &name, &value, err);
    out->patients = calloc(out->csv.n_rows + 1, sizeof *out->patients);
    out->slides = calloc(out->csv.n_rows + 1, sizeof *out->slides);
    ok = ok && ((out->patients && out->slides) || err_memory(err, path));
    for (size_t i = 0; ok && i < out->csv.n_rows; i++)
        ok = take_row(&out->csv, i, name, value, out, err);
    ok = ok && sort_rows(path, out->patients, out->n_patients, err) &&
         sort_rows(path, out->slides, out->n_slides, err);
    if (!ok)
        stage_table_free(out);
    return ok;
}

bool stage_table_read(const char *path, struct stage_table *out, struct err *err)
{
    *out = (struct stage_table){ 0 };
    return csv_read(path, &out->csv, err) && take_rows(out, err);
}

bool stage_table_parse(const char *text, size_t size, const char *path, struct stage_table *out,
                       struct err *err)
{
    *out = (struct stage_table){ 0 };
    return csv_parse(text, size, path, &out->csv, err) && take_rows(out, err);
}

void stage_table_free(struct stage_table *table)
{
    free(table->patients);
    free(table->slides);
    csv_free(&table->csv);
    *table = (struct stage_table){ 0 };
}

const struct stage_row *stage_row_find(const struct stage_row *rows, size_t n, const char *name)
{
    const struct stage_row key = { .name = name };
    return n ? bsearch(&key, rows, n, sizeof *rows, by_name) : NULL;
}

/* --- patients and nodes --- */

static bool set_place(struct staged_slide *slide, const char *patient, const char *node,
                      struct err *err)
{
    slide->patient = strdup(patient);
    slide->node = strdup(node);
    return (slide->patient && slide->node) || err_memory(err, slide->slide);
}

/* "patient_017_node_2" -> patient_017 and 2. */
static bool place_by_name(struct staged_slide *slide, struct err *err)
{
    const char *mark = strstr(slide->slide, "_node_");
    if (!mark || mark == slide->slide)
        return err_set(err, ERR_MISSING,
                       "slide '%s': the patient is not known, because the name is not like "
                       "patient_000_node_0; pass a slide list with the columns slide, patient and "
                       "node: --slides LIST.csv",
                       slide->slide);
    char *patient = strndup(slide->slide, (size_t)(mark - slide->slide));
    bool ok = patient ? set_place(slide, patient, mark + strlen("_node_"), err)
                      : err_memory(err, slide->slide);
    free(patient);
    return ok;
}

static bool place_by_list(struct staged_slide *slide, const struct slide_table *list, int patient,
                          int node, struct err *err)
{
    long at = slide_table_find(list, slide->slide);
    if (at < 0)
        return err_set(err, ERR_MISSING, "slide '%s' is not in %s; add it there with its patient",
                       slide->slide, list->csv.path);
    const char *cell = csv_cell(&list->csv, list->rows[at], patient);
    if (!*cell)
        return err_set(err, ERR_FORMAT, "%s:%d: slide '%s' has no patient in column 'patient'",
                       list->csv.path, list->csv.lines[list->rows[at]], slide->slide);
    return set_place(slide, cell, csv_cell(&list->csv, list->rows[at], node), err);
}

/* Slides of the list that the cohort lacks, although it has others of their patient. */
static bool check_list(const struct staged_cohort *cohort, const struct slide_table *list,
                       int patient, bool allow_missing, int64_t *missing, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *owner = csv_cell(&list->csv, list->rows[i], patient);
        bool there = false, concerned = false;
        for (size_t k = 0; k < cohort->n && !there; k++) {
            there = strcmp(cohort->slides[k].slide, list->slides[i]) == 0;
            concerned = concerned || strcmp(cohort->slides[k].patient, owner) == 0;
        }
        if (there || !concerned)
            continue;
        if (!allow_missing)
            return err_set(err, ERR_MISSING,
                           "%s:%d: slide '%s' of patient '%s' was not found among the heatmaps or "
                           "types, so the stage may be too low; add it, or pass --allow-missing",
                           list->csv.path, list->csv.lines[list->rows[i]], list->slides[i], owner);
        ++*missing;
    }
    return true;
}

bool stage_find_patients(struct staged_cohort *cohort, const char *list_path,
                         const char *slide_column, bool allow_missing, int64_t *missing,
                         struct err *err)
{
    struct slide_table list = { 0 };
    int patient = -1;
    bool ok = true;
    *missing = 0;
    if (list_path)
        ok = slide_table_read(list_path, slide_column, &list, err) &&
             slide_table_column(&list, "patient", "it names the patient of every slide", &patient,
                                err);
    const int node = list_path && ok ? csv_column(&list.csv, "node") : -1;
    for (size_t i = 0; ok && i < cohort->n; i++)
        ok = list_path ? place_by_list(&cohort->slides[i], &list, patient, node, err)
                       : place_by_name(&cohort->slides[i], err);
    ok = ok && (!list_path || check_list(cohort, &list, patient, allow_missing, missing, err));
    slide_table_free(&list);
    return ok;
}
