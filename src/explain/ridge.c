/* ridge.c: the normal equations of centred data, (Xc' W Xc + alpha I) coef = Xc' W yc, by Cholesky;
 * with more columns than rows their dual: coef = Xc' s a, (s Xc Xc' s + alpha I) a = s yc, where s
 * is the square root of the weights. Rows are centred as they are needed: x is never copied. */
#include "explain/ridge.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* The data, its weighted means, and the system of n or p equations. */
struct ridge {
    const double *x, *weights; /* [n, p]; [n] or NULL */
    int64_t n, p, targets, size;
    bool dual;
    double *x_mean, *y_mean; /* [p], [targets] */
    double *row;             /* [p] */
    double *system;          /* [size, size], the lower triangle */
    double *right;           /* [targets, size] */
};

static double weight_of(const struct ridge *r, int64_t i)
{
    return r->weights ? r->weights[i] : 1;
}

static const double *row_of(const struct ridge *r, int64_t i)
{
    return r->x + i * r->p;
}

/* Of column j of y the centred value of row i. */
static double centred_y(const struct ridge *r, const double *y, int64_t i, int64_t j)
{
    return y[i * r->targets + j] - r->y_mean[j];
}

static void centre_row(const struct ridge *r, int64_t i)
{
    const double *x = row_of(r, i);
    for (int64_t k = 0; k < r->p; k++)
        r->row[k] = x[k] - r->x_mean[k];
}

/* a . (b - mean). Four sums, so that additions need not wait for each other. */
static double dot_centred(const double *a, const double *b, const double *mean, int64_t p)
{
    double sums[4] = { 0 };
    int64_t k = 0;
    for (; k + 4 <= p; k += 4)
        for (int lane = 0; lane < 4; lane++)
            sums[lane] += a[k + lane] * (b[k + lane] - mean[k + lane]);
    for (; k < p; k++)
        sums[0] += a[k] * (b[k] - mean[k]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static bool all_finite(const double *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static bool check_weights(const struct ridge *r, struct err *err)
{
    double total = 0;
    for (int64_t i = 0; i < r->n; i++) {
        double weight = weight_of(r, i);
        if (!(weight >= 0) || !isfinite(weight))
            return err_set(err, ERR_FORMAT, "ridge: weight %g of row %lld is not 0 or more", weight,
                           (long long)i);
        total += weight;
    }
    return total > 0 || err_set(err, ERR_FORMAT, "ridge: all weights are 0");
}

static bool check(const struct ridge *r, const double *y, double alpha, struct err *err)
{
    if (r->n < 1 || r->p < 1)
        return err_set(err, ERR_FORMAT,
                       "ridge: %lld rows of %lld columns: at least one of each "
                       "is needed",
                       (long long)r->n, (long long)r->p);
    if (!(alpha >= 0) || !isfinite(alpha))
        return err_set(err, ERR_USAGE, "ridge: the penalty %g is not 0 or more", alpha);
    if (!all_finite(r->x, r->n * r->p) || !all_finite(y, r->n * r->targets))
        return err_set(err, ERR_FORMAT, "ridge: a value is not a finite number");
    return check_weights(r, err);
}

static bool allocate(struct ridge *r, struct err *err)
{
    size_t size = (size_t)r->size, targets = (size_t)r->targets;
    r->x_mean = calloc((size_t)r->p, sizeof(double));
    r->row = calloc((size_t)r->p, sizeof(double));
    r->y_mean = calloc(targets, sizeof(double));
    r->right = calloc(targets, size * sizeof(double));
    r->system = calloc(size, size * sizeof(double));
    if (!r->x_mean || !r->row || !r->y_mean || !r->right || !r->system)
        return err_memory(err, "a regression");
    return true;
}

static void release(struct ridge *r)
{
    free(r->x_mean);
    free(r->row);
    free(r->y_mean);
    free(r->right);
    free(r->system);
}

static void take_means(struct ridge *r, const double *y)
{
    double total = 0;
    for (int64_t i = 0; i < r->n; i++) {
        double weight = weight_of(r, i);
        const double *x = row_of(r, i);
        total += weight;
        for (int64_t k = 0; k < r->p; k++)
            r->x_mean[k] += weight * x[k];
        for (int64_t j = 0; j < r->targets; j++)
            r->y_mean[j] += weight * y[i * r->targets + j];
    }
    for (int64_t k = 0; k < r->p; k++)
        r->x_mean[k] /= total;
    for (int64_t j = 0; j < r->targets; j++)
        r->y_mean[j] /= total;
}

static void add_row_primal(struct ridge *r, const double *y, int64_t i)
{
    double weight = weight_of(r, i);
    for (int64_t a = 0; a < r->p; a++) {
        double scaled = weight * r->row[a], *line = r->system + a * r->p;
        if (scaled == 0)
            continue;
        for (int64_t b = 0; b <= a; b++)
            line[b] += scaled * r->row[b];
        for (int64_t j = 0; j < r->targets; j++)
            r->right[j * r->p + a] += scaled * centred_y(r, y, i, j);
    }
}

static void add_row_dual(struct ridge *r, const double *y, int64_t i)
{
    double root = sqrt(weight_of(r, i)), *line = r->system + i * r->n;
    for (int64_t b = 0; b <= i; b++)
        line[b] = root * sqrt(weight_of(r, b)) * dot_centred(r->row, row_of(r, b), r->x_mean, r->p);
    for (int64_t j = 0; j < r->targets; j++)
        r->right[j * r->n + i] = root * centred_y(r, y, i, j);
}

static void build(struct ridge *r, const double *y, double alpha)
{
    take_means(r, y);
    for (int64_t i = 0; i < r->n; i++) {
        centre_row(r, i);
        if (r->dual)
            add_row_dual(r, y, i);
        else
            add_row_primal(r, y, i);
    }
    for (int64_t a = 0; a < r->size; a++)
        r->system[a * r->size + a] += alpha;
}

/* The lower triangle in place. A pivot that is nothing but rounding of its column is a failure. */
static bool factorize(double *system, int64_t size)
{
    for (int64_t i = 0; i < size; i++) {
        double *line = system + i * size, whole = line[i];
        for (int64_t j = 0; j <= i; j++) {
            const double *other = system + j * size;
            double sum = line[j];
            for (int64_t k = 0; k < j; k++)
                sum -= line[k] * other[k];
            if (j < i)
                line[j] = sum / other[j];
            else if (sum > whole * (double)size * 1e-15)
                line[i] = sqrt(sum);
            else
                return false;
        }
    }
    return true;
}

static void solve(const double *factor, int64_t size, double *right)
{
    for (int64_t i = 0; i < size; i++) {
        for (int64_t k = 0; k < i; k++)
            right[i] -= factor[i * size + k] * right[k];
        right[i] /= factor[i * size + i];
    }
    for (int64_t i = size - 1; i >= 0; i--) {
        right[i] /= factor[i * size + i];
        for (int64_t k = 0; k < i; k++)
            right[k] -= factor[i * size + k] * right[i];
    }
}

/* coef = Xc' s a, all targets in one pass over x. */
static void coefficients_of_dual(struct ridge *r, double *coef)
{
    for (int64_t k = 0; k < r->targets * r->p; k++)
        coef[k] = 0;
    for (int64_t i = 0; i < r->n; i++) {
        double root = sqrt(weight_of(r, i));
        centre_row(r, i);
        for (int64_t j = 0; j < r->targets; j++) {
            double scaled = root * r->right[j * r->n + i], *out = coef + j * r->p;
            for (int64_t k = 0; k < r->p; k++)
                out[k] += scaled * r->row[k];
        }
    }
}

static void read_answer(struct ridge *r, double *coef, double *intercept)
{
    for (int64_t j = 0; j < r->targets; j++)
        solve(r->system, r->size, r->right + j * r->size);
    if (r->dual)
        coefficients_of_dual(r, coef);
    for (int64_t j = 0; j < r->targets; j++) {
        intercept[j] = r->y_mean[j];
        for (int64_t k = 0; k < r->p; k++) {
            if (!r->dual)
                coef[j * r->p + k] = r->right[j * r->p + k];
            intercept[j] -= coef[j * r->p + k] * r->x_mean[k];
        }
    }
}

bool ridge_fit_targets(const double *x, const double *y, const double *weights, int64_t n,
                       int64_t p, int64_t targets, double alpha, double *coef, double *intercept,
                       struct err *err)
{
    struct ridge r = { .x = x, .weights = weights, .n = n, .p = p, .targets = targets };
    r.dual = p > n;
    r.size = r.dual ? n : p;
    if (!check(&r, y, alpha, err))
        return false;
    bool ok = allocate(&r, err);
    if (ok) {
        build(&r, y, alpha);
        ok = factorize(r.system, r.size) ||
             err_set(err, ERR_FORMAT,
                     "ridge: columns depend on each other (%lld rows, %lld "
                     "columns): use a penalty above %g",
                     (long long)n, (long long)p, alpha);
    }
    if (ok)
        read_answer(&r, coef, intercept);
    release(&r);
    return ok;
}

bool ridge_fit(const double *x, const double *y, const double *weights, int64_t n, int64_t p,
               double alpha, double *coef, double *intercept, struct err *err)
{
    return ridge_fit_targets(x, y, weights, n, p, 1, alpha, coef, intercept, err);
}
