/* features_colour.c: how the values of a patch are distributed, whatever their places: moments,
 * quantiles, correlations (features_parts.h). */
#include <math.h>
#include <string.h>
#include "likeness/features_parts.h"
#include "stain/stain_fit.h"

static double mean_of(const double *plane, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += plane[i];
    return sum / (double)n;
}

/* Of a and b around their means; with a == b the variance. */
static double covariance(const double *a, const double *b, int64_t n)
{
    double mean_a = mean_of(a, n), mean_b = mean_of(b, n), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (a[i] - mean_a) * (b[i] - mean_b);
    return sum / (double)n;
}

/* Mean, standard deviation, and asinh of the skewness, which has long tails. */
static double *put_moments(const double *plane, int64_t n, double *out)
{
    double mean = mean_of(plane, n), std = sqrt(covariance(plane, plane, n)), cubes = 0;
    for (int64_t i = 0; i < n; i++)
        cubes += (plane[i] - mean) * (plane[i] - mean) * (plane[i] - mean);
    *out++ = mean;
    *out++ = std;
    *out++ = std > FEATURE_FLAT ? asinh(cubes / (double)n / (std * std * std)) : 0;
    return out;
}

static double *put_quantiles(const double *plane, const struct feature_planes *planes, double *out)
{
    static const double quantiles[] = { 0.05, 0.25, 0.5, 0.75, 0.95 };
    memcpy(planes->room, plane, (size_t)planes->n * sizeof *plane);
    for (int i = 0; i < 5; i++)
        *out++ = stain_quantile(planes->room, planes->n, quantiles[i]);
    return out;
}

static double correlation(const double *a, const double *b, int64_t n)
{
    double std_a = sqrt(covariance(a, a, n)), std_b = sqrt(covariance(b, b, n));
    if (std_a <= FEATURE_FLAT || std_b <= FEATURE_FLAT)
        return 0;
    return covariance(a, b, n) / (std_a * std_b);
}

/* Channels are nearly the same: how far from it is what differs. */
static double apart(const double *a, const double *b, int64_t n)
{
    return log10(1 - correlation(a, b, n) + 1e-3);
}

double *features_of_colour(const struct feature_planes *planes, double *out)
{
    double *const *rgb = planes->rgb, *const *stains = planes->stains;
    int64_t n = planes->n;
    for (int c = 0; c < 3; c++)
        out = put_moments(rgb[c], n, out);
    for (int c = 0; c < 3; c++)
        out = put_moments(stains[c], n, out);
    out = put_quantiles(stains[0], planes, out);
    out = put_quantiles(planes->grey, planes, out);
    *out++ = apart(rgb[0], rgb[1], n);
    *out++ = apart(rgb[1], rgb[2], n);
    *out++ = apart(rgb[0], rgb[2], n);
    *out++ = correlation(stains[0], stains[1], n);
    return out;
}
