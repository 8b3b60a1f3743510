/* concept_table.c: concepts from the columns of a table (concept_list.h). Rows are found by a
 * sorted list of their names, or of slide and place. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/text.h"
#include "explain/concept_list.h"

struct keyed_row {
    char *key;
    size_t row;
};

struct concept_table {
    struct csv csv;
    int name, slide, x, y;  /* columns; -1: absent */
    struct keyed_row *rows; /* [csv.n_rows], by key */
    double **values;        /* [csv.n_columns] of [csv.n_rows]; NULL: column not used */
};

static const char *const name_columns[] = { "sample", "image", "name", "file", "patch" };
static const char *const other_columns[] = { "slide", "x", "y", "patient", "label" };

static int by_key(const void *a, const void *b)
{
    const struct keyed_row *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static bool find_columns(struct concept_table *table, struct err *err)
{
    const struct csv *csv = &table->csv;
    table->name = -1;
    for (size_t i = 0; i < sizeof name_columns / sizeof *name_columns && table->name < 0; i++)
        table->name = csv_column(csv, name_columns[i]);
    table->slide = csv_column(csv, "slide");
    table->x = csv_column(csv, "x");
    table->y = csv_column(csv, "y");
    if (table->name >= 0 || (table->slide >= 0 && table->x >= 0 && table->y >= 0))
        return true;
    return err_set(err, ERR_USAGE,
                   "%s: no column that names the patch; it needs 'image' (or sample, name, file, "
                   "patch), or 'slide', 'x' and 'y'",
                   csv->path);
}

static char *place_key(const char *slide, const char *x, const char *y)
{
    return text_format("%s|%lld|%lld", slide, (long long)llround(strtod(x, NULL)),
                       (long long)llround(strtod(y, NULL)));
}

static bool sort_rows(struct concept_table *table, struct err *err)
{
    const struct csv *csv = &table->csv;
    table->rows = calloc(csv->n_rows + 1, sizeof *table->rows);
    table->values = calloc(csv->n_columns + 1, sizeof *table->values);
    if (!table->rows || !table->values)
        return err_memory(err, "a table");
    for (size_t row = 0; row < csv->n_rows; row++) {
        char *key = table->name >= 0
                        ? strdup(csv_cell(csv, row, table->name))
                        : place_key(csv_cell(csv, row, table->slide), csv_cell(csv, row, table->x),
                                    csv_cell(csv, row, table->y));
        if (!key)
            return err_memory(err, "a table");
        table->rows[row] = (struct keyed_row){ key, row };
    }
    qsort(table->rows, csv->n_rows, sizeof *table->rows, by_key);
    for (size_t i = 1; i < csv->n_rows; i++)
        if (strcmp(table->rows[i].key, table->rows[i - 1].key) == 0)
            return err_set(err, ERR_USAGE, "%s: two rows for '%s'; a patch has one row", csv->path,
                           table->rows[i].key);
    return true;
}

bool concept_table_read(const char *path, struct concept_table **out, struct err *err)
{
    struct concept_table *table = calloc(1, sizeof *table);
    if (!table)
        return err_memory(err, "a table");
    if (csv_read(path, &table->csv, err) && find_columns(table, err) && sort_rows(table, err)) {
        *out = table;
        return true;
    }
    concept_table_free(table);
    return false;
}

void concept_table_free(struct concept_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; table->rows && i < table->csv.n_rows; i++)
        free(table->rows[i].key);
    for (size_t i = 0; table->values && i < table->csv.n_columns; i++)
        free(table->values[i]);
    free(table->rows);
    free(table->values);
    csv_free(&table->csv);
    free(table);
}

const char *concept_table_path(const struct concept_table *table)
{
    return table->csv.path;
}

/* Does the column say which patch it is, rather than what is in it? */
static bool names_patch(const struct concept_table *table, int column)
{
    const char *name = table->csv.names[column];
    for (size_t i = 0; i < sizeof name_columns / sizeof *name_columns; i++)
        if (strcasecmp(name, name_columns[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof other_columns / sizeof *other_columns; i++)
        if (strcasecmp(name, other_columns[i]) == 0)
            return true;
    return name[0] == '\0';
}

int concept_table_column(const struct concept_table *table, const char *name)
{
    for (size_t i = 0; i < table->csv.n_columns; i++)
        if (strcmp(table->csv.names[i], name) == 0)
            return (int)i;
    return -1;
}

bool concept_table_columns(const struct concept_table *table, const char ***names, size_t *n,
                           struct err *err)
{
    *n = 0;
    *names = malloc((table->csv.n_columns + 1) * sizeof **names);
    if (!*names)
        return err_memory(err, "a table");
    for (size_t i = 0; i < table->csv.n_columns; i++)
        if (!names_patch(table, (int)i))
            (*names)[(*n)++] = table->csv.names[i];
    return true;
}

/* 1: yes, 0: no, NaN: an empty cell; -1: none of these. */
static double answer_of(const char *cell)
{
    static const char *const yes[] = { "yes", "true", "y", "1" }, *const no[] = { "no", "false",
                                                                                  "n", "0" };
    if (cell[0] == '\0')
        return NAN;
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(cell, yes[i]) == 0)
            return 1;
        if (strcasecmp(cell, no[i]) == 0)
            return 0;
    }
    return -1;
}

static bool number_of(const struct concept_table *table, size_t row, int column, double *out,
                      struct err *err)
{
    const struct csv *csv = &table->csv;
    const char *cell = csv_cell(csv, row, column);
    char *end = NULL;
    *out = NAN;
    if (cell[0] == '\0' || strcasecmp(cell, "nan") == 0)
        return true;
    *out = strtod(cell, &end);
    if (*end == '\0' && isfinite(*out))
        return true;
    return err_set(err, ERR_FORMAT, "%s: line %d: column '%s': '%s' %s", csv->path, csv->lines[row],
                   csv->names[column], cell,
                   csv_no_number(cell, "is neither a number nor yes or no"));
}

bool concept_table_use(struct concept_table *table, int column, bool *answers, struct err *err)
{
    size_t n = table->csv.n_rows;
    double *values = malloc(n * sizeof *values + 1);
    if (!values)
        return err_memory(err, "a table");
    *answers = n > 0;
    for (size_t row = 0; row < n; row++) {
        values[row] = answer_of(csv_cell(&table->csv, row, column));
        *answers = *answers && !(values[row] < 0);
    }
    for (size_t row = 0; !*answers && row < n; row++)
        if (!number_of(table, row, column, &values[row], err)) {
            free(values);
            return false;
        }
    free(table->values[column]);
    table->values[column] = values;
    return true;
}

static const struct keyed_row *find_key(const struct concept_table *table, const char *key)
{
    struct keyed_row wanted = { .key = (char *)(uintptr_t)key };
    return bsearch(&wanted, table->rows, table->csv.n_rows, sizeof wanted, by_key);
}

/* By the whole name, the name without its folder, or that without its ending. */
static const struct keyed_row *find_name(const struct concept_table *table, const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const struct keyed_row *row = find_key(table, name);
    if (!row)
        row = find_key(table, base);
    const char *dot = strrchr(base, '.');
    if (row || !dot || strchr(dot, ' '))
        return row;
    char *stem = strndup(base, (size_t)(dot - base));
    row = stem ? find_key(table, stem) : NULL;
    free(stem);
    return row;
}

static const struct keyed_row *find_row(const struct concept_table *table,
                                        const struct concept_patch *patch)
{
    if (table->name >= 0)
        return find_name(table, patch->name);
    char *key =
        text_format("%s|%lld|%lld", patch->slide, (long long)patch->x_l0, (long long)patch->y_l0);
    const struct keyed_row *row = key ? find_key(table, key) : NULL;
    free(key);
    return row;
}

double concept_table_value(const struct concept_table *table, int column,
                           const struct concept_patch *patch)
{
    const struct keyed_row *row = find_row(table, patch);
    return row ? table->values[column][row->row] : NAN;
}

bool concept_table_has(const struct concept_table *table, const struct concept_patch *patch)
{
    return find_row(table, patch) != NULL;
}
