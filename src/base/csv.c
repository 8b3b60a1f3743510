/* csv.c: see csv.h. One pass cuts the text in place; cells point into it. */
#include "base/csv.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/file.h"

#define MAX_TABLE_BYTES ((size_t)256 << 20)
#define MAX_COLUMNS 1000

struct cursor {
    char *at, *end;
    int line;
    char separator;
};

static bool ends_cell(const struct cursor *c, char byte)
{
    return byte == c->separator || byte == '\r' || byte == '\n';
}

/* The separator of the header's columns: the first of comma, semicolon and tab that occurs outside
 * quotes. */
static char find_separator(const struct cursor *c)
{
    bool quoted = false, semicolon = false, tab = false;
    for (const char *at = c->at; at < c->end && (quoted || (*at != '\n' && *at != '\r')); at++) {
        if (*at == '"')
            quoted = !quoted;
        else if (!quoted && *at == ',')
            return ',';
        semicolon = semicolon || (!quoted && *at == ';');
        tab = tab || (!quoted && *at == '\t');
    }
    return semicolon ? ';' : tab ? '\t' : ',';
}

/* Cuts one cell out of the text and sets *last if it ends its row. */
static bool next_cell(struct cursor *c, char **cell, bool *last, const char *path, struct err *err)
{
    char *write = c->at;
    *cell = write;
    if (c->at < c->end && *c->at == '"') {
        int opened = c->line;
        c->at++;
        for (;; c->at++) {
            if (c->at >= c->end)
                return err_set(err, ERR_FORMAT, "%s:%d: a quote is never closed", path, opened);
            if (*c->at == '"' && (c->at + 1 >= c->end || c->at[1] != '"'))
                break;
            if (*c->at == '"')
                c->at++;
            if (*c->at == '\n')
                c->line++;
            *write++ = *c->at;
        }
        c->at++;
        if (c->at < c->end && !ends_cell(c, *c->at))
            return err_set(err, ERR_FORMAT, "%s:%d: text after a closing quote", path, c->line);
    } else {
        while (c->at < c->end && !ends_cell(c, *c->at))
            c->at++;
        write = c->at;
    }
    char *stop = c->at;
    *last = stop >= c->end || *stop != c->separator;
    if (c->at < c->end && *c->at == '\r')
        c->at++;
    if (c->at < c->end && (*c->at == c->separator || *c->at == '\n')) {
        c->line += *c->at == '\n';
        c->at++;
    }
    *write = 0; /* at or before the separator, which has been read */
    return true;
}

static bool read_row(struct cursor *c, char **cells, size_t room, size_t *count, const char *path,
                     struct err *err)
{
    bool last = false;
    for (*count = 0; !last; (*count)++) {
        if (*count == room)
            return err_set(err, ERR_FORMAT, "%s:%d: more cells than columns in the header", path,
                           c->line);
        if (!next_cell(c, &cells[*count], &last, path, err))
            return false;
    }
    return true;
}

static bool add_row(struct csv *csv, char **cells, size_t count, int line, size_t *room)
{
    if (csv->n_rows == *room) {
        *room = *room ? 2 * *room : 64;
        char **more_cells = realloc(csv->cells, *room * csv->n_columns * sizeof *more_cells);
        if (!more_cells)
            return false;
        csv->cells = more_cells;
        int *more_lines = realloc(csv->lines, *room * sizeof *more_lines);
        if (!more_lines)
            return false;
        csv->lines = more_lines;
    }
    static char empty[1];
    char **row = csv->cells + csv->n_rows * csv->n_columns;
    for (size_t i = 0; i < csv->n_columns; i++)
        row[i] = i < count ? cells[i] : empty;
    csv->lines[csv->n_rows++] = line;
    return true;
}

static char *trimmed(char *name)
{
    static const char blanks[] = " \t";
    name += strspn(name, blanks);
    size_t length = strlen(name);
    while (length > 0 && strchr(blanks, name[length - 1]))
        length--;
    name[length] = 0;
    return name;
}

static bool parse_rows(struct csv *csv, struct cursor *c, char **cells, struct err *err)
{
    size_t count = 0, room = 0;
    if (!read_row(c, cells, MAX_COLUMNS, &count, csv->path, err))
        return false;
    csv->names = malloc(count * sizeof *csv->names);
    if (!csv->names)
        return err_memory(err, csv->path);
    for (size_t i = 0; i < count; i++)
        csv->names[i] = trimmed(cells[i]);
    csv->n_columns = count;
    while (c->at < c->end) {
        int line = c->line;
        if (!read_row(c, cells, csv->n_columns, &count, csv->path, err))
            return false;
        if (count == 1 && cells[0][0] == 0)
            continue; /* an empty line */
        if (!add_row(csv, cells, count, line, &room))
            return err_memory(err, csv->path);
    }
    return true;
}

bool csv_parse(const char *text, size_t size, const char *path, struct csv *out, struct err *err)
{
    *out = (struct csv){ .path = strdup(path), .text = malloc(size + 1) };
    char **cells = malloc(MAX_COLUMNS * sizeof *cells);
    bool ok = false;
    if (!out->path || !out->text || !cells) {
        err_memory(err, path);
    } else if (memchr(text, 0, size)) {
        err_set(err, ERR_FORMAT, "%s: not a text file (it contains a 0 byte)", path);
    } else {
        memcpy(out->text, text, size);
        out->text[size] = 0;
        struct cursor c = { .at = out->text, .end = out->text + size, .line = 1 };
        if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
            c.at += 3;
        c.separator = find_separator(&c);
        ok = parse_rows(out, &c, cells, err);
    }
    free(cells);
    if (!ok)
        csv_free(out);
    return ok;
}

bool csv_read(const char *path, struct csv *out, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    if (!file_read(path, MAX_TABLE_BYTES, &text, &size, err))
        return false;
    bool ok = csv_parse(text, size, path, out, err);
    free(text);
    return ok;
}

void csv_free(struct csv *csv)
{
    free(csv->path);
    free(csv->names);
    free(csv->cells);
    free(csv->lines);
    free(csv->text);
    *csv = (struct csv){ 0 };
}

int csv_column(const struct csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->n_columns; i++)
        if (strcmp(csv->names[i], name) == 0)
            return (int)i;
    for (size_t i = 0; i < csv->n_columns; i++)
        if (strcasecmp(csv->names[i], name) == 0)
            return (int)i;
    return -1;
}

const char *csv_cell(const struct csv *csv, size_t row, int column)
{
    return column < 0 ? "" : csv->cells[row * csv->n_columns + (size_t)column];
}

const char *csv_no_number(const char *cell, const char *otherwise)
{
    static const char digits[] = "0123456789";
    const char *at = cell + strspn(cell, " +-");
    size_t before = strspn(at, digits);
    bool comma = at[before] == ',' && strspn(at + before + 1, digits) > 0;
    return comma ? "has a decimal comma; use a decimal point" : otherwise;
}

bool csv_mpp(const struct csv *csv, size_t row, double *out, struct err *err)
{
    const char *text = csv_cell(csv, row, csv_column(csv, "mpp"));
    char *end = NULL;
    *out = 0;
    if (!text[strspn(text, " ")])
        return true;
    *out = strtod(text, &end);
    if (end != text && !end[strspn(end, " ")] && isfinite(*out) && *out > 0)
        return true;
    return err_set(err, ERR_FORMAT, "%s:%d: mpp '%.60s' %s", csv->path, csv->lines[row], text,
                   csv_no_number(text, "is not a number of um/px above 0"));
}

void csv_write_cell(FILE *stream, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}
