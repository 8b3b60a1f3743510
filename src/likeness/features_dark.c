/* features_dark.c: dark blobs, which are nuclei where the resolution shows them, bright areas, and
 * how evenly haematoxylin is spread (features_parts.h). */
#include <math.h>
#include <stdlib.h>
#include "likeness/features_parts.h"

#define N_BINS 128     /* of densities from 0 to 2 */
#define LEAST_DARK 0.1 /* density: nothing paler is dark */
#define LEAST_BLOB_PX 8
#define BRIGHT 0.86
#define CELLS 4 /* the patch is divided into 4 x 4 */

/* Otsu's threshold. */
static double threshold_of(const struct feature_planes *planes)
{
    double share[N_BINS] = { 0 }, all = 0, weight = 0, sum = 0, best = -1;
    int found = 0;
    for (int64_t i = 0; i < planes->n; i++) {
        double bin = planes->smooth[i] * (N_BINS / 2);
        share[bin < 0 ? 0 : bin >= N_BINS ? N_BINS - 1 : (int)bin] += 1 / (double)planes->n;
    }
    for (int i = 0; i < N_BINS; i++)
        all += share[i] * i;
    for (int i = 0; i < N_BINS - 1; i++) {
        weight += share[i];
        sum += share[i] * i;
        if (weight <= 0 || weight >= 1 - 1e-12)
            continue;
        double gap = (all * weight - sum) * (all * weight - sum) / (weight * (1 - weight));
        if (gap > best + 1e-12) {
            best = gap;
            found = i;
        }
    }
    return (found + 1) / (N_BINS / 2.0);
}

/* Clears the blob of mask pixels around `first`, joined by edges, and returns its size. */
static int64_t take_blob(const struct feature_planes *planes, uint8_t *mask, int32_t *stack,
                         int64_t first)
{
    int64_t size = 0, n = 0, width = planes->width;
    mask[first] = 0;
    stack[n++] = (int32_t)first;
    while (n > 0) {
        int64_t at = stack[--n], x = at % width, y = at / width;
        const int64_t near[4] = { x > 0 ? at - 1 : at, x < width - 1 ? at + 1 : at,
                                  y > 0 ? at - width : at,
                                  y < planes->height - 1 ? at + width : at };
        size++;
        for (int i = 0; i < 4; i++)
            if (mask[near[i]]) {
                mask[near[i]] = 0;
                stack[n++] = (int32_t)near[i];
            }
    }
    return size;
}

static double *put_blobs(const struct feature_planes *planes, uint8_t *mask, int32_t *stack,
                         double *out)
{
    double threshold = fmax(threshold_of(planes), LEAST_DARK), sum[2] = { 0 };
    int64_t count[2] = { 0 }, area = 0, blobs = 0;
    for (int64_t i = 0; i < planes->n; i++) {
        mask[i] = planes->smooth[i] > threshold;
        sum[mask[i]] += planes->smooth[i];
        count[mask[i]]++;
    }
    for (int64_t i = 0; i < planes->n; i++) {
        int64_t size = mask[i] ? take_blob(planes, mask, stack, i) : 0;
        if (size < LEAST_BLOB_PX)
            continue;
        area += size;
        blobs++;
    }
    *out++ = (double)area / (double)planes->n;
    *out++ = sqrt((double)blobs / (double)planes->n * 2500);
    *out++ = log10((blobs ? (double)area / (double)blobs : 0) + LEAST_BLOB_PX);
    *out++ = count[0] && count[1] ? sum[1] / (double)count[1] - sum[0] / (double)count[0] : 0;
    return out;
}

static double cell_mean(const struct feature_planes *planes, int64_t row, int64_t column)
{
    int64_t top = row * planes->height / CELLS, bottom = (row + 1) * planes->height / CELLS;
    int64_t left = column * planes->width / CELLS, right = (column + 1) * planes->width / CELLS;
    double sum = 0;
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = left; x < right; x++)
            sum += planes->smooth[y * planes->width + x];
    return sum / (double)((bottom - top) * (right - left));
}

static double patchiness(const struct feature_planes *planes)
{
    double means[CELLS * CELLS], mean = 0, variance = 0;
    for (int i = 0; i < CELLS * CELLS; i++) {
        means[i] = cell_mean(planes, i / CELLS, i % CELLS);
        mean += means[i] / (CELLS * CELLS);
    }
    for (int i = 0; i < CELLS * CELLS; i++)
        variance += (means[i] - mean) * (means[i] - mean) / (CELLS * CELLS);
    return log10(sqrt(variance) + 1e-3);
}

double *features_of_dark(const struct feature_planes *planes, double *out, struct err *err)
{
    int64_t bright = 0;
    uint8_t *mask = malloc((size_t)planes->n);
    int32_t *stack = malloc((size_t)planes->n * sizeof *stack);
    if (mask && stack) {
        for (int64_t i = 0; i < planes->n; i++)
            bright += planes->grey[i] > BRIGHT;
        out = put_blobs(planes, mask, stack, out);
        *out++ = sqrt((double)bright / (double)planes->n);
        *out++ = patchiness(planes);
    } else {
        err_memory(err, "the features of a patch");
        out = NULL;
    }
    free(mask);
    free(stack);
    return out;
}
