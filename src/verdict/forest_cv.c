/* forest_cv.c: how good a forest with some options is on rows it has not seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/auc.h"
#include "base/rng.h"
#include "verdict/forest.h"

struct keyed {
    uint64_t key;
    int64_t row;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* fold [n]: the rows of each class are shuffled and dealt out in turn. */
static bool deal(const struct forest_data *data, int64_t folds, uint64_t seed, int64_t *fold,
                 struct err *err)
{
    struct keyed *keyed = calloc((size_t)data->n, sizeof *keyed);
    if (!keyed)
        return err_memory(err, "the folds");
    bool ok = true;
    for (int kind = 0; ok && kind < 2; kind++) {
        int64_t n = 0;
        for (int64_t i = 0; i < data->n; i++)
            if (data->positive[i] == (bool)kind) {
                struct rng rng = rng_new(seed, rng_hash("folds of a forest"), (uint64_t)i);
                keyed[n++] = (struct keyed){ rng_u64(&rng), i };
            }
        qsort(keyed, (size_t)n, sizeof *keyed, by_key);
        for (int64_t i = 0; i < n; i++)
            fold[keyed[i].row] = i % folds;
        if (n < folds)
            ok = err_set(err, ERR_USAGE,
                         "%lld folds need at least that many slides of each class, but one class "
                         "has only %lld; "
                         "pass a smaller --folds",
                         (long long)folds, (long long)n);
    }
    free(keyed);
    return ok;
}

/* Trains on all other folds and gives the area on this one. */
static bool judge_fold(const struct forest_data *data, const struct forest_options *options,
                       const int64_t *fold, int64_t held, const struct ctx *ctx, double *area,
                       struct err *err)
{
    const size_t width = (size_t)data->n_features;
    double *values = calloc((size_t)data->n * width, sizeof *values);
    bool *positive = calloc((size_t)data->n, sizeof *positive);
    struct auc_item *items = calloc((size_t)data->n, sizeof *items);
    const char **names = calloc(width, sizeof *names);
    struct forest forest = { 0 };
    struct forest_data part = { .n_features = data->n_features,
                                .values = values,
                                .positive = positive };
    int64_t n_held = 0;
    bool ok = (values && positive && items && names) || err_memory(err, "the folds");
    for (size_t i = 0; ok && i < width; i++)
        names[i] = "";
    for (int64_t i = 0; ok && i < data->n; i++)
        if (fold[i] != held) {
            memcpy(values + part.n * data->n_features, data->values + i * data->n_features,
                   width * sizeof *values);
            positive[part.n++] = data->positive[i];
        }
    ok = ok && forest_train(&part, names, options, ctx, &forest, err);
    for (int64_t i = 0; ok && i < data->n; i++)
        if (fold[i] == held)
            items[n_held++] =
                (struct auc_item){ forest_score(&forest, data->values + i * data->n_features),
                                   data->positive[i] };
    if (ok)
        *area = auc_of_items(items, n_held);
    forest_free(&forest);
    free(values), free(positive), free(items), free(names);
    return ok;
}

bool forest_cross_validate(const struct forest_data *data, const struct forest_options *options,
                           int64_t folds, const struct ctx *ctx, double *mean, double *deviation,
                           struct err *err)
{
    int64_t *fold = calloc((size_t)data->n, sizeof *fold);
    double sum = 0, squares = 0, area = 0;
    bool ok = (fold || err_memory(err, "the folds")) && deal(data, folds, options->seed, fold, err);
    for (int64_t k = 0; ok && k < folds; k++) {
        ok = judge_fold(data, options, fold, k, ctx, &area, err);
        sum += area, squares += area * area;
    }
    *mean = sum / (double)folds;
    *deviation = sqrt(fmax(squares / (double)folds - *mean * *mean, 0));
    free(fold);
    return ok;
}
