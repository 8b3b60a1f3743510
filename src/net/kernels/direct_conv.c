/* direct_conv.c: see direct_conv.h. A block of pixels is processed panel by panel, so that a panel
 * of weights stays in the first-level cache and the inputs in the second; the vector code is in
 * direct_conv_loops.h. */
#include "net/kernels/direct_conv.h"
#include <omp.h>
#include <string.h>
#include <unistd.h>
#include "base/divide.h"
#ifdef SIMD_X86
#include <immintrin.h>
#endif

#define FEW_PIXELS 14          /* for a thread: below, reading all weights for them does not pay */
#define PANEL_FLOATS (6 << 10) /* of weights, that stay in the first-level cache (24 KB) */
#define FEW_GROUPS 8           /* of pixels: they use such weights too seldom */

/* What the register kernel is called with. */
struct direct_tile {
    const float *v; /* [depth][v_step]: pixels of LANES inputs */
    ptrdiff_t v_step;
    const float *u;
    const float *bias, *begin; /* what the sums start from; begin: as y; NULL: none */
    float *y;
    ptrdiff_t y_step; /* floats from one block of outputs to the next */
    int64_t depth;
    bool relu;
    /* To fetch for every step in depth, so many cache lines: of the next panel one after another,
     * of the next pixels v_step apart. */
    const float *next_u, *next_v;
    int64_t lines_u, lines_v;
};

typedef void (*direct_sums)(const struct direct_tile *t);

#define MOST_COLUMNS 4

/* The vector code for one instruction set. */
struct direct_loops {
    int lanes;
    int columns;                /* blocks of outputs of a panel; some panels have one more */
    int rows[MOST_COLUMNS + 1]; /* most pixels, by the blocks of outputs */
    const direct_sums *sums[MOST_COLUMNS + 1]; /* [rows + 1]: by the number of pixels */
    void (*pack)(const struct direct_conv *c, const float *x, int64_t first, int64_t n, float *v,
                 int64_t step);
};

#ifdef SIMD_X86
#define SIMD_BITS 256
#include "net/kernels/vectors.h"

#include "net/kernels/direct_conv_loops.h"
#define SIMD_BITS 512
#include "net/kernels/vectors.h"

#include "net/kernels/direct_conv_loops.h"
#endif

static const struct direct_loops *loops_of(enum simd level)
{
    return SIMD_PICK(level, &loops, NULL);
}

bool direct_conv_available(enum simd level)
{
    return loops_of(level) != NULL && simd_best() >= level;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t cache_floats(void)
{
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return at_least(bytes, 256 << 10) / (int64_t)sizeof(float);
}

/* Without padding, strides and taps an image is already in the order of the sums. */
static bool must_be_packed(const struct direct_conv *c)
{
    return c->pool || c->kernel[0] * c->kernel[1] > 1 || c->stride[0] > 1 || c->stride[1] > 1 ||
           c->pad[0] || c->pad[1] || c->out_height != c->height || c->out_width != c->width;
}

/* Floats from one block of inputs to the next in packed form: an odd number of cache lines, so that
 * they do not fall onto the same place of a cache. */
static int64_t packed_step(const struct direct_conv *c, int64_t pixels)
{
    return (ceil_div(pixels * c->lanes, 16) | 1) * 16;
}

/* Pixels that stay together: a row, if rows are pooled. */
static int64_t pixel_unit(const struct direct_conv *c)
{
    return c->pool ? c->out_width : 1;
}

/* Where a block of pixels starts. */
static int64_t block_begin(const struct direct_conv *c, int64_t block)
{
    int64_t unit = pixel_unit(c), units = c->out_height * c->out_width / unit;
    return units * block / c->pixel_blocks * unit;
}

static int64_t most_pixels(const struct direct_conv *c)
{
    int64_t unit = pixel_unit(c);
    return ceil_div(c->out_height * c->out_width / unit, c->pixel_blocks) * unit;
}

/* Their inputs take half of the second-level cache. */
static void choose_pixel_blocks(struct direct_conv *c)
{
    int64_t rows = loops_of(c->level)->rows[2];
    int64_t fit = cache_floats() / 2 / (c->depth * c->lanes) / rows * rows;
    c->pixel_blocks = ceil_div(c->out_height * c->out_width, at_least(fit, 2 * rows));
    if (c->pool && c->pixel_blocks > c->out_height)
        c->pixel_blocks = c->out_height;
}

/* Gives every thread something of an image if there is one only: of the pixels, when all threads
 * then read all weights, or of the weights, when they read all pixels; what is less to read. */
static void part_among_threads(struct direct_conv *c, size_t weight_floats, int64_t panels)
{
    int64_t pixels = c->out_height * c->out_width;
    int64_t missing = ceil_div(c->threads, c->batch * c->pixel_blocks);
    c->panel_parts = 1;
    if (missing < 2)
        return;
    int64_t parts = pixels / FEW_PIXELS / c->pixel_blocks;
    if (c->pool) /* every input is pooled once */
        parts = c->out_height / c->pixel_blocks;
    else if ((int64_t)weight_floats > c->in_blocks * c->lanes * pixels && panels >= 2 * missing)
        parts = 1;
    parts = parts < 1 ? 1 : parts < missing ? parts : missing;
    c->pixel_blocks *= parts;
    c->panel_parts = ceil_div(missing, parts) < panels ? ceil_div(missing, parts) : panels;
}

/* Bits do not depend on the blocking. */
void direct_conv_plan(struct direct_conv *c)
{
    const struct direct_loops *loops = loops_of(c->level);
    int64_t lanes = c->lanes = loops->lanes;
    c->in_blocks = ceil_div(c->in_channels, lanes);
    c->out_blocks = ceil_div(c->out_channels, lanes);
    c->panels =
        at_least(c->out_blocks / loops->columns, ceil_div(c->out_blocks, loops->columns + 1));
    c->depth = c->in_blocks * c->kernel[0] * c->kernel[1];
    c->packed = must_be_packed(c);
    choose_pixel_blocks(c);
    c->weight_floats = (size_t)(c->out_blocks * lanes * (c->depth * lanes + 1));
    part_among_threads(c, c->weight_floats, c->panels);
    c->scratch_floats =
        c->packed ? (size_t)(c->depth * packed_step(c, most_pixels(c)) * c->threads) : 0;
}

void direct_conv_join(struct direct_conv *convs, int n)
{
    size_t weight_floats = 0;
    int64_t panels = 0;
    for (int i = 0; i < n; i++)
        weight_floats += convs[i].weight_floats, panels += convs[i].panels;
    for (int i = 0; i < n; i++) {
        choose_pixel_blocks(&convs[i]);
        part_among_threads(&convs[i], weight_floats, panels);
    }
}

/* The first block of outputs of a panel: panels are as equal as can be. */
static int64_t first_of(const struct direct_conv *c, int64_t panel)
{
    return panel * c->out_blocks / c->panels;
}

static int columns_of(const struct direct_conv *c, int64_t panel)
{
    return (int)(first_of(c, panel + 1) - first_of(c, panel));
}

/* To: the panels [depth][LANES][columns][LANES], and then the bias, all filled up with zeros. */
void direct_conv_weights(const struct direct_conv *c, const float *from, const float *bias,
                         float *to)
{
    int64_t lanes = c->lanes, taps = c->kernel[0] * c->kernel[1], depth = c->depth * lanes;
    float *to_bias = to + c->out_blocks * lanes * depth;
#pragma omp parallel for num_threads(c->threads) schedule(static) if (c->threads > 1)
    for (int64_t k = 0; k < c->out_blocks; k++) {
        int64_t panel = ((k + 1) * c->panels - 1) / c->out_blocks, columns = columns_of(c, panel);
        float *first = to + first_of(c, panel) * lanes * depth + (k - first_of(c, panel)) * lanes;
        for (int64_t i = 0; i < c->in_blocks * lanes; i++)
            for (int64_t t = 0; t < taps; t++) {
                int64_t row = (i / lanes * taps + t) * lanes + i % lanes;
                for (int64_t l = 0; l < lanes; l++) {
                    int64_t o = k * lanes + l;
                    bool there = o < c->out_channels && i < c->in_channels;
                    first[row * columns * lanes + l] =
                        there ? from[(o * c->in_channels + i) * taps + t] : 0;
                }
            }
        for (int64_t o = k * lanes; o < (k + 1) * lanes; o++)
            to_bias[o] = bias && o < c->out_channels ? bias[o] : 0;
    }
}

/* One call's arguments. */
struct direct_run {
    const struct direct_work *works;
    int n;
    const float *x;
    int64_t blocks; /* of outputs, of all convolutions */
};

/* A block of n pixels. */
struct direct_block {
    const float *v; /* inputs */
    ptrdiff_t v_step;
    int64_t n, to;             /* to: where its outputs are, in the first block of channels */
    bool cold;                 /* the inputs are read for the first time */
    const float *next_weights; /* of the convolution that follows */
};

/* The sums of a panel over blocks of inputs from `from` to `end`. */
static void run_chunk(const struct direct_work *w, const struct direct_block *b, int64_t panel,
                      int64_t from, int64_t end)
{
    const struct direct_conv *c = w->conv;
    const struct direct_loops *loops = loops_of(c->level);
    int64_t lanes = c->lanes, depth = c->depth * lanes, pixels = c->out_height * c->out_width;
    int64_t columns = columns_of(c, panel), step = columns * lanes * lanes;
    const float *u = w->weights + first_of(c, panel) * lanes * depth;
    const float *next = panel + 1 < c->panels ? u + columns * lanes * depth : b->next_weights;
    const float *residual = w->residual ? w->residual + b->to : NULL;
    const float *bias = w->weights + c->out_blocks * lanes * depth + first_of(c, panel) * lanes;
    int64_t groups = ceil_div(b->n, loops->rows[columns]), at = 0;
    struct direct_tile t = { .v_step = b->v_step,
                             .u = u + from * step,
                             .bias = from == 0 ? bias : NULL,
                             .y_step = pixels * lanes,
                             .depth = end - from,
                             .relu = c->relu && end == c->depth };
    int64_t lines = ceil_div(step / 16, groups);
    for (int64_t g = 0; g < groups; g++) {
        int64_t rows = (b->n - at + groups - g - 1) / (groups - g);
        int64_t out = first_of(c, panel) * pixels * lanes + at * lanes;
        t.v = b->v + from * b->v_step + at * lanes;
        t.y = w->y + b->to + out;
        t.begin = from > 0 ? t.y : residual ? residual + out : NULL;
        t.next_u = next + from * step + g * lines * 16;
        t.lines_u = g * lines < step / 16 ? lines : 0;
        t.next_v = t.v + rows * lanes;
        t.lines_v = b->cold ? ceil_div(rows * lanes, 16) : 0;
        loops->sums[columns][rows](&t);
        at += rows;
    }
}

static void run_panel(const struct direct_work *w, const struct direct_block *b, int64_t panel)
{
    const struct direct_conv *c = w->conv;
    int64_t columns = columns_of(c, panel), lanes = c->lanes, chunks = 1;
    if (b->n > FEW_GROUPS * loops_of(c->level)->rows[columns])
        chunks = ceil_div(c->depth * columns * lanes * lanes, PANEL_FLOATS);
    if (chunks > c->depth)
        chunks = c->depth;
    for (int64_t i = 0; i < chunks; i++)
        run_chunk(w, b, panel, c->depth * i / chunks, c->depth * (i + 1) / chunks);
}

/* The share of a panel that a part has: the parts split all panels equally, one after another, so
 * that a panel between two of them is split by its pixels. In units of a block / panel_parts the
 * part starts `begin` after the start of the panel and has `length`. */
static void run_share(const struct direct_work *w, struct direct_block *whole, int64_t panel,
                      int64_t begin, int64_t length)
{
    int64_t units = columns_of(w->conv, panel) * w->conv->panel_parts;
    int64_t from = begin < 0 ? 0 : begin, to = begin + length < units ? begin + length : units;
    struct direct_block b = *whole;
    if (from >= to)
        return;
    from = whole->n * from / units, to = whole->n * to / units;
    b.v += from * w->conv->lanes, b.to += from * w->conv->lanes;
    b.n = to - from;
    if (b.n == 0)
        return;
    run_panel(w, &b, panel);
    whole->cold = false;
}

/* n pixels of an image from pixel `first` on, whole rows, pooled -> v [in_blocks][step]. */
static void pool_rows(const struct direct_conv *c, const float *x, int64_t image, int64_t first,
                      int64_t n, float *v, int64_t step)
{
    const struct pool_window *pool = c->pool;
    const struct pool_rows *rows = pool_rows_get(c->level, c->lanes);
    int64_t plane = pool->axis[0].in * pool->axis[1].in * c->lanes;
    x += image * c->in_blocks * plane;
    for (int64_t b = 0; b < c->in_blocks; b++, x += plane, v += step)
        for (int64_t i = 0; i < n; i += c->out_width)
            rows->max(pool, (first + i) / c->out_width, x, v + i * c->lanes, NULL);
}

/* A block of pixels of an image and a part of the panels. */
static void run_item(const struct direct_run *r, int64_t item, float *scratch)
{
    const struct direct_conv *c = r->works[0].conv;
    int64_t part = item % c->panel_parts, block = item / c->panel_parts % c->pixel_blocks;
    int64_t image = item / c->panel_parts / c->pixel_blocks, lanes = c->lanes;
    int64_t pixels = c->out_height * c->out_width;
    int64_t first = block_begin(c, block);
    const float *x = r->x + image * c->in_blocks * c->height * c->width * lanes;
    struct direct_block b = { .v = x + first * lanes,
                              .v_step = pixels * lanes,
                              .n = block_begin(c, block + 1) - first,
                              .cold = !c->packed };
    if (c->packed) {
        b.v_step = packed_step(c, b.n);
        if (c->pool)
            pool_rows(c, r->x, image, first, b.n, scratch, b.v_step);
        else
            loops_of(c->level)->pack(c, x, first, b.n, scratch, b.v_step);
        b.v = scratch;
    }
    for (int64_t i = 0, before = 0; i < r->n; i++) {
        const struct direct_work *w = &r->works[i];
        b.to = (image * w->conv->out_blocks * pixels + first) * lanes;
        b.next_weights = r->works[(i + 1) % r->n].weights;
        for (int64_t p = 0; p < w->conv->panels; p++) {
            run_share(w, &b, p, part * r->blocks - before * c->panel_parts, r->blocks);
            before += columns_of(w->conv, p);
        }
    }
}

void direct_conv_run(const struct direct_work *works, int n, const float *x, float *scratch)
{
    const struct direct_conv *c = works[0].conv;
    struct direct_run r = { works, n, x, 0 };
    for (int i = 0; i < n; i++)
        r.blocks += works[i].conv->out_blocks;
    int64_t items = c->batch * c->pixel_blocks * c->panel_parts;
    int64_t step = c->packed ? c->depth * packed_step(c, most_pixels(c)) : 0;
#pragma omp parallel for num_threads(c->threads) schedule(static) if (c->threads > 1 && items > 1)
    for (int64_t i = 0; i < items; i++)
        run_item(&r, i, scratch + step * omp_get_thread_num());
}
