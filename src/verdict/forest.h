/* forest.h: a random forest of two classes (Breiman 2001): rows of numbers -> the share of
 * positives in the leaves they fall into, mean over trees. Trees split by Gini impurity halfway
 * between two values, x <= threshold to the left. A forest depends only on data, options and seed,
 * never on threads. */
#ifndef VERDICT_FOREST_H
#define VERDICT_FOREST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/ctx.h"
#include "base/err.h"

struct forest_options {
    int64_t trees;
    int64_t depth;          /* maximum depth of a tree; 0: no limit */
    int64_t split_features; /* drawn per split; 0: the square root of the count, rounded down */
    int64_t min_leaf;       /* minimum rows per leaf */
    bool bootstrap;         /* each tree sees as many rows as there are, drawn with replacement */
    uint64_t seed;
};

struct forest_data {
    int64_t n, n_features;
    const double *values; /* [n, n_features], finite */
    const bool *positive; /* [n] */
};

struct forest_node {
    int32_t feature;     /* -1: a leaf */
    int32_t left, right; /* nodes after this one; -1 in a leaf */
    double threshold;    /* 0 in a leaf */
    double value;        /* share of positives, in [0, 1] */
};

struct forest_tree {
    struct forest_node
        *nodes; /* the first is the root; parents before children, left before right */
    int32_t n;
};

struct forest {
    struct forest_options options;
    char **names; /* [n_features] */
    int64_t n_features;
    struct forest_tree *trees; /* [options.trees] */
    double *importances;       /* [n_features]: mean decrease of impurity; they sum to 1 */
    double oob_auc;   /* AUC of the scores that rows get from trees that did not see them; NaN
                       * without bootstrap, or if all rows with such a score are of one class */
    int64_t oob_rows; /* rows that have such a score */
};

/* names [n_features] are copied. Both classes must be present. 1.6 s for 1,000 trees on 270 rows of
 * 30 features and one thread; trees are trained in parallel. *out is the caller's; free with
 * forest_free. */
bool forest_train(const struct forest_data *data, const char *const *names,
                  const struct forest_options *options, const struct ctx *ctx, struct forest *out,
                  struct err *err);
void forest_free(struct forest *forest); /* also fine on a zeroed struct */

/* row [n_features]. Thread-safe. */
double forest_score(const struct forest *forest, const double *row);

/* The area on held-out rows: mean and standard deviation over folds, which are stratified by class
 * and depend on the seed. Needs at least `folds` rows of each class. */
bool forest_cross_validate(const struct forest_data *data, const struct forest_options *options,
                           int64_t folds, const struct ctx *ctx, double *mean, double *deviation,
                           struct err *err);

/* As JSON (docs/verdicts.md); everything is checked when it is read: sizes, ranges, that a tree is
 * a tree. */
bool forest_write(const char *path, const struct forest *forest, struct err *err);
bool forest_read(const char *path, struct forest *out, struct err *err);
/* From memory; path is only used in messages. */
bool forest_parse(const char *text, size_t size, const char *path, struct forest *out,
                  struct err *err);
#endif
