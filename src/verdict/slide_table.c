/* slide_table.c: see slide_table.h. */
#include "verdict/slide_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/names.h"

char *slide_table_name(char *path)
{
    static const char *const endings[] = { ".tif",  ".tiff", ".svs",  ".ndpi", ".vms",
                                           ".vmu",  ".scn",  ".mrxs", ".bif",  ".svslide",
                                           ".tmap", ".xml",  ".csv" };
    char *slash = strrchr(path, '/');
    char *name = slash ? slash + 1 : path;
    char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && dot > name && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0) {
            *dot = 0;
            break;
        }
    return name;
}

struct named_row {
    const char *name;
    size_t row;
};

static int by_name(const void *a, const void *b)
{
    const struct named_row *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* Sorts the rows by name. Returns the second of the first two with the same name; n: all names
 * differ. */
static size_t sort_rows(struct named_row *named, size_t n)
{
    qsort(named, n, sizeof *named, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(named[i].name, named[i - 1].name) == 0)
            return i;
    return n;
}

/* Tables of patches may list files of the same name in several folders: then the folders count. */
static bool index_rows(struct slide_table *table, int column, struct named_row *named,
                       struct err *err)
{
    const struct csv *csv = &table->csv;
    for (size_t i = 0; i < table->n; i++) {
        char *cell = csv->cells[i * csv->n_columns + (size_t)column];
        named[i] = (struct named_row){ slide_table_name(cell), i };
        if (!*named[i].name)
            return err_set(err, ERR_FORMAT, "%s:%d: column '%s': no slide name", csv->path,
                           csv->lines[i], csv->names[column]);
    }
    size_t twice = sort_rows(named, table->n);
    for (size_t i = 0; twice < table->n && i < table->n; i++)
        named[i].name = csv->cells[named[i].row * csv->n_columns + (size_t)column];
    if (twice < table->n && (twice = sort_rows(named, table->n)) < table->n)
        return err_set(err, ERR_FORMAT, "%s:%d: slide '%s' is already on line %d", csv->path,
                       csv->lines[named[twice].row], slide_table_name((char *)named[twice].name),
                       csv->lines[named[twice - 1].row]);
    for (size_t i = 0; i < table->n; i++) {
        table->rows[i] = named[i].row;
        table->slides[i] = named[i].name;
    }
    return true;
}

/* Takes over table->csv. */
static bool index_table(struct slide_table *table, const char *slide_column, struct err *err)
{
    int column = 0;
    table->n = table->csv.n_rows;
    struct named_row *named = calloc(table->n + 1, sizeof *named);
    table->rows = calloc(table->n + 1, sizeof *table->rows);
    table->slides = calloc(table->n + 1, sizeof *table->slides);
    bool ok = false;
    if (!named || !table->rows || !table->slides)
        err_memory(err, table->csv.path);
    else if (table->n == 0)
        err_set(err, ERR_FORMAT, "%s: no rows below the header", table->csv.path);
    else
        ok = slide_table_column(table, slide_column, "name the slide column with --slide", &column,
                                err) &&
             index_rows(table, column, named, err);
    free(named);
    if (!ok)
        slide_table_free(table);
    return ok;
}

#define TEXT_SCORE "score_"
#define SLIDE_SCORE "prob_"

bool slide_csv_read(const char *path, struct csv *out, struct err *err)
{
    const size_t start = strlen(TEXT_SCORE), less = start - strlen(SLIDE_SCORE);
    static char slide[] = "slide";
    bool texts = csv_read(path, out, err);
    if (!texts)
        return false;
    texts = out->n_columns > 2 && strcmp(out->names[0], "id") == 0 &&
            strcmp(out->names[1], "label") == 0;
    for (size_t i = 2; i < out->n_columns; i++)
        texts = texts && strncmp(out->names[i], TEXT_SCORE, start) == 0;
    for (size_t i = 2; texts && i < out->n_columns; i++) {
        out->names[i] += less;
        memcpy(out->names[i], SLIDE_SCORE, strlen(SLIDE_SCORE));
    }
    if (texts)
        out->names[0] = slide;
    return true;
}

bool slide_table_read(const char *path, const char *slide_column, struct slide_table *out,
                      struct err *err)
{
    *out = (struct slide_table){ 0 };
    return slide_csv_read(path, &out->csv, err) && index_table(out, slide_column, err);
}

bool slide_table_parse(const char *text, size_t size, const char *path, const char *slide_column,
                       struct slide_table *out, struct err *err)
{
    *out = (struct slide_table){ 0 };
    return csv_parse(text, size, path, &out->csv, err) && index_table(out, slide_column, err);
}

void slide_table_free(struct slide_table *table)
{
    csv_free(&table->csv);
    free(table->rows);
    free(table->slides);
    *table = (struct slide_table){ 0 };
}

bool slide_table_column(const struct slide_table *table, const char *name, const char *remedy,
                        int *column, struct err *err)
{
    const struct csv *csv = &table->csv;
    char there[400];
    *column = csv_column(csv, name);
    if (*column >= 0)
        return true;
    const char *const *names = (const char *const *)csv->names;
    const char *near = names_nearest(name, names, csv->n_columns);
    return err_set(err, ERR_FORMAT, "%s:1: no column '%s' (columns: %s)%s%s%s; %s", csv->path, name,
                   names_join(names, csv->n_columns, there, sizeof there),
                   near ? ", perhaps '" : "", near ? near : "", near ? "'" : "", remedy);
}

static bool refuse_cell(const struct slide_table *table, size_t i, int column, const char *fact,
                        struct err *err)
{
    const struct csv *csv = &table->csv;
    const char *cell = csv_cell(csv, table->rows[i], column);
    return err_set(err, ERR_FORMAT, "%s:%d: column '%s': '%.60s' %s", csv->path,
                   csv->lines[table->rows[i]], csv->names[column], cell, fact);
}

bool slide_table_numbers(const struct slide_table *table, int column, double *values,
                         struct err *err)
{
    for (size_t i = 0; i < table->n; i++) {
        const char *cell = csv_cell(&table->csv, table->rows[i], column);
        char *end = NULL;
        values[i] = strtod(cell, &end);
        while (*end == ' ')
            end++;
        if (end == cell || *end)
            return refuse_cell(table, i, column, csv_no_number(cell, "is not a number"), err);
        if (!isfinite(values[i]))
            return refuse_cell(table, i, column,
                               "is not a finite number; score the slide again or remove its row",
                               err);
    }
    return true;
}

/* 0, 1, or -1 if it is not a label. */
static int meaning_of(const char *cell)
{
    static const char *const words[2][4] = { { "negative", "normal", "false", NULL },
                                             { "positive", "tumor", "tumour", "true" } };
    char *end = NULL;
    double value = strtod(cell, &end);
    if (end != cell && !*end)
        return value == 0 ? 0 : value == 1 ? 1 : -1;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < 4 && words[kind][i]; i++)
            if (strcasecmp(cell, words[kind][i]) == 0)
                return kind;
    return -1;
}

bool slide_table_labels(const struct slide_table *table, int column, const char *positive_word,
                        bool *positive, struct err *err)
{
    for (size_t i = 0; i < table->n; i++) {
        const char *cell = csv_cell(&table->csv, table->rows[i], column);
        if (positive_word) {
            positive[i] = strcmp(cell, positive_word) == 0;
            if (!*cell)
                return refuse_cell(table, i, column,
                                   "is not a label; give the slide one or remove its row", err);
            continue;
        }
        int meaning = meaning_of(cell);
        if (meaning < 0)
            return refuse_cell(
                table, i, column,
                "is not 0 or 1; name the label of the positive class with --positive", err);
        positive[i] = meaning == 1;
    }
    return true;
}

bool slide_table_classes(const struct slide_table *table, int column,
                         const struct class_list *classes, int *numbers, struct err *err)
{
    for (size_t i = 0; i < table->n; i++) {
        const char *cell = csv_cell(&table->csv, table->rows[i], column);
        char names[400], fact[512];
        numbers[i] = class_list_find(classes, cell);
        if (numbers[i] >= 0)
            continue;
        names_join((const char *const *)classes->names, classes->n, names, sizeof names);
        snprintf(fact, sizeof fact, "is not a class; the classes are %s, or numbers from 0 to %zu",
                 names, classes->n - 1);
        return refuse_cell(table, i, column, fact, err);
    }
    return true;
}

long slide_table_find(const struct slide_table *table, const char *slide)
{
    size_t low = 0, high = table->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(table->slides[middle], slide);
        if (order == 0)
            return (long)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
