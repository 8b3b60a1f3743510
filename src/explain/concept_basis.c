/* concept_basis.c: see concept_basis.h. With fewer channels than training patches the axes are the
 * eigenvectors of the p x p matrix of the centred activations; with more, those of the m x m matrix
 * of the patches give the same axes. */
#include "explain/concept_basis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "explain/products.h"
#include "explain/symmetric.h"

#define ROWS_AT_ONCE 16      /* of a product of activations: a piece of work for a thread */
#define LEAST_VARIANCE 1e-10 /* relative to the largest; what is below is rounding */
#define LARGE_P(n, p) (2 * (p) > (n)) /* folds of few patients may have half of the patches */

static void centre_columns(float *values, int64_t n, int64_t p, double *means)
{
    memset(means, 0, (size_t)p * sizeof *means);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < p; j++)
            means[j] += (double)values[i * p + j];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < p; j++)
            values[i * p + j] -= (float)(means[j] / (double)n);
}

static bool multiply_rows(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct concept_space *space = arg;
    int64_t n = space->n, p = space->p, first = index * ROWS_AT_ONCE;
    int64_t count = n - first < ROWS_AT_ONCE ? n - first : ROWS_AT_ONCE;
    product_rows(space->activations + first * p, space->activations, count, n, p, n,
                 space->gram + first * n);
    product_rows(space->gradients + first * p, space->activations, count, n, p, n,
                 space->cross + first * n);
    return true;
}

bool concept_space_make(int64_t n, int64_t p, float *activations, float *gradients,
                        const struct ctx *ctx, struct concept_space *out, struct err *err)
{
    *out = (struct concept_space){
        .n = n, .p = p, .activations = activations, .gradients = gradients
    };
    double *means = malloc((size_t)p * sizeof *means + 1);
    if (!means)
        return err_memory(err, "activations");
    centre_columns(activations, n, p, means);
    free(means);
    if (!LARGE_P(n, p))
        return true;
    size_t bytes = (size_t)(n * n) * sizeof(double);
    out->gram = malloc(bytes);
    out->cross = malloc(bytes);
    if (!out->gram || !out->cross)
        return err_memory(err, "products of activations");
    return pool_for(ctx->pool, (n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, multiply_rows, out, ctx->stop,
                    err);
}

void concept_space_free(struct concept_space *space)
{
    free(space->activations);
    free(space->gradients);
    free(space->gram);
    free(space->cross);
    *space = (struct concept_space){ 0 };
}

/* --- a fold --- */

static bool split(const struct concept_space *space, const int *fold, int which,
                  struct concept_basis *basis, struct err *err)
{
    size_t room = (size_t)space->n + 1;
    basis->train = malloc(room * sizeof *basis->train);
    basis->test = malloc(room * sizeof *basis->test);
    if (!basis->train || !basis->test)
        return err_memory(err, "the patches of a fold");
    for (int64_t i = 0; i < space->n; i++) {
        if (fold[i] == which)
            basis->test[basis->t++] = i;
        else if (fold[i] >= 0)
            basis->train[basis->m++] = i;
    }
    return true;
}

/* How many axes carry more than rounding, given variances of `all` axes, descending. */
static int64_t rank_of(const double *variances, int64_t all)
{
    int64_t rank = 0;
    while (rank < all && variances[rank] > LEAST_VARIANCE * variances[0])
        rank++;
    return all > 0 && variances[0] > 0 ? rank : 0;
}

static bool make_room(struct concept_basis *basis, const double *variances, int64_t all,
                      struct err *err)
{
    int64_t rank = basis->rank = rank_of(variances, all);
    basis->variances = malloc((size_t)rank * sizeof(double) + 1);
    basis->units = malloc((size_t)(basis->m * rank) * sizeof(double) + 1);
    basis->units_by_axis = malloc((size_t)(basis->m * rank) * sizeof(double) + 1);
    basis->test_scores = malloc((size_t)(basis->t * rank) * sizeof(double) + 1);
    basis->test_gradients = malloc((size_t)(basis->t * rank) * sizeof(double) + 1);
    if (!basis->variances || !basis->units || !basis->units_by_axis || !basis->test_scores ||
        !basis->test_gradients)
        return err_memory(err, "the principal axes of activations");
    memcpy(basis->variances, variances, (size_t)rank * sizeof(double));
    return true;
}

/* units from units_by_axis. */
static void lay_by_patch(struct concept_basis *basis)
{
    for (int64_t axis = 0; axis < basis->rank; axis++)
        for (int64_t i = 0; i < basis->m; i++)
            basis->units[i * basis->rank + axis] = basis->units_by_axis[axis * basis->m + i];
}

/* --- few channels --- */

/* Rows `which` [count] of values [n, p], less the means (may be NULL), as doubles. */
static void gather(const float *values, int64_t p, const int64_t *which, int64_t count,
                   const double *means, double *out)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < p; j++)
            out[i * p + j] = (double)values[which[i] * p + j] - (means ? means[j] : 0);
}

static void transpose(const double *from, int64_t rows, int64_t columns, double *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

struct primal_work {
    double *means;            /* [p] of the training patches */
    double *rows, *columns;   /* [max(m, t), p] and [p, max(m, t)] */
    double *matrix, *vectors; /* [p, p] */
    double *values;           /* [p] */
};

/* The axes are rows of work->vectors. */
static bool primal_axes(const struct concept_space *space, const struct concept_basis *basis,
                        struct primal_work *work, struct err *err)
{
    int64_t p = space->p, m = basis->m;
    memset(work->means, 0, (size_t)p * sizeof(double));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < p; j++)
            work->means[j] += (double)space->activations[basis->train[i] * p + j] / (double)m;
    gather(space->activations, p, basis->train, m, work->means, work->rows);
    transpose(work->rows, m, p, work->columns);
    product_matrix(work->columns, work->rows, p, m, p, work->matrix);
    return symmetric_eigen(work->matrix, p, work->values, work->vectors, err);
}

static bool primal(const struct concept_space *space, struct concept_basis *basis,
                   struct primal_work *work, struct err *err)
{
    int64_t p = space->p, m = basis->m, t = basis->t;
    if (!primal_axes(space, basis, work, err) || !make_room(basis, work->values, p, err))
        return false;
    int64_t rank = basis->rank;
    product_matrix(work->vectors, work->columns, rank, p, m, basis->units_by_axis);
    for (int64_t axis = 0; axis < rank; axis++)
        for (int64_t i = 0; i < m; i++)
            basis->units_by_axis[axis * m + i] /= sqrt(basis->variances[axis]);
    lay_by_patch(basis);
    transpose(work->vectors, rank, p, work->matrix); /* [p, rank] */
    gather(space->activations, p, basis->test, t, work->means, work->rows);
    product_matrix(work->rows, work->matrix, t, p, rank, basis->test_scores);
    gather(space->gradients, p, basis->test, t, NULL, work->rows);
    product_matrix(work->rows, work->matrix, t, p, rank, basis->test_gradients);
    return true;
}

static bool primal_make(const struct concept_space *space, struct concept_basis *basis,
                        struct err *err)
{
    size_t p = (size_t)space->p, most = (size_t)(basis->m > basis->t ? basis->m : basis->t);
    struct primal_work work = { 0 };
    work.means = malloc(p * sizeof(double) + 1);
    work.values = malloc(p * sizeof(double) + 1);
    work.rows = malloc(most * p * sizeof(double) + 1);
    work.columns = malloc(most * p * sizeof(double) + 1);
    work.matrix = malloc(p * p * sizeof(double) + 1);
    work.vectors = malloc(p * p * sizeof(double) + 1);
    bool ok = work.means && work.values && work.rows && work.columns && work.matrix && work.vectors;
    ok = ok ? primal(space, basis, &work, err) : err_memory(err, "the activations of a fold");
    free(work.means);
    free(work.values);
    free(work.rows);
    free(work.columns);
    free(work.matrix);
    free(work.vectors);
    return ok;
}

/* --- more channels than patches --- */

struct dual_work {
    double *means;  /* [m]: of the rows of the training patches' matrix */
    double *matrix; /* [m, m] */
    double *vectors;
    double *values;
    double *tested; /* [t, m] */
    double *axes;   /* [m, rank]: units / sqrt(variances) */
};

/* (x_i - mean).(x_j - mean) for i, j of the training patches. */
static void centre_gram(const struct concept_space *space, const struct concept_basis *basis,
                        struct dual_work *work)
{
    int64_t n = space->n, m = basis->m;
    double all = 0;
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += work->matrix[i * m + j] = space->gram[basis->train[i] * n + basis->train[j]];
        work->means[i] = sum / (double)m;
        all += work->means[i] / (double)m;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            work->matrix[i * m + j] += all - work->means[i] - work->means[j];
}

/* Rows of the test patches in `products` [n, n], times the centred training patches. offset: the
 * test patches are centred too (activations; gradients are not). */
static void centre_tested(const struct concept_space *space, const struct concept_basis *basis,
                          const double *products, bool centred, struct dual_work *work)
{
    int64_t n = space->n, m = basis->m;
    double all = 0;
    for (int64_t j = 0; j < m; j++)
        all += work->means[j] / (double)m;
    for (int64_t i = 0; i < basis->t; i++) {
        const double *from = products + basis->test[i] * n;
        double *row = work->tested + i * m, mean = 0;
        for (int64_t j = 0; j < m; j++)
            mean += (row[j] = from[basis->train[j]]) / (double)m;
        for (int64_t j = 0; j < m; j++)
            row[j] -= mean + (centred ? work->means[j] - all : 0);
    }
}

static bool dual(const struct concept_space *space, struct concept_basis *basis,
                 struct dual_work *work, struct err *err)
{
    int64_t m = basis->m;
    centre_gram(space, basis, work);
    if (!symmetric_eigen(work->matrix, m, work->values, work->vectors, err) ||
        !make_room(basis, work->values, m, err))
        return false;
    int64_t rank = basis->rank;
    memcpy(basis->units_by_axis, work->vectors, (size_t)(rank * m) * sizeof(double));
    lay_by_patch(basis);
    for (int64_t i = 0; i < m; i++)
        for (int64_t axis = 0; axis < rank; axis++)
            work->axes[i * rank + axis] =
                basis->units[i * rank + axis] / sqrt(basis->variances[axis]);
    centre_tested(space, basis, space->gram, true, work);
    product_matrix(work->tested, work->axes, basis->t, m, rank, basis->test_scores);
    centre_tested(space, basis, space->cross, false, work);
    product_matrix(work->tested, work->axes, basis->t, m, rank, basis->test_gradients);
    return true;
}

static bool dual_make(const struct concept_space *space, struct concept_basis *basis,
                      struct err *err)
{
    size_t m = (size_t)basis->m, t = (size_t)basis->t;
    struct dual_work work = { 0 };
    work.means = malloc(m * sizeof(double) + 1);
    work.values = malloc(m * sizeof(double) + 1);
    work.matrix = malloc(m * m * sizeof(double) + 1);
    work.vectors = malloc(m * m * sizeof(double) + 1);
    work.axes = malloc(m * m * sizeof(double) + 1);
    work.tested = malloc(m * t * sizeof(double) + 1);
    bool ok = work.means && work.values && work.matrix && work.vectors && work.axes && work.tested;
    ok = ok ? dual(space, basis, &work, err) : err_memory(err, "the activations of a fold");
    free(work.means);
    free(work.values);
    free(work.matrix);
    free(work.vectors);
    free(work.axes);
    free(work.tested);
    return ok;
}

bool concept_basis_make(const struct concept_space *space, const int *fold, int which,
                        struct concept_basis *out, struct err *err)
{
    *out = (struct concept_basis){ 0 };
    if (!split(space, fold, which, out, err))
        return false;
    bool few = !space->gram || space->p <= out->m;
    return few ? primal_make(space, out, err) : dual_make(space, out, err);
}

void concept_basis_free(struct concept_basis *basis)
{
    free(basis->train);
    free(basis->test);
    free(basis->variances);
    free(basis->units);
    free(basis->units_by_axis);
    free(basis->test_scores);
    free(basis->test_gradients);
    *basis = (struct concept_basis){ 0 };
}

bool concept_basis_direction(const struct concept_space *space, const struct concept_basis *basis,
                             const double *weights, double *direction, struct err *err)
{
    int64_t p = space->p, rank = basis->rank;
    double length = sqrt(product_dot(weights, weights, rank));
    double *scaled = malloc((size_t)rank * sizeof *scaled + 1);
    if (!scaled)
        return err_memory(err, "a direction");
    memset(direction, 0, (size_t)p * sizeof *direction);
    for (int64_t axis = 0; axis < rank; axis++)
        scaled[axis] = length > 0 ? weights[axis] / length / sqrt(basis->variances[axis]) : 0;
    for (int64_t i = 0; i < basis->m; i++) {
        double share = product_dot(basis->units + i * rank, scaled, rank);
        const float *row = space->activations + basis->train[i] * p;
        for (int64_t j = 0; j < p; j++)
            direction[j] += share * (double)row[j];
    }
    free(scaled);
    return true;
}
