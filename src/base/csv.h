/* csv.h: a table with a header, read whole (slide lists and score tables are small). Its columns
 * are separated by commas or, if the header has none, by semicolons or tabs. Quoted cells, CRLF and
 * a byte-order mark are supported. */
#ifndef BASE_CSV_H
#define BASE_CSV_H
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "base/err.h"

struct csv {
    char *path;    /* for messages */
    size_t n_rows; /* without the header */
    size_t n_columns;
    char **names; /* [n_columns], without blanks around them */
    char **cells; /* [n_rows, n_columns]; an absent cell at the end of a row is "" */
    int *lines;   /* [n_rows]: the line of the file a row begins on, for messages */
    char *text;
};

/* The caller owns *out; free with csv_free. */
bool csv_read(const char *path, struct csv *out, struct err *err);
/* The same from memory; text is copied. path is used in messages only. */
bool csv_parse(const char *text, size_t size, const char *path, struct csv *out, struct err *err);
void csv_free(struct csv *csv);

/* Column number by name, or -1. If no name matches exactly, case is ignored. */
int csv_column(const struct csv *csv, const char *name);
/* Never NULL; "" when column is -1. */
const char *csv_cell(const struct csv *csv, size_t row, int column);

/* What is wrong with a cell that should be a number, to be printed after it: a note about its
 * decimal comma, which is never interpreted, or `otherwise`. */
const char *csv_no_number(const char *cell, const char *otherwise);

/* A cell of the column mpp as um/px; 0 if it is empty or there is no such column. */
bool csv_mpp(const struct csv *csv, size_t row, double *out, struct err *err);

/* Writes one cell, quoted if necessary. */
void csv_write_cell(FILE *stream, const char *text);
#endif
