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

static const elementwise_fn EACH_NAME(rows)[EW_KINDS] = {
    [EW_ADD] = EACH_NAME(row_add),     [EW_SUB] = EACH_NAME(row_sub),
    [EW_MUL] = EACH_NAME(row_mul),     [EW_DIV] = EACH_NAME(row_div),
    [EW_RELU] = EACH_NAME(row_relu),   [EW_RELU_BACK] = EACH_NAME(row_relu_back),
    [EW_LEAKY] = EACH_NAME(row_leaky), [EW_LEAKY_BACK] = EACH_NAME(row_leaky_back),
    [EW_SCALE] = EACH_NAME(row_scale), [EW_ADD_RELU] = EACH_NAME(row_add_relu),
};
#undef ROW
