/* direct_conv_loops.h: the vector code, included once for each instruction set with
 *   TARGET, VARIANT(name), VEC (a register of LANES floats), VEC_LOAD, VEC_STORE, VEC_SET,
 *   VEC_FMA(a, b, c) = a b + c, VEC_MAX(a, b) (b where a is NaN) and ROWS, the pixels of the
 * largest register kernel: ROWS x 2 sums, 2 weights and 1 input fill the registers, or 2 ROWS x 1.
 */
#define INLINE static inline __attribute__((always_inline)) TARGET
#define UNROLL _Pragma("GCC unroll 32")

/* `rows` pixels x `columns` blocks of outputs: the sums stay in registers. On the way the outputs'
 * memory, the next weights and the inputs of the next pixels are fetched. */
INLINE void VARIANT(sums)(int rows, int columns, const struct direct_tile *t)
{
    const float *v = t->v, *u = t->u, *next_u = t->next_u, *next_v = t->next_v;
    VEC sum[2 * ROWS][3];
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
        _Pragma("GCC unroll 8") for (int c = 0; c < LANES; c++)
        {
            const float *weight = u + columns * LANES * c;
            VEC u0 = VEC_LOAD(weight), u1 = columns > 1 ? VEC_LOAD(weight + LANES) : u0;
            VEC u2 = columns > 2 ? VEC_LOAD(weight + 2 * LANES) : u0;
            UNROLL for (int r = 0; r < rows; r++)
            {
                VEC x = VEC_SET(v[r * LANES + c]);
                sum[r][0] = VEC_FMA(x, u0, sum[r][0]);
                if (columns > 1)
                    sum[r][1] = VEC_FMA(x, u1, sum[r][1]);
                if (columns > 2)
                    sum[r][2] = VEC_FMA(x, u2, sum[r][2]);
            }
        }
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
#define EACH_3(f) f(3, 1) f(3, 2) f(3, 3) f(3, 4) f(3, 5) f(3, 6) f(3, 7) f(3, 8) f(3, 9)
#define EACH_2(f)                                                                                  \
    f(2, 1) f(2, 2) f(2, 3) f(2, 4) f(2, 5) f(2, 6) f(2, 7) f(2, 8) f(2, 9) f(2, 10) f(2, 11)      \
        f(2, 12) f(2, 13) f(2, 14)
#define EACH_1(f)                                                                                  \
    f(1, 1) f(1, 2) f(1, 3) f(1, 4) f(1, 5) f(1, 6) f(1, 7) f(1, 8) f(1, 9) f(1, 10) f(1, 11)      \
        f(1, 12) f(1, 13) f(1, 14) f(1, 15) f(1, 16) f(1, 17) f(1, 18) f(1, 19) f(1, 20) f(1, 21)  \
            f(1, 22) f(1, 23) f(1, 24) f(1, 25) f(1, 26) f(1, 27) f(1, 28)
#else
#define EACH_3(f) f(3, 1) f(3, 2) f(3, 3) f(3, 4)
#define EACH_2(f) f(2, 1) f(2, 2) f(2, 3) f(2, 4) f(2, 5) f(2, 6)
#define EACH_1(f)                                                                                  \
    f(1, 1) f(1, 2) f(1, 3) f(1, 4) f(1, 5) f(1, 6) f(1, 7) f(1, 8) f(1, 9) f(1, 10) f(1, 11)      \
        f(1, 12)
#endif
EACH_1(SUMS)
EACH_2(SUMS)
EACH_3(SUMS)
static const direct_sums VARIANT(sums_1)[] = { NULL, EACH_1(NAME) };
static const direct_sums VARIANT(sums_2)[] = { NULL, EACH_2(NAME) };
static const direct_sums VARIANT(sums_3)[] = { NULL, EACH_3(NAME) };

/* One row of outputs, n from column `from` on: the inputs that one tap sees, zeros outside. x is
 * the row of the image, NULL if it lies outside. */
INLINE void VARIANT(pack_row)(const float *x, int64_t width, int64_t column, int64_t stride,
                              int64_t n, float *v)
{
    for (int64_t i = 0; i < n; i++, column += stride, v += LANES) {
        bool inside = x && column >= 0 && column < width;
        VEC_STORE(v, inside ? VEC_LOAD(x + column * LANES) : VEC_SET(0.0f));
    }
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
    .rows = { 0, 2 * ROWS, ROWS, sizeof VARIANT(sums_3) / sizeof *VARIANT(sums_3) - 1 },
    .sums = { NULL, VARIANT(sums_1), VARIANT(sums_2), VARIANT(sums_3) },
    .pack = VARIANT(pack),
};
#undef INLINE
#undef UNROLL
#undef SUMS
#undef NAME
#undef EACH_1
#undef EACH_2
#undef EACH_3
