/* concept_fit.c: see concept_fit.h. With u = units, s = variances and z = u'(y - mean), ridge with
 * the penalty l has the weights z sqrt(s) / (s + l). */
#include "explain/concept_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "explain/products.h"

#define COLUMNS CONCEPT_COLUMNS
#define LOGISTIC_STEPS 1000
#define LOGISTIC_TOLERANCE 1e-7 /* change of the log odds in a step */

bool concept_fit_work_new(int64_t m, int64_t t, int64_t rank, struct concept_fit_work *out,
                          struct err *err)
{
    size_t row = COLUMNS * sizeof(double);
    *out = (struct concept_fit_work){ .values = malloc((size_t)m * row + 1),
                                      .weights = malloc((size_t)rank * row + 1),
                                      .predicted = malloc((size_t)t * row + 1),
                                      .moved = malloc((size_t)t * row + 1),
                                      .axes = malloc((size_t)rank * row + 1),
                                      .momentum = malloc((size_t)rank * row + 1),
                                      .before = malloc((size_t)rank * row + 1),
                                      .patches = malloc((size_t)m * row + 1) };
    return (out->values && out->weights && out->predicted && out->moved && out->axes &&
            out->momentum && out->before && out->patches) ||
           err_memory(err, "a fit");
}

void concept_fit_work_free(struct concept_fit_work *work)
{
    free(work->values);
    free(work->weights);
    free(work->predicted);
    free(work->moved);
    free(work->axes);
    free(work->momentum);
    free(work->before);
    free(work->patches);
    *work = (struct concept_fit_work){ 0 };
}

static double mean_variance(const struct concept_basis *basis)
{
    double sum = 0;
    for (int64_t j = 0; j < basis->rank; j++)
        sum += basis->variances[j];
    return basis->rank ? sum / (double)basis->rank : 0;
}

/* --- numbers --- */

/* Generalised cross-validation: the mean square error / (1 - degrees of freedom / m)^2. */
static double validation_error(const struct concept_basis *basis, const double *axes, int column,
                               double squares, double penalty)
{
    double freedom = 1, left = squares, m = (double)basis->m;
    for (int64_t j = 0; j < basis->rank; j++) {
        double z = axes[j * COLUMNS + column],
               kept = basis->variances[j] / (basis->variances[j] + penalty);
        freedom += kept;
        left -= z * z * (1 - (1 - kept) * (1 - kept));
    }
    double rest = 1 - freedom / m;
    return rest > 1e-9 ? left / m / (rest * rest) : INFINITY;
}

/* The penalty / mean variance for a column; squares: of its values around their mean. */
static double choose_penalty(const struct concept_basis *basis, const double *axes, int column,
                             double squares, double mean)
{
    double best = INFINITY, chosen = 1;
    for (int i = CONCEPT_PENALTIES - 1; i >= 0; i--) {
        double ratio = pow(10, -4 + 0.5 * i);
        double error = validation_error(basis, axes, column, squares, ratio * mean);
        if (error < best) {
            best = error;
            chosen = ratio;
        }
    }
    return chosen;
}

/* The first axes with the share of the variance, no more than half the patches. */
static int64_t first_axes(const struct concept_basis *basis)
{
    double all = mean_variance(basis) * (double)basis->rank, sum = 0;
    int64_t most = basis->m / 2 < basis->rank ? basis->m / 2 : basis->rank, count = 0;
    while (count < most && sum < CONCEPT_PCA_SHARE * all)
        sum += basis->variances[count++];
    return count;
}

/* Intercepts are the means of the columns, which are subtracted; axes = units' values; penalties.
 */
static void project(const struct concept_basis *basis, const struct concept_fit_options *options,
                    struct concept_fit_work *work)
{
    double mean = mean_variance(basis), squares[COLUMNS] = { 0 };
    memset(work->intercept, 0, sizeof work->intercept);
    for (int64_t i = 0; i < basis->m; i++)
        for (int column = 0; column < COLUMNS; column++)
            work->intercept[column] += work->values[i * COLUMNS + column] / (double)basis->m;
    for (int64_t i = 0; i < basis->m; i++)
        for (int column = 0; column < COLUMNS; column++) {
            double value = work->values[i * COLUMNS + column] - work->intercept[column];
            work->patches[i * COLUMNS + column] = value;
            squares[column] += value * value;
        }
    product_matrix(basis->units_by_axis, work->patches, basis->rank, basis->m, COLUMNS, work->axes);
    for (int column = 0; column < COLUMNS; column++)
        work->penalty[column] =
            options->ridge > 0 ? options->ridge
                               : choose_penalty(basis, work->axes, column, squares[column], mean);
}

void concept_fit_numbers(const struct concept_basis *basis,
                         const struct concept_fit_options *options, struct concept_fit_work *work)
{
    double mean = mean_variance(basis);
    int64_t kept = options->pca ? first_axes(basis) : basis->rank;
    project(basis, options, work);
    for (int64_t j = 0; j < basis->rank; j++)
        for (int column = 0; column < COLUMNS; column++) {
            double s = basis->variances[j], penalty = work->penalty[column] * mean;
            double factor = j >= kept ? 0 : sqrt(s) / (s + (options->pca ? 0 : penalty));
            work->weights[j * COLUMNS + column] = work->axes[j * COLUMNS + column] * factor;
        }
    if (options->pca)
        memset(work->penalty, 0, sizeof work->penalty);
    product_matrix(basis->test_scores, work->weights, basis->t, basis->rank, COLUMNS,
                   work->predicted);
    for (int64_t i = 0; i < basis->t; i++)
        for (int column = 0; column < COLUMNS; column++)
            work->predicted[i * COLUMNS + column] += work->intercept[column];
}

/* --- yes or no --- */

/* values - probabilities at the weights and intercepts -> patches; their sums. */
static void residuals(const struct concept_basis *basis, const double *weights,
                      struct concept_fit_work *work, double sums[COLUMNS])
{
    int64_t rank = basis->rank;
    for (int64_t j = 0; j < rank; j++)
        for (int column = 0; column < COLUMNS; column++)
            work->axes[j * COLUMNS + column] =
                weights[j * COLUMNS + column] * sqrt(basis->variances[j]);
    product_matrix(basis->units, work->axes, basis->m, rank, COLUMNS, work->patches);
    memset(sums, 0, COLUMNS * sizeof *sums);
    for (int64_t i = 0; i < basis->m; i++)
        for (int column = 0; column < COLUMNS; column++) {
            double *at = &work->patches[i * COLUMNS + column];
            *at = work->values[i * COLUMNS + column] -
                  1 / (1 + exp(-(*at + work->intercept[column])));
            sums[column] += *at;
        }
}

/* One step from the point `momentum`: the curvature of the loss is at most s / 4 + penalty along
 * an axis, so the step never overshoots. The new point replaces weights, the old one is in before.
 * Returns the largest change, in units of the log odds. */
static double logistic_step(const struct concept_basis *basis, struct concept_fit_work *work,
                            double mean)
{
    double sums[COLUMNS], largest = 0;
    residuals(basis, work->momentum, work, sums);
    product_matrix(basis->units_by_axis, work->patches, basis->rank, basis->m, COLUMNS, work->axes);
    memcpy(work->before, work->weights, (size_t)(basis->rank * COLUMNS) * sizeof(double));
    for (int64_t j = 0; j < basis->rank; j++)
        for (int column = 0; column < COLUMNS; column++) {
            int64_t at = j * COLUMNS + column;
            double s = basis->variances[j], penalty = work->penalty[column] * mean / 4;
            double slope = sqrt(s) * work->axes[at] - penalty * work->momentum[at];
            work->weights[at] = work->momentum[at] + slope / (s / 4 + penalty);
            double change = fabs(work->weights[at] - work->before[at]) * sqrt(s / (double)basis->m);
            if (change > largest)
                largest = change;
        }
    for (int column = 0; column < COLUMNS; column++) {
        double change = 4 * sums[column] / (double)basis->m;
        work->intercept[column] += change;
        if (fabs(change) > largest)
            largest = fabs(change);
    }
    return largest;
}

void concept_fit_answers(const struct concept_basis *basis,
                         const struct concept_fit_options *options, struct concept_fit_work *work)
{
    double mean = mean_variance(basis), before = INFINITY;
    size_t bytes = (size_t)(basis->rank * COLUMNS) * sizeof(double);
    project(basis, options, work);
    for (int column = 0; column < COLUMNS; column++) {
        double share = work->intercept[column];
        work->intercept[column] = share > 0 && share < 1 ? log(share / (1 - share)) : 0;
    }
    memset(work->weights, 0, bytes);
    memset(work->momentum, 0, bytes);
    for (int step = 0, since = 0; step < LOGISTIC_STEPS; step++, since++) {
        double change = logistic_step(basis, work, mean);
        if (change < LOGISTIC_TOLERANCE)
            break;
        if (change > before) /* too much momentum: start over from here */
            since = 0;
        before = change;
        for (int64_t i = 0; i < basis->rank * COLUMNS; i++)
            work->momentum[i] = work->weights[i] + (double)since / (since + 3.0) *
                                                       (work->weights[i] - work->before[i]);
    }
    product_matrix(basis->test_scores, work->weights, basis->t, basis->rank, COLUMNS,
                   work->predicted);
    for (int64_t i = 0; i < basis->t; i++)
        for (int column = 0; column < COLUMNS; column++)
            work->predicted[i * COLUMNS + column] += work->intercept[column];
}
