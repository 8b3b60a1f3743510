/* binomial.c: see binomial.h. The beta function by Lentz's continued fraction, its inverse by
 * bisection: slow and exact, for a few numbers on a page. */
#include <math.h>
#include <stdbool.h>
#include "audit/binomial.h"

#define MOST_TERMS 100000
#define TINY 1e-300

/* The continued fraction of I_x(a, b), for x below its middle. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < TINY ? TINY : d);
    double result = d;
    for (int m = 1; m <= MOST_TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double change = 1;
        for (int half = 0; half < 2; half++) {
            double term = half == 0 ? even : odd;
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < TINY ? TINY : d);
            c = fabs(c) < TINY ? TINY : c;
            change = c * d;
            result *= change;
        }
        if (fabs(change - 1) < 1e-16)
            break;
    }
    return result;
}

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double beta_share(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double binomial_at_least(int64_t k, int64_t n, double p)
{
    if (k <= 0 || k > n)
        return k <= 0 ? 1 : 0;
    return beta_share((double)k, (double)(n - k + 1), p);
}

/* The p at which at least k of n have this chance. */
static double chance_for(int64_t k, int64_t n, double wanted)
{
    double low = 0, high = 1;
    for (int i = 0; i < 200 && high - low > 1e-16 * high; i++) {
        double middle = (low + high) / 2;
        bool below = binomial_at_least(k, n, middle) < wanted;
        *(below ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

struct share share_of(int64_t k, int64_t n, double confidence)
{
    double side = (1 - confidence) / 2;
    if (n == 0)
        return (struct share){ NAN, 0, 1 };
    return (struct share){ .value = (double)k / (double)n,
                           .low = k == 0 ? 0 : chance_for(k, n, side),
                           .high = k == n ? 1 : chance_for(k + 1, n, 1 - side) };
}
