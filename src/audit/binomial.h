/* binomial.h: chances of counts, and the interval of a share that was counted. */
#ifndef AUDIT_BINOMIAL_H
#define AUDIT_BINOMIAL_H
#include <stdint.h>

/* The regularised incomplete beta function I_x(a, b), a and b above 0, to 1e-13 or so. */
double beta_share(double a, double b, double x);

/* The chance of at least k of n, if each has chance p. */
double binomial_at_least(int64_t k, int64_t n, double p);

/* k of n, as a share with its exact interval (Clopper and Pearson 1934). */
struct share {
    double value, low, high;
};
struct share share_of(int64_t k, int64_t n, double confidence);
#endif
