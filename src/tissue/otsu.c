/* otsu.c: see otsu.h. Values are recomputed in every pass instead of being kept: an overview of
 * doubles would be the largest thing in memory. */
#include "tissue/otsu.h"

#include <math.h>

#define BINS 256

/* The last bin of the lower class: where the variance between the classes is largest; the first of
 * equals. The first and the last bin are not empty. */
static int best_split(const double *counts, const double *centres, int n)
{
    double total = 0, total_sum = 0;
    double weight_above[BINS], mean_above[BINS]; /* of the bins from i on */
    for (int i = n - 1; i >= 0; i--) {
        total += counts[i], total_sum += counts[i] * centres[i];
        weight_above[i] = total, mean_above[i] = total_sum / total;
    }
    double weight = 0, sum = 0, best = -1;
    int best_bin = 0;
    for (int i = 0; i + 1 < n; i++) {
        weight += counts[i], sum += counts[i] * centres[i];
        double gap = sum / weight - mean_above[i + 1];
        double variance = weight * weight_above[i + 1] * (gap * gap);
        if (variance > best)
            best = variance, best_bin = i;
    }
    return best_bin;
}

/* The bin of a value as numpy.histogram finds it: by arithmetic, then corrected by the edges. */
static int bin_of(double value, double first, double last, const double *edges)
{
    int bin = (int)((value - first) * (BINS / (last - first)));
    if (bin >= BINS)
        bin = BINS - 1;
    if (value < edges[bin])
        bin--;
    else if (bin + 1 < BINS && value >= edges[bin + 1])
        bin++;
    return bin;
}

double otsu_of_image(const struct image *rgb, otsu_value value, const uint8_t *skip)
{
    int64_t n = rgb->width * rgb->height;
    double first = INFINITY, last = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (skip && skip[i])
            continue;
        double v = value(rgb->px + 3 * i);
        first = v < first ? v : first;
        last = v > last ? v : last;
    }
    if (!(first < last))
        return first;
    double edges[BINS + 1], centres[BINS], counts[BINS] = { 0 };
    for (int i = 0; i < BINS; i++)
        edges[i] = first + i * ((last - first) / BINS);
    edges[BINS] = last;
    for (int i = 0; i < BINS; i++)
        centres[i] = (edges[i] + edges[i + 1]) / 2;
    for (int64_t i = 0; i < n; i++)
        if (!skip || !skip[i])
            counts[bin_of(value(rgb->px + 3 * i), first, last, edges)] += 1;
    return centres[best_split(counts, centres, BINS)];
}

int otsu_of_counts(const int64_t counts[256])
{
    int first = 0, last = 255;
    while (first < 256 && counts[first] == 0)
        first++;
    while (last >= first && counts[last] == 0)
        last--;
    if (first > last)
        return -1;
    double real[BINS], centres[BINS];
    for (int i = first; i <= last; i++)
        real[i - first] = (double)counts[i], centres[i - first] = i;
    return first + best_split(real, centres, last - first + 1);
}
