/* elementwise_loops.h: included once for each instruction set with TARGET and VARIANT(name). */
#define ROW(name, expression)                                                                      \
    static TARGET void VARIANT(name)(int64_t count, const float *a, const float *b, float *out,    \
                                     struct elementwise_args args)                                 \
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

static const elementwise_fn VARIANT(rows)[EW_KINDS] = {
    [EW_ADD] = VARIANT(row_add),     [EW_SUB] = VARIANT(row_sub),
    [EW_MUL] = VARIANT(row_mul),     [EW_DIV] = VARIANT(row_div),
    [EW_RELU] = VARIANT(row_relu),   [EW_RELU_BACK] = VARIANT(row_relu_back),
    [EW_LEAKY] = VARIANT(row_leaky), [EW_LEAKY_BACK] = VARIANT(row_leaky_back),
    [EW_SCALE] = VARIANT(row_scale), [EW_ADD_RELU] = VARIANT(row_add_relu),
};
#undef ROW
