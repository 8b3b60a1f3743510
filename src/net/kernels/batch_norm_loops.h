/* batch_norm_loops.h: included once for each instruction set with EACH_TARGET and EACH_NAME(name).
 * A run is n floats of one image, the channel of float i is that of lane i % WIDE. */
#define SUM_INTO(total, part)                                                                      \
    for (int k = 0; k < WIDE; k++)                                                                 \
    (total)[k] += (double)(part)[k]

/* The sums of x - shift and of its square. */
static EACH_TARGET void EACH_NAME(moments)(int64_t n, const float *x, const float *shift,
                                           double *sum, double *square)
{
    const wide s = *(const wide_at *)shift;
    while (n >= WIDE) {
        int64_t rows = n / WIDE < PART ? n / WIDE : PART;
        wide a0 = { 0 }, a1 = { 0 }, b0 = { 0 }, b1 = { 0 };
        n -= rows * WIDE;
        for (; rows >= 2; rows -= 2, x += 2 * WIDE) {
            wide d0 = *(const wide_at *)x - s, d1 = *(const wide_at *)(x + WIDE) - s;
            a0 += d0, b0 += d0 * d0;
            a1 += d1, b1 += d1 * d1;
        }
        if (rows > 0) {
            wide d = *(const wide_at *)x - s;
            a0 += d, b0 += d * d;
            x += WIDE;
        }
        a0 += a1, b0 += b1;
        SUM_INTO(sum, a0);
        SUM_INTO(square, b0);
    }
    for (int64_t i = 0; i < n; i++) {
        float d = x[i] - shift[i];
        sum[i] += (double)d, square[i] += (double)(d * d);
    }
}

/* passed: a bit for every float that the relu lets through, if it is not NULL. */
static EACH_TARGET void EACH_NAME(apply)(int64_t n, const float *x,
                                         const struct batch_norm_lanes *p, bool relu, float *y,
                                         uint16_t *passed)
{
    const wide mean = *(const wide_at *)p->mean, scale = *(const wide_at *)p->scale,
               shift = *(const wide_at *)p->shift;
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE) {
        wide v = (*(const wide_at *)(x + i) - mean) * scale + shift;
        *(wide_at *)(y + i) = relu ? (wide)((wide_bits)v & ~(v < 0)) : v; /* keeps NaN */
        if (passed) {
            wide_bits bits = (v > 0) & wide_places;
            int32_t all = 0;
            for (int k = 0; k < WIDE; k++)
                all |= bits[k];
            passed[i / WIDE] = (uint16_t)all;
        }
    }
    if (passed && i < n)
        passed[i / WIDE] = 0;
    for (int k = 0; i < n; i++, k++) {
        float v = (x[i] - p->mean[k]) * p->scale[k] + p->shift[k];
        y[i] = relu && v < 0 ? 0 : v;
        if (passed && v > 0)
            passed[i / WIDE] |= (uint16_t)(1 << k);
    }
}

/* dy where the relu let it through, by `passed` (at index i) or from c = x - mean. */
#define PASSED(c, dy, i)                                                                           \
    (!relu    ? (wide)(dy)                                                                         \
     : passed ? (wide)((wide_bits)(dy) & (((int32_t)passed[i] & wide_places) != 0))                \
              : (wide)((wide_bits)(dy) & ((c)*scale + shift > 0)))
#define PASSED_ONE(c, dy, i, k)                                                                    \
    (!relu ? (dy) : (passed ? passed[i] >> (k)&1 : (c)*p->scale[k] + p->shift[k] > 0) ? (dy) : 0)

/* The sums of dy and of dy (x - mean). */
static EACH_TARGET void EACH_NAME(products)(int64_t n, const float *x, const float *dy,
                                            const struct batch_norm_lanes *p, bool relu,
                                            const uint16_t *passed, double *sum, double *product)
{
    const wide mean = *(const wide_at *)p->mean, scale = *(const wide_at *)p->scale,
               shift = *(const wide_at *)p->shift;
    int64_t row = 0, whole = n / WIDE;
    while (row < whole) {
        int64_t end = row + PART < whole ? row + PART : whole;
        wide a0 = { 0 }, a1 = { 0 }, b0 = { 0 }, b1 = { 0 };
        for (; row + 2 <= end; row += 2) {
            const float *at = x + row * WIDE, *g = dy + row * WIDE;
            wide c0 = *(const wide_at *)at - mean, c1 = *(const wide_at *)(at + WIDE) - mean;
            wide g0 = PASSED(c0, *(const wide_at *)g, row);
            wide g1 = PASSED(c1, *(const wide_at *)(g + WIDE), row + 1);
            a0 += g0, b0 += g0 * c0;
            a1 += g1, b1 += g1 * c1;
        }
        for (; row < end; row++) {
            wide c = *(const wide_at *)(x + row * WIDE) - mean;
            wide g = PASSED(c, *(const wide_at *)(dy + row * WIDE), row);
            a0 += g, b0 += g * c;
        }
        a0 += a1, b0 += b1;
        SUM_INTO(sum, a0);
        SUM_INTO(product, b0);
    }
    for (int64_t i = whole * WIDE, k = 0; i < n; i++, k++) {
        float c = x[i] - p->mean[k], g = PASSED_ONE(c, dy[i], whole, k);
        sum[k] += (double)g, product[k] += (double)(g * c);
    }
}

/* dx = scale (dy - offset - slope (x - mean)) */
static EACH_TARGET void EACH_NAME(apply_back)(int64_t n, const float *x, const float *dy,
                                              const struct batch_norm_lanes *p, bool relu,
                                              const uint16_t *passed, float *dx)
{
    const wide mean = *(const wide_at *)p->mean, scale = *(const wide_at *)p->scale,
               shift = *(const wide_at *)p->shift, offset = *(const wide_at *)p->offset,
               slope = *(const wide_at *)p->slope;
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE) {
        wide c = *(const wide_at *)(x + i) - mean;
        wide g = PASSED(c, *(const wide_at *)(dy + i), i / WIDE);
        *(wide_at *)(dx + i) = scale * (g - offset - slope * c);
    }
    for (int k = 0; i < n; i++, k++) {
        float c = x[i] - p->mean[k], g = PASSED_ONE(c, dy[i], i / WIDE, k);
        dx[i] = p->scale[k] * (g - p->offset[k] - p->slope[k] * c);
    }
}

static const struct batch_norm_loops EACH_NAME(loops) = {
    EACH_NAME(moments),
    EACH_NAME(apply),
    EACH_NAME(products),
    EACH_NAME(apply_back),
};
#undef SUM_INTO
#undef PASSED
#undef PASSED_ONE
