/* glcm.c: see glcm.h. */
#include "nuclei/glcm.h"

#include <math.h>
#include <string.h>

int64_t glcm_count(const struct glcm_pixels *pixels, const uint8_t *levels, int n_levels, int dx,
                   int dy, uint32_t *counts)
{
    const struct nuclei_labels *l = pixels->labels;
    int64_t total = 0;
    memset(counts, 0, (size_t)n_levels * (size_t)n_levels * sizeof *counts);
    for (int64_t k = 0; k < pixels->n; k++) {
        int64_t at = pixels->px[k], x = at % l->width + dx, y = at / l->width + dy;
        if (x < 0 || x >= l->width || y < 0 || y >= l->height)
            continue;
        int64_t other = y * l->width + x;
        if (l->labels[other] != l->labels[at])
            continue;
        counts[levels[at] * n_levels + levels[other]]++;
        counts[levels[other] * n_levels + levels[at]]++;
        total += 2;
    }
    return total;
}

struct glcm_texture glcm_texture(const uint32_t *counts, int n_levels, int64_t total)
{
    struct glcm_texture t = { 0 };
    double mean = 0, variance = 0, covariance = 0, share = 1.0 / (double)total;
    for (int i = 0; i < n_levels; i++)
        for (int j = 0; j < n_levels; j++)
            mean += counts[i * n_levels + j] * share * i;
    for (int i = 0; i < n_levels; i++)
        for (int j = 0; j < n_levels; j++) {
            double p = counts[i * n_levels + j] * share;
            t.second_moment += p * p;
            t.contrast += p * (i - j) * (i - j);
            variance += p * (i - mean) * (i - mean);
            covariance += p * (i - mean) * (j - mean);
        }
    t.correlation = sqrt(variance) < 1e-15 ? 1 : covariance / variance;
    return t;
}
