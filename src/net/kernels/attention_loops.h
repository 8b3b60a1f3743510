/* attention_loops.h: rows of scores, included once for each instruction set with EACH_TARGET and
 * EACH_NAME(name). Rows have whole STEPs; what is behind their end is -infinity, then 0. */
#include "net/kernels/curves.h"

/* s = scale s + bias, -infinity where the mask is 0 and behind n; returns the largest. */
static EACH_TARGET float EACH_NAME(finish_scores)(int64_t n, float scale, const float *bias,
                                                  const float *mask, float *s)
{
    int64_t whole = (n + STEP - 1) / STEP * STEP;
    float most = -INFINITY;
    for (int64_t i = n; i < whole; i++)
        s[i] = -INFINITY;
    for (int64_t i = 0; bias && i < n; i++)
        s[i] = s[i] * scale + bias[i];
    scale = bias ? 1 : scale;
    for (int64_t i = 0; mask && i < n; i++)
        s[i] = mask[i] != 0 ? s[i] : -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < whole; i++) {
        float v = s[i] * scale;
        s[i] = v;
        most = v > most ? v : most;
    }
    return most;
}

/* s = e^(s - top), 0 for -infinity; returns the sum. top is finite. */
static EACH_TARGET float EACH_NAME(exponentials)(int64_t n, float top, float *s)
{
    reg sum[STEP / EACH_LANES] = { { 0 } };
    float total = 0;
    for (int64_t i = 0; i < n; i += STEP)
        for (int k = 0; k < STEP / EACH_LANES; k++) {
            reg v = REG_AT(s + i + EACH_LANES * k) - top, e = EACH_NAME(curve_exp)(v);
            e = (reg)((reg_bits)e & ~(v < -87.0f));
            sum[k] += e;
            REG_PUT(s + i + EACH_LANES * k, e);
        }
    for (int k = 0; k < STEP; k++)
        total += sum[k / EACH_LANES][k % EACH_LANES];
    return total;
}

/* ds = p (dp - d), added to dbias where there is one, then times scale. */
static EACH_TARGET void EACH_NAME(score_gradients)(int64_t n, const float *p, float d, float scale,
                                                   float *dbias, float *dp)
{
    for (int64_t i = 0; dbias && i < n; i++)
        dbias[i] += p[i] * (dp[i] - d);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dp[i] = p[i] * (dp[i] - d) * scale;
}

static EACH_TARGET float EACH_NAME(row_product)(int64_t n, const float *a, const float *b)
{
    reg sum[STEP / EACH_LANES] = { { 0 } };
    float total = 0;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (int k = 0; k < STEP / EACH_LANES; k++)
            sum[k] += REG_AT(a + i + EACH_LANES * k) * REG_AT(b + i + EACH_LANES * k);
    for (; i < n; i++)
        total += a[i] * b[i];
    for (int k = 0; k < STEP; k++)
        total += sum[k / EACH_LANES][k % EACH_LANES];
    return total;
}

static EACH_TARGET void EACH_NAME(scale_row)(int64_t n, float factor, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

static const struct attention_loops EACH_NAME(attention_loops) = {
    EACH_NAME(finish_scores), EACH_NAME(exponentials), EACH_NAME(score_gradients),
    EACH_NAME(row_product),   EACH_NAME(scale_row),
};
