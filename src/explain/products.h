/* products.h: sums of products over arrays, for the statistics of concepts. The order of every sum
 * is fixed, so the results are the same on every processor and for any number of threads. */
#ifndef EXPLAIN_PRODUCTS_H
#define EXPLAIN_PRODUCTS_H
#include <stdint.h>

/* a [m, k] b [k, n] -> out [m, n], all row by row. 4 GFLOP/s or more. */
void product_matrix(const double *a, const double *b, int64_t m, int64_t k, int64_t n, double *out);
/* Every row of a [m, p] times every row of b [n, p] -> out [m, stride], of which n columns are
 * written. Products are summed as floats for 128 elements at a time, then as doubles. */
void product_rows(const float *a, const float *b, int64_t m, int64_t n, int64_t p, int64_t stride,
                  double *out);
/* x [n] times y [n]. */
double product_dot(const double *x, const double *y, int64_t n);
/* y += factor x. */
void product_add(double factor, const double *x, int64_t n, double *y);
/* x, y = c x - s y, s x + c y. */
void product_rotate(double c, double s, int64_t n, double *x, double *y);
#endif
