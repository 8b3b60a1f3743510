/* elementwise_loops.h: included once for each instruction set with EACH_TARGET and EACH_NAME(name).
 */
#define ROW(name, expression)                                                                      \
    static EACH_TARGET void EACH_NAME(name)(int64_t count, const float *a, const float *b,         \
                                            float *out, struct elementwise_args args)              \
    {                                                                                              \
        (void)b, (void)args;                                                                       \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) out[i] = (expression);             \
    }

ROW(row_add, a[i] + b[i])
ROW(row_sub, a[i] - b[i])
ROW(row_mul, a[i] * b[i])
ROW(row_div, a[i] / b[i])
ROW(row_relu, a[i] < 0 ? 0 : a[i])
ROW(row_relu_back, b[i] > 0 ? a[i] : 0)
ROW(row_leaky, a[i] < 0 ? args.alpha * a[i] : a[i])
ROW(row_leaky_back, b[i] < 0 ? args.alpha * a[i] : a[i])
ROW(row_scale, args.alpha *a[i] + args.beta)
ROW(row_add_relu, a[i] + b[i] < 0 ? 0 : a[i] + b[i])

/* Whole rows of WIDE floats; what is left of them is copied to a row of its own. */
static EACH_TARGET void EACH_NAME(silu_rows)(int64_t count, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i += WIDE) {
        wide z = WIDE_AT(x + i), v;
        WIDE_SILU(v, z);
        WIDE_PUT(y + i, v);
    }
}

static EACH_TARGET void EACH_NAME(row_silu)(int64_t count, const float *a, const float *b,
                                            float *out, struct elementwise_args args)
{
    (void)b, (void)args;
    int64_t whole = count / WIDE * WIDE;
    size_t rest = (size_t)(count - whole) * sizeof(float);
    float x[WIDE] = { 0 };
    EACH_NAME(silu_rows)(whole, a, out);
    if (rest > 0) {
        memcpy(x, a + whole, rest);
        EACH_NAME(silu_rows)(WIDE, x, x);
        memcpy(out + whole, x, rest);
    }
}

static EACH_TARGET void EACH_NAME(silu_back_rows)(int64_t count, const float *dy, const float *x,
                                                  float *dx)
{
    for (int64_t i = 0; i < count; i += WIDE) {
        wide z = WIDE_AT(x + i), g = WIDE_AT(dy + i);
        WIDE_SILU_BACK(g, g, z);
        WIDE_PUT(dx + i, g);
    }
}

static EACH_TARGET void EACH_NAME(row_silu_back)(int64_t count, const float *a, const float *b,
                                                 float *out, struct elementwise_args args)
{
    (void)args;
    int64_t whole = count / WIDE * WIDE;
    size_t rest = (size_t)(count - whole) * sizeof(float);
    float x[WIDE] = { 0 }, dy[WIDE] = { 0 };
    EACH_NAME(silu_back_rows)(whole, a, b, out);
    if (rest > 0) {
        memcpy(dy, a + whole, rest), memcpy(x, b + whole, rest);
        EACH_NAME(silu_back_rows)(WIDE, dy, x, dy);
        memcpy(out + whole, dy, rest);
    }
}

static const elementwise_fn EACH_NAME(rows)[EW_KINDS] = {
    [EW_ADD] = EACH_NAME(row_add),     [EW_SUB] = EACH_NAME(row_sub),
    [EW_MUL] = EACH_NAME(row_mul),     [EW_DIV] = EACH_NAME(row_div),
    [EW_RELU] = EACH_NAME(row_relu),   [EW_RELU_BACK] = EACH_NAME(row_relu_back),
    [EW_LEAKY] = EACH_NAME(row_leaky), [EW_LEAKY_BACK] = EACH_NAME(row_leaky_back),
    [EW_SCALE] = EACH_NAME(row_scale), [EW_ADD_RELU] = EACH_NAME(row_add_relu),
    [EW_SILU] = EACH_NAME(row_silu),   [EW_SILU_BACK] = EACH_NAME(row_silu_back),
};
#undef ROW
