/* linear_loops.h: what is done to the sums of a row, included once for each instruction set with
 * EACH_TARGET and EACH_NAME(name). */
#include "net/kernels/curves.h"

#define INLINE static inline __attribute__((always_inline)) EACH_TARGET

/* EACH_LANES sums with their bias and residual (NULL: none). `function` is a constant. */
INLINE reg EACH_NAME(finish_reg)(enum linear_function function, const float *sums,
                                 const float *bias, const float *residual)
{
    reg v = REG_AT(sums);
    if (bias)
        v = v + REG_AT(bias);
    if (residual)
        v = v + REG_AT(residual);
    if (function == LINEAR_RELU)
        return (reg)((reg_bits)v & ~(v < 0)); /* keeps NaN */
    if (function == LINEAR_SILU)
        return EACH_NAME(curve_silu)(v);
    return function == LINEAR_GELU ? EACH_NAME(curve_gelu)(v) : v;
}

/* The same for the last n outputs of a row, fewer than EACH_LANES. */
INLINE void EACH_NAME(finish_rest)(enum linear_function function, int64_t n, const float *sums,
                                   const float *bias, const float *residual, float *y)
{
    float row[3][EACH_LANES] = { { 0 } };
    for (int64_t i = 0; i < n; i++) {
        row[0][i] = sums[i];
        row[1][i] = bias ? bias[i] : 0;
        row[2][i] = residual ? residual[i] : 0;
    }
    reg v = EACH_NAME(finish_reg)(function, row[0], bias ? row[1] : NULL, residual ? row[2] : NULL);
    for (int64_t i = 0; i < n; i++)
        y[i] = v[i];
}

INLINE void EACH_NAME(finish_with)(enum linear_function function, const struct sums *sums)
{
    for (int64_t r = 0; r < sums->rows; r++) {
        const float *from = sums->at + r * GROUP, *bias = sums->bias;
        const float *residual = sums->residual ? sums->residual + r * sums->step : NULL;
        float *y = sums->y + r * sums->step;
        int64_t left = sums->n;
        for (; left >= EACH_LANES; left -= EACH_LANES, from += EACH_LANES, y += EACH_LANES) {
            reg v = EACH_NAME(finish_reg)(function, from, bias, residual);
            REG_PUT(y, v);
            bias = bias ? bias + EACH_LANES : NULL;
            residual = residual ? residual + EACH_LANES : NULL;
        }
        if (left)
            EACH_NAME(finish_rest)(function, left, from, bias, residual, y);
    }
}

static EACH_TARGET void EACH_NAME(finish)(enum linear_function function, const struct sums *sums)
{
    switch (function) {
    case LINEAR_SAME:
        EACH_NAME(finish_with)(LINEAR_SAME, sums);
        break;
    case LINEAR_RELU:
        EACH_NAME(finish_with)(LINEAR_RELU, sums);
        break;
    case LINEAR_SILU:
        EACH_NAME(finish_with)(LINEAR_SILU, sums);
        break;
    case LINEAR_GELU:
        EACH_NAME(finish_with)(LINEAR_GELU, sums);
        break;
    }
}
#undef INLINE
