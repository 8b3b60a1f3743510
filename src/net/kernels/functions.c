/* functions.c: rows of floats through functions of the C library, split across threads. */
#include "net/kernels/functions.h"
#include <math.h>
#include "base/divide.h"

#define PIECE ((int64_t)1 << 12)

typedef void (*forward_fn)(int64_t count, const float *x, float *y, float p);
typedef void (*backward_fn)(int64_t count, const float *dy, const float *x, float *dx, float p);

#define ROW(name, value, slope)                                                                    \
    static void name##_forward(int64_t count, const float *x, float *y, float p)                   \
    {                                                                                              \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = (value);                                                                        \
    }                                                                                              \
    static void name##_backward(int64_t count, const float *dy, const float *x, float *dx,         \
                                float p)                                                           \
    {                                                                                              \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < count; i++)                                                        \
            dx[i] = dy[i] * (slope);                                                               \
    }
ROW(exp, expf(x[i]), expf(x[i]))
ROW(log, logf(x[i]), 1 / x[i])
ROW(sqrt, sqrtf(x[i]), 0.5f / sqrtf(x[i]))
ROW(reciprocal, 1 / x[i], -1 / (x[i] * x[i]))
ROW(abs, fabsf(x[i]), (float)((x[i] > 0) - (x[i] < 0)))
ROW(erf, erff(x[i]), 1.12837917f * expf(-x[i] * x[i])) /* 2 / sqrt(pi) */
ROW(sin, sinf(x[i]), cosf(x[i]))
ROW(cos, cosf(x[i]), -sinf(x[i]))
ROW(power, powf(x[i], p), p *powf(x[i], p - 1))
ROW(from_nan, x[i] != x[i] ? p : x[i], x[i] != x[i] ? 0.0f : 1.0f)
#undef ROW

static const struct {
    forward_fn forward;
    backward_fn backward;
} rows[FUNCTION_ROWS] = {
    [ROW_EXP] = { exp_forward, exp_backward },
    [ROW_LOG] = { log_forward, log_backward },
    [ROW_SQRT] = { sqrt_forward, sqrt_backward },
    [ROW_RECIPROCAL] = { reciprocal_forward, reciprocal_backward },
    [ROW_ABS] = { abs_forward, abs_backward },
    [ROW_ERF] = { erf_forward, erf_backward },
    [ROW_SIN] = { sin_forward, sin_backward },
    [ROW_COS] = { cos_forward, cos_backward },
    [ROW_POWER] = { power_forward, power_backward },
    [ROW_FROM_NAN] = { from_nan_forward, from_nan_backward },
};

void functions_run(const struct functions *f, const float *x, float *y)
{
    int64_t pieces = ceil_div(f->count, PIECE);
#pragma omp parallel for num_threads(f->threads) schedule(static) if (f->threads > 1 && pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        int64_t begin = i * PIECE, left = f->count - begin;
        rows[f->row].forward(left < PIECE ? left : PIECE, x + begin, y + begin, f->p);
    }
}

void functions_back(const struct functions *f, const float *dy, const float *x, float *dx)
{
    int64_t pieces = ceil_div(f->count, PIECE);
#pragma omp parallel for num_threads(f->threads) schedule(static) if (f->threads > 1 && pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        int64_t begin = i * PIECE, left = f->count - begin;
        rows[f->row].backward(left < PIECE ? left : PIECE, dy + begin, x + begin, dx + begin, f->p);
    }
}
