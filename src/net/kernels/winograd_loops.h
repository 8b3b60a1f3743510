/* winograd_loops.h: shared by the drivers of Winograd convolutions (winograd_conv.c,
 * winograd_gradient.c): tiles, and the vector code of an instruction set. Internal to them. */
#ifndef NET_KERNELS_WINOGRAD_LOOPS_H
#define NET_KERNELS_WINOGRAD_LOOPS_H
#include "net/kernels/winograd_conv.h"

#define WINOGRAD_POINTS 8       /* along a side of the largest tile */
#define WINOGRAD_MOST_TILES 128 /* of a block */

/* The position of a tile. */
struct winograd_tile {
    int64_t in, out;   /* floats from the start of x and y to its corner, in the first block */
    int64_t y, x;      /* of the corner in the input; may be outside */
    int rows, columns; /* outputs that exist */
    int made_rows, made_columns; /* outputs computed: at a border fewer, from fewer points */
    bool inside;                 /* reads no padding */
};

/* Tiles by their place, in the order of a block: those of the last column, the whole ones, those of
 * the last row, the corner. So the tiles that have a given point are always adjacent. */
enum winograd_place {
    WINOGRAD_END_COLUMN,
    WINOGRAD_WHOLE,
    WINOGRAD_END_ROW,
    WINOGRAD_CORNER,
    WINOGRAD_PLACES
};

/* Tiles that are processed together. */
struct winograd_block {
    struct winograd_tile tiles[WINOGRAD_MOST_TILES];
    int64_t n, begin[WINOGRAD_PLACES]; /* the first tile of each place */
};

typedef void (*winograd_product)(bool one, int64_t blocks, const float *v, ptrdiff_t v_step,
                                 const float *u, float *m, ptrdiff_t m_step, const float *next,
                                 int64_t lines);

/* What is done with the sums of a register of channels. */
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

/* If only some outputs of a side are computed, their points are the first ones and the last,
 * infinity. Returns the ith of them. */
static inline int winograd_point(int tile, int outputs, int i)
{
    return i <= outputs ? i : tile + 1;
}

/* The vector code for one instruction set. */
struct winograd_loops {
    int lanes, rows;
    void (*transform_in)(const struct winograd_conv *w, const float *x,
                         const struct winograd_block *block, int64_t c, float *v);
    const winograd_product *products; /* [rows + 1], by the number of tiles */
    void (*transform_out)(const struct winograd_conv *w, const float *m,
                          const struct winograd_tile *tiles, int64_t n, int64_t first,
                          int64_t panels, const float *bias, const float *residual, float *y);
    void (*weights)(const struct winograd_conv *w, const double g[WINOGRAD_POINTS][3],
                    int64_t panel, const float *from, bool turned, float *to);
    /* of the gradient by the weights, with tiles of 4 x 4 */
    void (*transform_gradient)(const struct winograd_conv *w, const float *dy,
                               const struct winograd_block *block, int64_t k, float *z);
    void (*correlate)(bool one, int64_t n, const float *v, const float *z, ptrdiff_t z_step,
                      bool add, float *u, const float *const next[2]);
    void (*weight_gradient)(const float g[6][3], const float *u, ptrdiff_t step, int64_t outputs,
                            float *to, int64_t lane_step);
};

/* NULL if there is none for this level. */
const struct winograd_loops *winograd_loops_of(enum simd level);

/* Counts the tiles of the output, for w->tile. */
void winograd_count_tiles(struct winograd_conv *w);
/* The points of all of them. */
double winograd_count_points(const struct winograd_conv *w);
/* n tiles from `first` on, image by image. */
void winograd_find_block(const struct winograd_conv *w, int64_t first, int64_t n,
                         struct winograd_block *block);
/* The same for all tiles ordered by their place: block boundaries do not change the order. */
void winograd_find_block_by_place(const struct winograd_conv *w, int64_t first, int64_t n,
                                  struct winograd_block *block);
/* The range of tiles from .. to that have a point. */
void winograd_tiles_of_point(const struct winograd_conv *w, const struct winograd_block *block,
                             int64_t point, int64_t *from, int64_t *to);
/* An odd number of cache lines, so that points do not map to the same cache set. */
int64_t winograd_odd_lines(int64_t floats);
/* Of the second-level cache. */
int64_t winograd_cache_floats(void);

/* Rows of G: from the three taps to the tile + 2 points. */
void winograd_weight_transform(int tile, double g[WINOGRAD_POINTS][3]);
#endif
