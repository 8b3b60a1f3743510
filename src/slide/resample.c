/* resample.c: see resample.h. Separable: rows first (long runs of bytes, which the compiler turns
 * into vector code), then columns on what is left. */
#include "slide/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUN 16 /* values processed at a time in the row pass */

/* The level pixels under one raster pixel, in one direction. */
struct taps {
    int64_t first, n;
    float *weights; /* [n], their sum is 1 */
};

struct resampler {
    double ratio_x, ratio_y;
    int64_t max_columns; /* level pixels under a cell */
    float *row;          /* [max_columns * 3 + RUN]; the room at the end is never summed up */
    float *means;        /* [cell_width * 3 + 1] */
    float *weights_x;    /* [cell_width, max_taps_x] */
    struct taps *taps_x; /* [cell_width] */
    float *weights_y;
    int64_t max_taps_x;
};

static int64_t max_taps(double ratio)
{
    return (int64_t)ceil(ratio) + 2;
}

/* The part of [begin, end) that lies on pixel i. */
static double share(int64_t i, double begin, double end)
{
    double low = begin > (double)i ? begin : (double)i;
    double high = end < (double)(i + 1) ? end : (double)(i + 1);
    return high > low ? high - low : 0;
}

static void taps_mean(int64_t i, double ratio, int64_t n, struct taps *taps)
{
    double begin = (double)i * ratio, end = (double)(i + 1) * ratio;
    end = end < (double)n ? end : (double)n;
    taps->first = (int64_t)floor(begin);
    taps->first = taps->first < n - 1 ? taps->first : n - 1;
    int64_t last = (int64_t)ceil(end) - 1;
    last = last > taps->first ? last : taps->first;
    taps->n = last - taps->first + 1;
    double sum = 0;
    for (int64_t k = 0; k < taps->n; k++)
        sum += share(taps->first + k, begin, end);
    for (int64_t k = 0; k < taps->n; k++)
        taps->weights[k] =
            sum > 0 ? (float)(share(taps->first + k, begin, end) / sum) : 1.0f / (float)taps->n;
}

static void taps_linear(int64_t i, double ratio, int64_t n, struct taps *taps)
{
    double at = ((double)i + 0.5) * ratio - 0.5;
    at = at < 0 ? 0 : at > (double)(n - 1) ? (double)(n - 1) : at;
    taps->first = (int64_t)floor(at);
    float part = (float)(at - (double)taps->first);
    taps->n = part > 0 ? 2 : 1;
    taps->weights[0] = 1 - part;
    taps->weights[1] = part;
}

static void taps_at(int64_t i, double ratio, int64_t n, struct taps *taps)
{
    if (ratio < 1)
        taps_linear(i, ratio, n, taps);
    else
        taps_mean(i, ratio, n, taps);
}

/* taps_at without the weights. */
static void taps_range(int64_t i, double ratio, int64_t n, int64_t *first, int64_t *end)
{
    if (ratio < 1) {
        float weights[2];
        struct taps taps = { .weights = weights };
        taps_linear(i, ratio, n, &taps);
        *first = taps.first;
        *end = taps.first + taps.n;
        return;
    }
    double stop = (double)(i + 1) * ratio;
    stop = stop < (double)n ? stop : (double)n;
    *first = (int64_t)floor((double)i * ratio);
    *first = *first < n - 1 ? *first : n - 1;
    *end = (int64_t)ceil(stop);
    *end = *end > *first ? *end : *first + 1;
}

void resample_span(int64_t begin, int64_t stop, double ratio, int64_t level_n, int64_t *first,
                   int64_t *end)
{
    int64_t ignored = 0;
    taps_range(begin, ratio, level_n, first, &ignored);
    taps_range(stop - 1, ratio, level_n, &ignored, end);
}

struct resampler *resampler_new(int64_t cell_width, double ratio_x, double ratio_y)
{
    struct resampler *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->ratio_x = ratio_x;
    r->ratio_y = ratio_y;
    r->max_taps_x = max_taps(ratio_x);
    r->max_columns = (int64_t)ceil((double)cell_width * ratio_x) + 3;
    r->row = calloc((size_t)(3 * r->max_columns + RUN), sizeof *r->row);
    r->means = malloc((size_t)(3 * cell_width + 1) * sizeof *r->means);
    r->weights_x = malloc((size_t)(cell_width * r->max_taps_x) * sizeof *r->weights_x);
    r->taps_x = malloc((size_t)cell_width * sizeof *r->taps_x);
    r->weights_y = malloc((size_t)max_taps(ratio_y) * sizeof *r->weights_y);
    if (!r->row || !r->means || !r->weights_x || !r->taps_x || !r->weights_y) {
        resampler_free(r);
        return NULL;
    }
    return r;
}

void resampler_free(struct resampler *r)
{
    if (!r)
        return;
    free(r->row);
    free(r->means);
    free(r->weights_x);
    free(r->taps_x);
    free(r->weights_y);
    free(r);
}

/* sum [n] = weight * px [n] */
static void first_row(float *restrict sum, const uint8_t *restrict px, float weight, int64_t n)
{
    int64_t i = 0;
    for (; i + RUN <= n; i += RUN)
        for (int k = 0; k < RUN; k++)
            sum[i + k] = weight * (float)px[i + k];
    for (; i < n; i++)
        sum[i] = weight * (float)px[i];
}

/* sum [n] += weight * px [n] */
static void add_row(float *restrict sum, const uint8_t *restrict px, float weight, int64_t n)
{
    int64_t i = 0;
    for (; i + RUN <= n; i += RUN)
        for (int k = 0; k < RUN; k++)
            sum[i + k] += weight * (float)px[i + k];
    for (; i < n; i++)
        sum[i] += weight * (float)px[i];
}

/* Means of bytes need no clamping: rounding errors stay far below a half. */
static void to_bytes(const float *restrict values, uint8_t *restrict out, int64_t n)
{
    int64_t i = 0;
    for (; i + RUN <= n; i += RUN)
        for (int k = 0; k < RUN; k++)
            out[i + k] = (uint8_t)(int)(values[i + k] + 0.5f);
    for (; i < n; i++)
        out[i] = (uint8_t)(int)(values[i] + 0.5f);
}

/* Red, green, blue, and one more that is not used. */
typedef float four __attribute__((vector_size(16)));

/* row: sums of level pixels from column `first`; one raster row is made of them. */
static void add_columns(const struct resampler *r, int64_t first, int64_t width, uint8_t *dst)
{
    for (int64_t i = 0; i < width; i++) {
        const struct taps *taps = &r->taps_x[i];
        const float *px = r->row + 3 * (taps->first - first);
        four sum = { 0 };
        for (int64_t k = 0; k < taps->n; k++) {
            four value;
            memcpy(&value, px + 3 * k, sizeof value); /* the row has room behind its end */
            sum += taps->weights[k] * value;
        }
        memcpy(r->means + 3 * i, &sum, sizeof sum);
    }
    to_bytes(r->means, dst, 3 * width);
}

void resample_cell(struct resampler *r, const struct ring *level, int64_t x, int64_t y,
                   int64_t width, int64_t height, uint8_t *dst, int64_t stride_bytes)
{
    int64_t first = 0, end = 0;
    resample_span(x, x + width, r->ratio_x, level->width, &first, &end);
    for (int64_t i = 0; i < width; i++) {
        r->taps_x[i].weights = r->weights_x + i * r->max_taps_x;
        taps_at(x + i, r->ratio_x, level->width, &r->taps_x[i]);
    }
    int64_t n = 3 * (end - first);
    for (int64_t j = 0; j < height; j++) {
        struct taps rows = { .weights = r->weights_y };
        taps_at(y + j, r->ratio_y, level->height, &rows);
        first_row(r->row, ring_at(level, first, rows.first), rows.weights[0], n);
        for (int64_t k = 1; k < rows.n; k++)
            add_row(r->row, ring_at(level, first, rows.first + k), rows.weights[k], n);
        add_columns(r, first, width, dst + j * stride_bytes);
    }
}
