/* forest_tree.h: rows -> one tree. */
#ifndef VERDICT_FOREST_TREE_H
#define VERDICT_FOREST_TREE_H
#include "base/rng.h"
#include "verdict/forest.h"

/* rows [n_rows] of data, some more than once; they are reordered. importances [n_features] gets the
 * tree's, which sum to 1 (or are all 0: the root is a leaf). *out is the caller's; free its nodes.
 */
bool forest_grow_tree(const struct forest_data *data, const struct forest_options *options,
                      int32_t *rows, int64_t n_rows, struct rng *rng, struct forest_tree *out,
                      double *importances, struct err *err);
double forest_tree_value(const struct forest_tree *tree, const double *row);
#endif
