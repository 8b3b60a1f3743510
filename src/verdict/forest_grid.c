/* forest_grid.c: see forest_grid.h. */
#include "verdict/forest_grid.h"

#include "base/console.h"

int64_t forest_grid_size(const struct forest_grid *grid)
{
    return (int64_t)grid->trees.n * grid->depth.n * grid->split_features.n * grid->min_leaf.n;
}

static int64_t take(const struct grid_values *values, int64_t *i)
{
    int64_t value = values->items[*i % values->n];
    *i /= values->n;
    return value;
}

/* min_leaf changes fastest, trees slowest. */
static struct forest_options combination(const struct forest_grid *grid, int64_t i)
{
    struct forest_options options = grid->base;
    options.min_leaf = take(&grid->min_leaf, &i);
    options.split_features = take(&grid->split_features, &i);
    options.depth = take(&grid->depth, &i);
    options.trees = take(&grid->trees, &i);
    return options;
}

bool forest_grid_search(const struct forest_grid *grid, const struct forest_data *data,
                        const struct ctx *ctx,
                        void (*on_point)(void *arg, const struct grid_point *point), void *arg,
                        struct forest_options *best, struct err *err)
{
    int64_t n = forest_grid_size(grid);
    double highest = -1;
    bool ok = true;
    *best = combination(grid, 0);
    if (n == 1)
        return true;
    console_begin(ctx->console, "grid", n, "forests");
    for (int64_t i = 0; ok && i < n; i++) {
        struct grid_point point = { .options = combination(grid, i) };
        ok = forest_cross_validate(data, &point.options, grid->folds, ctx, &point.auc,
                                   &point.deviation, err);
        if (ok && point.auc > highest)
            highest = point.auc, *best = point.options;
        console_advance(ctx->console, 1);
        if (ok)
            on_point(arg, &point);
    }
    console_end(ctx->console);
    return ok;
}
