/* rdp.c: Renyi divergence of the Gaussian mechanism on a Poisson sample (Mironov, Talwar and Zhang
 * 2019), at the orders 1.1 to 10.9 and 12 to 63, and epsilon from it. All in logarithms: the terms
 * reach e^1000 and more. */
#include <math.h>
#include "privacy/accountant.h"

#define SMALLEST_TERM (-40.0) /* logarithm of the terms that are left out */
#define MOST_TERMS 2000000

/* log(e^a + e^b) */
static double log_add(double a, double b)
{
    double high = fmax(a, b), low = fmin(a, b);
    return high == -INFINITY ? high : high + log1p(exp(low - high));
}

/* log(erfc(x)), also where erfc is 0 in double: by its asymptotic series. */
static double log_erfc(double x)
{
    if (x < 25)
        return log(erfc(x));
    double r = 1 / (2 * x * x), series = 1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r)));
    return -x * x - log(x) - 0.5 * log(M_PI) + log(series);
}

/* log A of a whole order: all terms are positive. */
static double log_moment_whole(double sigma, double rate, int alpha)
{
    double sum = -INFINITY, log_binomial = 0;
    for (int i = 0; i <= alpha; i++) {
        double term = log_binomial + i * log(rate) + (alpha - i) * log1p(-rate);
        sum = log_add(sum, term + i * (i - 1.0) / (2 * sigma * sigma));
        log_binomial += log(alpha - i) - log(i + 1.0);
    }
    return sum;
}

/* log A of any other order: a series whose terms change sign. Positive and negative ones are summed
 * apart; infinite if they cancel or do not end. */
static double log_moment_between(double sigma, double rate, double alpha)
{
    double plus = -INFINITY, minus = -INFINITY, log_binomial = 0;
    double variance = sigma * sigma, z0 = variance * log(1 / rate - 1) + 0.5;
    bool positive = true;
    for (int64_t i = 0; i < MOST_TERMS; i++) {
        double j = alpha - (double)i, d = (double)i;
        double below = log_binomial + d * log(rate) + j * log1p(-rate) +
                       (d * d - d) / (2 * variance) + log_erfc((d - z0) / (M_SQRT2 * sigma)) -
                       M_LN2;
        double above = log_binomial + j * log(rate) + d * log1p(-rate) +
                       (j * j - j) / (2 * variance) + log_erfc((z0 - j) / (M_SQRT2 * sigma)) -
                       M_LN2;
        double *sum = positive ? &plus : &minus;
        *sum = log_add(*sum, log_add(below, above));
        if ((double)i > alpha && fmax(below, above) < SMALLEST_TERM)
            return plus > minus ? plus + log1p(-exp(minus - plus)) : INFINITY;
        log_binomial += log(fabs(alpha - d)) - log(d + 1);
        positive = positive == (alpha > d);
    }
    return INFINITY;
}

double privacy_rdp(double sigma, double rate, double alpha)
{
    if (rate == 1)
        return alpha / (2 * sigma * sigma);
    double log_moment = alpha == floor(alpha) ? log_moment_whole(sigma, rate, (int)alpha)
                                              : log_moment_between(sigma, rate, alpha);
    return isnan(log_moment) ? INFINITY : fmax(0, log_moment / (alpha - 1));
}

/* The smallest epsilon of all orders; classic: by the conversion of 2017. */
static double best_epsilon(const struct privacy_cost *cost, bool classic)
{
    if (cost->steps == 0)
        return 0;
    double best = INFINITY;
    for (int tenths = 11; tenths <= 630; tenths += tenths < 109 ? 1 : tenths == 109 ? 11 : 10) {
        double alpha = tenths / 10.0;
        double loss = (double)cost->steps * privacy_rdp(cost->sigma, cost->rate, alpha);
        double epsilon =
            classic ? loss - log(cost->delta) / (alpha - 1)
                    : loss + log1p(-1 / alpha) - (log(cost->delta) + log(alpha)) / (alpha - 1);
        best = fmin(best, epsilon);
    }
    return fmax(0, best);
}

double privacy_epsilon_rdp(const struct privacy_cost *cost)
{
    return best_epsilon(cost, false);
}

double privacy_epsilon_rdp_classic(const struct privacy_cost *cost)
{
    return best_epsilon(cost, true);
}
