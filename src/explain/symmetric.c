/* symmetric.c: see symmetric.h. All inner loops are along rows. */
#include "explain/symmetric.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "explain/products.h"

#define MOST_TURNS 60 /* of QL for one eigenvalue; a few are usual */

/* The reflection I - scale v v' that maps x [n] to a multiple of its first unit vector: v
 * overwrites x. Returns scale, 0 if x is such a multiple already; *length is the multiple. */
static double reflect(double *x, int64_t n, double *length)
{
    double rest = product_dot(x + 1, x + 1, n - 1);
    *length = x[0];
    if (rest <= 0)
        return 0;
    double norm = sqrt(x[0] * x[0] + rest);
    *length = x[0] > 0 ? -norm : norm;
    x[0] -= *length;
    return 2 / (x[0] * x[0] + rest);
}

/* matrix = Q T Q' with T tridiagonal: its diagonal [n], the elements below it [n - 1]. The
 * reflections stay in the rows of the matrix, right of the diagonal, with scales [n]. */
static void tridiagonalize(double *matrix, int64_t n, double *diagonal, double *below,
                           double *scales, double *work)
{
    for (int64_t k = 0; k < n - 1; k++) {
        int64_t rest = n - k - 1;
        double *v = matrix + k * n + k + 1, *corner = matrix + (k + 1) * n + k + 1;
        diagonal[k] = matrix[k * n + k];
        scales[k] = reflect(v, rest, &below[k]);
        if (!(scales[k] > 0))
            continue;
        for (int64_t i = 0; i < rest; i++)
            work[i] = scales[k] * product_dot(corner + i * n, v, rest);
        product_add(-scales[k] / 2 * product_dot(work, v, rest), v, rest, work);
        for (int64_t i = 0; i < rest; i++) {
            product_add(-v[i], work, rest, corner + i * n);
            product_add(-work[i], v, rest, corner + i * n);
        }
    }
    diagonal[n - 1] = matrix[n * n - 1];
}

/* Q' from its reflections. */
static void reflections_to_rows(const double *matrix, int64_t n, const double *scales, double *rows)
{
    memset(rows, 0, (size_t)(n * n) * sizeof *rows);
    for (int64_t i = 0; i < n; i++)
        rows[i * n + i] = 1;
    for (int64_t k = n - 2; k >= 0; k--) {
        int64_t rest = n - k - 1;
        const double *v = matrix + k * n + k + 1;
        if (!(scales[k] > 0))
            continue;
        for (int64_t i = k + 1; i < n; i++) {
            double *row = rows + i * n + k + 1;
            product_add(-scales[k] * product_dot(row, v, rest), v, rest, row);
        }
    }
}

/* One implicit step of QL on [first, last] of T, from the bottom up. */
static void ql_step(double *diagonal, double *below, double *rows, int64_t n, int64_t first,
                    int64_t last)
{
    double g = (diagonal[first + 1] - diagonal[first]) / (2 * below[first]);
    double r = hypot(g, 1);
    double s = 1, c = 1, shift = 0;
    g = diagonal[last] - diagonal[first] + below[first] / (g + (g >= 0 ? r : -r));
    for (int64_t i = last - 1; i >= first; i--) {
        double f = s * below[i], b = c * below[i];
        r = hypot(f, g);
        below[i + 1] = r;
        if (r == 0) { /* T falls apart here: what is left is done by the next step */
            diagonal[i + 1] -= shift;
            below[last] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = diagonal[i + 1] - shift;
        r = (diagonal[i] - g) * s + 2 * c * b;
        shift = s * r;
        diagonal[i + 1] = g + shift;
        g = c * r - b;
        product_rotate(c, s, n, rows + i * n, rows + (i + 1) * n);
    }
    diagonal[first] -= shift;
    below[first] = g;
    below[last] = 0;
}

/* T's eigenvalues into diagonal; the rows are turned into eigenvectors. below [n], its last 0. */
static bool diagonalize(double *diagonal, double *below, double *rows, int64_t n)
{
    for (int64_t first = 0; first < n; first++)
        for (int turns = 0;; turns++) {
            int64_t last = first;
            while (last < n - 1 && fabs(below[last]) > DBL_EPSILON * (fabs(diagonal[last]) +
                                                                      fabs(diagonal[last + 1])))
                last++;
            if (last == first)
                break;
            if (turns == MOST_TURNS)
                return false;
            ql_step(diagonal, below, rows, n, first, last);
        }
    return true;
}

struct eigen_pair {
    double value;
    int64_t row;
};

static int by_value(const void *a, const void *b)
{
    const struct eigen_pair *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return x->row < y->row ? -1 : 1;
}

static void put_in_order(struct eigen_pair *order, int64_t n, const double *rows, double *values,
                         double *vectors)
{
    qsort(order, (size_t)n, sizeof *order, by_value);
    for (int64_t i = 0; i < n; i++) {
        const double *row = rows + order[i].row * n;
        int64_t largest = 0;
        for (int64_t j = 1; j < n; j++)
            if (fabs(row[j]) > fabs(row[largest]))
                largest = j;
        double sign = row[largest] < 0 ? -1 : 1;
        values[i] = order[i].value;
        for (int64_t j = 0; j < n; j++)
            vectors[i * n + j] = sign * row[j];
    }
}

bool symmetric_eigen(double *matrix, int64_t n, double *values, double *vectors, struct err *err)
{
    size_t size = (size_t)n;
    for (size_t i = 0; i < size * size; i++)
        if (!isfinite(matrix[i]))
            return err_set(err, ERR_FORMAT, "activations that are not finite numbers");
    double *work = calloc(4 * size + 1, sizeof *work), *rows = malloc(size * size * sizeof *rows);
    struct eigen_pair *order = calloc(size + 1, sizeof *order);
    bool ok = work && rows && order;
    if (!ok)
        err_memory(err, "eigenvectors");
    if (ok && n > 0) {
        double *diagonal = work, *below = work + n, *scales = work + 2 * n;
        tridiagonalize(matrix, n, diagonal, below, scales, work + 3 * n);
        reflections_to_rows(matrix, n, scales, rows);
        below[n - 1] = 0;
        ok = diagonalize(diagonal, below, rows, n) ||
             err_set(err, ERR_FORMAT, "the eigenvalues of the activations do not converge");
        for (int64_t i = 0; i < n; i++)
            order[i] = (struct eigen_pair){ diagonal[i], i };
        if (ok)
            put_in_order(order, n, rows, values, vectors);
    }
    free(order);
    free(rows);
    free(work);
    return ok;
}
