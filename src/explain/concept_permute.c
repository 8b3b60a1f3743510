/* concept_permute.c: see concept_permute.h; also folds by patient and Holm's method. */
#include "explain/concept_permute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "explain/concept_score.h"

#define COLUMNS CONCEPT_COLUMNS

struct placed {
    int32_t block; /* patient, or -1: alone */
    int64_t patch;
};

static int by_block(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->patch < y->patch ? -1 : 1;
}

/* The patches with a value, by patient; those of patients with only one come first, as -1. */
static int64_t place(const double *values, const int32_t *patient, int64_t n, struct placed *placed,
                     int32_t *patients)
{
    int64_t count = 0;
    *patients = 0;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            placed[count++] = (struct placed){ patient[i], i };
    qsort(placed, (size_t)count, sizeof *placed, by_block);
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && placed[end].block == placed[i].block; end++)
            ;
        if (end == i + 1)
            placed[i].block = -1;
        ++*patients;
    }
    qsort(placed, (size_t)count, sizeof *placed, by_block);
    return count;
}

bool permuter_new(const double *values, const int32_t *patient, int64_t n, struct permuter *out,
                  struct err *err)
{
    *out = (struct permuter){ 0 };
    struct placed *placed = malloc((size_t)n * sizeof *placed + 1);
    out->patches = malloc((size_t)n * sizeof *out->patches + 1);
    out->starts = malloc((size_t)(n + 1) * sizeof *out->starts);
    bool ok = (placed && out->patches && out->starts) || err_memory(err, "permutations");
    if (ok) {
        out->n = place(values, patient, n, placed, &out->patients);
        for (int64_t i = 0; i < out->n; i++) {
            if (i == 0 || placed[i].block != placed[i - 1].block)
                out->starts[out->n_blocks++] = i;
            out->patches[i] = placed[i].patch;
        }
        out->starts[out->n_blocks] = out->n;
    }
    free(placed);
    if (!ok)
        permuter_free(out);
    return ok;
}

void permuter_free(struct permuter *permuter)
{
    free(permuter->patches);
    free(permuter->starts);
    *permuter = (struct permuter){ 0 };
}

static void permute_one(const struct permuter *permuter, int64_t version, uint64_t seed, int column,
                        double *out)
{
    struct rng rng = rng_new(seed, rng_hash("permute"), (uint64_t)version);
    for (int64_t block = 0; block < permuter->n_blocks; block++) {
        const int64_t *patches = permuter->patches + permuter->starts[block];
        int64_t count = permuter->starts[block + 1] - permuter->starts[block];
        for (int64_t i = count - 1; i > 0; i--) {
            int64_t other = (int64_t)rng_below(&rng, (uint64_t)i + 1);
            double *a = &out[patches[i] * COLUMNS + column];
            double *b = &out[patches[other] * COLUMNS + column];
            double held = *a;
            *a = *b;
            *b = held;
        }
    }
}

void permute_columns(const struct permuter *permuter, const double *values, int64_t first,
                     uint64_t seed, double *out)
{
    for (int64_t i = 0; i < permuter->n; i++)
        for (int column = 0; column < COLUMNS; column++)
            out[permuter->patches[i] * COLUMNS + column] = values[permuter->patches[i]];
    for (int column = 0; column < COLUMNS; column++)
        if (first + column > 0)
            permute_one(permuter, first + column, seed, column, out);
}

/* --- folds --- */

struct dealt {
    int32_t patient;
    int64_t count;
    uint64_t draw;
};

static int by_count(const void *a, const void *b)
{
    const struct dealt *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->patient - y->patient;
}

bool concept_folds(const int64_t *counts, char *const *names, int32_t n_patients, int n_folds,
                   uint64_t seed, int *fold, struct err *err)
{
    int64_t sums[CONCEPT_MOST_FOLDS] = { 0 };
    struct dealt *order = calloc((size_t)n_patients + 1, sizeof *order);
    if (!order)
        return err_memory(err, "patients");
    for (int32_t i = 0; i < n_patients; i++) {
        struct rng rng = rng_new(seed, rng_hash("fold"), rng_hash(names[i]));
        order[i] = (struct dealt){ i, counts[i], rng_u64(&rng) };
    }
    qsort(order, (size_t)n_patients, sizeof *order, by_count);
    for (int32_t i = 0; i < n_patients; i++) {
        int least = 0;
        for (int k = 1; k < n_folds; k++)
            if (sums[k] < sums[least])
                least = k;
        fold[order[i].patient] = least;
        sums[least] += order[i].count;
    }
    free(order);
    return true;
}

enum concept_state concept_can_score(const struct concept_sample *sample)
{
    int64_t in_fold[CONCEPT_MOST_FOLDS] = { 0 }, n = 0;
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < sample->n; i++)
        if (!isnan(sample->values[i])) {
            in_fold[sample->fold[i]]++;
            n++;
            low = fmin(low, sample->values[i]);
            high = fmax(high, sample->values[i]);
        }
    for (int fold = 0; fold < sample->n_folds; fold++)
        if (in_fold[fold] == 0)
            return CONCEPT_FEW_PATIENTS;
    for (int fold = 0; fold < sample->n_folds; fold++)
        if (in_fold[fold] < CONCEPT_LEAST || n - in_fold[fold] < 2 * CONCEPT_LEAST)
            return CONCEPT_FEW_PATCHES;
    return low < high ? CONCEPT_SCORED : CONCEPT_CONSTANT;
}

/* --- many tests --- */

struct ranked {
    double p;
    size_t at;
};

static int by_p(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->p != y->p)
        return x->p < y->p ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

bool concept_holm(double *p, size_t n, struct err *err)
{
    struct ranked *order = malloc(n * sizeof *order + 1);
    size_t tested = 0;
    if (!order)
        return err_memory(err, "p-values");
    for (size_t i = 0; i < n; i++)
        if (!isnan(p[i]))
            order[tested++] = (struct ranked){ p[i], i };
    qsort(order, tested, sizeof *order, by_p);
    double largest = 0;
    for (size_t i = 0; i < tested; i++) {
        largest = fmax(largest, fmin(1, order[i].p * (double)(tested - i)));
        p[order[i].at] = largest;
    }
    free(order);
    return true;
}
