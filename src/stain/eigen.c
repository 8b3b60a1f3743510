/* eigen.c: see eigen.h. Jacobi's method: rotations that make one off-diagonal element after another
 * zero. A linear algebra library is not worth its threads for nine numbers. */
#include "stain/eigen.h"

#include <float.h>
#include <math.h>

#define MAX_SWEEPS 32 /* six suffice: the convergence is quadratic */

/* a <- R' a R, with a[p][q] = 0 then; the rows of v become those of R' v. */
static void rotate(double a[3][3], double v[3][3], int p, int q)
{
    double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + hypot(theta, 1));
    double c = 1 / hypot(t, 1), s = t * c;
    int r = 3 - p - q; /* the third one */
    double rp = a[r][p], rq = a[r][q];
    a[p][p] -= t * a[p][q];
    a[q][q] += t * a[p][q];
    a[p][q] = a[q][p] = 0;
    a[r][p] = a[p][r] = c * rp - s * rq;
    a[r][q] = a[q][r] = s * rp + c * rq;
    for (int k = 0; k < 3; k++) {
        double vp = v[p][k], vq = v[q][k];
        v[p][k] = c * vp - s * vq;
        v[q][k] = s * vp + c * vq;
    }
}

static void swap_rows(double values[3], double vectors[3][3], int i, int j)
{
    double value = values[i];
    values[i] = values[j], values[j] = value;
    for (int k = 0; k < 3; k++) {
        double held = vectors[i][k];
        vectors[i][k] = vectors[j][k], vectors[j][k] = held;
    }
}

void eigen_symmetric(const double matrix[3][3], double values[3], double vectors[3][3])
{
    double a[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) {
            a[i][j] = a[j][i] = matrix[i][j];
            vectors[i][j] = vectors[j][i] = i == j;
        }
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        double beside = fabs(a[1][0]) + fabs(a[2][0]) + fabs(a[2][1]);
        double on = fabs(a[0][0]) + fabs(a[1][1]) + fabs(a[2][2]);
        if (!(beside > DBL_EPSILON * DBL_EPSILON * on))
            break;
        for (int p = 0; p < 2; p++)
            for (int q = p + 1; q < 3; q++)
                if (a[p][q] != 0)
                    rotate(a, vectors, p, q);
    }
    for (int i = 0; i < 3; i++)
        values[i] = a[i][i];
    for (int i = 0; i < 2; i++) /* two passes sort three */
        for (int j = 0; j < 2; j++)
            if (values[j] > values[j + 1])
                swap_rows(values, vectors, j, j + 1);
}
