/* gemm.h: products of matrices whose sums stay in registers: C = A B or C += A B. A is read float
 * by float, with any strides; B and C row by row. Larger kernels (attention.h, linear.h) are made
 * of it. On one thread; every sum has the order of its terms, whatever the shapes. */
#ifndef NET_KERNELS_GEMM_H
#define NET_KERNELS_GEMM_H
#include <stdbool.h>
#include <stdint.h>
#include "net/kernels/simd.h"

/* a [m, k] with a step from row to row and from column to column, b [k, n], c [m, n] with the step
 * from row to row; all in floats. Nothing behind the last column is touched. */
struct gemm {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_column;
    int64_t a_panel; /* packed: a is panels of gemm_rows rows, so many floats apart; 0: it is not */
    const float *b;
    int64_t b_row;
    int64_t b_panel; /* packed: b is panels of gemm_panel columns, so many floats apart; 0: it is
                        not */
    const float *b_next; /* packed, too: what is multiplied after the last panel, brought to the
                            caches meanwhile as other panels are; NULL: nothing */
    float *c;
    int64_t c_row;
    bool add;          /* to what C has; else it is overwritten */
    const float *next; /* [m, n] that is used next, or C itself, brought to the caches meanwhile;
                          NULL: none */
    int64_t next_row;
};

typedef void gemm_function(const struct gemm *g);
/* The version for an instruction set that this processor has. */
gemm_function *gemm_of(enum simd level);

/* Columns of a panel, all in registers at once. */
int64_t gemm_panel(enum simd level);
/* Floats of b [k, n] packed: panels that follow each other, [k, gemm_panel] each. */
int64_t gemm_packed_floats(enum simd level, int64_t n, int64_t k);
/* Packs the panels first .. end - 1 of b, whose rows and columns lie row and column floats apart,
 * one of which is 1; what lies behind the last column is not set. */
void gemm_pack(enum simd level, int64_t n, int64_t k, const float *b, int64_t row, int64_t column,
               int64_t first, int64_t end, float *packed);

/* Rows of sums that are in registers at once. */
int64_t gemm_rows(enum simd level);
/* Packs a [m, k], float (i, j) at a[i + j * column], into panels that follow each other, [k,
 * gemm_rows] each, behind the last row of which nothing is written; then a_row = 1, a_column =
 * gemm_rows and a_panel = k gemm_rows. */
void gemm_pack_rows(enum simd level, int64_t m, int64_t k, const float *a, int64_t column,
                    float *packed);
#endif
