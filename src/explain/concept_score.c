/* concept_score.c: see concept_score.h. The concept is the first of all versions of its values, the
 * permuted ones follow: all go the same way, in columns of CONCEPT_COLUMNS. */
#include "explain/concept_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/auc.h"
#include "base/pool.h"
#include "base/rng.h"
#include "explain/concept_permute.h"
#include "explain/products.h"

#define COLUMNS CONCEPT_COLUMNS
#define LEAST_SPREAD 1e-5 /* deviation of S / its mean, within folds: below, S is constant */

struct scoring_concept {
    const struct concept_sample *sample;
    const struct concept_score_options *options;
    const struct concept_space *space;
    const struct concept_bases *bases;
    struct permuter permuter;
    struct concept_fit_work *works;      /* for each worker */
    double **permuted;                   /* for each worker: [n, COLUMNS] */
    double *quality, *mean_s;            /* [versions] */
    double *weights[CONCEPT_MOST_FOLDS]; /* of version 0 */
    double penalties[CONCEPT_MOST_FOLDS];
    double *sensitivities; /* of version 0 */
    double correct;        /* answers of version 0 predicted right */
    struct concept_score *out;
};

/* --- bases --- */

struct making_bases {
    const struct concept_space *space;
    struct concept_bases *bases;
};

static bool make_basis(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    struct making_bases *making = arg;
    struct concept_bases *bases = making->bases;
    return concept_basis_make(making->space, bases->fold, (int)index, &bases->folds[index], err);
}

bool concept_bases_need(const struct concept_space *space, const struct concept_sample *sample,
                        const struct ctx *ctx, struct concept_bases *bases, struct err *err)
{
    size_t bytes = (size_t)sample->n * sizeof *bases->fold;
    int *fold = malloc(bytes + 1);
    if (!fold)
        return err_memory(err, "folds");
    for (int64_t i = 0; i < sample->n; i++)
        fold[i] = isnan(sample->values[i]) ? -1 : sample->fold[i];
    if (bases->fold && bases->space == space && bases->n_folds == sample->n_folds &&
        memcmp(bases->fold, fold, bytes) == 0) {
        free(fold);
        return true;
    }
    concept_bases_free(bases);
    *bases = (struct concept_bases){ .space = space, .n_folds = sample->n_folds, .fold = fold };
    struct making_bases making = { space, bases };
    if (pool_for(ctx->pool, bases->n_folds, make_basis, &making, ctx->stop, err))
        return true;
    concept_bases_free(bases);
    return false;
}

void concept_bases_free(struct concept_bases *bases)
{
    for (int i = 0; i < bases->n_folds; i++)
        concept_basis_free(&bases->folds[i]);
    free(bases->fold);
    *bases = (struct concept_bases){ 0 };
}

/* --- one version of the values in one fold --- */

static double r2_of_column(const struct concept_basis *basis, const double *values,
                           const double *predicted, int column)
{
    double mean = 0, errors = 0, squares = 0;
    for (int64_t i = 0; i < basis->t; i++)
        mean += values[basis->test[i] * COLUMNS + column] / (double)basis->t;
    for (int64_t i = 0; i < basis->t; i++) {
        double value = values[basis->test[i] * COLUMNS + column];
        double error = value - predicted[i * COLUMNS + column];
        errors += error * error;
        squares += (value - mean) * (value - mean);
    }
    return squares > 0 ? 1 - errors / squares : NAN;
}

static double auc_of_column(const struct concept_basis *basis, const double *values,
                            const double *predicted, int column, struct auc_item *items)
{
    for (int64_t i = 0; i < basis->t; i++)
        items[i] = (struct auc_item){ predicted[i * COLUMNS + column],
                                      values[basis->test[i] * COLUMNS + column] > 0.5 };
    return auc_of_items(items, basis->t);
}

/* What is kept of version 0. */
static void keep_first(struct scoring_concept *s, int fold, const double *values,
                       const struct concept_fit_work *work, const double *lengths)
{
    const struct concept_basis *basis = &s->bases->folds[fold];
    s->penalties[fold] = work->penalty[0];
    for (int64_t j = 0; j < basis->rank; j++)
        s->weights[fold][j] = work->weights[j * COLUMNS];
    for (int64_t i = 0; i < basis->t; i++) {
        double s_along = work->moved[i * COLUMNS];
        s->sensitivities[basis->test[i]] = lengths[0] > 0 ? s_along / lengths[0] : 0;
        s->correct +=
            (values[basis->test[i] * COLUMNS] > 0.5) == (work->predicted[i * COLUMNS] > 0);
    }
}

/* Fits all versions in the columns in one fold; adds to their qualities and sums of S. */
static bool score_fold(struct scoring_concept *s, int fold, int64_t first, const double *values,
                       struct concept_fit_work *work, double *quality, int *counted, double *sum_s,
                       struct err *err)
{
    const struct concept_basis *basis = &s->bases->folds[fold];
    double lengths[COLUMNS] = { 0 };
    struct auc_item *items = malloc((size_t)basis->t * sizeof *items + 1);
    if (!items)
        return err_memory(err, "predictions");
    for (int64_t i = 0; i < basis->m; i++)
        memcpy(work->values + i * COLUMNS, values + basis->train[i] * COLUMNS,
               COLUMNS * sizeof *values);
    (s->sample->answers ? concept_fit_answers : concept_fit_numbers)(basis, &s->options->fit, work);
    product_matrix(basis->test_gradients, work->weights, basis->t, basis->rank, COLUMNS,
                   work->moved);
    for (int64_t j = 0; j < basis->rank; j++)
        for (int column = 0; column < COLUMNS; column++) {
            double weight = work->weights[j * COLUMNS + column];
            lengths[column] += weight * weight;
        }
    for (int column = 0; column < COLUMNS; column++) {
        double of_fold = s->sample->answers
                             ? auc_of_column(basis, values, work->predicted, column, items)
                             : r2_of_column(basis, values, work->predicted, column);
        lengths[column] = sqrt(lengths[column]);
        quality[column] += isnan(of_fold) ? 0 : of_fold;
        counted[column] += !isnan(of_fold);
        for (int64_t i = 0; lengths[column] > 0 && i < basis->t; i++)
            sum_s[column] += work->moved[i * COLUMNS + column] / lengths[column];
        if (first == 0 && column == 0)
            s->out->fold_quality[fold] = of_fold;
    }
    if (first == 0)
        keep_first(s, fold, values, work, lengths);
    free(items);
    return true;
}

/* Versions [index * COLUMNS, ..). */
static bool score_versions(void *arg, int64_t index, int worker, struct err *err)
{
    struct scoring_concept *s = arg;
    double quality[COLUMNS] = { 0 }, sum_s[COLUMNS] = { 0 };
    int counted[COLUMNS] = { 0 };
    int64_t first = index * COLUMNS, versions = 1 + s->options->permutations;
    permute_columns(&s->permuter, s->sample->values, first, s->options->seed, s->permuted[worker]);
    for (int fold = 0; fold < s->bases->n_folds; fold++)
        if (!score_fold(s, fold, first, s->permuted[worker], &s->works[worker], quality, counted,
                        sum_s, err))
            return false;
    for (int column = 0; column < COLUMNS && first + column < versions; column++) {
        s->quality[first + column] = counted[column] ? quality[column] / counted[column] : NAN;
        s->mean_s[first + column] = sum_s[column] / (double)s->out->n;
    }
    return true;
}

/* --- measures --- */

/* Does S vary, within folds? Directions of folds differ a little, which is no variation of S. */
static bool varies(const struct scoring_concept *s)
{
    double within = 0;
    for (int fold = 0; fold < s->bases->n_folds; fold++) {
        const struct concept_basis *basis = &s->bases->folds[fold];
        double mean = 0;
        for (int64_t i = 0; i < basis->t; i++)
            mean += s->sensitivities[basis->test[i]] / (double)basis->t;
        for (int64_t i = 0; i < basis->t; i++) {
            double off = s->sensitivities[basis->test[i]] - mean;
            within += off * off;
        }
    }
    return sqrt(within / (double)s->out->n) > LEAST_SPREAD * fabs(s->out->mean_s);
}

static void measure(struct scoring_concept *s)
{
    struct concept_score *out = s->out;
    double n = (double)out->n, squares = 0;
    int64_t above = 0;
    out->quality = s->quality[0];
    out->mean_s = s->mean_s[0];
    out->accuracy = s->sample->answers ? s->correct / n : NAN;
    for (int64_t i = 0; i < s->sample->n; i++)
        if (!isnan(s->sample->values[i])) {
            double off = s->sensitivities[i] - out->mean_s;
            above += s->sensitivities[i] > 0;
            squares += off * off;
        }
    out->tcav = (double)above / n;
    out->std_s = sqrt(squares / n);
    out->br = !s->sample->answers && out->std_s > 0 && varies(s)
                  ? out->quality * out->mean_s / out->std_s
                  : NAN;
}

/* Of the versions after the first: the share that is not below it, the first included. */
static double share_above(const double *versions, int64_t permutations, bool absolute)
{
    int64_t above = 0;
    for (int64_t i = 1; i <= permutations; i++)
        above += absolute ? fabs(versions[i]) >= fabs(versions[0]) : versions[i] >= versions[0];
    return (1 + (double)above) / (1 + (double)permutations);
}

/* The mean S along a random direction of the axes' space is the length of the mean gradient in it
 * times a component of a random unit vector. */
static double against_random(const struct scoring_concept *s)
{
    double length = 0;
    int64_t rank = INT64_MAX, above = 0, draws = s->options->permutations;
    for (int fold = 0; fold < s->bases->n_folds; fold++) {
        const struct concept_basis *basis = &s->bases->folds[fold];
        double squares = 0;
        for (int64_t j = 0; j < basis->rank; j++) {
            double sum = 0;
            for (int64_t i = 0; i < basis->t; i++)
                sum += basis->test_gradients[i * basis->rank + j];
            squares += sum * sum;
        }
        length += sqrt(squares) / (double)s->out->n;
        rank = basis->rank < rank ? basis->rank : rank;
    }
    for (int64_t draw = 0; draw < draws; draw++) {
        struct rng rng = rng_new(s->options->seed, rng_hash("direction"), (uint64_t)draw);
        double first = rng_normal(&rng), squares = first * first;
        for (int64_t j = 1; j < rank; j++) {
            double other = rng_normal(&rng);
            squares += other * other;
        }
        above += length * fabs(first) >= fabs(s->out->mean_s) * sqrt(squares);
    }
    return (1 + (double)above) / (1 + (double)draws);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The directions of the folds, their mean and how well they agree. */
static bool direct(struct scoring_concept *s, double *direction, struct err *err)
{
    int64_t p = s->space->p;
    int folds = s->bases->n_folds;
    double *one = malloc((size_t)p * sizeof *one + 1);
    bool ok = one || err_memory(err, "a direction");
    memset(direction, 0, (size_t)p * sizeof *direction);
    for (int fold = 0; ok && fold < folds; fold++) {
        ok = concept_basis_direction(s->space, &s->bases->folds[fold], s->weights[fold], one, err);
        for (int64_t j = 0; ok && j < p; j++)
            direction[j] += one[j];
    }
    free(one);
    /* |sum of unit vectors|^2 = folds + the cosines of all pairs */
    double squares = product_dot(direction, direction, p), length = sqrt(squares);
    s->out->agreement = folds > 1 ? (squares - folds) / ((double)folds * (folds - 1)) : NAN;
    for (int64_t j = 0; length > 0 && j < p; j++)
        direction[j] /= length;
    qsort(s->penalties, (size_t)folds, sizeof *s->penalties, by_size);
    s->out->penalty = s->penalties[(folds - 1) / 2];
    return ok;
}

/* --- all --- */

static bool make_work(struct scoring_concept *s, int workers, struct err *err)
{
    int64_t m = 0, t = 0, rank = 0;
    size_t versions = (size_t)s->options->permutations + 1;
    for (int fold = 0; fold < s->bases->n_folds; fold++) {
        const struct concept_basis *basis = &s->bases->folds[fold];
        m = basis->m > m ? basis->m : m;
        t = basis->t > t ? basis->t : t;
        rank = basis->rank > rank ? basis->rank : rank;
        s->weights[fold] = malloc((size_t)basis->rank * sizeof(double) + 1);
        if (!s->weights[fold])
            return err_memory(err, "a fit");
    }
    s->works = calloc((size_t)workers, sizeof *s->works);
    s->permuted = calloc((size_t)workers, sizeof *s->permuted);
    s->quality = malloc(versions * sizeof *s->quality);
    s->mean_s = malloc(versions * sizeof *s->mean_s);
    bool ok = (s->works && s->permuted && s->quality && s->mean_s) || err_memory(err, "fits");
    for (int i = 0; ok && i < workers; i++) {
        s->permuted[i] = malloc((size_t)(s->sample->n * COLUMNS) * sizeof(double));
        ok = concept_fit_work_new(m, t, rank, &s->works[i], err) &&
             (s->permuted[i] || err_memory(err, "permutations"));
    }
    return ok;
}

static void free_work(struct scoring_concept *s, int workers)
{
    for (int i = 0; i < workers; i++) {
        if (s->works)
            concept_fit_work_free(&s->works[i]);
        if (s->permuted)
            free(s->permuted[i]);
    }
    for (int fold = 0; fold < CONCEPT_MOST_FOLDS; fold++)
        free(s->weights[fold]);
    free(s->works);
    free(s->permuted);
    free(s->quality);
    free(s->mean_s);
    permuter_free(&s->permuter);
}

static bool score_all(struct scoring_concept *s, const struct ctx *ctx, double *direction,
                      struct err *err)
{
    int64_t versions = 1 + s->options->permutations;
    if (!pool_for(ctx->pool, (versions + COLUMNS - 1) / COLUMNS, score_versions, s, ctx->stop, err))
        return false;
    measure(s);
    s->out->p_quality = share_above(s->quality, s->options->permutations, false);
    s->out->p_permuted = share_above(s->mean_s, s->options->permutations, true);
    s->out->p_random = against_random(s);
    return direct(s, direction, err);
}

bool concept_score(const struct concept_sample *sample, const struct concept_score_options *options,
                   const struct concept_space *space, struct concept_bases *bases,
                   const struct ctx *ctx, enum concept_state *state, struct concept_score *out,
                   double *sensitivities, double *direction, struct err *err)
{
    *out = (struct concept_score){ .folds = sample->n_folds };
    struct scoring_concept s = { .sample = sample,
                                 .options = options,
                                 .space = space,
                                 .bases = bases,
                                 .sensitivities = sensitivities,
                                 .out = out };
    if (!permuter_new(sample->values, sample->patient, sample->n, &s.permuter, err))
        return false;
    out->n = s.permuter.n;
    out->patients = s.permuter.patients;
    *state = concept_can_score(sample);
    bool ok = *state != CONCEPT_SCORED || concept_bases_need(space, sample, ctx, bases, err);
    for (int fold = 0; ok && *state == CONCEPT_SCORED && fold < bases->n_folds; fold++)
        if (bases->folds[fold].rank == 0)
            *state = CONCEPT_DEAD_LAYER;
    if (ok && *state == CONCEPT_SCORED) {
        for (int64_t i = 0; i < sample->n; i++)
            sensitivities[i] = NAN;
        ok = make_work(&s, pool_workers(ctx->pool), err) && score_all(&s, ctx, direction, err);
    }
    free_work(&s, pool_workers(ctx->pool));
    return ok;
}
