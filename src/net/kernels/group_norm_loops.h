/* group_norm_loops.h: included once for each instruction set with EACH_TARGET and EACH_NAME(name).
 * A run is n floats of one image, the channel of float i is that of lane i % WIDE. What is left of
 * a run behind whole rows of WIDE is copied to a row of its own, filled up with zeros. */
#define SUM_INTO(total, part)                                                                      \
    for (int k = 0; k < WIDE; k++)                                                                 \
    (total)[k] += (double)(part)[k]
/* The sums of x - shift and of its square. */
static EACH_TARGET void EACH_NAME(moments)(int64_t n, const float *x, const float *shift,
                                           double *sum, double *square)
{
    const wide s = WIDE_AT(shift);
    while (n >= WIDE) {
        int64_t rows = n / WIDE < PART ? n / WIDE : PART;
        wide a0 = { 0 }, a1 = { 0 }, b0 = { 0 }, b1 = { 0 };
        n -= rows * WIDE;
        for (; rows >= 2; rows -= 2, x += 2 * WIDE) {
            wide d0 = WIDE_AT(x) - s, d1 = WIDE_AT(x + WIDE) - s;
            a0 += d0, b0 += d0 * d0;
            a1 += d1, b1 += d1 * d1;
        }
        if (rows > 0) {
            wide d = WIDE_AT(x) - s;
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

/* z = (x - mean) scale + shift, and y of it. */
static EACH_TARGET void EACH_NAME(apply_rows)(int64_t rows, const float *x, const struct lanes *p,
                                              enum group_norm_then then, float *y)
{
    const wide mean = WIDE_AT(p->mean), scale = WIDE_AT(p->scale), shift = WIDE_AT(p->shift);
    if (then == GROUP_NORM_THEN_SILU) {
        for (int64_t i = 0; i < rows * WIDE; i += WIDE) {
            wide z = (WIDE_AT(x + i) - mean) * scale + shift, v;
            WIDE_SILU(v, z);
            WIDE_PUT(y + i, v);
        }
        return;
    }
    for (int64_t i = 0; i < rows * WIDE; i += WIDE) {
        wide z = (WIDE_AT(x + i) - mean) * scale + shift;
        *(wide_at *)(y + i) =
            then == GROUP_NORM_THEN_RELU ? (wide)((wide_bits)z & ~(z < 0)) : z; /* keeps NaN */
    }
}

static EACH_TARGET void EACH_NAME(apply)(int64_t n, const float *x, const struct lanes *p,
                                         enum group_norm_then then, float *y)
{
    int64_t whole = n / WIDE * WIDE;
    size_t rest = (size_t)(n - whole) * sizeof(float);
    EACH_NAME(apply_rows)(n / WIDE, x, p, then, y);
    if (rest > 0) {
        float row[WIDE] = { 0 };
        memcpy(row, x + whole, rest);
        EACH_NAME(apply_rows)(1, row, p, then, row);
        memcpy(y + whole, row, rest);
    }
}

/* Of at most PART rows: dz = dy times the slope of the activation, and the sums of dz and of dz (x
 * - mean) are added. */
static EACH_TARGET void EACH_NAME(product_rows)(int64_t rows, const float *x, const float *dy,
                                                const struct lanes *p, enum group_norm_then then,
                                                float *dz, double *sum, double *product)
{
    const wide mean = WIDE_AT(p->mean), scale = WIDE_AT(p->scale), shift = WIDE_AT(p->shift);
    wide a = { 0 }, b = { 0 };
    for (int64_t i = 0; i < rows * WIDE; i += WIDE) {
        wide c = WIDE_AT(x + i) - mean, g = WIDE_AT(dy + i);
        if (then == GROUP_NORM_THEN_SILU) {
            wide z = c * scale + shift;
            WIDE_SILU_BACK(g, g, z);
        } else if (then == GROUP_NORM_THEN_RELU) {
            g = (wide)((wide_bits)g & (c * scale + shift > 0));
        }
        if (then != GROUP_NORM_THEN_NOTHING)
            WIDE_PUT(dz + i, g);
        a += g, b += g * c;
    }
    SUM_INTO(sum, a);
    SUM_INTO(product, b);
}

static EACH_TARGET void EACH_NAME(products)(int64_t n, const float *x, const float *dy,
                                            const struct lanes *p, enum group_norm_then then,
                                            float *dz, double *sum, double *product)
{
    int64_t whole = n / WIDE * WIDE;
    size_t rest = (size_t)(n - whole) * sizeof(float);
    for (int64_t i = 0; i < whole; i += PART * WIDE)
        EACH_NAME(product_rows)
    (whole - i < PART * WIDE ? (whole - i) / WIDE : PART, x + i, dy + i, p, then, dz + i, sum,
     product);
    if (rest > 0) {
        float row[WIDE] = { 0 }, gradient[WIDE] = { 0 };
        memcpy(row, x + whole, rest), memcpy(gradient, dy + whole, rest);
        EACH_NAME(product_rows)(1, row, gradient, p, then, gradient, sum, product);
        if (then != GROUP_NORM_THEN_NOTHING)
            memcpy(dz + whole, gradient, rest);
    }
}

static EACH_TARGET void EACH_NAME(apply_back)(int64_t n, const float *x, const float *dz,
                                              const struct lanes *p, float *dx)
{
    const wide mean = WIDE_AT(p->mean), scale = WIDE_AT(p->scale), offset = WIDE_AT(p->offset),
               slope = WIDE_AT(p->slope);
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        *(wide_at *)(dx + i) = scale * WIDE_AT(dz + i) - offset - slope * (WIDE_AT(x + i) - mean);
    for (int k = 0; i < n; i++, k++)
        dx[i] = p->scale[k] * dz[i] - p->offset[k] - p->slope[k] * (x[i] - p->mean[k]);
}

static const struct group_norm_loops EACH_NAME(loops) = {
    EACH_NAME(moments),
    EACH_NAME(apply),
    EACH_NAME(products),
    EACH_NAME(apply_back),
};
#undef SUM_INTO
