/* sync_norm.c: see sync_norm.h. */
#include "net/plan/sync_norm.h"

#include <math.h>
#include <stdlib.h>

#define MAX_BLOCK 16 /* channels of a block, see struct tape */

/* The sum over all is the sum over one group of the sums over another. */
static bool sum_over(const struct sync_norm *s, double *values, int64_t n, struct err *err)
{
    bool ok = true;
    for (int g = 0; g < s->n_groups && ok; g++)
        ok = s->groups[g]->sum(s->groups[g]->arg, values, n, err);
    return ok;
}

/* sums [channels, 2] of x - shift and its square; shift [channels]. */
static void add_up(const struct sync_norm *s, const float *x, const double *shift, double *sums)
{
    for (int64_t i = 0; i < s->n * s->blocks; i++) {
        const int64_t first = i % s->blocks * s->b;
        const int64_t width = s->channels - first < s->b ? s->channels - first : s->b;
        const float *from = x + i * s->area * s->b;
        double sum[MAX_BLOCK] = { 0 }, square[MAX_BLOCK] = { 0 };
        for (int64_t k = 0; k < s->area; k++)
            for (int64_t c = 0; c < width; c++) {
                double d = (double)from[k * s->b + c] - shift[first + c];
                sum[c] += d, square[c] += d * d;
            }
        for (int64_t c = 0; c < width; c++) {
            sums[2 * (first + c)] += sum[c];
            sums[2 * (first + c) + 1] += square[c];
        }
    }
}

/* Twice through the data, as it is done on one process: the variance is that about the mean. */
bool sync_norm_statistics(const struct sync_norm *s, const float *x, float *mean, float *variance,
                          double *count, struct err *err)
{
    double *sums = calloc(3 * (size_t)s->channels + 1, sizeof *sums);
    double *all = sums ? sums + 2 * s->channels : NULL, *middle = sums ? all + 1 : NULL;
    bool ok = sums || err_memory(err, "statistics");
    if (ok) {
        *all = (double)(s->n * s->area);
        add_up(s, x, middle, sums);
        ok = sum_over(s, sums, 2 * s->channels + 1, err);
        *count = *all;
    }
    for (int64_t c = 0; ok && c < s->channels; c++) {
        middle[c] = sums[2 * c] / *count;
        sums[2 * c] = sums[2 * c + 1] = 0;
    }
    if (ok) {
        add_up(s, x, middle, sums);
        ok = sum_over(s, sums, 2 * s->channels, err);
    }
    for (int64_t c = 0; ok && c < s->channels; c++) {
        mean[c] = (float)middle[c];
        variance[c] = (float)(sums[2 * c + 1] / *count);
    }
    free(sums);
    return ok;
}

bool sync_norm_correct(const struct sync_norm *s, const float *x, const float *mean,
                       const float *variance, double count, const float *weight,
                       const float *dweight, const float *dbias, float *dx, struct err *err)
{
    double *sums = calloc(2 * (size_t)s->channels, sizeof *sums);
    if (!sums)
        return err_memory(err, "statistics");
    for (int64_t c = 0; c < s->channels; c++) {
        sums[2 * c] = (double)dbias[c];
        sums[2 * c + 1] = (double)dweight[c];
    }
    bool ok = sum_over(s, sums, 2 * s->channels, err);
    for (int64_t i = 0; ok && i < s->n * s->blocks; i++) {
        const int64_t first = i % s->blocks * s->b;
        const int64_t width = s->channels - first < s->b ? s->channels - first : s->b;
        for (int64_t c = 0; c < width; c++) {
            const int64_t at = i * s->area * s->b + c, channel = first + c;
            double scale = 1 / sqrt((double)variance[channel] + (double)s->epsilon);
            float factor = (float)((double)weight[channel] * scale / count);
            float constant = factor * (float)sums[2 * channel];
            float slope = factor * (float)(sums[2 * channel + 1] * scale);
            for (int64_t k = 0; k < s->area; k++)
                dx[at + k * s->b] -= constant + slope * (x[at + k * s->b] - mean[channel]);
        }
    }
    free(sums);
    return ok;
}
