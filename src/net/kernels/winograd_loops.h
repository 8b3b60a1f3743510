/* winograd_loops.h: what the drivers of Winograd convolutions (winograd_conv.c,
 * winograd_gradient.c) share: tiles, and the vector code of an instruction set. Internal to them.
 */
#ifndef NET_KERNELS_WINOGRAD_LOOPS_H
#define NET_KERNELS_WINOGRAD_LOOPS_H
#include "net/kernels/winograd_conv.h"

#define WINOGRAD_POINTS 8 /* along a side of the largest tile */

/* Where a tile lies. */
struct winograd_tile {
    int64_t in, out;   /* floats from the begin of x and y to its corner, in the first block */
    int64_t y, x;      /* of the corner in the input; may be outside */
    int rows, columns; /* outputs that are there */
    int made_rows, made_columns; /* outputs that are made: at a border fewer, from fewer points */
    bool inside;                 /* reads no padding */
};

typedef void (*winograd_product)(bool one, int64_t blocks, const float *v, ptrdiff_t v_step,
                                 const float *u, float *m, ptrdiff_t m_step, const float *next,
                                 int64_t lines);

/* What becomes of the sums of a register of channels. */
struct winograd_end {
    float bias[16];
    bool relu;
};

/* The transforms of one kind of tile. */
struct winograd_transforms {
    void (*in)(const float *x, ptrdiff_t row, ptrdiff_t column, float *v, ptrdiff_t step);
    void (*out)(const float *points, ptrdiff_t step, const struct winograd_end *end,
                const float *residual, float *y, ptrdiff_t row, ptrdiff_t column);
};

/* The points along a side from which some of its outputs are made are the first ones and the last,
 * infinity: which is the i-th of them. */
static inline int winograd_point(int tile, int outputs, int i)
{
    return i <= outputs ? i : tile + 1;
}

/* The vector code for one instruction set. */
struct winograd_loops {
    int lanes, rows;
    void (*transform_in)(const struct winograd_conv *w, const float *x,
                         const struct winograd_tile *tiles, int64_t n, int64_t c, float *v);
    const winograd_product *products; /* [rows + 1], by the number of tiles */
    void (*transform_out)(const struct winograd_conv *w, const float *m,
                          const struct winograd_tile *tiles, int64_t n, int64_t first,
                          int64_t panels, const float *bias, const float *residual, float *y);
    void (*weights)(const struct winograd_conv *w, const double g[WINOGRAD_POINTS][3],
                    int64_t panel, const float *from, bool turned, float *to);
    /* of the gradient by the weights, with tiles of 4 x 4 */
    void (*transform_gradient)(const struct winograd_conv *w, const float *dy,
                               const struct winograd_tile *tiles, int64_t n, int64_t k, float *z);
    void (*correlate)(bool one, int64_t n, const float *v, const float *z, bool add, float *u,
                      const float *const next[2]);
    void (*weight_gradient)(const float g[6][3], const float *u, ptrdiff_t step, int64_t outputs,
                            float *to, int64_t lane_step);
};

/* NULL if there is none for this level. */
const struct winograd_loops *winograd_loops_of(enum simd level);

/* The tiles from `first` on, phase by phase of the dilation: a dilation of d makes d x d images,
 * each of every d-th row and column. */
void winograd_find_tiles(const struct winograd_conv *w, int64_t first, int64_t n,
                         struct winograd_tile *tiles);
/* The tiles of the output, for w->tile; small_ends: those at the border make what is there. */
void winograd_count_tiles(struct winograd_conv *w, bool small_ends);
/* An odd number of cache lines, so that points do not fall onto the same place of a cache. */
int64_t winograd_odd_lines(int64_t floats);
/* Of the second-level cache. */
int64_t winograd_cache_floats(void);

/* Rows of G: from the three taps to the tile + 2 points. */
void winograd_weight_transform(int tile, double g[WINOGRAD_POINTS][3]);
#endif
