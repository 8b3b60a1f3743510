/* stain_vectors.c: optical densities of tissue -> the directions of its two stains. */
#include "stain/stain_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "stain/eigen.h"

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Haematoxylin first, rows of unit length. */
static void order_stains(double matrix[2][3])
{
    if (matrix[0][0] < matrix[1][0])
        for (int c = 0; c < 3; c++) {
            double held = matrix[0][c];
            matrix[0][c] = matrix[1][c], matrix[1][c] = held;
        }
    for (int k = 0; k < 2; k++) {
        double length = sqrt(dot(matrix[k], matrix[k]));
        for (int c = 0; c < 3; c++)
            matrix[k][c] /= length;
    }
}

bool stain_pseudo_inverse(const double matrix[2][3], double pseudo[2][3])
{
    double hh = dot(matrix[0], matrix[0]), ee = dot(matrix[1], matrix[1]);
    double he = dot(matrix[0], matrix[1]), determinant = hh * ee - he * he;
    if (!(determinant > 1e-9 * hh * ee))
        return false;
    for (int c = 0; c < 3; c++) {
        pseudo[0][c] = (ee * matrix[0][c] - he * matrix[1][c]) / determinant;
        pseudo[1][c] = (hh * matrix[1][c] - he * matrix[0][c]) / determinant;
    }
    return true;
}

/* Puts the kth smallest value at index k, smaller ones before it, larger ones after it. */
static void select_place(double *values, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = values[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                double held = values[i];
                values[i++] = values[j], values[j--] = held;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

double stain_quantile(double *values, int64_t n, double q)
{
    double place = q * (double)(n - 1);
    int64_t below = (int64_t)place;
    select_place(values, n, below);
    if (below + 1 >= n)
        return values[below];
    double next = values[below + 1];
    for (int64_t i = below + 2; i < n; i++)
        next = values[i] < next ? values[i] : next;
    return values[below] + (next - values[below]) * (place - (double)below);
}

/* The two directions in which the densities vary most, each with a positive red component. */
static bool principal_plane(const struct stain_tissue *tissue, double plane[2][3], struct err *err)
{
    double mean[3] = { 0 }, covariance[3][3] = { 0 }, variance[3], directions[3][3];
    for (int64_t i = 0; i < tissue->n; i++)
        for (int c = 0; c < 3; c++)
            mean[c] += tissue->density[3 * i + c];
    for (int c = 0; c < 3; c++)
        mean[c] /= (double)tissue->n;
    for (int64_t i = 0; i < tissue->n; i++) {
        const double *px = tissue->density + 3 * i;
        for (int a = 0; a < 3; a++)
            for (int b = 0; b <= a; b++)
                covariance[a][b] += (px[a] - mean[a]) * (px[b] - mean[b]);
    }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b <= a; b++)
            covariance[a][b] /= (double)(tissue->n - 1);
    eigen_symmetric(covariance, variance, directions);
    if (!(variance[1] > 1e-12))
        return err_set(
            err, ERR_MISSING,
            "the colour of the tissue does not vary: its two stains cannot be separated");
    for (int k = 0; k < 2; k++) {
        const double *direction = directions[2 - k]; /* the largest is the last */
        double sign = direction[0] < 0 ? -1 : 1;
        for (int c = 0; c < 3; c++)
            plane[k][c] = sign * direction[c];
    }
    return true;
}

/* Macenko et al. 2009: within the principal plane, the extreme angles are the pure stains. */
bool stain_vectors_macenko(const struct stain_tissue *tissue, double matrix[2][3], struct err *err)
{
    double plane[2][3];
    if (!principal_plane(tissue, plane, err))
        return false;
    double *angles = malloc((size_t)tissue->n * sizeof *angles);
    if (!angles)
        return err_memory(err, "pixels to fit a stain to");
    for (int64_t i = 0; i < tissue->n; i++) {
        const double *px = tissue->density + 3 * i;
        angles[i] = atan2(dot(px, plane[1]), dot(px, plane[0]));
    }
    for (int k = 0; k < 2; k++) {
        double angle = stain_quantile(angles, tissue->n, k == 0 ? 0.01 : 0.99);
        for (int c = 0; c < 3; c++)
            matrix[k][c] = cos(angle) * plane[0][c] + sin(angle) * plane[1][c];
    }
    free(angles);
    order_stains(matrix);
    return true;
}

#define VAHADANE_LAMBDA 0.1
#define VAHADANE_MAX_ROUNDS 500
#define VAHADANE_TOLERANCE 1e-6

/* The best non-negative amounts c of two unit vectors for
 * 1/2 |px - c matrix|^2 + lambda (c0 + c1): with two, all cases can be tried. */
static void sparse_amounts(const double matrix[2][3], double overlap, const double px[3],
                           double c[2])
{
    double a = dot(px, matrix[0]) - VAHADANE_LAMBDA, b = dot(px, matrix[1]) - VAHADANE_LAMBDA;
    double determinant = 1 - overlap * overlap;
    c[0] = c[1] = 0;
    if (a - overlap * b > 0 && b - overlap * a > 0 && determinant > 1e-12) {
        c[0] = (a - overlap * b) / determinant;
        c[1] = (b - overlap * a) / determinant;
    } else if (a >= b) {
        c[0] = a > 0 ? a : 0;
    } else {
        c[1] = b > 0 ? b : 0;
    }
}

/* One step of block coordinate descent on a stain vector; returns how far it moved. */
static double improve_vector(double matrix[2][3], int k, double amounts[2][2], double sums[2][3])
{
    double next[3], length = 0, moved = 0;
    if (!(amounts[k][k] > 0))
        return 0;
    for (int c = 0; c < 3; c++) {
        double fitted = amounts[k][0] * matrix[0][c] + amounts[k][1] * matrix[1][c];
        double value = matrix[k][c] + (sums[k][c] - fitted) / amounts[k][k];
        next[c] = value > 0 ? value : 0;
        length += next[c] * next[c];
    }
    if (!(length > 0))
        return 0;
    for (int c = 0; c < 3; c++) {
        double value = next[c] / sqrt(length);
        moved = fmax(moved, fabs(value - matrix[k][c]));
        matrix[k][c] = value;
    }
    return moved;
}

/* Vahadane et al. 2016: densities as sparse non-negative sums of two non-negative vectors; amounts
 * and vectors are improved in turn from Ruifrok's. */
bool stain_vectors_vahadane(const struct stain_tissue *tissue, double matrix[2][3], struct err *err)
{
    static const double ruifrok[2][3] = { { 0.65, 0.70, 0.29 }, { 0.07, 0.99, 0.11 } };
    memcpy(matrix, ruifrok, sizeof ruifrok);
    order_stains(matrix);
    for (int round = 0; round < VAHADANE_MAX_ROUNDS; round++) {
        double amounts[2][2] = { 0 }, sums[2][3] = { 0 }, c[2];
        double overlap = dot(matrix[0], matrix[1]);
        for (int64_t i = 0; i < tissue->n; i++) {
            const double *px = tissue->density + 3 * i;
            sparse_amounts(matrix, overlap, px, c);
            for (int k = 0; k < 2; k++) {
                amounts[k][0] += c[k] * c[0], amounts[k][1] += c[k] * c[1];
                for (int channel = 0; channel < 3; channel++)
                    sums[k][channel] += c[k] * px[channel];
            }
        }
        if (!(amounts[0][0] > 0) && !(amounts[1][1] > 0))
            return err_set(err, ERR_MISSING, "the tissue is too pale to fit a stain to");
        double moved = improve_vector(matrix, 0, amounts, sums);
        moved = fmax(moved, improve_vector(matrix, 1, amounts, sums));
        if (moved < VAHADANE_TOLERANCE)
            break;
    }
    order_stains(matrix);
    return true;
}
