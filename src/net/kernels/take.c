/* take.c: rows copied from places along an axis, and added back to them. */
#include "net/kernels/take.h"
#include <string.h>

static int64_t place_of(const struct take *t, float place)
{
    double nearest = (double)place + 0.5;
    return !(nearest > 0) ? 0 : nearest >= (double)t->extent ? t->extent - 1 : (int64_t)nearest;
}

void take_run(const struct take *t, const float *x, const float *places, float *y)
{
    int64_t rows = t->outer * t->count;
#pragma omp parallel for num_threads(t->threads) schedule(static) if (t->threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = i / t->count * t->extent + place_of(t, places[i % t->count]);
        if (t->inner == 1)
            y[i] = x[from];
        else
            memcpy(y + i * t->inner, x + from * t->inner, (size_t)t->inner * sizeof *y);
    }
}

void take_back(const struct take *t, const float *dy, const float *places, float *dx)
{
#pragma omp parallel for num_threads(t->threads) schedule(static) if (t->threads > 1)
    for (int64_t o = 0; o < t->outer; o++) {
        float *to = dx + o * t->extent * t->inner;
        memset(to, 0, (size_t)(t->extent * t->inner) * sizeof *to);
        for (int64_t k = 0; k < t->count; k++) {
            const float *from = dy + (o * t->count + k) * t->inner;
            float *row = to + place_of(t, places[k]) * t->inner;
            for (int64_t i = 0; i < t->inner; i++)
                row[i] += from[i];
        }
    }
}
