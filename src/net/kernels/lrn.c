/* lrn.c: windows of channels reach floor((size - 1) / 2) back and ceil((size - 1) / 2) ahead, as in
 * ONNX and PyTorch. */
#include "net/kernels/lrn.h"
#include <math.h>
#include <stdbool.h>

static void window(const struct lrn *l, int64_t c, bool mirrored, int64_t *begin, int64_t *end)
{
    int64_t low = (l->size - 1) / 2, high = l->size - 1 - low;
    *begin = c - (mirrored ? high : low), *end = c + (mirrored ? low : high) + 1;
    if (*begin < 0)
        *begin = 0;
    if (*end > l->channels)
        *end = l->channels;
}

void lrn_run(const struct lrn *l, const float *x, float *y, float *base)
{
    float factor = l->alpha / (float)l->size;
#pragma omp parallel for num_threads(l->threads) schedule(static) if (l->threads > 1)
    for (int64_t i = 0; i < l->batch * l->channels; i++) {
        int64_t image = i / l->channels * l->channels * l->pixels, begin, end;
        window(l, i % l->channels, false, &begin, &end);
        float *b = base + i * l->pixels;
        for (int64_t p = 0; p < l->pixels; p++)
            b[p] = 0;
        for (int64_t c = begin; c < end; c++)
            for (int64_t p = 0; p < l->pixels; p++) {
                float v = x[image + c * l->pixels + p];
                b[p] += v * v;
            }
        for (int64_t p = 0; p < l->pixels; p++) {
            b[p] = l->bias + factor * b[p];
            y[i * l->pixels + p] = x[i * l->pixels + p] * powf(b[p], -l->beta);
        }
    }
}

void lrn_back(const struct lrn *l, const float *x, const float *base, const float *dy, float *dx)
{
    float factor = 2 * l->beta * l->alpha / (float)l->size;
#pragma omp parallel for num_threads(l->threads) schedule(static) if (l->threads > 1)
    for (int64_t i = 0; i < l->batch * l->channels; i++) {
        int64_t image = i / l->channels * l->channels * l->pixels, begin, end;
        window(l, i % l->channels, true, &begin, &end);
        for (int64_t p = 0; p < l->pixels; p++) {
            int64_t at = i * l->pixels + p;
            float sum = 0;
            for (int64_t c = begin; c < end; c++) {
                int64_t other = image + c * l->pixels + p;
                sum += dy[other] * x[other] * powf(base[other], -l->beta - 1);
            }
            dx[at] = dy[at] * powf(base[at], -l->beta) - factor * x[at] * sum;
        }
    }
}
