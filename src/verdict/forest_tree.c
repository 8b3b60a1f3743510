/* forest_tree.c: see forest_tree.h. Depth first, left child first, with a stack of open nodes. */
#include "verdict/forest_tree.h"

#include <math.h>
#include <stdlib.h>
#include "base/array.h"

struct sample {
    double value;
    int32_t row;
    bool positive;
};

struct open_node {
    int64_t begin, end; /* of its rows */
    int64_t depth;
    int32_t parent; /* -1: the root */
    bool is_left;
};

struct split {
    int32_t feature; /* -1: none was found */
    double threshold;
    double purity; /* higher is better */
    int64_t left;  /* rows to the left */
};

struct grower {
    const struct forest_data *data;
    const struct forest_options *options;
    int64_t tried; /* features per split */
    int32_t *rows;
    int64_t n_rows;
    struct rng *rng;
    struct sample *samples; /* [n_rows] */
    int32_t *order;         /* [n_features], shuffled as far as needed */
    struct open_node *open; /* the stack */
    int64_t n_open, room_open;
    struct forest_tree *tree;
    int64_t room_nodes;
    double *importances;
};

static int by_value(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Sum of squared counts over their number: highest where a side is pure. */
static double purity(double positives, double rows)
{
    double negatives = rows - positives;
    return (positives * positives + negatives * negatives) / rows;
}

/* The best split of a feature, if it is better than *best. */
static void try_feature(struct grower *g, const struct open_node *node, int32_t feature,
                        double positives, struct split *best)
{
    const int64_t n = node->end - node->begin, least = g->options->min_leaf;
    double left = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t row = g->rows[node->begin + i];
        g->samples[i] = (struct sample){ g->data->values[row * g->data->n_features + feature], row,
                                         g->data->positive[row] };
    }
    qsort(g->samples, (size_t)n, sizeof *g->samples, by_value);
    for (int64_t i = 1; i < n; i++) {
        left += g->samples[i - 1].positive;
        double a = g->samples[i - 1].value, b = g->samples[i].value;
        if (a == b || i < least || n - i < least)
            continue;
        double gain = purity(left, (double)i) + purity(positives - left, (double)(n - i));
        if (best->feature >= 0 && gain <= best->purity)
            continue;
        double middle = a / 2 + b / 2;
        *best = (struct split){ feature, middle < b ? middle : a, gain, i };
    }
}

/* Features come in random order: as many as requested, then more until one can be split. */
static struct split find_split(struct grower *g, const struct open_node *node, double positives)
{
    const int64_t n = g->data->n_features;
    struct split best = { .feature = -1 };
    for (int64_t i = 0; i < n && (i < g->tried || best.feature < 0); i++) {
        int64_t k = i + (int64_t)rng_below(g->rng, (uint64_t)(n - i));
        int32_t feature = g->order[k];
        g->order[k] = g->order[i], g->order[i] = feature;
        try_feature(g, node, feature, positives, &best);
    }
    return best;
}

/* Puts the rows that go left first; neither side keeps its order. Returns where the right side
 * begins. */
static int64_t part_rows(struct grower *g, const struct open_node *node, const struct split *split)
{
    int64_t low = node->begin, high = node->end;
    while (low < high) {
        int32_t row = g->rows[low];
        if (g->data->values[row * g->data->n_features + split->feature] <= split->threshold)
            low++;
        else
            g->rows[low] = g->rows[--high], g->rows[high] = row;
    }
    return low;
}

static bool push(struct grower *g, struct open_node node, struct err *err)
{
    if (!array_grow(&g->open, &g->room_open, g->n_open + 1, sizeof node, "a tree", err))
        return false;
    g->open[g->n_open++] = node;
    return true;
}

static bool add_node(struct grower *g, const struct open_node *open, double value, struct err *err)
{
    struct forest_tree *tree = g->tree;
    if (!array_grow(&tree->nodes, &g->room_nodes, tree->n + 1, sizeof *tree->nodes, "a tree", err))
        return false;
    if (open->parent >= 0 && open->is_left)
        tree->nodes[open->parent].left = tree->n;
    else if (open->parent >= 0)
        tree->nodes[open->parent].right = tree->n;
    tree->nodes[tree->n++] = (struct forest_node){ -1, -1, -1, 0, value };
    return true;
}

static bool grow_node(struct grower *g, struct open_node node, struct err *err)
{
    const int64_t n = node.end - node.begin, depth = g->options->depth;
    const int32_t index = g->tree->n;
    double positives = 0;
    for (int64_t i = node.begin; i < node.end; i++)
        positives += g->data->positive[g->rows[i]];
    if (!add_node(g, &node, positives / (double)n, err))
        return false;
    if (positives == 0 || positives == (double)n || n < 2 * g->options->min_leaf || n < 2 ||
        (depth > 0 && node.depth >= depth))
        return true;
    struct split split = find_split(g, &node, positives);
    if (split.feature < 0)
        return true;
    g->tree->nodes[index].feature = split.feature;
    g->tree->nodes[index].threshold = split.threshold;
    g->importances[split.feature] += split.purity - purity(positives, (double)n);
    int64_t middle = part_rows(g, &node, &split);
    return push(g, (struct open_node){ middle, node.end, node.depth + 1, index, false }, err) &&
           push(g, (struct open_node){ node.begin, middle, node.depth + 1, index, true }, err);
}

static void normalise(double *importances, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += importances[i];
    for (int64_t i = 0; sum > 0 && i < n; i++)
        importances[i] /= sum;
}

bool forest_grow_tree(const struct forest_data *data, const struct forest_options *options,
                      int32_t *rows, int64_t n_rows, struct rng *rng, struct forest_tree *out,
                      double *importances, struct err *err)
{
    int64_t root = (int64_t)floor(sqrt((double)data->n_features));
    int64_t tried = options->split_features ? options->split_features : root;
    struct grower g = { .data = data,
                        .options = options,
                        .tried = tried < data->n_features ? tried : data->n_features,
                        .rows = rows,
                        .n_rows = n_rows,
                        .rng = rng,
                        .samples = calloc((size_t)n_rows, sizeof *g.samples),
                        .order = calloc((size_t)data->n_features, sizeof *g.order),
                        .tree = out,
                        .importances = importances };
    *out = (struct forest_tree){ 0 };
    bool ok = (g.samples && g.order) || err_memory(err, "a tree");
    for (int32_t i = 0; ok && i < data->n_features; i++)
        g.order[i] = i, importances[i] = 0;
    ok = ok && push(&g, (struct open_node){ 0, n_rows, 0, -1, false }, err);
    while (ok && g.n_open > 0)
        ok = grow_node(&g, g.open[--g.n_open], err);
    normalise(importances, data->n_features);
    free(g.samples), free(g.order), free(g.open);
    if (!ok)
        free(out->nodes), *out = (struct forest_tree){ 0 };
    return ok;
}

double forest_tree_value(const struct forest_tree *tree, const double *row)
{
    const struct forest_node *node = tree->nodes;
    while (node->feature >= 0)
        node = tree->nodes + (row[node->feature] <= node->threshold ? node->left : node->right);
    return node->value;
}
