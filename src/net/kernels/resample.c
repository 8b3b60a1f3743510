/* resample.c: tables along an axis, and the loops over planes and rows. */
#include "net/kernels/resample.h"
#include <math.h>
#include <string.h>

struct resample_rows {
    void (*mix)(const struct resample *r, const float *upper, const float *lower, float down,
                float *out);
    void (*mix_back)(const struct resample *r, const float *dy, float down, float *upper,
                     float *lower);
    void (*take)(const struct resample *r, const float *row, float *out);
    void (*take_back)(const struct resample *r, const float *dy, float *row);
};

#define LOOPS "net/kernels/resample_loops.h"
#include "net/kernels/each_level.h"

static const struct resample_rows *rows_get(enum simd level)
{
    return SIMD_PICK(level, &rows, &rows_portable);
}

void resample_pad_axis(struct resample_axis *axis, enum resample_border border, int64_t begin)
{
    for (int64_t i = 0; i < axis->out; i++) {
        int64_t at = i - begin;
        bool inside = at >= 0 && at < axis->in;
        if (!inside && border == BORDER_REFLECT)
            at = at < 0 ? -at : 2 * (axis->in - 1) - at;
        if (!inside && border == BORDER_REPLICATE)
            at = at < 0 ? 0 : axis->in - 1;
        axis->near[i] = !inside && border == BORDER_FILL ? -1 : (int32_t)at;
    }
}

void resample_nearest_axis(struct resample_axis *axis, float scale)
{
    for (int64_t i = 0; i < axis->out; i++) {
        int64_t at = (int64_t)floorf((float)i / scale);
        axis->near[i] = (int32_t)(at < axis->in ? at : axis->in - 1);
    }
}

void resample_bilinear_axis(struct resample_axis *axis, double step, bool align_corners)
{
    for (int64_t i = 0; i < axis->out; i++) {
        double at = align_corners ? (double)i * step : ((double)i + 0.5) * step - 0.5;
        if (at < 0)
            at = 0;
        int64_t near = (int64_t)at;
        if (near > axis->in - 1)
            near = axis->in - 1;
        axis->near[i] = (int32_t)near;
        axis->far[i] = (int32_t)(near + 1 < axis->in ? near + 1 : near);
        axis->weight[i] = (float)(at - (double)near);
    }
}

void resample_run(const struct resample *r, enum simd level, const float *x, float *y)
{
    const struct resample_rows *rows = rows_get(level);
    const struct resample_axis *v = &r->axis[0];
    int64_t row = r->axis[1].in * r->inner, plane = v->in * row, out = r->axis[1].out * r->inner;
#pragma omp parallel for num_threads(r->threads) schedule(static) if (r->threads > 1)
    for (int64_t i = 0; i < r->planes * v->out; i++) {
        const float *from = x + i / v->out * plane;
        int64_t at = i % v->out;
        if (v->weight)
            rows->mix(r, from + v->near[at] * row, from + v->far[at] * row, v->weight[at],
                      y + i * out);
        else
            rows->take(r, v->near[at] < 0 ? NULL : from + v->near[at] * row, y + i * out);
    }
}

void resample_back(const struct resample *r, enum simd level, const float *dy, float *dx)
{
    const struct resample_rows *rows = rows_get(level);
    const struct resample_axis *v = &r->axis[0];
    int64_t row = r->axis[1].in * r->inner, plane = v->in * row, out = r->axis[1].out * r->inner;
#pragma omp parallel for num_threads(r->threads) schedule(static) if (r->threads > 1)
    for (int64_t p = 0; p < r->planes; p++) {
        float *to = dx + p * plane;
        memset(to, 0, (size_t)plane * sizeof *to);
        for (int64_t at = 0; at < v->out; at++) {
            const float *from = dy + (p * v->out + at) * out;
            if (v->weight)
                rows->mix_back(r, from, v->weight[at], to + v->near[at] * row,
                               to + v->far[at] * row);
            else if (v->near[at] >= 0)
                rows->take_back(r, from, to + v->near[at] * row);
        }
    }
}
