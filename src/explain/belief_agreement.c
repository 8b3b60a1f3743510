/* belief_agreement.c: maps -> their rank correlations; a map and a mask -> how much of the map is
 * inside. */
#include <math.h>
#include <stdlib.h>
#include "base/correlation.h"
#include "explain/belief.h"

/* Copies the values that are numbers in all maps; returns how many there are. */
static int64_t copy_common(const float *const *maps, int n_maps, int which, int64_t n, float *out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        bool common = true;
        for (int k = 0; k < n_maps; k++)
            common = common && !isnan(maps[k][i]);
        if (common)
            out[count++] = maps[which][i];
    }
    return count;
}

bool belief_agreement(const float *const *maps, int n_maps, int64_t n, double *out, struct err *err)
{
    float *common = malloc((size_t)(n + 1) * sizeof *common);
    double *ranks = malloc((size_t)(n * n_maps + 1) * sizeof *ranks);
    bool ok = (common && ranks) || err_memory(err, "the agreement of maps");
    int64_t count = 0;
    for (int k = 0; ok && k < n_maps; k++) {
        count = copy_common(maps, n_maps, k, n, common);
        ok = correlation_ranks(common, count, ranks + k * n, err);
    }
    for (int k = 0; ok && k < n_maps; k++)
        for (int l = 0; l < n_maps; l++)
            out[k * n_maps + l] =
                count > 1 ? correlation_of(ranks + k * n, ranks + l * n, count) : NAN;
    free(common);
    free(ranks);
    return ok;
}

struct belief_inside belief_mass_inside(const float *map, const uint8_t *mask, int64_t n)
{
    double inside = 0, sum = 0;
    int64_t pixels = 0, pixels_inside = 0;
    float first = NAN;
    bool differs = false;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(map[i]))
            continue;
        first = isnan(first) ? map[i] : first;
        differs = differs || map[i] != first;
        double mass = map[i] > 0 ? (double)map[i] : 0;
        sum += mass, pixels++;
        if (mask[i])
            inside += mass, pixels_inside++;
    }
    bool defined = differs && sum > 0 && isfinite(sum) && pixels_inside > 0;
    struct belief_inside result = { NAN, NAN, NAN };
    if (pixels > 0)
        result.area_share = (double)pixels_inside / (double)pixels;
    if (defined) {
        result.map_share = inside / sum;
        result.enrichment = result.map_share / result.area_share;
    }
    return result;
}
