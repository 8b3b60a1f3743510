/* accountant.c: from an accountant, which says epsilon of a cost, to the noise or the number of
 * steps for an epsilon: by bisection, always on the side that keeps it. */
#include <math.h>
#include "privacy/accountant.h"

#define SIGMA_PRECISION 1e-4
#define SIGMA_LOW 1e-2
#define SIGMA_HIGH 1e6
#define MOST_STEPS (INT64_MAX / 4)

bool privacy_check(const struct privacy_cost *cost, struct err *err)
{
    if (!(cost->sigma > 0) || !isfinite(cost->sigma))
        return err_set(err, ERR_USAGE, "sigma is %g; the noise must be above 0", cost->sigma);
    if (!(cost->rate > 0 && cost->rate <= 1))
        return err_set(err, ERR_USAGE,
                       "rate is %g; it is the share of the samples in a batch on average, above 0 "
                       "and at most 1",
                       cost->rate);
    if (cost->steps < 0)
        return err_set(err, ERR_USAGE, "steps are %lld; they cannot be below 0",
                       (long long)cost->steps);
    if (!(cost->delta > 0 && cost->delta < 1))
        return err_set(err, ERR_USAGE,
                       "delta is %g; it must be between 0 and 1, and well below 1 / samples",
                       cost->delta);
    return true;
}

bool privacy_epsilon(enum privacy_accountant accountant, const struct privacy_cost *cost,
                     double *epsilon, struct err *err)
{
    if (!privacy_check(cost, err))
        return false;
    if (accountant == PRIVACY_PRV)
        return privacy_epsilon_prv_bound(cost, epsilon, err);
    *epsilon =
        accountant == PRIVACY_RDP ? privacy_epsilon_rdp(cost) : privacy_epsilon_rdp_classic(cost);
    return true;
}

static bool check_target(double target, struct err *err)
{
    if (!(target > 0) || !isfinite(target))
        return err_set(err, ERR_USAGE, "the target is epsilon %g; it must be above 0", target);
    return true;
}

/* Whether the bound of a cost is at most the target. */
static bool keeps(enum privacy_accountant accountant, double target,
                  const struct privacy_cost *cost, bool *kept, struct err *err)
{
    double epsilon = 0;
    bool ok = privacy_epsilon(accountant, cost, &epsilon, err);
    *kept = ok && epsilon <= target;
    return ok;
}

bool privacy_sigma(enum privacy_accountant accountant, double target,
                   const struct privacy_cost *cost, double *sigma, struct err *err)
{
    struct privacy_cost at = *cost;
    bool kept = false;
    at.sigma = 1;
    if (!check_target(target, err) || !keeps(accountant, target, &at, &kept, err))
        return false;
    double low = kept ? 0 : 1, high = kept ? 1 : INFINITY;
    while (low == 0 || high == INFINITY || high > low * (1 + SIGMA_PRECISION)) {
        at.sigma = high == INFINITY ? low * 2 : low == 0 ? high / 2 : sqrt(low * high);
        if (at.sigma > SIGMA_HIGH)
            return err_set(err, ERR_USAGE,
                           "no noise gives epsilon %g at delta %g by this accountant; take a "
                           "larger epsilon or delta%s",
                           target, cost->delta,
                           accountant == PRIVACY_PRV ? "" : ", or the PRV accountant");
        if (at.sigma < SIGMA_LOW)
            return err_set(err, ERR_USAGE,
                           "epsilon %g is kept even by next to no noise (sigma %g); take a smaller "
                           "epsilon",
                           target, at.sigma);
        if (!keeps(accountant, target, &at, &kept, err))
            return false;
        *(kept ? &high : &low) = at.sigma;
    }
    *sigma = high;
    return true;
}

bool privacy_steps(enum privacy_accountant accountant, double target,
                   const struct privacy_cost *cost, int64_t *steps, struct err *err)
{
    struct privacy_cost at = *cost;
    int64_t low = 0, high = 0; /* low keeps the target; high, if not 0, does not */
    at.steps = 1;
    if (!check_target(target, err))
        return false;
    while (high == 0 || high - low > 1) {
        bool kept = false;
        at.steps = high != 0 ? low + (high - low) / 2 : low == 0 ? 1 : low * 2;
        if (at.steps >= MOST_STEPS)
            break;
        if (!keeps(accountant, target, &at, &kept, err))
            return false;
        *(kept ? &low : &high) = at.steps;
    }
    *steps = high == 0 ? MOST_STEPS : low;
    return true;
}
