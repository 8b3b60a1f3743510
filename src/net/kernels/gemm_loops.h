/* gemm_loops.h: the vector code, included once for each instruction set with the macros of
 * vectors.h and PART, PART_LOAD and PART_STORE, for the first lanes of a register. */
#define INLINE static inline __attribute__((always_inline)) TARGET
#define UNROLL _Pragma("GCC unroll 16")

/* Where a tile begins: of A, B, C, what of C is next, if it is known, and of B, or what is at hand.
 */
struct VARIANT(gemm_place) {
    const float *a, *b;
    float *c;
    const float *next, *b_next;
};

/* `rows` rows and `vectors` registers of columns, the last of which has only some lanes if
 * `partial`. The counts are constants. */
INLINE void VARIANT(gemm_tile)(int rows, int vectors, bool partial, PART part, const struct gemm *g,
                               const struct VARIANT(gemm_place) * at)
{
    VEC sum[GEMM_ROWS][GEMM_VECTORS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
        VEC_SET(0.0f);
    const int64_t a_row = g->a_row, a_column = g->a_column, b_row = g->b_row, c_row = g->c_row;
    const float *a = at->a, *b = at->b, *b_next = at->b_next;
    const float *lower = a + 4 * a_row; /* fewer registers than an offset for each row */
    float *c = at->c;
    if (at->next)
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
            __builtin_prefetch(at->next + r * g->next_row + v * LANES);
    for (int64_t k = g->k; k > 0;
         k--, a += a_column, lower += a_column, b += b_row, b_next += LANES) {
        VEC x[GEMM_VECTORS];
        __builtin_prefetch(b_next, 0, 2);
        UNROLL for (int v = 0; v < vectors; v++) x[v] =
            partial && v == vectors - 1 ? PART_LOAD(b + v * LANES, part) : VEC_LOAD(b + v * LANES);
        UNROLL for (int r = 0; r < rows; r++)
        {
            VEC y = VEC_SET((r < 4 ? a : lower)[r % 4 * a_row]);
            UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = VEC_FMA(y, x[v], sum[r][v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
    {
        float *to = c + r * c_row + v * LANES;
        bool cut = partial && v == vectors - 1;
        VEC y = sum[r][v];
        if (g->add)
            y = y + (cut ? PART_LOAD(to, part) : VEC_LOAD(to));
        if (cut)
            PART_STORE(to, part, y);
        else
            VEC_STORE(to, y);
    }
}

/* All rows of the columns from `column` on. Each of the first GEMM_VECTORS tiles brings its share
 * of the next panel to the level-2 cache. */
INLINE void VARIANT(gemm_columns)(int vectors, bool partial, PART part, const struct gemm *g,
                                  const float *b, const float *b_next, int64_t column)
{
    struct VARIANT(gemm_place)
        at = { g->a, b, g->c + column, g->next ? g->next + column : NULL, b_next };
    const int64_t panel = g->a_panel ? g->a_panel : GEMM_ROWS * g->a_row;
    int64_t left = g->m, most = g->m - (GEMM_VECTORS - 1) * GEMM_ROWS;
    for (; left >= GEMM_ROWS; left -= GEMM_ROWS) {
        VARIANT(gemm_tile)(GEMM_ROWS, vectors, partial, part, g, &at);
        at.a += panel, at.c += GEMM_ROWS * g->c_row;
        at.b_next = left > most ? at.b_next + g->k * LANES : b;
        at.next = at.next ? at.next + GEMM_ROWS * g->next_row : NULL;
    }
#define REST(rows)                                                                                 \
    case rows:                                                                                     \
        VARIANT(gemm_tile)(rows, vectors, partial, part, g, &at);                                  \
        break
    switch (left) {
#if GEMM_ROWS > 6
        REST(7);
        REST(6);
#endif
        REST(5);
        REST(4);
        REST(3);
        REST(2);
        REST(1);
    }
#undef REST
}

static const int64_t VARIANT(gemm_columns_of) = GEMM_VECTORS * LANES;
static const int64_t VARIANT(gemm_rows_of) = GEMM_ROWS;

static TARGET void VARIANT(gemm_run)(const struct gemm *g)
{
    int64_t n = 0;
    const PART all = PART_OF(LANES);
    const int64_t panel = g->b_panel ? g->b_panel : GEMM_VECTORS * LANES;
    const float *b = g->b, *after = g->b_next ? g->b_next : b;
    for (; n + GEMM_VECTORS * LANES <= g->n; n += GEMM_VECTORS * LANES, b += panel) {
        bool last = !g->b_panel || n + GEMM_VECTORS * LANES == g->n;
        VARIANT(gemm_columns)(GEMM_VECTORS, false, all, g, b, last ? after : b + panel, n);
    }
    if (n + 2 * LANES <= g->n && GEMM_VECTORS > 2) {
        VARIANT(gemm_columns)(2, false, all, g, b, after, n);
        n += 2 * LANES, b += 2 * LANES;
    }
    if (n + LANES <= g->n) {
        VARIANT(gemm_columns)(1, false, all, g, b, after, n);
        n += LANES, b += LANES;
    }
    if (n < g->n)
        VARIANT(gemm_columns)(1, true, PART_OF(g->n - n), g, b, after, n);
}
#undef INLINE
#undef UNROLL
