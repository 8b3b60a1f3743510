/* feature_table.h: CSVs with one row per slide and one column per feature -> a named matrix. */
#ifndef VERDICT_FEATURE_TABLE_H
#define VERDICT_FEATURE_TABLE_H
#include "base/args.h"
#include "verdict/slide_table.h"

struct feature_request {
    const char *const *paths; /* several tables are stacked */
    size_t n_paths;
    const char *slide_column;
    const char *label_column;        /* NULL: no labels needed */
    const char *positive_word;       /* the positive label; NULL: labels are 0 and 1 */
    const char *truth_path;          /* a CSV with slides and labels; NULL: the tables have them */
    const struct arg_texts *ignored; /* columns that are not features; NULL: none */
    const char *const *names; /* [n_names] the features wanted; NULL: every column of the first
                               * table that is not named above and has a name */
    size_t n_names;
};

struct feature_table {
    int64_t n, n_features;
    char **slides;  /* [n], in the order of the tables, within a table by name */
    char **names;   /* [n_features] */
    double *values; /* [n, n_features], finite */
    bool *positive; /* [n]; NULL if no labels were requested */
};

/* Errors name a missing column, a cell that is not a number, and a slide that is listed twice or
 * has no label. *out is the caller's; free with feature_table_free. */
bool feature_table_read(const struct feature_request *request, struct feature_table *out,
                        struct err *err);
void feature_table_free(struct feature_table *table); /* also fine on a zeroed struct */
#endif
