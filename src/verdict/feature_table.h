/* feature_table.h: CSVs with a row a slide and a column a feature -> a matrix with names. */
#ifndef VERDICT_FEATURE_TABLE_H
#define VERDICT_FEATURE_TABLE_H
#include "base/args.h"
#include "verdict/slide_table.h"

struct feature_request {
    const char *const *paths; /* several tables are laid one below the other */
    size_t n_paths;
    const char *slide_column;
    const char *label_column;        /* NULL: labels are not wanted */
    const char *positive_word;       /* of a label; NULL: labels are 0 and 1 */
    const char *truth_path;          /* a CSV with slides and labels; NULL: the tables have them */
    const struct arg_texts *ignored; /* columns that are no features; NULL: none */
    const char *const *names; /* [n_names] the features wanted; NULL: every column of the first
                               * table that is not named above and has a name */
    size_t n_names;
};

struct feature_table {
    int64_t n, n_features;
    char **slides;  /* [n], in the order of the tables, within a table by name */
    char **names;   /* [n_features] */
    double *values; /* [n, n_features], finite */
    bool *positive; /* [n]; NULL if labels were not wanted */
};

/* A column that is absent, a cell that is no number and a slide that is there twice or has no label
 * are named. *out is the caller's; free with feature_table_free. */
bool feature_table_read(const struct feature_request *request, struct feature_table *out,
                        struct err *err);
void feature_table_free(struct feature_table *table); /* also fine on a zeroed struct */
#endif
