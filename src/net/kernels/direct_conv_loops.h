/* direct_conv_loops.h: the vector code, included once for each instruction set with
 *   TARGET, VARIANT(name), VEC (a register of LANES floats), VEC_LOAD, VEC_STORE, VEC_SET,
 *   VEC_FMA(a, b, c) = a b + c, VEC_MAX(a, b) (b where a is NaN) and ROWS, the pixels of a
 * register kernel with two blocks of outputs: ROWS x 2 sums, 2 weights and 1 input fill the
 * registers, or 2 ROWS x 1, or as much with three blocks and, of AVX2, four. With AVX2, 12 sums
 * take 6 cycles and, as 6 x 2, 8 of the 12 loads possible in that time; 4 x 3 and 3 x 4 need 7.
 * Measured on layers (Zen 4), the former reaches 88 % of peak and the latter 95 %: hence panels of
 * three and four. */
#define INLINE static inline __attribute__((always_inline)) TARGET
#define UNROLL _Pragma("GCC unroll 32")

/* Adds the products of one input of `rows` pixels with its weights; what is fewer of both stays in
 * registers meanwhile. */
INLINE void VARIANT(multiply)(int rows, int columns, const float *v, const float *u,
                              VEC sum[2 * ROWS][MOST_COLUMNS])
{
    VEC few[MOST_COLUMNS];
    if (rows < columns) {
        UNROLL for (int r = 0; r < rows; r++) few[r] = VEC_SET(v[r * LANES]);
        UNROLL for (int k = 0; k < columns; k++)
        {
            VEC weight = VEC_LOAD(u + k * LANES);
            UNROLL for (int r = 0; r < rows; r++) sum[r][k] = VEC_FMA(few[r], weight, sum[r][k]);
        }
        return;
    }
    UNROLL for (int k = 0; k < columns; k++) few[k] = VEC_LOAD(u + k * LANES);
    UNROLL for (int r = 0; r < rows; r++)
    {
        VEC x = VEC_SET(v[r * LANES]);
        UNROLL for (int k = 0; k < columns; k++) sum[r][k] = VEC_FMA(x, few[k], sum[r][k]);
    }
}

/* `rows` pixels x `columns` blocks of outputs: the sums stay in registers. On the way the outputs'
 * memory, the next weights and the inputs of the next pixels are fetched. */
INLINE void VARIANT(sums)(int rows, int columns, const struct direct_tile *t)
{
    const float *v = t->v, *u = t->u, *next_u = t->next_u, *next_v = t->next_v;
    VEC sum[2 * ROWS][MOST_COLUMNS];
    UNROLL for (int k = 0; k < columns; k++)
    {
        VEC begin = t->bias ? VEC_LOAD(t->bias + k * LANES) : VEC_SET(0.0f);
        UNROLL for (int r = 0; r < rows; r++) sum[r][k] = begin;
    }
    if (t->begin) {
        UNROLL for (int k = 0; k < columns; k++) UNROLL for (int r = 0; r < rows; r++) sum[r][k] +=
            VEC_LOAD(t->begin + k * t->y_step + r * LANES);
    }
    UNROLL for (int k = 0; k < columns; k++) UNROLL for (int r = 0; r < rows; r++)
        __builtin_prefetch(t->y + k * t->y_step + r * LANES, 1, 3);
    for (int64_t blocks = t->depth; blocks > 0; blocks--) {
        for (int64_t i = 0; i < t->lines_u; i++)
            __builtin_prefetch(next_u + i * 16, 0, 2);
        for (int64_t i = 0; i < t->lines_v; i++)
            __builtin_prefetch(next_v + i * 16, 0, 2);
        /* Twice: more was measured to be slower (AVX2, all in the first-level cache: 2 %). */
        _Pragma("GCC unroll 2") for (int c = 0; c < LANES; c++)
            VARIANT(multiply)(rows, columns, v + c, u + columns * LANES * c, sum);
        v += t->v_step, next_v += t->v_step;
        u += columns * LANES * LANES, next_u += columns * LANES * LANES;
    }
    if (t->relu) {
        UNROLL for (int k = 0; k < columns; k++) UNROLL for (int r = 0; r < rows; r++) sum[r][k] =
            VEC_MAX(VEC_SET(0.0f), sum[r][k]);
    }
    UNROLL for (int k = 0; k < columns; k++) UNROLL for (int r = 0; r < rows; r++)
        VEC_STORE(t->y + k * t->y_step + r * LANES, sum[r][k]);
}

#define SUMS(columns, r)                                                                           \
    static TARGET void VARIANT(sums_##columns##_##r)(const struct direct_tile *t)                  \
    {                                                                                              \
        VARIANT(sums)(r, columns, t);                                                              \
    }
#define NAME(columns, r) VARIANT(sums_##columns##_##r),
#if LANES == 16
#define EACH_4(f)
#define EACH_3(f) f(3, 1) f(3, 2) f(3, 3) f(3, 4) f(3, 5) f(3, 6) f(3, 7) f(3, 8) f(3, 9)
#define EACH_2(f)                                                                                  \
    f(2, 1) f(2, 2) f(2, 3) f(2, 4) f(2, 5) f(2, 6) f(2, 7) f(2, 8) f(2, 9) f(2, 10) f(2, 11)      \
        f(2, 12) f(2, 13) f(2, 14)
#define EACH_1(f)                                                                                  \
    f(1, 1) f(1, 2) f(1, 3) f(1, 4) f(1, 5) f(1, 6) f(1, 7) f(1, 8) f(1, 9) f(1, 10) f(1, 11)      \
        f(1, 12) f(1, 13) f(1, 14) f(1, 15) f(1, 16) f(1, 17) f(1, 18) f(1, 19) f(1, 20) f(1, 21)  \
            f(1, 22) f(1, 23) f(1, 24) f(1, 25) f(1, 26) f(1, 27) f(1, 28)
#else
#define EACH_4(f) f(4, 1) f(4, 2) f(4, 3)
#define EACH_3(f) f(3, 1) f(3, 2) f(3, 3) f(3, 4)
#define EACH_2(f) f(2, 1) f(2, 2) f(2, 3) f(2, 4) f(2, 5) f(2, 6)
#define EACH_1(f)                                                                                  \
    f(1, 1) f(1, 2) f(1, 3) f(1, 4) f(1, 5) f(1, 6) f(1, 7) f(1, 8) f(1, 9) f(1, 10) f(1, 11)      \
        f(1, 12)
#endif
EACH_1(SUMS)
EACH_2(SUMS)
EACH_3(SUMS)
EACH_4(SUMS)
static const direct_sums VARIANT(sums_1)[] = { NULL, EACH_1(NAME) };
static const direct_sums VARIANT(sums_2)[] = { NULL, EACH_2(NAME) };
static const direct_sums VARIANT(sums_3)[] = { NULL, EACH_3(NAME) };
static const direct_sums VARIANT(sums_4)[] = { NULL, EACH_4(NAME) };

/* One row of outputs, n from column `from` on: the inputs that one tap sees, zeros outside. x is
 * the row of the image, NULL if it lies outside. */
INLINE void VARIANT(pack_row)(const float *x, int64_t width, int64_t column, int64_t stride,
                              int64_t n, float *v)
{
    int64_t before = column < 0 ? (stride - 1 - column) / stride : 0;
    int64_t inside = column < width ? (width - column + stride - 1) / stride : 0;
    int64_t begin = before < n && x ? before : n, end = inside < n ? inside : n, i = 0;
    for (; i < begin; i++)
        VEC_STORE(v + i * LANES, VEC_SET(0.0f));
    for (; i < end; i++)
        VEC_STORE(v + i * LANES, VEC_LOAD(x + (column + i * stride) * LANES));
    for (; i < n; i++)
        VEC_STORE(v + i * LANES, VEC_SET(0.0f));
}

/* n pixels of an image from pixel `first` on -> v [in_blocks][taps][step], [n][LANES] each. */
static TARGET void VARIANT(pack)(const struct direct_conv *c, const float *x, int64_t first,
                                 int64_t n, float *v, int64_t step)
{
    for (int64_t b = 0; b < c->in_blocks; b++, x += c->height * c->width * LANES)
        for (int64_t i = 0; i < c->kernel[0]; i++)
            for (int64_t j = 0; j < c->kernel[1]; j++, v += step)
                for (int64_t p = first; p < first + n;) {
                    int64_t y = p / c->out_width, column = p % c->out_width;
                    int64_t left = c->out_width - column, most = first + n - p;
                    int64_t length = left < most ? left : most;
                    int64_t row = y * c->stride[0] + i * c->dilation[0] - c->pad[0];
                    const float *from =
                        row >= 0 && row < c->height ? x + row * c->width * LANES : NULL;
                    VARIANT(pack_row)
                    (from, c->width, column * c->stride[1] + j * c->dilation[1] - c->pad[1],
                     c->stride[1], length, v + (p - first) * LANES);
                    p += length;
                }
}

static const struct direct_loops VARIANT(loops) = {
    .lanes = LANES,
    .columns = LANES == 8 ? 3 : 2,
    .rows = { 0, 2 * ROWS, ROWS, sizeof VARIANT(sums_3) / sizeof *VARIANT(sums_3) - 1,
              sizeof VARIANT(sums_4) / sizeof *VARIANT(sums_4) - 1 },
    .sums = { NULL, VARIANT(sums_1), VARIANT(sums_2), VARIANT(sums_3), VARIANT(sums_4) },
    .pack = VARIANT(pack),
};
#undef INLINE
#undef UNROLL
#undef SUMS
#undef NAME
#undef EACH_1
#undef EACH_2
#undef EACH_3
#undef EACH_4
