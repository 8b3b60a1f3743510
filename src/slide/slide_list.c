/* slide_list.c: see slide_list.h. */
#include "slide/slide_list.h"

#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/array.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/names.h"
#include "base/text.h"
#include "slide/slide_folder.h"

/* Columns that every part of the program knows. */
static const char *const known_columns[] = { "slide",   "mpp",  "label",  "annotation",
                                             "patient", "node", "center", "split" };

/* A list that grows. */
struct builder {
    struct slide_list list;
    int64_t room, room_headers;
};

static void entry_free(struct slide_entry *entry)
{
    free(entry->path);
    free(entry->name);
    free(entry->label);
    free(entry->annotation);
    free(entry->patient);
    free(entry->node);
    free(entry->center);
    free(entry->split);
    for (size_t i = 0; i < entry->n_cells; i++)
        free(entry->cells[i].column), free(entry->cells[i].value);
    free(entry->cells);
    free(entry->origin);
}

static void header_free(struct slide_header *header)
{
    for (size_t i = 0; header->columns && i < header->n; i++)
        free(header->columns[i]);
    free(header->columns);
    free(header->path);
}

void slide_list_free(struct slide_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        entry_free(&list->entries[i]);
    free(list->entries);
    for (size_t i = 0; i < list->n_headers; i++)
        header_free(&list->headers[i]);
    free(list->headers);
    *list = (struct slide_list){ 0 };
}

/* Takes over the entry, also when it fails. */
static bool add_entry(struct builder *builder, struct slide_entry entry, struct err *err)
{
    bool whole = entry.path && entry.name && entry.label && entry.annotation && entry.patient &&
                 entry.node && entry.center && entry.split && entry.origin;
    for (size_t i = 0; i < entry.n_cells; i++)
        whole = whole && entry.cells[i].column && entry.cells[i].value;
    if (!whole || !array_grow(&builder->list.entries, &builder->room, (int64_t)builder->list.n + 1,
                              sizeof *builder->list.entries, "a slide list", NULL)) {
        entry_free(&entry);
        return err_memory(err, "a slide list");
    }
    builder->list.entries[builder->list.n++] = entry;
    return true;
}

static bool add_path(struct builder *builder, const char *path, struct err *err)
{
    struct slide_entry entry = { .path = strdup(path),
                                 .name = file_stem(path),
                                 .label = strdup(""),
                                 .annotation = strdup(""),
                                 .patient = strdup(""),
                                 .node = strdup(""),
                                 .center = strdup(""),
                                 .split = strdup(""),
                                 .origin = strdup(path) };
    return add_entry(builder, entry, err);
}

/* A path in a CSV: relative ones are relative to the CSV's folder. Owned by the caller. */
static char *anchor(const char *csv_path, const char *path)
{
    const char *slash = strrchr(csv_path, '/');
    if (!path[0] || path[0] == '/' || !slash)
        return strdup(path);
    return text_format("%.*s/%s", (int)(slash - csv_path), csv_path, path);
}

static bool is_known(const char *column)
{
    for (size_t i = 0; i < sizeof known_columns / sizeof *known_columns; i++)
        if (strcasecmp(column, known_columns[i]) == 0)
            return true;
    return false;
}

/* A column without a name is a row number that somebody's program wrote. */
static bool take_cells(const struct csv *csv, size_t row, struct slide_entry *entry)
{
    entry->cells = calloc(csv->n_columns + 1, sizeof *entry->cells);
    for (size_t i = 0; entry->cells && i < csv->n_columns; i++) {
        const char *value = csv_cell(csv, row, (int)i);
        if (csv->names[i][0] && value[0] && !is_known(csv->names[i]))
            entry->cells[entry->n_cells++] =
                (struct slide_cell){ strdup(csv->names[i]), strdup(value) };
    }
    return entry->cells != NULL;
}

static bool add_row(struct builder *builder, const struct csv *csv, size_t row, struct err *err)
{
    const char *slide = csv_cell(csv, row, csv_column(csv, "slide"));
    double mpp = 0;
    if (!slide[0])
        return err_set(err, ERR_FORMAT, "%s:%d: the column 'slide' is empty", csv->path,
                       csv->lines[row]);
    if (!csv_mpp(csv, row, &mpp, err))
        return false;
    struct slide_entry entry = {
        .path = anchor(csv->path, slide),
        .name = file_stem(slide),
        .mpp = mpp,
        .label = strdup(csv_cell(csv, row, csv_column(csv, "label"))),
        .annotation = anchor(csv->path, csv_cell(csv, row, csv_column(csv, "annotation"))),
        .patient = strdup(csv_cell(csv, row, csv_column(csv, "patient"))),
        .node = strdup(csv_cell(csv, row, csv_column(csv, "node"))),
        .center = strdup(csv_cell(csv, row, csv_column(csv, "center"))),
        .split = strdup(csv_cell(csv, row, csv_column(csv, "split"))),
        .origin = text_format("%s:%d", csv->path, csv->lines[row]),
    };
    if (!take_cells(csv, row, &entry)) {
        entry_free(&entry);
        return err_memory(err, csv->path);
    }
    return add_entry(builder, entry, err);
}

/* Two columns with the same name are ambiguous; known ones also if the case differs. */
static bool check_columns(const struct csv *csv, struct err *err)
{
    for (size_t i = 0; i < csv->n_columns; i++) {
        const char *name = csv->names[i];
        int found = 0;
        bool known = is_known(name);
        for (size_t k = 0; k < csv->n_columns; k++)
            found += (known ? strcasecmp(csv->names[k], name) : strcmp(csv->names[k], name)) == 0;
        if (found > 1 && name[0])
            return err_set(err, ERR_FORMAT, "%s:1: %d columns are named '%s'; rename all but one",
                           csv->path, found, name);
    }
    return true;
}

static bool add_header(struct builder *builder, const struct csv *csv, struct err *err)
{
    struct slide_header header = { .path = strdup(csv->path),
                                   .columns = calloc(csv->n_columns + 1, sizeof(char *)) };
    bool ok = header.path && header.columns;
    for (size_t i = 0; ok && i < csv->n_columns; i++)
        if (csv->names[i][0])
            ok = (header.columns[header.n++] = strdup(csv->names[i])) != NULL;
    ok =
        ok && array_grow(&builder->list.headers, &builder->room_headers,
                         (int64_t)builder->list.n_headers + 1, sizeof header, "a slide list", NULL);
    if (ok)
        builder->list.headers[builder->list.n_headers++] = header;
    else
        header_free(&header);
    return ok || err_memory(err, csv->path);
}

static bool add_table(struct builder *builder, const struct csv *csv, struct err *err)
{
    if (!check_columns(csv, err) || !add_header(builder, csv, err))
        return false;
    if (csv_column(csv, "slide") < 0)
        return err_set(err, ERR_FORMAT,
                       "%s: has no column 'slide'; expected a header like "
                       "slide,mpp,label,annotation,patient,node,center,split",
                       csv->path);
    if (csv->n_rows == 0)
        return err_set(err, ERR_FORMAT, "%s: lists no slides", csv->path);
    for (size_t row = 0; row < csv->n_rows; row++)
        if (!add_row(builder, csv, row, err))
            return false;
    return true;
}

static bool add_folder(struct builder *builder, const char *folder, struct err *err)
{
    char **names = NULL;
    size_t n = 0, before = builder->list.n, length = strlen(folder);
    if (!slide_folder_names(folder, &names, &n, err))
        return false;
    bool ok = true;
    while (length > 1 && folder[length - 1] == '/')
        length--;
    for (size_t i = 0; i < n && ok; i++) {
        char *path = text_format("%.*s/%s", (int)length, folder, names[i]);
        if (!path)
            ok = err_memory(err, folder);
        else if (!file_is_folder(path))
            ok = add_path(builder, path, err);
        free(path);
    }
    folder_names_free(names, n);
    return ok && builder->list.n == before ? slide_folder_empty(folder, err) : ok;
}

static bool add_glob(struct builder *builder, const char *pattern, struct err *err)
{
    glob_t found = { 0 };
    int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    bool ok = true;
    size_t before = builder->list.n;
    if (code == GLOB_NOMATCH)
        ok = err_set(err, ERR_MISSING, "%s: no file matches", pattern);
    else if (code != 0)
        ok = err_set(err, ERR_IO, "%s: the files cannot be listed", pattern);
    if (code == 0)
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, names_order);
    for (size_t i = 0; ok && i < found.gl_pathc; i++)
        if (!file_is_folder(found.gl_pathv[i]))
            ok = add_path(builder, found.gl_pathv[i], err);
    if (code == 0)
        globfree(&found);
    if (ok && builder->list.n == before)
        return err_set(err, ERR_MISSING, "%s: only folders match", pattern);
    return ok;
}

static bool add_operand(struct builder *builder, const char *operand, struct err *err)
{
    if (file_is_folder(operand))
        return add_folder(builder, operand, err);
    if (strcasecmp(file_extension(operand), ".csv") == 0 ||
        strcasecmp(file_extension(operand), ".tsv") == 0) {
        struct csv csv;
        if (!csv_read(operand, &csv, err))
            return false;
        bool ok = add_table(builder, &csv, err);
        csv_free(&csv);
        return ok;
    }
    if (!file_exists(operand) && strpbrk(operand, "*?["))
        return add_glob(builder, operand, err);
    return add_path(builder, operand, err);
}

static int by_name(const void *a, const void *b)
{
    const struct slide_entry *const *first = a, *const *second = b;
    int order = strcmp((*first)->name, (*second)->name);
    return order ? order : (*first > *second) - (*first < *second);
}

/* A line break in a name would split a line in two in every table and message. */
static bool check_line_breaks(const struct slide_list *list, struct err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *path = list->entries[i].path;
        size_t length = strcspn(path, "\r\n");
        if (path[length])
            return err_set(err, ERR_FORMAT, "%.*s: the name has a line break here; rename the file",
                           (int)length, path);
    }
    return true;
}

/* Results are named after slides, so two with the same name would overwrite each other. */
static bool check_names(const struct slide_list *list, struct err *err)
{
    const struct slide_entry **sorted = malloc((list->n ? list->n : 1) * sizeof(void *));
    if (!sorted)
        return err_memory(err, "a slide list");
    for (size_t i = 0; i < list->n; i++)
        sorted[i] = &list->entries[i];
    qsort(sorted, list->n, sizeof(void *), by_name);
    bool ok = true;
    for (size_t i = 1; ok && i < list->n; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            ok = err_set(err, ERR_FORMAT,
                         "two slides are named '%s': %s and %s; results would overwrite each "
                         "other; rename one",
                         sorted[i]->name, sorted[i - 1]->origin, sorted[i]->origin);
    free(sorted);
    return ok;
}

/* Hands the list over, or frees it. */
static bool finish(struct builder *builder, bool ok, struct slide_list *out, struct err *err)
{
    ok = ok && check_line_breaks(&builder->list, err) && check_names(&builder->list, err);
    if (ok)
        *out = builder->list;
    else
        slide_list_free(&builder->list);
    return ok;
}

bool slide_list_read(char *const *operands, int n_operands, struct slide_list *out, struct err *err)
{
    struct builder builder = { 0 };
    bool ok = true;
    for (int i = 0; ok && i < n_operands; i++)
        ok = add_operand(&builder, operands[i], err);
    return finish(&builder, ok, out, err);
}

bool slide_list_parse(const char *text, size_t size, const char *path, struct slide_list *out,
                      struct err *err)
{
    struct builder builder = { 0 };
    struct csv csv;
    if (!csv_parse(text, size, path, &csv, err))
        return false;
    bool ok = add_table(&builder, &csv, err);
    csv_free(&csv);
    return finish(&builder, ok, out, err);
}
