/* forest.c: see forest.h. Trees are grown in parallel, each from its own random numbers. */
#include "verdict/forest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/auc.h"
#include "base/pool.h"
#include "verdict/forest_tree.h"

struct training {
    const struct forest_data *data;
    const struct forest_options *options;
    struct forest_tree *trees;
    double *importances; /* [trees, n_features] */
    uint8_t *seen;       /* [trees, n]: was the row drawn? */
    double *oob;         /* [n]: score of trees that did not see the row; NaN: all did */
};

static bool grow(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    const struct training *t = arg;
    const int64_t n = t->data->n;
    struct rng rng = rng_new(t->options->seed, rng_hash("random forest"), (uint64_t)index);
    int32_t *rows = calloc((size_t)n, sizeof *rows);
    if (!rows)
        return err_memory(err, "a tree");
    for (int64_t i = 0; i < n; i++) {
        rows[i] = (int32_t)(t->options->bootstrap ? rng_below(&rng, (uint64_t)n) : (uint64_t)i);
        t->seen[index * n + rows[i]] = 1;
    }
    bool ok = forest_grow_tree(t->data, t->options, rows, n, &rng, &t->trees[index],
                               t->importances + index * t->data->n_features, err);
    free(rows);
    return ok;
}

static bool score_unseen(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct training *t = arg;
    const double *row = t->data->values + index * t->data->n_features;
    double sum = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < t->options->trees; k++)
        if (!t->seen[k * t->data->n + index])
            sum += forest_tree_value(&t->trees[k], row), count++;
    t->oob[index] = count ? sum / (double)count : NAN;
    return true;
}

static void mean_importances(const struct training *t, double *out)
{
    const int64_t n = t->data->n_features;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < t->options->trees; k++)
            out[i] += t->importances[k * n + i];
        sum += out[i];
    }
    for (int64_t i = 0; sum > 0 && i < n; i++)
        out[i] /= sum;
}

static bool judge_unseen(const struct training *t, struct forest *forest, struct err *err)
{
    const int64_t n = t->data->n;
    struct auc_item *items = calloc((size_t)n, sizeof *items);
    if (!items)
        return err_memory(err, "the out-of-bag scores");
    for (int64_t i = 0; i < n; i++)
        if (!isnan(t->oob[i]))
            items[forest->oob_rows++] = (struct auc_item){ t->oob[i], t->data->positive[i] };
    forest->oob_auc = auc_of_items(items, forest->oob_rows);
    free(items);
    return true;
}

static bool check(const struct forest_data *data, const struct forest_options *o, struct err *err)
{
    int64_t positives = 0;
    for (int64_t i = 0; i < data->n; i++)
        positives += data->positive[i];
    if (data->n_features < 1 || data->n > INT32_MAX)
        return err_set(err, ERR_FORMAT,
                       "a forest needs at least one feature and fewer than 2^31 rows");
    if (positives == 0 || positives == data->n)
        return err_set(err, ERR_FORMAT,
                       "all %lld slides are %s: a forest needs both classes; add slides of the "
                       "other class, or check the label column and --positive",
                       (long long)data->n, positives ? "positive" : "negative");
    if (o->split_features > data->n_features)
        return err_set(err, ERR_USAGE, "--split-features %lld: there are only %lld features",
                       (long long)o->split_features, (long long)data->n_features);
    return true;
}

static bool copy_names(struct forest *forest, const char *const *names, struct err *err)
{
    for (int64_t i = 0; i < forest->n_features; i++) {
        forest->names[i] = strdup(names[i]);
        if (!forest->names[i])
            return err_memory(err, "a forest");
    }
    return true;
}

bool forest_train(const struct forest_data *data, const char *const *names,
                  const struct forest_options *options, const struct ctx *ctx, struct forest *out,
                  struct err *err)
{
    const size_t n = (size_t)data->n, trees = (size_t)options->trees;
    const size_t features = (size_t)data->n_features;
    *out = (struct forest){ .options = *options, .n_features = data->n_features, .oob_auc = NAN };
    if (!check(data, options, err))
        return false;
    out->names = calloc(features, sizeof *out->names);
    out->trees = calloc(trees, sizeof *out->trees);
    out->importances = calloc(features, sizeof *out->importances);
    struct training t = { .data = data,
                          .options = options,
                          .trees = out->trees,
                          .importances = calloc(trees * features, sizeof *t.importances),
                          .seen = calloc(trees, n),
                          .oob = calloc(n, sizeof *t.oob) };
    bool ok = out->names && out->trees && out->importances && t.importances && t.seen && t.oob;
    if (!ok)
        err_memory(err, "a forest");
    ok = ok && copy_names(out, names, err) &&
         pool_for(ctx->pool, options->trees, grow, &t, ctx->stop, err) &&
         pool_for(ctx->pool, data->n, score_unseen, &t, ctx->stop, err) &&
         judge_unseen(&t, out, err);
    if (ok)
        mean_importances(&t, out->importances);
    free(t.importances), free(t.seen), free(t.oob);
    if (!ok)
        forest_free(out);
    return ok;
}

void forest_free(struct forest *forest)
{
    for (int64_t i = 0; forest->trees && i < forest->options.trees; i++)
        free(forest->trees[i].nodes);
    for (int64_t i = 0; forest->names && i < forest->n_features; i++)
        free(forest->names[i]);
    free(forest->trees);
    free(forest->names);
    free(forest->importances);
    *forest = (struct forest){ 0 };
}

double forest_score(const struct forest *forest, const double *row)
{
    double sum = 0;
    for (int64_t k = 0; k < forest->options.trees; k++)
        sum += forest_tree_value(&forest->trees[k], row);
    return sum / (double)forest->options.trees;
}
