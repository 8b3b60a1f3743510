/* prv.c: epsilon from the privacy loss itself (Gopi, Lee and Wutschitz 2021). The loss of one step
 * is a random variable with a known distribution; it is put on a grid whose mean is right, and the
 * sum over all steps has the power of its Fourier transform. Adding and removing a sample have
 * different losses: one is the real part and one the imaginary part of the same transform. */
#include <math.h>
#include <stdlib.h>
#include "privacy/accountant.h"
#include "privacy/fft.h"

#define MOST_POINTS ((size_t)1 << 24)
#define FEWEST_POINTS ((size_t)1 << 12)
#define LEAST_DELTA 1e-11 /* below, the rounding of a double is what one would see */
#define DELTA_SHARE 1e-3  /* of delta, that the grid may hide */

struct grid {
    size_t n;        /* points */
    double h;        /* from one to the next */
    double error;    /* of epsilon */
    double means[2]; /* of the loss of one step: removing, adding */
};

/* The loss at the place x of the noise: the mixture over the Gaussian at 0. */
static double loss_at(const struct privacy_cost *cost, double x)
{
    double exponent = (2 * x - 1) / (2 * cost->sigma * cost->sigma);
    if (cost->rate == 1)
        return exponent;
    return exponent < 500 ? log1p(cost->rate * expm1(exponent)) : exponent + log(cost->rate);
}

/* The place with this loss; -INFINITY if all losses are above it. */
static double place_of(const struct privacy_cost *cost, double loss)
{
    double rest = log1p(-(1 - cost->rate) * exp(-loss)); /* NaN or -inf below log(1 - rate) */
    if (isnan(rest) || rest == -INFINITY)
        return -INFINITY;
    return cost->sigma * cost->sigma * (loss + rest - log(cost->rate)) + 0.5;
}

/* The chance of a standard normal number above z. */
static double tail(double z)
{
    return 0.5 * erfc(z / M_SQRT2);
}

/* The chance of a loss above `loss`, when a sample is removed. */
static double above_removing(const struct privacy_cost *cost, double loss)
{
    double x = place_of(cost, loss);
    return (1 - cost->rate) * tail(x / cost->sigma) + cost->rate * tail((x - 1) / cost->sigma);
}

/* The same when it is added: the loss is turned around, and the noise is at 0. */
static double above_adding(const struct privacy_cost *cost, double loss)
{
    return tail(-place_of(cost, -loss) / cost->sigma);
}

/* Means of both losses, by the trapezoidal rule: of a smooth bell it is exact to rounding. */
static void mean_losses(const struct privacy_cost *cost, double means[2])
{
    double sigma = cost->sigma, step = fmin(sigma, sigma * sigma) / 32, reach = 40 * sigma;
    int64_t n = (int64_t)ceil((2 * reach + 1) / step);
    means[0] = means[1] = 0;
    for (int64_t i = 0; i <= n; i++) {
        double x = -reach + (double)i * step, z = x / sigma, w = (x - 1) / sigma;
        double at_0 = exp(-z * z / 2), at_1 = exp(-w * w / 2), loss = loss_at(cost, x);
        means[0] += loss * ((1 - cost->rate) * at_0 + cost->rate * at_1);
        means[1] -= loss * at_0;
    }
    double scale = step / (sigma * sqrt(2 * M_PI));
    means[0] *= scale;
    means[1] *= scale;
}

/* A grid that is fine enough for the error and wide enough for nearly all of the losses: of one
 * step and of their sum. */
static bool choose_grid(const struct privacy_cost *cost, struct grid *grid, struct err *err)
{
    double share = cost->delta * DELTA_SHARE, steps = (double)cost->steps;
    struct privacy_cost all = *cost, one = *cost;
    all.delta = share / 4;
    one.delta = share / (8 * steps);
    one.steps = 1;
    double epsilon = fmax(privacy_epsilon_rdp(&all), privacy_epsilon_rdp(&one));
    grid->error = fmax(PRIVACY_PRV_ERROR, 1e-3 * privacy_epsilon_rdp(cost));
    grid->h = grid->error / sqrt(steps / 2 * log(12 / share));
    double reach = epsilon + grid->error + 3, points = 2 * reach / grid->h;
    if (!(points <= (double)MOST_POINTS))
        return err_set(err, ERR_USAGE,
                       "sigma %g, rate %g, %lld steps: more than the PRV accountant can hold; use "
                       "epsilon by RDP (%.4g)",
                       cost->sigma, cost->rate, (long long)cost->steps, privacy_epsilon_rdp(cost));
    grid->n = FEWEST_POINTS;
    while ((double)grid->n < points)
        grid->n *= 2;
    grid->h = 2 * reach / (double)grid->n;
    mean_losses(cost, grid->means);
    return true;
}

/* x [n]: the chance of every loss of one step; the loss k h is at k, if negative at n + k. shifts:
 * what is to be added to every loss for the right mean. */
static void fill(const struct privacy_cost *cost, const struct grid *grid, struct fft_number *x,
                 double shifts[2])
{
    int64_t half = (int64_t)grid->n / 2;
    double low = (-(double)half - 0.5) * grid->h;
    struct fft_number before = { above_removing(cost, low), above_adding(cost, low) };
    struct fft_number mean = { 0, 0 };
    for (int64_t k = -half; k < half; k++) {
        double high = ((double)k + 0.5) * grid->h;
        struct fft_number after = { above_removing(cost, high), above_adding(cost, high) };
        struct fft_number mass = { before.re - after.re, before.im - after.im };
        x[k & (int64_t)(grid->n - 1)] = mass;
        mean.re += mass.re * (double)k * grid->h;
        mean.im += mass.im * (double)k * grid->h;
        before = after;
    }
    shifts[0] = grid->means[0] - mean.re;
    shifts[1] = grid->means[1] - mean.im;
}

static struct fft_number power(struct fft_number base, int64_t exponent)
{
    struct fft_number result = { 1, 0 };
    if ((double)exponent * log(hypot(base.re, base.im)) < -100)
        return (struct fft_number){ 0, 0 };
    for (; exponent > 0; exponent /= 2) {
        struct fft_number r = result, b = base;
        if (exponent % 2)
            result = (struct fft_number){ r.re * b.re - r.im * b.im, r.re * b.im + r.im * b.re };
        base = (struct fft_number){ b.re * b.re - b.im * b.im, 2 * b.re * b.im };
    }
    return result;
}

/* The sum of `steps` losses of both kinds, in place. */
static bool compose(size_t n, int64_t steps, struct fft_number *x, struct err *err)
{
    struct fft fft;
    if (!fft_new(n, &fft, err))
        return false;
    fft_forward(&fft, x);
    for (size_t p = 0; p < n; p++) {
        size_t o = fft_opposite(p);
        if (o < p)
            continue;
        struct fft_number u = x[p], v = x[o];
        struct fft_number a = { (u.re + v.re) / 2, (u.im - v.im) / 2 };
        struct fft_number b = { (u.im + v.im) / 2, (v.re - u.re) / 2 };
        a = power(a, steps);
        b = power(b, steps);
        x[p] = (struct fft_number){ a.re - b.im, a.im + b.re };
        x[o] = (struct fft_number){ a.re + b.im, b.re - a.im };
    }
    fft_backward(&fft, x);
    fft_free(&fft);
    return true;
}

/* Epsilon of a composed loss: delta(e) is the mean of 1 - exp(e - loss) over the losses above e.
 * From the top down, until it reaches delta. */
static double epsilon_of(const struct grid *grid, const struct fft_number *x, bool adding,
                         double shift, double delta)
{
    int64_t half = (int64_t)grid->n / 2;
    double above = 0, discounted = 0, fall = exp(-grid->h);
    for (int64_t k = half - 2; k >= -half; k--) {
        const struct fft_number *next = &x[(k + 1) & (int64_t)(grid->n - 1)];
        double mass = adding ? next->im : next->re;
        above += mass;
        discounted = (discounted + mass) * fall;
        if (above - discounted >= delta)
            return fmax(0, (double)k * grid->h + shift + log((above - delta) / discounted));
        if ((double)k * grid->h + shift < 0)
            break;
    }
    return 0;
}

/* Epsilon at delta, as it is on the grid and, if bound, with all errors against us. */
static bool epsilon_prv(const struct privacy_cost *cost, bool bound, double *epsilon,
                        struct err *err)
{
    *epsilon = 0;
    if (cost->steps == 0)
        return true;
    if (cost->delta < LEAST_DELTA)
        return err_set(err, ERR_USAGE,
                       "delta is %g; the PRV accountant needs at least %g: use epsilon by RDP",
                       cost->delta, LEAST_DELTA);
    struct grid grid = { 0 };
    double shifts[2], delta = bound ? cost->delta * (1 - DELTA_SHARE) : cost->delta;
    if (!choose_grid(cost, &grid, err))
        return false;
    struct fft_number *x = malloc(grid.n * sizeof *x);
    if (!x)
        return err_memory(err, "the privacy loss");
    fill(cost, &grid, x, shifts);
    bool ok = compose(grid.n, cost->steps, x, err);
    for (int i = 0; ok && i < 2; i++) {
        double shift = (double)cost->steps * shifts[i];
        *epsilon = fmax(*epsilon, epsilon_of(&grid, x, i == 1, shift, delta));
    }
    if (bound)
        *epsilon += grid.error;
    free(x);
    return ok;
}

bool privacy_epsilon_prv(const struct privacy_cost *cost, double *epsilon, struct err *err)
{
    return epsilon_prv(cost, false, epsilon, err);
}

bool privacy_epsilon_prv_bound(const struct privacy_cost *cost, double *epsilon, struct err *err)
{
    return epsilon_prv(cost, true, epsilon, err);
}
