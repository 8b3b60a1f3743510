/* forest_grid.h: which options of a forest are best, by cross-validation over all combinations. */
#ifndef VERDICT_FOREST_GRID_H
#define VERDICT_FOREST_GRID_H
#include "verdict/forest.h"

#define GRID_MOST_VALUES 32 /* of one option */

struct grid_values {
    int64_t items[GRID_MOST_VALUES];
    int n; /* at least 1 */
};

struct forest_grid {
    struct grid_values trees, depth, split_features, min_leaf;
    struct forest_options base; /* the other options */
    int64_t folds;
};

/* A combination, and its area on held-out rows. */
struct grid_point {
    struct forest_options options;
    double auc, deviation; /* mean and standard deviation over the folds */
};

/* Number of combinations. */
int64_t forest_grid_size(const struct forest_grid *grid);

/* *best: the combination with the highest area, the first of equals. If there is a choice, all are
 * cross-validated, and on_point is given each; else nothing is computed. */
bool forest_grid_search(const struct forest_grid *grid, const struct forest_data *data,
                        const struct ctx *ctx,
                        void (*on_point)(void *arg, const struct grid_point *point), void *arg,
                        struct forest_options *best, struct err *err);
#endif
