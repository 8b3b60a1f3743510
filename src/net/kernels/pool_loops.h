/* pool_loops.h: included once for each instruction set and block size with TARGET, VARIANT(name),
 * INNER (floats of a px) and LANES (floats of a vector; divides INNER). Taps are visited in the
 * order of rows and columns; the first largest one wins, and NaN wins over all, as in PyTorch. */
#define PARTS (INNER / LANES)
typedef float VARIANT(vec) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t VARIANT(ints) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint16_t VARIANT(shorts) __attribute__((vector_size(LANES * 2), aligned(2), may_alias));
#define VEC VARIANT(vec)
#define INTS VARIANT(ints)
#define SHORTS VARIANT(shorts)
#define AT(p, k) (((const VEC *)(const void *)(p))[k])
#define TO(p, k) (((VEC *)(void *)(p))[k])
#define PICK(mask, a, b) ((VEC)(((mask) & (INTS)(a)) | (~(mask) & (INTS)(b))))

/* The larger one, a if they are equal; NaN if either is. The instructions give a where b is NaN. */
#if LANES == 16
#define LARGER(a, b) VARIANT(larger)((__m512)(a), (__m512)(b))
static inline TARGET VEC VARIANT(larger)(__m512 a, __m512 b)
{
    return (VEC)_mm512_mask_max_ps(b, _mm512_cmp_ps_mask(b, b, _CMP_ORD_Q), b, a);
}
#elif LANES == 8
#define LARGER(a, b) VARIANT(larger)((__m256)(a), (__m256)(b))
static inline TARGET VEC VARIANT(larger)(__m256 a, __m256 b)
{
    return (VEC)_mm256_blendv_ps(_mm256_max_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}
#else
#define LARGER(a, b) PICK(((b) > (a)) | ((b) != (b)), b, a)
#endif

static inline TARGET void VARIANT(max_px)(const float *first, int64_t row_step, int64_t step,
                                          int32_t rows, int32_t columns, float *out)
{
    VEC best[PARTS];
    for (int k = 0; k < PARTS; k++)
        best[k] = AT(first, k);
    for (int32_t r = 0; r < rows; r++) {
        const float *at = first + r * row_step;
        for (int32_t c = 0; c < columns; c++, at += step)
            for (int k = 0; k < PARTS; k++)
                best[k] = LARGER(best[k], AT(at, k));
    }
    for (int k = 0; k < PARTS; k++)
        TO(out, k) = best[k];
}

/* n outputs of windows of 3 x 3 that lie within the image, taps `step` floats apart, windows
 * `stride` times as far: the largest of three rows is taken once for each column. */
static inline __attribute__((always_inline)) TARGET void
VARIANT(max_3x3)(const float *first, int64_t row_step, int64_t step, int stride, int64_t n,
                 float *out, int64_t out_step)
{
    for (int k = 0; k < PARTS; k++) {
        const float *at = first + k * LANES, *under = at + row_step, *last = under + row_step;
        float *to = out + k * LANES;
        VEC column[3];
#define COLUMN(c)                                                                                  \
    LARGER(LARGER(AT(at + (c)*step, 0), AT(under + (c)*step, 0)), AT(last + (c)*step, 0))
        column[0] = COLUMN(0), column[1] = COLUMN(1);
        for (int64_t i = 0; i < n; i++, to += out_step) {
            column[2] = COLUMN(2);
            TO(to, 0) = LARGER(LARGER(column[0], column[1]), column[2]);
            column[0] = column[stride], column[1] = stride == 1 ? column[2] : COLUMN(3);
            at += stride * step, under += stride * step, last += stride * step;
        }
#undef COLUMN
    }
}

/* How many outputs from i on max_3x3 can make: 0 if none. With stride 2 it reads a column ahead.
 * Windows with dilation overlap every `step` outputs: it is called for each of these phases. */
static inline int64_t VARIANT(run_3x3)(const struct pool_window *w, int64_t y, int64_t i,
                                       int32_t *stride)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t n = 0;
    if (h->count[y] != 3 || v->count[i] != 3 || i + 1 >= v->out)
        return 0;
    *stride = v->begin[i + 1] - v->begin[i];
    while ((*stride == 1 || (*stride == 2 && v->step == 1)) && i + n < v->out &&
           v->count[i + n] == 3 && v->begin[i + n] == v->begin[i] + n * *stride &&
           v->begin[i + n] + (*stride + 1) * v->step < v->in)
        n++;
    return n;
}

static inline TARGET void VARIANT(max_index_px)(const float *first, int64_t row_step, int64_t step,
                                                int32_t rows, int32_t columns, int32_t tap,
                                                int32_t tap_row, float *out, uint16_t *index)
{
    VEC best[PARTS];
    INTS which[PARTS];
    for (int k = 0; k < PARTS; k++)
        best[k] = AT(first, k), which[k] = (INTS){ 0 } + tap;
    for (int32_t r = 0; r < rows; r++) {
        const float *at = first + r * row_step;
        for (int32_t c = 0; c < columns; c++, at += step)
            for (int k = 0; k < PARTS; k++) {
                VEC v = AT(at, k);
                INTS larger = (v > best[k]) | (v != v),
                     here = (INTS){ 0 } + (tap + r * tap_row + c);
                best[k] = PICK(larger, v, best[k]);
                which[k] = (larger & here) | (~larger & which[k]);
            }
    }
    for (int k = 0; k < PARTS; k++) {
        TO(out, k) = best[k];
        ((SHORTS *)(void *)index)[k] = __builtin_convertvector(which[k], SHORTS);
    }
}

static TARGET void VARIANT(max)(const struct pool_window *w, int64_t y, const float *x, float *out,
                                uint16_t *index)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t row = v->in * INNER, row_step = h->step * row, step = v->step * INNER;
    int32_t taps = (int32_t)v->taps;
    for (int64_t i = 0, n; i < v->out; i += n) {
        const float *first = x + h->begin[y] * row + v->begin[i] * INNER;
        int32_t stride = 0, tap = h->tap[y] * taps + v->tap[i];
        n = index ? 0 : VARIANT(run_3x3)(w, y, i, &stride);
        for (int64_t p = 0; stride == 1 && p < v->step && p < n; p++)
            VARIANT(max_3x3)
        (first + p * INNER, row_step, step, 1, (n - p + v->step - 1) / v->step,
         out + (i + p) * INNER, step);
        if (n > 0 && stride == 2)
            VARIANT(max_3x3)(first, row_step, INNER, 2, n, out + i * INNER, INNER);
        else if (!n && !index)
            VARIANT(max_px)(first, row_step, step, h->count[y], v->count[i], out + i * INNER);
        else if (!n)
            VARIANT(max_index_px)
        (first, row_step, step, h->count[y], v->count[i], tap, taps, out + i * INNER,
         index + i * INNER);
        n = n > 0 ? n : 1;
    }
}

static TARGET void VARIANT(max_back)(const struct pool_window *w, int64_t y, const float *dy,
                                     const uint16_t *index, float *dx)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t row = v->in * INNER, step = v->step * INNER;
    for (int64_t i = 0; i < v->out; i++) {
        VEC from[PARTS];
        INTS which[PARTS];
        for (int k = 0; k < PARTS; k++) {
            from[k] = AT(dy + i * INNER, k);
            which[k] = __builtin_convertvector(
                ((const SHORTS *)(const void *)(index + i * INNER))[k], INTS);
        }
        for (int32_t r = 0; r < h->count[y]; r++) {
            float *to = dx + (h->begin[y] + r * h->step) * row + v->begin[i] * INNER;
            int32_t tap = (int32_t)((h->tap[y] + r) * v->taps) + v->tap[i];
            for (int32_t c = 0; c < v->count[i]; c++, to += step)
                for (int k = 0; k < PARTS; k++) {
                    INTS hit = which[k] == (INTS){ 0 } + (tap + c);
                    TO(to, k) = AT(to, k) + PICK(hit, from[k], (VEC){ 0 });
                }
        }
    }
}

static TARGET void VARIANT(mean)(const struct pool_window *w, int64_t y, const float *x, float *out)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t row = v->in * INNER, step = v->step * INNER;
    for (int64_t i = 0; i < v->out; i++) {
        VEC sum[PARTS] = { { 0 } };
        for (int32_t r = 0; r < h->count[y]; r++) {
            const float *at = x + (h->begin[y] + r * h->step) * row + v->begin[i] * INNER;
            for (int32_t c = 0; c < v->count[i]; c++, at += step)
                for (int k = 0; k < PARTS; k++)
                    sum[k] += AT(at, k);
        }
        float divisor = (float)h->divisor[y] * (float)v->divisor[i];
        for (int k = 0; k < PARTS; k++)
            TO(out + i * INNER, k) = sum[k] / divisor;
    }
}

static TARGET void VARIANT(mean_back)(const struct pool_window *w, int64_t y, const float *dy,
                                      float *dx)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t row = v->in * INNER, step = v->step * INNER;
    for (int64_t i = 0; i < v->out; i++) {
        float divisor = (float)h->divisor[y] * (float)v->divisor[i];
        VEC share[PARTS];
        for (int k = 0; k < PARTS; k++)
            share[k] = AT(dy + i * INNER, k) / divisor;
        for (int32_t r = 0; r < h->count[y]; r++) {
            float *to = dx + (h->begin[y] + r * h->step) * row + v->begin[i] * INNER;
            for (int32_t c = 0; c < v->count[i]; c++, to += step)
                for (int k = 0; k < PARTS; k++)
                    TO(to, k) = AT(to, k) + share[k];
        }
    }
}

static const struct pool_rows VARIANT(rows) = { VARIANT(max), VARIANT(max_back), VARIANT(mean),
                                                VARIANT(mean_back) };
#undef TARGET
#undef VARIANT
#undef INNER
#undef LANES
#undef PARTS
#undef VEC
#undef INTS
#undef SHORTS
#undef AT
#undef TO
#undef PICK
#undef LARGER
