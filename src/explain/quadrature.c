/* quadrature.c: see quadrature.h. */
#include "explain/quadrature.h"
#include <math.h>

static const double pi = 3.14159265358979323846;

/* P_n(x) and its derivative. */
static double legendre(int64_t n, double x, double *derivative)
{
    double before = 1, value = x;
    for (int64_t k = 2; k <= n; k++) {
        double next = ((double)(2 * k - 1) * x * value - (double)(k - 1) * before) / (double)k;
        before = value, value = next;
    }
    *derivative = (double)n * (x * value - before) / (x * x - 1);
    return value;
}

/* Newton's method from Chebyshev's nodes. */
void quadrature(int64_t n, double *nodes, double *weights)
{
    for (int64_t i = 0; i < n; i++) {
        double x = -cos(pi * ((double)i + 0.75) / ((double)n + 0.5)), derivative = 1;
        for (int again = 0; again < 100; again++) {
            double step = legendre(n, x, &derivative) / derivative;
            x -= step;
            if (fabs(step) < 1e-15)
                break;
        }
        nodes[i] = (1 + x) / 2;
        weights[i] = 1 / ((1 - x * x) * derivative * derivative);
    }
}
