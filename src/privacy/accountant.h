/* accountant.h: what training with noise gives away: epsilon of the Gaussian mechanism on batches
 * that are sampled by Poisson, and what follows from it. All functions are pure and thread-safe.
 *
 * The unit is whatever is sampled: if patches are, epsilon is that of a patch and says nothing of a
 * patient who gave many. */
#ifndef PRIVACY_ACCOUNTANT_H
#define PRIVACY_ACCOUNTANT_H
#include <stdint.h>
#include "base/err.h"

struct privacy_cost {
    double sigma;  /* noise multiplier: the standard deviation of the noise over the clip norm */
    double rate;   /* the chance of every sample to be in a batch, (0, 1] */
    int64_t steps; /* also those with an empty batch */
    double delta;  /* (0, 1) */
};

enum privacy_accountant {
    PRIVACY_RDP,         /* Renyi divergences, today's conversion: an upper bound, quick */
    PRIVACY_RDP_CLASSIC, /* the same, conversion of 2017: what older papers report */
    PRIVACY_PRV,         /* privacy loss composed numerically: tight, to PRIVACY_PRV_ERROR */
};

#define PRIVACY_PRV_ERROR 0.01 /* or a thousandth of epsilon, if that is more */

/* Whether all numbers are in range; says which one is not. steps may be 0: nothing is given away.
 */
bool privacy_check(const struct privacy_cost *cost, struct err *err);

/* Epsilon by Renyi divergences, 0 for no steps. The cost has passed privacy_check. */
double privacy_epsilon_rdp(const struct privacy_cost *cost);
double privacy_epsilon_rdp_classic(const struct privacy_cost *cost);

/* Epsilon at delta, within PRIVACY_PRV_ERROR of the truth; the larger of adding and of removing a
 * sample. Takes up to 400 MB and seconds, mostly far less; fails, with the remedy, if that is not
 * enough. The cost has passed privacy_check. */
bool privacy_epsilon_prv(const struct privacy_cost *cost, double *epsilon, struct err *err);
/* The same with its error added: the truth is never above it. */
bool privacy_epsilon_prv_bound(const struct privacy_cost *cost, double *epsilon, struct err *err);

/* A bound of epsilon that holds: as above, for PRV with its error added. Checks the cost. */
bool privacy_epsilon(enum privacy_accountant accountant, const struct privacy_cost *cost,
                     double *epsilon, struct err *err);

/* The smallest noise (to 1e-4 of it) whose bound is at most `target`. cost->sigma is not read. */
bool privacy_sigma(enum privacy_accountant accountant, double target,
                   const struct privacy_cost *cost, double *sigma, struct err *err);

/* The most steps whose bound is at most `target`; 0 if one is too many, INT64_MAX / 4 if that many
 * are allowed. cost->steps is not read. */
bool privacy_steps(enum privacy_accountant accountant, double target,
                   const struct privacy_cost *cost, int64_t *steps, struct err *err);

/* Renyi divergence of order alpha > 1 of one step; infinite where it is too large to compute. */
double privacy_rdp(double sigma, double rate, double alpha);
#endif
