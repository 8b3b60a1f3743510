/* winograd_conv_loops.h: the vector code, included once for each instruction set with
 *   TARGET, VARIANT(name), VEC (a register of LANES floats), VEC_LOAD, VEC_STORE, VEC_STREAM (past
 *   the caches), VEC_SET, VEC_FMA(a, b, c) = a b + c, VEC_MAX(a, b) (b where a is NaN) and ROWS,
 *   the tiles of the largest register kernel: ROWS x 2 sums, 2 weights and 1 input fill the
 *   registers.
 * A tile of m x m outputs has (m + 2) x (m + 2) points. */
#define INLINE static inline __attribute__((always_inline)) TARGET
#define UNROLL _Pragma("GCC unroll 16")

#include "net/kernels/winograd_points.h"

/* rows x columns outputs of a tile, LANES channels -> the points that they are computed from, step
 * floats apart. */
INLINE void VARIANT(in)(int tile, int rows, int columns, const float *x, ptrdiff_t row,
                        ptrdiff_t column, float *v, ptrdiff_t step)
{
    VEC half[WINOGRAD_POINTS][WINOGRAD_POINTS];
    UNROLL for (int j = 0; j < columns + 2; j++)
    {
        VEC d[WINOGRAD_POINTS], o[WINOGRAD_POINTS];
        UNROLL for (int i = 0; i < rows + 2; i++) d[i] = VEC_LOAD(x + i * row + j * column);
        VARIANT(points_of)(tile, rows, o, d);
        UNROLL for (int i = 0; i < rows + 2; i++) half[i][j] = o[i];
    }
    UNROLL for (int i = 0; i < rows + 2; i++)
    {
        VEC o[WINOGRAD_POINTS];
        float *to = v + winograd_point(tile, rows, i) * (tile + 2) * step;
        VARIANT(points_of)(tile, columns, o, half[i]);
        UNROLL for (int j = 0; j < columns + 2; j++)
            VEC_STORE(to + winograd_point(tile, columns, j) * step, o[j]);
    }
}

/* The points of rows x columns outputs, LANES channels -> the outputs; residual NULL: none. */
INLINE void VARIANT(out)(int tile, int rows, int columns, const float *points, ptrdiff_t step,
                         const struct winograd_end *end, const float *residual, float *y,
                         ptrdiff_t row, ptrdiff_t column)
{
    VEC half[WINOGRAD_POINTS][WINOGRAD_POINTS], zero = VEC_SET(0.0f), bias = VEC_LOAD(end->bias);
    UNROLL for (int j = 0; j < columns + 2; j++)
    {
        VEC d[WINOGRAD_POINTS], o[WINOGRAD_POINTS];
        const float *from = points + winograd_point(tile, columns, j) * step;
        UNROLL for (int i = 0; i < rows + 2; i++) d[i] =
            VEC_LOAD(from + winograd_point(tile, rows, i) * (tile + 2) * step);
        VARIANT(outputs_of)(tile, rows, o, d);
        UNROLL for (int i = 0; i < rows; i++) half[i][j] = o[i];
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        VEC o[WINOGRAD_POINTS];
        VARIANT(outputs_of)(tile, columns, o, half[i]);
        UNROLL for (int j = 0; j < columns; j++)
        {
            ptrdiff_t at = i * row + j * column;
            VEC value = o[j] + bias;
            if (residual)
                value += VEC_LOAD(residual + at);
            VEC_STORE(y + at, end->relu ? VEC_MAX(zero, value) : value);
        }
    }
}

#define TRANSFORMS(tile, r, c)                                                                     \
    static TARGET void VARIANT(in_##tile##_##r##_##c)(const float *x, ptrdiff_t row,               \
                                                      ptrdiff_t column, float *v, ptrdiff_t step)  \
    {                                                                                              \
        VARIANT(in)(tile, r, c, x, row, column, v, step);                                          \
    }                                                                                              \
    static TARGET void VARIANT(out_##tile##_##r##_##c)(                                            \
        const float *points, ptrdiff_t step, const struct winograd_end *end,                       \
        const float *residual, float *y, ptrdiff_t row, ptrdiff_t column)                          \
    {                                                                                              \
        VARIANT(out)(tile, r, c, points, step, end, residual, y, row, column);                     \
    }
#define NAMES(tile, r, c)                                                                          \
    [tile / 2 - 1][r - 1][c - 1] = { VARIANT(in_##tile##_##r##_##c),                               \
                                     VARIANT(out_##tile##_##r##_##c) },
#define EACH_TILE(f)                                                                               \
    f(2, 1, 1) f(2, 1, 2) f(2, 2, 1) f(2, 2, 2) f(4, 1, 1) f(4, 1, 2) f(4, 1, 3) f(4, 1, 4)        \
        f(4, 2, 1) f(4, 2, 2) f(4, 2, 3) f(4, 2, 4) f(4, 3, 1) f(4, 3, 2) f(4, 3, 3) f(4, 3, 4)    \
            f(4, 4, 1) f(4, 4, 2) f(4, 4, 3) f(4, 4, 4) f(6, 6, 6)
EACH_TILE(TRANSFORMS)

/* By the tile, and the outputs computed along its sides. */
static const struct winograd_transforms VARIANT(transforms)[3][6][6] = { EACH_TILE(NAMES) };

/* A zero-padded copy of a tile that reaches over the border: [made_rows + 2, made_columns + 2,
 * LANES]. */
static TARGET void VARIANT(gather)(const struct winograd_conv *w, const struct winograd_tile *t,
                                   const float *x, float *to)
{
    int64_t d = w->dilation;
    for (int i = 0; i < t->made_rows + 2; i++)
        for (int j = 0; j < t->made_columns + 2; j++, to += LANES) {
            int64_t row = t->y + i * d, column = t->x + j * d;
            bool inside = row >= 0 && row < w->height && column >= 0 && column < w->width;
            VEC_STORE(to,
                      inside ? VEC_LOAD(x + (i * d * w->width + j * d) * LANES) : VEC_SET(0.0f));
        }
}

/* LANES channels of n tiles -> v[points][in_blocks][n][LANES], block c of the channels. */
static TARGET void VARIANT(transform_in)(const struct winograd_conv *w, const float *x,
                                         const struct winograd_block *block, int64_t c, float *v)
{
    float padded[WINOGRAD_POINTS * WINOGRAD_POINTS * LANES] __attribute__((aligned(64)));
    ptrdiff_t row = w->width * LANES * w->dilation, column = LANES * w->dilation;
    for (int64_t i = 0; i < block->n; i++) {
        const struct winograd_tile *t = &block->tiles[i];
        const float *from = x + t->in + c * w->height * w->width * LANES;
        float *to = v + (c * block->n + i) * LANES;
        ptrdiff_t from_row = row, from_column = column;
        if (!t->inside) {
            VARIANT(gather)(w, t, from, padded);
            from = padded, from_row = (t->made_columns + 2) * LANES, from_column = LANES;
        }
        VARIANT(transforms)
        [w->tile / 2 - 1][t->made_rows - 1][t->made_columns - 1].in(from, from_row, from_column, to,
                                                                    w->v_step);
    }
}

/* m[columns][.][LANES] of `rows` tiles = v (rows x depth) times u (depth x columns LANES): the sums
 * stay in registers. While it runs, `lines` cache lines of the next weights are fetched for every
 * LANES channels. */
INLINE void VARIANT(product)(int rows, int columns, int64_t blocks, const float *v,
                             ptrdiff_t v_step, const float *u, float *m, ptrdiff_t m_step,
                             const float *next, int64_t lines)
{
    VEC sum[ROWS][2];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < columns; k++) sum[r][k] =
        VEC_SET(0.0f);
    for (; blocks > 0; blocks--) {
        for (int64_t i = 0; i < lines; i++)
            __builtin_prefetch(next + i * 16, 0, 2);
        UNROLL for (int c = 0; c < LANES; c++)
        {
            VEC u0 = VEC_LOAD(u + 2 * LANES * c);
            VEC u1 = columns > 1 ? VEC_LOAD(u + 2 * LANES * c + LANES) : u0;
            UNROLL for (int r = 0; r < rows; r++)
            {
                VEC x = VEC_SET(v[r * LANES + c]);
                sum[r][0] = VEC_FMA(x, u0, sum[r][0]);
                if (columns > 1)
                    sum[r][1] = VEC_FMA(x, u1, sum[r][1]);
            }
        }
        v += v_step, u += 2 * LANES * LANES, next += lines * 16;
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int k = 0; k < columns; k++)
        VEC_STORE(m + k * m_step + r * LANES, sum[r][k]);
}

#define PRODUCT(r)                                                                                 \
    static TARGET void VARIANT(product_##r)(bool one, int64_t blocks, const float *v,              \
                                            ptrdiff_t v_step, const float *u, float *m,            \
                                            ptrdiff_t m_step, const float *next, int64_t lines)    \
    {                                                                                              \
        if (one)                                                                                   \
            VARIANT(product)(r, 1, blocks, v, v_step, u, m, m_step, next, lines);                  \
        else                                                                                       \
            VARIANT(product)(r, 2, blocks, v, v_step, u, m, m_step, next, lines);                  \
    }
PRODUCT(1)
PRODUCT(2)
PRODUCT(3)
PRODUCT(4)
PRODUCT(5)
PRODUCT(6)
#if ROWS > 6
PRODUCT(7)
PRODUCT(8)
PRODUCT(9)
PRODUCT(10)
PRODUCT(11)
PRODUCT(12)
PRODUCT(13)
PRODUCT(14)
#endif

static const winograd_product VARIANT(products)[ROWS + 1] = {
    NULL,
    VARIANT(product_1),
    VARIANT(product_2),
    VARIANT(product_3),
    VARIANT(product_4),
    VARIANT(product_5),
    VARIANT(product_6),
#if ROWS > 6
    VARIANT(product_7),
    VARIANT(product_8),
    VARIANT(product_9),
    VARIANT(product_10),
    VARIANT(product_11),
    VARIANT(product_12),
    VARIANT(product_13),
    VARIANT(product_14),
#endif
};

/* Points of `panels` panels from `first` on, of n tiles, [n][LANES] for each block of outputs. */
static TARGET void VARIANT(transform_out)(const struct winograd_conv *w, const float *m,
                                          const struct winograd_tile *tiles, int64_t n,
                                          int64_t first, int64_t panels, const float *bias,
                                          const float *residual, float *y)
{
    float part[36 * LANES] __attribute__((aligned(64)));
    ptrdiff_t row = w->out_width * LANES * w->dilation, column = LANES * w->dilation;
    int64_t last = 2 * (first + panels) < w->out_blocks ? 2 * (first + panels) : w->out_blocks;
    for (int64_t k = 2 * first; k < last; k++) {
        struct winograd_end end = { .relu = w->relu };
        for (int l = 0; bias && l < LANES && k * LANES + l < w->out_channels; l++)
            end.bias[l] = bias[k * LANES + l];
        for (int64_t i = 0; i < n; i++) {
            const struct winograd_tile *t = &tiles[i];
            const float *points = m + ((k - 2 * first) * n + i) * LANES;
            int64_t at = t->out + k * w->out_height * w->out_width * LANES;
            const float *old = residual ? residual + at : NULL;
            bool whole = t->rows == t->made_rows && t->columns == t->made_columns;
            float *to = whole ? y + at : part;
            ptrdiff_t to_row = whole ? row : w->tile * LANES, to_column = whole ? column : LANES;
            for (int r = 0; !whole && old && r < t->rows; r++)
                for (int c = 0; c < t->columns; c++)
                    VEC_STORE(part + (r * w->tile + c) * LANES,
                              VEC_LOAD(old + r * row + c * column));
            VARIANT(transforms)
            [w->tile / 2 - 1][t->made_rows - 1][t->made_columns - 1].out(
                points, w->m_step, &end, whole || !old ? old : part, to, to_row, to_column);
            for (int r = 0; !whole && r < t->rows; r++)
                for (int c = 0; c < t->columns; c++)
                    VEC_STORE(y + at + r * row + c * column,
                              VEC_LOAD(part + (r * w->tile + c) * LANES));
        }
    }
}

/* G t: from three taps of a panel of outputs to the points of a side, by rows of g for 0, p, -p, ..
 * and infinity: what is even in p and what is odd is the same for p and -p. */
INLINE void VARIANT(spread)(int side, const double g[WINOGRAD_POINTS][3], const double *t0,
                            const double *t1, const double *t2, double o[][2 * LANES])
{
    _Pragma("omp simd") for (int l = 0; l < 2 * LANES; l++)
    {
        o[0][l] = g[0][0] * t0[l];
        o[side - 1][l] = t2[l];
    }
    for (int p = 1; p < side - 1; p += 2) {
        _Pragma("omp simd") for (int l = 0; l < 2 * LANES; l++)
        {
            double even = g[p][0] * t0[l] + g[p][2] * t2[l], odd = g[p][1] * t1[l];
            o[p][l] = even + odd;
            o[p + 1][l] = even - odd;
        }
    }
}

/* u = G w Gt for a panel, of which `outputs` exist, and one input; their 9 taps are lane_step
 * floats apart, points of u step floats. turned: the taps are taken from the last to the first. */
INLINE void VARIANT(weight)(int side, const double g[WINOGRAD_POINTS][3], const float *from,
                            int64_t lane_step, int64_t outputs, bool turned, float *u, int64_t step)
{
    double taps[9][2 * LANES], half[3][WINOGRAD_POINTS][2 * LANES];
    if (outputs < 2 * LANES)
        memset(taps, 0, sizeof taps);
    for (int64_t l = 0; l < outputs; l++, from += lane_step)
        if (turned) {
            UNROLL for (int t = 0; t < 9; t++) taps[t][l] = (double)from[8 - t];
        } else {
            UNROLL for (int t = 0; t < 9; t++) taps[t][l] = (double)from[t];
        }
    for (int j = 0; j < 3; j++)
        VARIANT(spread)(side, g, taps[j], taps[3 + j], taps[6 + j], half[j]);
    for (int a = 0; a < side; a++, u += side * step) {
        double points[WINOGRAD_POINTS][2 * LANES];
        float line[2 * LANES] __attribute__((aligned(64)));
        VARIANT(spread)(side, g, half[0][a], half[1][a], half[2][a], points);
        for (int b = 0; b < side; b++) {
            _Pragma("omp simd") for (int l = 0; l < 2 * LANES; l++) line[l] = (float)points[b][l];
            VEC_STREAM(u + b * step, VEC_LOAD(line));
            VEC_STREAM(u + b * step + LANES, VEC_LOAD(line + LANES));
        }
    }
}

/* A panel of weights with all its inputs, past the caches, which would first fetch what it
 * overwrites. g: rows of G; the rest as winograd_conv_weights. */
static TARGET void VARIANT(weights)(const struct winograd_conv *w,
                                    const double g[WINOGRAD_POINTS][3], int64_t panel,
                                    const float *from, bool turned, float *to)
{
    int64_t inputs = w->in_blocks * LANES, first = panel * 2 * LANES;
    int64_t left = w->out_channels - first, outputs = left < 2 * LANES ? left : 2 * LANES;
    int64_t lane_step = turned ? 9 : w->in_channels * 9;
    int64_t input_step = turned ? w->out_channels * 9 : 9;
    for (int64_t c = 0; c < inputs; c++) {
        bool there = c < w->in_channels;
        VARIANT(weight)
        (w->tile + 2, g, there ? from + first * lane_step + c * input_step : from, lane_step,
         there ? outputs : 0, turned, to + (panel * inputs + c) * 2 * LANES,
         w->panels * inputs * 2 * LANES);
    }
    _mm_sfence();
}

/* rows x columns outputs of a tile of 4, LANES channels of a gradient by outputs -> the points that
 * they are made from. */
INLINE void VARIANT(back)(int rows, int columns, const float *dy, ptrdiff_t row, ptrdiff_t column,
                          float *z, ptrdiff_t step)
{
    VEC half[6][4];
    UNROLL for (int j = 0; j < columns; j++)
    {
        VEC y[4], o[6];
        UNROLL for (int i = 0; i < rows; i++) y[i] = VEC_LOAD(dy + i * row + j * column);
        VARIANT(gradients_of)(rows, o, y);
        UNROLL for (int i = 0; i < rows + 2; i++) half[i][j] = o[i];
    }
    UNROLL for (int i = 0; i < rows + 2; i++)
    {
        VEC o[6];
        float *to = z + winograd_point(4, rows, i) * 6 * step;
        VARIANT(gradients_of)(columns, o, half[i]);
        UNROLL for (int j = 0; j < columns + 2; j++)
            VEC_STORE(to + winograd_point(4, columns, j) * step, o[j]);
    }
}

#define BACK(r, c)                                                                                 \
    static TARGET void VARIANT(back_##r##_##c)(const float *dy, ptrdiff_t row, ptrdiff_t column,   \
                                               float *z, ptrdiff_t step)                           \
    {                                                                                              \
        VARIANT(back)(r, c, dy, row, column, z, step);                                             \
    }
#define BACK_ROW(r) BACK(r, 1) BACK(r, 2) BACK(r, 3) BACK(r, 4)
#define BACK_NAMES(r)                                                                              \
    {                                                                                              \
        VARIANT(back_##r##_1), VARIANT(back_##r##_2), VARIANT(back_##r##_3), VARIANT(back_##r##_4) \
    }
BACK_ROW(1)
BACK_ROW(2)
BACK_ROW(3)
BACK_ROW(4)

/* By the outputs computed along the sides. */
static void (*const VARIANT(backs)[4][4])(const float *dy, ptrdiff_t row, ptrdiff_t column,
                                          float *z,
                                          ptrdiff_t step) = { BACK_NAMES(1), BACK_NAMES(2),
                                                              BACK_NAMES(3), BACK_NAMES(4) };

/* Block k of the gradient by the outputs of the tiles -> z[points][out_blocks][n][LANES]; missing
 * outputs of a tile are 0. */
static TARGET void VARIANT(transform_gradient)(const struct winograd_conv *w, const float *dy,
                                               const struct winograd_block *block, int64_t k,
                                               float *z)
{
    float padded[16 * LANES] __attribute__((aligned(64)));
    ptrdiff_t row = w->out_width * LANES * w->dilation, column = LANES * w->dilation;
    for (int64_t i = 0; i < block->n; i++) {
        const struct winograd_tile *t = &block->tiles[i];
        const float *from = dy + t->out + k * w->out_height * w->out_width * LANES;
        float *to = z + (k * block->n + i) * LANES;
        bool whole = t->rows == t->made_rows && t->columns == t->made_columns;
        for (int r = 0; !whole && r < t->made_rows; r++)
            for (int c = 0; c < t->made_columns; c++)
                VEC_STORE(padded + (r * 4 + c) * LANES, r < t->rows && c < t->columns
                                                            ? VEC_LOAD(from + r * row + c * column)
                                                            : VEC_SET(0.0f));
        VARIANT(backs)
        [t->made_rows - 1][t->made_columns - 1](whole ? from : padded, whole ? row : 4 * LANES,
                                                whole ? column : LANES, to, w->m_step);
    }
}

/* u[LANES / 2 inputs][2 LANES outputs] = or += the sum over n tiles of v times z; `columns` of the
 * two registers of outputs exist. While it runs, n registers are fetched from `next`. */
INLINE void VARIANT(correlate)(int columns, int64_t n, const float *v, const float *z,
                               ptrdiff_t z_step, bool add, float *u, const float *next)
{
    VEC sum[LANES / 2][2];
    UNROLL for (int r = 0; r < LANES / 2; r++) UNROLL for (int k = 0; k < columns; k++) sum[r][k] =
        add ? VEC_LOAD(u + (2 * r + k) * LANES) : VEC_SET(0.0f);
    for (; n > 0; n--, v += LANES, z += LANES, next += LANES) {
        __builtin_prefetch(next, 0, 2);
        VEC z0 = VEC_LOAD(z), z1 = columns > 1 ? VEC_LOAD(z + z_step) : z0;
        UNROLL for (int r = 0; r < LANES / 2; r++)
        {
            VEC x = VEC_SET(v[r]);
            sum[r][0] = VEC_FMA(x, z0, sum[r][0]);
            if (columns > 1)
                sum[r][1] = VEC_FMA(x, z1, sum[r][1]);
        }
    }
    UNROLL for (int r = 0; r < LANES / 2; r++) UNROLL for (int k = 0; k < columns; k++)
        VEC_STORE(u + (2 * r + k) * LANES, sum[r][k]);
}

/* All inputs of a block with one panel of outputs. */
static TARGET void VARIANT(correlate_block)(bool one, int64_t n, const float *v, const float *z,
                                            ptrdiff_t z_step, bool add, float *u,
                                            const float *const next[2])
{
    for (int half = 0; half < 2; half++, v += LANES / 2, u += LANES * LANES)
        if (one)
            VARIANT(correlate)(1, n, v, z, z_step, add, u, next[half]);
        else
            VARIANT(correlate)(2, n, v, z, z_step, add, u, next[half]);
}

/* Gt u G: the points of LANES outputs and one input, step floats apart, are added to their nine
 * taps, lane_step floats apart. */
static TARGET void VARIANT(weight_gradient)(const float g[6][3], const float *u, ptrdiff_t step,
                                            int64_t outputs, float *to, int64_t lane_step)
{
    VEC half[3][6];
    float taps[9 * LANES] __attribute__((aligned(64)));
    UNROLL for (int b = 0; b < 6; b++)
    {
        UNROLL for (int i = 0; i < 3; i++) half[i][b] = VEC_SET(0.0f);
        UNROLL for (int a = 0; a < 6; a++)
        {
            VEC point = VEC_LOAD(u + (a * 6 + b) * step);
            UNROLL for (int i = 0; i < 3; i++) half[i][b] =
                VEC_FMA(VEC_SET(g[a][i]), point, half[i][b]);
        }
    }
    UNROLL for (int i = 0; i < 3; i++) UNROLL for (int j = 0; j < 3; j++)
    {
        VEC tap = VEC_SET(0.0f);
        UNROLL for (int b = 0; b < 6; b++) tap = VEC_FMA(VEC_SET(g[b][j]), half[i][b], tap);
        VEC_STORE(taps + (i * 3 + j) * LANES, tap);
    }
    for (int64_t l = 0; l < outputs; l++, to += lane_step)
        UNROLL for (int t = 0; t < 9; t++) to[t] += taps[t * LANES + l];
}

static const struct winograd_loops VARIANT(loops) = {
    .lanes = LANES,
    .rows = ROWS,
    .transform_in = VARIANT(transform_in),
    .products = VARIANT(products),
    .transform_out = VARIANT(transform_out),
    .weights = VARIANT(weights),
    .transform_gradient = VARIANT(transform_gradient),
    .correlate = VARIANT(correlate_block),
    .weight_gradient = VARIANT(weight_gradient),
};
#undef INLINE
#undef UNROLL
#undef POINT_A
#undef POINT_B
#undef TRANSFORMS
#undef NAMES
#undef EACH_TILE
#undef BACK
#undef BACK_ROW
#undef BACK_NAMES
#undef PRODUCT
