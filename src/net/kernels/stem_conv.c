/* stem_conv.c: see stem_conv.h. For each row of outputs, the two new input rows are split into even
 * and odd columns and transformed into points, in a ring of the last rows; then every panel and
 * point is summed over the rows of the kernel, and all points are transformed back into outputs.
 * The vector code is in stem_conv_loops.h. */
#include "net/kernels/stem_conv.h"
#include <omp.h>
#include <string.h>
#ifdef SIMD_X86
#include <immintrin.h>
#endif
#include "base/divide.h"

enum {
    TILE = 3,                  /* outputs of a tile */
    POINTS = 6,                /* of a tile: TILE + 4 taps - 1 */
    PIXEL = 2 * STEM_CHANNELS, /* an even and an odd column of each channel */
    RING = 8,                  /* rows that are kept, at least STEM_KERNEL */
    DEPTH = STEM_KERNEL * PIXEL,
    /* The last point, infinity, is the last tap: odd columns have three taps and none there. */
    LAST_DEPTH = STEM_KERNEL * STEM_CHANNELS,
    ALL_DEPTHS = (POINTS - 1) * DEPTH + LAST_DEPTH,
    MOST_TILES = 42, /* of a segment: its sums stay in the first-level cache */
    POOL_ROWS = 4, /* pooled rows made at a time: what they need stays in the second-level cache */
};

/* Points 0, +-a, +-b, infinity, as in winograd_conv_loops.h. */
#define POINT_A 0.70710678118654752
#define POINT_B 1.41421356237309505

typedef void (*stem_product)(bool one, bool last, const float *const v[STEM_KERNEL], const float *u,
                             float *m);

/* The vector code for one instruction set. */
struct stem_loops {
    int lanes, rows;
    void (*points)(const float *split, int64_t n, float *points, int64_t step);
    const stem_product *products; /* [rows + 1], by the number of tiles */
    void (*outputs)(const float *m, int64_t step, int64_t n, const float *bias, bool relu, float *y,
                    int64_t length);
};

#ifdef SIMD_X86
#define SIMD_BITS 256
#include "net/kernels/vectors.h"

#include "net/kernels/stem_conv_loops.h"
#define SIMD_BITS 512
#include "net/kernels/vectors.h"

#include "net/kernels/stem_conv_loops.h"
#endif

static const struct stem_loops *loops_of(enum simd level)
{
    return SIMD_PICK(level, &loops, NULL);
}

bool stem_conv_available(enum simd level)
{
    return loops_of(level) != NULL && simd_best() >= level;
}

static int64_t whole_lines(int64_t floats)
{
    return ceil_div(floats, 16) * 16;
}

/* Floats from one point of an input row to the next: two more than needed, see `points`. */
static int64_t point_step(const struct stem_conv *c)
{
    return c->tiles * PIXEL + 2;
}

/* The row behind the last one that pooled row i needs. */
static int64_t pool_end(const struct pool_axis *axis, int64_t i)
{
    return axis->begin[i] + (axis->count[i] - 1) * axis->step + 1;
}

/* Rows of outputs that the pooled rows of any turn need. */
static int64_t most_rows(const struct stem_conv *c)
{
    const struct pool_axis *axis = &c->pool->axis[0];
    int64_t most = 0;
    for (int64_t i = 0; i < axis->out; i++) {
        int64_t last = i + c->pool_rows - 1 < axis->out ? i + c->pool_rows - 1 : axis->out - 1;
        int64_t rows = pool_end(axis, last) - axis->begin[i];
        most = rows > most ? rows : most;
    }
    return most;
}

/* Bits do not depend on the blocking. */
void stem_conv_plan(struct stem_conv *c)
{
    c->lanes = loops_of(c->level)->lanes;
    c->out_blocks = ceil_div(c->out_channels, c->lanes);
    c->panels = ceil_div(c->out_blocks, 2);
    c->tiles = ceil_div(c->out_width, TILE);
    c->segments = ceil_div(c->tiles, MOST_TILES);
    c->segment_tiles = ceil_div(c->tiles, c->segments);
    int64_t rows = c->pool ? c->pool->axis[0].out : c->out_height;
    c->parts = ceil_div(c->threads, c->batch);
    if (c->batch % c->threads && c->batch > 1) /* whole images do not share evenly */
        c->parts = c->threads;
    if (c->parts > rows)
        c->parts = rows;
    c->pool_rows = rows < POOL_ROWS ? rows : POOL_ROWS;
    c->buffer_rows = c->pool ? most_rows(c) : 0;
    c->split_floats = whole_lines((c->tiles * TILE + POINTS) * PIXEL + 2);
    c->point_floats = whole_lines(POINTS * point_step(c));
    c->thread_floats = whole_lines(c->split_floats + RING * c->point_floats +
                                   POINTS * c->segment_tiles * 2 * c->lanes +
                                   c->out_blocks * c->buffer_rows * c->out_width * c->lanes);
    c->weight_floats = (size_t)(c->panels * 2 * c->lanes * (ALL_DEPTHS + 1));
    c->scratch_floats = (size_t)(c->thread_floats * c->threads);
}

/* Rows of G: (1, p, p p, p p p) / product of (p - q) over the other points; infinity: the last tap.
 */
static void weight_transform(double g[POINTS][4])
{
    static const double p[POINTS - 1] = { 0, POINT_A, -POINT_A, POINT_B, -POINT_B };
    for (int i = 0; i < POINTS - 1; i++) {
        double others = 1;
        for (int j = 0; j < POINTS - 1; j++)
            others *= j == i ? 1 : p[i] - p[j];
        for (int t = 0; t < 4; t++)
            g[i][t] = (t ? g[i][t - 1] * p[i] : 1 / others);
    }
    g[POINTS - 1][0] = g[POINTS - 1][1] = g[POINTS - 1][2] = 0, g[POINTS - 1][3] = 1;
}

/* One row of seven taps at a point: those of its even or odd columns. */
static double at_point(const double g[4], const float *taps, int odd)
{
    double sum = 0;
    for (int t = 0; 2 * t + odd < STEM_KERNEL; t++)
        sum += g[t] * (double)taps[2 * t + odd];
    return sum;
}

/* To: the panels [point][kernel row][float of a pixel][2][LANES], and then the bias, all filled up
 * with zeros. */
void stem_conv_weights(const struct stem_conv *c, const float *from, const float *bias, float *to)
{
    int64_t lanes = c->lanes, panel_floats = ALL_DEPTHS * 2 * lanes;
    float *to_bias = to + c->panels * panel_floats;
    double g[POINTS][4];
    weight_transform(g);
    memset(to, 0, c->weight_floats * sizeof(float));
    for (int64_t o = 0; o < c->out_channels; o++) {
        float *u = to + o / (2 * lanes) * panel_floats + o % (2 * lanes);
        for (int p = 0; p < POINTS; p++)
            for (int i = 0; i < STEM_KERNEL; i++)
                for (int e = 0; e < PIXEL; e += p == POINTS - 1 ? 2 : 1, u += 2 * lanes) {
                    const float *taps =
                        from + ((o * STEM_CHANNELS + e / 2) * STEM_KERNEL + i) * STEM_KERNEL;
                    *u = (float)at_point(g[p], taps, e % 2);
                }
        if (bias)
            to_bias[o] = bias[o];
    }
}

/* One call's arguments, and one thread's scratch. */
struct stem_run {
    const struct stem_conv *c;
    const float *weights, *x; /* x: one image */
    float *y;                 /* of the same image: [out_blocks][y_rows][out_width][LANES] */
    int64_t y_rows, y_first;  /* the row of the outputs that is y's first one */
    float *split, *ring, *m;
};

/* Row `row` of the image, zeros outside, as pixels of an even and an odd column of each channel. */
static void split_row(const struct stem_run *r, int64_t row)
{
    const struct stem_conv *c = r->c;
    int64_t pixels = c->tiles * TILE + POINTS - TILE, first = -c->pad_left;
    int64_t begin = first < 0 ? ceil_div(-first, 2) : 0, end = (c->width - first) / 2;
    memset(r->split, 0, (size_t)c->split_floats * sizeof(float));
    if (row < 0 || row >= c->height)
        return;
    end = end < pixels ? end : pixels;
    for (int k = 0; k < STEM_CHANNELS; k++) {
        const float *x = r->x + (k * c->height + row) * c->width;
        for (int64_t i = 0; i < pixels; i++) {
            if (i == begin) /* both columns lie within the image */
                for (; i < end; i++)
                    memcpy(r->split + i * PIXEL + 2 * k, x + first + 2 * i, 2 * sizeof(float));
            for (int odd = 0; odd < 2 && i < pixels; odd++) {
                int64_t column = first + 2 * i + odd;
                if (column >= 0 && column < c->width)
                    r->split[i * PIXEL + 2 * k + odd] = x[column];
            }
        }
    }
}

static float *ring_row(const struct stem_run *r, int64_t row)
{
    return r->ring + (row + r->c->pad_top) % RING * r->c->point_floats;
}

/* The tiles of a row from `first` on, n of them, of one panel. */
static void run_segment(const struct stem_run *r, int64_t row, int64_t panel, int64_t first,
                        int64_t n)
{
    const struct stem_conv *c = r->c;
    const struct stem_loops *loops = loops_of(c->level);
    int64_t lanes = c->lanes, groups = ceil_div(n, loops->rows);
    bool one = 2 * panel + 1 >= c->out_blocks;
    int64_t panel_floats = ALL_DEPTHS * 2 * lanes, m_step = c->segment_tiles * 2 * lanes;
    const float *u = r->weights + panel * panel_floats;
    for (int p = 0; p < POINTS; p++, u += DEPTH * 2 * lanes)
        for (int64_t g = 0, t = 0; g < groups; g++) {
            int64_t rows = ceil_div(n - t, groups - g);
            const float *v[STEM_KERNEL];
            for (int i = 0; i < STEM_KERNEL; i++)
                v[i] = ring_row(r, STEM_STRIDE * row - c->pad_top + i) + p * point_step(c) +
                       (first + t) * PIXEL;
            loops->products[rows](one, p == POINTS - 1, v, u, r->m + p * m_step + t * 2 * lanes);
            t += rows;
        }
    const float *bias = r->weights + c->panels * panel_floats + panel * 2 * lanes;
    int64_t length = c->out_width - first * TILE;
    for (int64_t k = 0; k < (one ? 1 : 2); k++) {
        int64_t at = ((2 * panel + k) * r->y_rows + row - r->y_first) * c->out_width + first * TILE;
        loops->outputs(r->m + k * lanes, m_step, n, bias + k * lanes, c->relu, r->y + at * lanes,
                       length);
    }
}

/* Rows of outputs from `begin` to `end`; input rows before *ready are in the ring. */
static void run_rows(const struct stem_run *r, int64_t begin, int64_t end, int64_t *ready)
{
    const struct stem_conv *c = r->c;
    for (int64_t row = begin; row < end; row++) {
        int64_t first = STEM_STRIDE * row - c->pad_top;
        for (*ready = *ready > first ? *ready : first; *ready < first + STEM_KERNEL; ++*ready) {
            split_row(r, *ready);
            loops_of(c->level)->points(r->split, c->tiles, ring_row(r, *ready), point_step(c));
        }
        for (int64_t panel = 0; panel < c->panels; panel++)
            for (int64_t s = 0; s < c->segments; s++) {
                int64_t tile = c->tiles * s / c->segments;
                run_segment(r, row, panel, tile, c->tiles * (s + 1) / c->segments - tile);
            }
    }
}

/* Pooled rows from `begin` to `end` into y, by turns with the rows that they need. */
static void run_pooled(struct stem_run *r, int64_t begin, int64_t end, float *y)
{
    const struct stem_conv *c = r->c;
    const struct pool_axis *axis = &c->pool->axis[0];
    int64_t row_floats = c->out_width * c->lanes, done = 0, ready = INT64_MIN;
    int64_t pooled_floats = c->pool->axis[1].out * c->lanes;
    int32_t begins[POOL_ROWS];
    struct pool_window window = *c->pool;
    window.axis[0].begin = begins;
    for (int64_t p = begin, n; p < end; p += n) {
        n = end - p < c->pool_rows ? end - p : c->pool_rows;
        int64_t first = axis->begin[p], last = pool_end(axis, p + n - 1);
        int64_t kept = p > begin && done > first ? done - first : 0;
        for (int64_t b = 0; b < c->out_blocks; b++) { /* those at hand move to the front */
            float *plane = r->y + b * r->y_rows * row_floats;
            memmove(plane, plane + (first - r->y_first) * row_floats,
                    (size_t)(kept * row_floats) * sizeof(float));
        }
        r->y_first = first;
        run_rows(r, first + kept, last, &ready);
        done = last;
        window.axis[0].count = axis->count + p;
        for (int64_t i = 0; i < n; i++)
            begins[i] = (int32_t)(axis->begin[p + i] - first);
        const struct pool_rows *rows = pool_rows_get(c->level, c->lanes);
        for (int64_t b = 0; b < c->out_blocks; b++)
            for (int64_t i = 0; i < n; i++)
                rows->max(&window, i, r->y + b * r->y_rows * row_floats,
                          y + (b * axis->out + p + i) * pooled_floats, NULL);
    }
}

void stem_conv_run(const struct stem_conv *c, const float *weights, const float *x, float *y,
                   float *scratch)
{
    int64_t in = STEM_CHANNELS * c->height * c->width, items = c->batch * c->parts;
    int64_t rows = c->pool ? c->pool->axis[0].out : c->out_height;
    int64_t out = c->out_blocks * c->lanes * rows * (c->pool ? c->pool->axis[1].out : c->out_width);
#pragma omp parallel for num_threads(c->threads) schedule(static) if (c->threads > 1 && items > 1)
    for (int64_t i = 0; i < items; i++) {
        int64_t image = i / c->parts, part = i % c->parts, ready = INT64_MIN;
        int64_t begin = rows * part / c->parts, end = rows * (part + 1) / c->parts;
        float *own = scratch + c->thread_floats * omp_get_thread_num();
        struct stem_run r = { .c = c,
                              .weights = weights,
                              .x = x + image * in,
                              .y = y + image * out,
                              .y_rows = c->out_height,
                              .split = own,
                              .ring = own + c->split_floats };
        r.m = r.ring + RING * c->point_floats;
        if (!c->pool) {
            run_rows(&r, begin, end, &ready);
            continue;
        }
        r.y = r.m + POINTS * c->segment_tiles * 2 * c->lanes;
        r.y_rows = c->buffer_rows;
        run_pooled(&r, begin, end, y + image * out);
    }
}
