/* products.c: see products.h. */
#include "explain/products.h"

#include <string.h>
#include "net/kernels/simd.h"

typedef double four __attribute__((vector_size(32)));
typedef float eight __attribute__((vector_size(32)));

#define LOOPS "explain/products_loops.h"
#include "net/kernels/each_level.h"

#define SUMMED_AS_FLOATS 128

/* Entries of out that blocks of 4 x 8 do not cover. */
static void matrix_rest(const double *a, const double *b, int64_t k, int64_t n, int64_t row,
                        int64_t first_column, double *out)
{
    for (int64_t column = first_column; column < n; column++) {
        double sum = 0;
        for (int64_t i = 0; i < k; i++)
            sum += a[row * k + i] * b[i * n + column];
        out[row * n + column] = sum;
    }
}

void product_matrix(const double *a, const double *b, int64_t m, int64_t k, int64_t n, double *out)
{
    enum simd level = simd_best();
    void (*block)(const double *, const double *, int64_t, int64_t, double *) =
        SIMD_PICK(level, matrix_block, matrix_block_portable);
    int64_t row = 0;
    for (; row + 4 <= m; row += 4) {
        int64_t column = 0;
        for (; column + 8 <= n; column += 8)
            block(a + row * k, b + column, k, n, out + row * n + column);
        for (int64_t one = row; one < row + 4; one++)
            matrix_rest(a, b, k, n, one, column, out);
    }
    for (; row < m; row++)
        matrix_rest(a, b, k, n, row, 0, out);
}

/* By address: as an argument a vector needs AVX. */
static double sum_of(const eight *vector)
{
    float v[8];
    memcpy(v, vector, sizeof v);
    return (double)(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
}

/* Up to 2 x 4 rows; fewer repeat the last one, whose sums are not written. */
static void rows_some(const float *a, const float *b, int64_t m, int64_t n, int64_t p,
                      int64_t stride, double *out)
{
    enum simd level = simd_best();
    void (*block)(const float *const *, const float *const *, int64_t, eight[2][4]) =
        SIMD_PICK(level, rows_block, rows_block_portable);
    double sums[2][4] = { 0 };
    for (int64_t at = 0; at < p; at += SUMMED_AS_FLOATS) {
        const float *a_rows[2], *b_rows[4];
        eight floats[2][4] = { 0 };
        int64_t count = p - at < SUMMED_AS_FLOATS ? p - at : SUMMED_AS_FLOATS;
        int64_t whole = count / 8 * 8;
        for (int row = 0; row < 2; row++)
            a_rows[row] = a + (row < m ? row : m - 1) * p + at;
        for (int column = 0; column < 4; column++)
            b_rows[column] = b + (column < n ? column : n - 1) * p + at;
        block(a_rows, b_rows, whole, floats);
        for (int row = 0; row < 2; row++)
            for (int column = 0; column < 4; column++) {
                sums[row][column] += sum_of(&floats[row][column]);
                for (int64_t i = whole; i < count; i++)
                    sums[row][column] += (double)a_rows[row][i] * (double)b_rows[column][i];
            }
    }
    for (int row = 0; row < 2 && row < m; row++)
        for (int column = 0; column < 4 && column < n; column++)
            out[row * stride + column] = sums[row][column];
}

void product_rows(const float *a, const float *b, int64_t m, int64_t n, int64_t p, int64_t stride,
                  double *out)
{
    for (int64_t row = 0; row < m; row += 2)
        for (int64_t column = 0; column < n; column += 4)
            rows_some(a + row * p, b + column * p, m - row, n - column, p, stride,
                      out + row * stride + column);
}

double product_dot(const double *x, const double *y, int64_t n)
{
    enum simd level = simd_best();
    return SIMD_PICK(level, dot, dot_portable)(x, y, n);
}

void product_add(double factor, const double *x, int64_t n, double *y)
{
    enum simd level = simd_best();
    SIMD_PICK(level, add, add_portable)(factor, x, n, y);
}

void product_rotate(double c, double s, int64_t n, double *x, double *y)
{
    enum simd level = simd_best();
    SIMD_PICK(level, rotate, rotate_portable)(c, s, n, x, y);
}
