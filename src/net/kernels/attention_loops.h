/* attention_loops.h: rows of scores, included once for each instruction set with EACH_TARGET and
 * EACH_NAME(name). Rows have whole WIDEs; what is behind their end is -infinity, then 0. */

/* s = scale s + bias, -infinity where the mask is 0 and behind n; returns the largest. */
static EACH_TARGET float EACH_NAME(finish_scores)(int64_t n, float scale, const float *bias,
                                                  const float *mask, float *s)
{
    int64_t wide_n = (n + WIDE - 1) / WIDE * WIDE;
    wide top = (wide){ 0 } - INFINITY;
    if (bias)
        for (int64_t i = 0; i < n; i++)
            s[i] = s[i] * scale + bias[i];
    for (int64_t i = 0; mask && i < n; i++)
        s[i] = mask[i] != 0 ? s[i] : -INFINITY;
    for (int64_t i = n; i < wide_n; i++)
        s[i] = -INFINITY;
    for (int64_t i = 0; i < wide_n; i += WIDE) {
        wide v = WIDE_AT(s + i);
        if (!bias) {
            v = v * scale;
            WIDE_PUT(s + i, v);
        }
        top = WIDE_WHERE(v > top, v, top);
    }
    float most = top[0];
    for (int k = 1; k < WIDE; k++)
        most = top[k] > most ? top[k] : most;
    return most;
}

/* s = e^(s - top), 0 for -infinity; returns the sum. top is finite. */
static EACH_TARGET float EACH_NAME(exponentials)(int64_t n, float top, float *s)
{
    wide sum = { 0 };
    for (int64_t i = 0; i < n; i += WIDE) {
        wide v = WIDE_AT(s + i) - top, e;
        WIDE_EXP(e, v);
        e = (wide)((wide_bits)e & ~(v < -87.0f));
        sum += e;
        WIDE_PUT(s + i, e);
    }
    float total = 0;
    for (int k = 0; k < WIDE; k++)
        total += sum[k];
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

static EACH_TARGET void EACH_NAME(scale_row)(int64_t n, float factor, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

/* to [columns, wide_rows] = from [rows, columns] transposed; behind the last row zeros. */
static EACH_TARGET void EACH_NAME(turn)(int64_t rows, int64_t columns, const float *from,
                                        int64_t step, float *to, int64_t wide_rows)
{
    for (int64_t r = 0; r < rows; r += WIDE)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t k = r; k < r + WIDE; k++)
                to[c * wide_rows + k] = k < rows ? from[k * step + c] : 0;
}

static const struct attention_loops EACH_NAME(attention_loops) = {
    EACH_NAME(finish_scores), EACH_NAME(exponentials), EACH_NAME(score_gradients),
    EACH_NAME(scale_row),     EACH_NAME(turn),
};
