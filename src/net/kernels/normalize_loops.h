/* normalize_loops.h: rows and columns of layer norm, included once for each instruction set with
 * EACH_TARGET and EACH_NAME(name). Sums are in LANES partial sums: the order is fixed. */
#define INLINE static inline __attribute__((always_inline)) EACH_TARGET

INLINE double EACH_NAME(total)(const four sums[2])
{
    double all = 0;
    for (int k = 0; k < LANES; k++)
        all += sums[k / 4][k % 4];
    return all;
}

static EACH_TARGET double EACH_NAME(row_sum)(int64_t n, const float *x)
{
    four sum[2] = { { 0 } };
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < 2; k++)
            sum[k] += DOUBLES(x + i + 4 * k);
    for (; i < n; i++)
        sum[0][0] += (double)x[i];
    return EACH_NAME(total)(sum);
}

/* sum of (x - shift)^2 */
static EACH_TARGET double EACH_NAME(row_squares)(int64_t n, const float *x, double shift)
{
    four sum[2] = { { 0 } };
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < 2; k++) {
            four d = DOUBLES(x + i + 4 * k) - shift;
            sum[k] += d * d;
        }
    for (; i < n; i++) {
        double d = (double)x[i] - shift;
        sum[0][0] += d * d;
    }
    return EACH_NAME(total)(sum);
}

static EACH_TARGET void EACH_NAME(scale_row)(int64_t n, const float *x, float mean, float scale,
                                             const float *weight, const float *bias, float *y)
{
    if (bias) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * scale * weight[i] + 0;
    }
}

/* sum of w dy and of w dy xhat over one row. */
static EACH_TARGET struct moments EACH_NAME(weighted_products)(int64_t n, const float *x,
                                                               const float *dy, const float *weight,
                                                               float mean, float scale)
{
    four a[2] = { { 0 } }, b[2] = { { 0 } };
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < 2; k++) {
            int64_t j = i + 4 * k;
            four_floats g = FLOATS_AT(dy + j) * FLOATS_AT(weight + j);
            four_floats hat = (FLOATS_AT(x + j) - mean) * scale;
            a[k] += __builtin_convertvector(g, four);
            b[k] += __builtin_convertvector(g * hat, four);
        }
    for (int64_t k = 0; i + k < n; k++) {
        float g = dy[i + k] * weight[i + k], hat = (x[i + k] - mean) * scale;
        a[k / 4][k % 4] += (double)g, b[k / 4][k % 4] += (double)(g * hat);
    }
    return (struct moments){ EACH_NAME(total)(a), EACH_NAME(total)(b) };
}

static EACH_TARGET void EACH_NAME(row_gradient)(int64_t n, const float *x, const float *dy,
                                                const float *weight, const struct row_facts *row,
                                                float *dx)
{
    const float mean = row->mean, scale = row->scale, sum = row->mean_sum,
                product = row->mean_product;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = scale * (weight[i] * dy[i] - sum - (x[i] - mean) * scale * product);
}

/* Adds dy and dy xhat of some columns of one row. */
static EACH_TARGET void EACH_NAME(add_columns)(int64_t n, const float *x, const float *dy,
                                               float mean, float scale, double *sum,
                                               double *product)
{
#pragma omp simd
    for (int64_t k = 0; k < n; k++) {
        float hat = (x[k] - mean) * scale;
        sum[k] += (double)dy[k];
        product[k] += (double)(dy[k] * hat);
    }
}

static const struct normalize_loops EACH_NAME(normalize_loops) = {
    EACH_NAME(row_sum),           EACH_NAME(row_squares),  EACH_NAME(scale_row),
    EACH_NAME(weighted_products), EACH_NAME(row_gradient), EACH_NAME(add_columns),
};
#undef INLINE
