/* slide_table.h: a CSV with one row per slide -> numbers and labels, checked. Errors name the file,
 * the line and the column. */
#ifndef VERDICT_SLIDE_TABLE_H
#define VERDICT_SLIDE_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include "base/csv.h"
#include "verdict/class_list.h"

struct slide_table {
    struct csv csv;
    size_t n;
    size_t *rows;        /* [n] rows of the CSV, by slide name */
    const char **slides; /* [n] names, sorted, each once; point into the CSV */
};

/* csv_read; a table that 'predict' made of texts (id, label, score_<class>) gets the names of one
 * of slides (slide, label, prob_<class>). */
bool slide_csv_read(const char *path, struct csv *out, struct err *err);

/* slide_column is the name of the column with the slides. The folder and the slide's file extension
 * are not part of the name: "a/test_001.tif" is test_001. *out is the caller's; free with
 * slide_table_free. */
bool slide_table_read(const char *path, const char *slide_column, struct slide_table *out,
                      struct err *err);
/* The same from memory; path is only used in messages. */
bool slide_table_parse(const char *text, size_t size, const char *path, const char *slide_column,
                       struct slide_table *out, struct err *err);
void slide_table_free(struct slide_table *table); /* also fine on a zeroed struct */

/* Column number; a missing column is an error that lists the existing ones and gives `remedy`. */
bool slide_table_column(const struct slide_table *table, const char *name, const char *remedy,
                        int *column, struct err *err);

/* values [n]: the column as finite numbers. */
bool slide_table_numbers(const struct slide_table *table, int column, double *values,
                         struct err *err);

/* positive [n]: a cell is 0 or 1, or a word that means them (negative, normal, false; positive,
 * tumor, tumour, true; case does not matter). With positive_word: a cell is positive if it is that
 * word. */
bool slide_table_labels(const struct slide_table *table, int column, const char *positive_word,
                        bool *positive, struct err *err);

/* numbers [n]: a cell is the name or the number of a class (class_list_find). A cell that is
 * neither is an error that lists the classes. */
bool slide_table_classes(const struct slide_table *table, int column,
                         const struct class_list *classes, int *numbers, struct err *err);

/* Index of a slide, or -1. */
long slide_table_find(const struct slide_table *table, const char *slide);

/* The name of a slide within a path, in place: without folder and slide extension. */
char *slide_table_name(char *path);
#endif
