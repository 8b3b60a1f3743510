/* stem_conv_loops.h: the vector code, included once for each instruction set with
 *   TARGET, VARIANT(name), VEC (a register of LANES floats), VEC_LOAD, VEC_STORE, VEC_SET,
 *   VEC_FMA(a, b, c) = a b + c, VEC_MAX(a, b) (b where a is NaN) and ROWS, the tiles of the largest
 *   register kernel: ROWS x 2 sums, 2 weights and 1 input fill the registers. */
#define INLINE static inline __attribute__((always_inline)) TARGET
#define UNROLL _Pragma("GCC unroll 16")

/* Bt d: the points of n tiles; a tile's six pixels begin three after those of the one before. Works
 * on registers of 8 floats, six of which are the pixel's: whatever is written after them belongs to
 * the next tile or, at the end of the row, to the gap between points. */
static TARGET void VARIANT(points)(const float *split, int64_t n, float *points, int64_t step)
{
    const __m256 a = _mm256_set1_ps((float)POINT_A), b = _mm256_set1_ps((float)POINT_B);
    const __m256 aa = _mm256_set1_ps(-0.5f), bb = _mm256_set1_ps(-2.0f);
    const __m256 sum = _mm256_set1_ps(-2.5f); /* a a b b = 1 */
    for (int64_t t = 0; t < n; t++, split += (TILE * PIXEL), points += PIXEL) {
        __m256 d[POINTS];
        UNROLL for (int i = 0; i < POINTS; i++) d[i] = _mm256_loadu_ps(split + i * PIXEL);
        __m256 even_b = _mm256_fmadd_ps(bb, d[2], d[4]), odd_b = _mm256_fmadd_ps(bb, d[1], d[3]);
        __m256 even_a = _mm256_fmadd_ps(aa, d[2], d[4]), odd_a = _mm256_fmadd_ps(aa, d[1], d[3]);
        _mm256_storeu_ps(points, _mm256_fmadd_ps(sum, d[2], d[4]) + d[0]);
        _mm256_storeu_ps(points + step, _mm256_fmadd_ps(a, odd_b, even_b));
        _mm256_storeu_ps(points + 2 * step, _mm256_fnmadd_ps(a, odd_b, even_b));
        _mm256_storeu_ps(points + 3 * step, _mm256_fmadd_ps(b, odd_a, even_a));
        _mm256_storeu_ps(points + 4 * step, _mm256_fnmadd_ps(b, odd_a, even_a));
        _mm256_storeu_ps(points + 5 * step, _mm256_fmadd_ps(sum, d[3], d[5]) + d[1]);
    }
}

/* m [tiles][columns][LANES] of one point: sums over the rows of the kernel and the floats of a
 * pixel, in steps of `skip`. */
INLINE void VARIANT(product)(int rows, int columns, int skip, const float *const v[STEM_KERNEL],
                             const float *u, float *m)
{
    VEC sum[ROWS][2];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < columns; k++) sum[r][k] =
        VEC_SET(0.0f);
    for (int i = 0; i < STEM_KERNEL; i++) {
        const float *x = v[i];
        UNROLL for (int e = 0; e < PIXEL; e += skip)
        {
            VEC u0 = VEC_LOAD(u), u1 = columns > 1 ? VEC_LOAD(u + LANES) : u0;
            UNROLL for (int r = 0; r < rows; r++)
            {
                VEC input = VEC_SET(x[r * PIXEL + e]);
                sum[r][0] = VEC_FMA(input, u0, sum[r][0]);
                if (columns > 1)
                    sum[r][1] = VEC_FMA(input, u1, sum[r][1]);
            }
            u += 2 * LANES;
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < columns; k++)
        VEC_STORE(m + (r * 2 + k) * LANES, sum[r][k]);
}

#define PRODUCT(r)                                                                                 \
    static TARGET void VARIANT(product_##r)(                                                       \
        bool one, bool last, const float *const v[STEM_KERNEL], const float *u, float *m)          \
    {                                                                                              \
        if (one)                                                                                   \
            VARIANT(product)(r, 1, last ? 2 : 1, v, u, m);                                         \
        else if (last)                                                                             \
            VARIANT(product)(r, 2, 2, v, u, m);                                                    \
        else                                                                                       \
            VARIANT(product)(r, 2, 1, v, u, m);                                                    \
    }
#define NAME(r) VARIANT(product_##r),
#if ROWS == 14
#define EACH(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14)
#else
#define EACH(f) f(1) f(2) f(3) f(4) f(5) f(6)
#endif
EACH(PRODUCT)
static const stem_product VARIANT(products)[ROWS + 1] = { NULL, EACH(NAME) };

/* At m: n tiles of one block of outputs, from m [points][step] to `length` pixels of a row. */
static TARGET void VARIANT(outputs)(const float *m, int64_t step, int64_t n, const float *bias,
                                    bool relu, float *y, int64_t length)
{
    const VEC a = VEC_SET((float)POINT_A), b = VEC_SET((float)POINT_B);
    const VEC aa = VEC_SET(0.5f), bb = VEC_SET(2.0f), begin = VEC_LOAD(bias);
    for (int64_t t = 0; t < n; t++, m += 2 * LANES, y += TILE * LANES) {
        VEC p[POINTS], o[TILE];
        UNROLL for (int i = 0; i < POINTS; i++) p[i] = VEC_LOAD(m + i * step);
        VEC sum_a = p[1] + p[2], less_a = p[1] - p[2], sum_b = p[3] + p[4], less_b = p[3] - p[4];
        o[0] = p[0] + sum_a + sum_b + begin;
        o[1] = VEC_FMA(b, less_b, a * less_a) + begin;
        o[2] = VEC_FMA(bb, sum_b, VEC_FMA(aa, sum_a, p[5])) + begin;
        int64_t left = length - t * TILE;
        UNROLL for (int i = 0; i < TILE; i++) if (i < left)
            VEC_STORE(y + i * LANES, relu ? VEC_MAX(VEC_SET(0.0f), o[i]) : o[i]);
    }
}

static const struct stem_loops VARIANT(loops) = { LANES, ROWS, VARIANT(points), VARIANT(products),
                                                  VARIANT(outputs) };
#undef INLINE
#undef UNROLL
#undef PRODUCT
#undef NAME
#undef EACH
