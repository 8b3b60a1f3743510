/* direct_gradient.c: see direct_gradient.h. The gradient is a product of two matrices, summed over
 * the pixels: for every tap the inputs that it meets (columns), and the gradients of the outputs.
 * Where x is blocked and has one tap both lie in memory as the register kernel needs them,
 * [block][pixel][lanes]; else a piece of some pixels is packed. A chunk of columns and outputs is
 * summed by one thread into U, [column][panel][input][2 blocks of outputs], which is then added to
 * the weights. */
#include "net/kernels/direct_gradient.h"
#include <omp.h>
#include <string.h>
#include "base/divide.h"
#ifdef SIMD_X86
#include <immintrin.h>
#define SIMD_BITS 256
#include "net/kernels/vectors.h"

#include "net/kernels/direct_gradient_loops.h"
#define SIMD_BITS 512
#include "net/kernels/vectors.h"

#include "net/kernels/direct_gradient_loops.h"
#endif

#define PIECE 128 /* pixels whose columns and outputs stay in the first-level cache */
#define MOST_LANES 16

typedef void (*correlate_fn)(bool one, int64_t n, const float *v, const float *z, ptrdiff_t z_step,
                             float *u, const float *const next[2]);

static correlate_fn correlate_of(enum simd level)
{
    return SIMD_PICK(level, correlate, NULL);
}

bool direct_gradient_available(enum simd level)
{
    return correlate_of(level) != NULL && simd_best() >= level;
}

static int64_t taps_of(const struct direct_gradient *g)
{
    return g->kernel[0] * g->kernel[1];
}

static bool is_packed(const struct direct_gradient *g)
{
    bool whole = g->stride[0] == 1 && g->stride[1] == 1 && g->pad[0] == 0 && g->pad[1] == 0 &&
                 g->out_height == g->height && g->out_width == g->width;
    return g->source != DIRECT_BLOCKED || taps_of(g) > 1 || !whole;
}

static int64_t area_of(const struct direct_gradient *g)
{
    return g->out_height * g->out_width;
}

void direct_gradient_plan(struct direct_gradient *g)
{
    g->lanes = g->level == SIMD_AVX512 ? 16 : 8;
    g->in_blocks = ceil_div(g->in_channels, g->lanes);
    g->out_blocks = ceil_div(g->out_channels, g->lanes);
    g->columns = g->source == DIRECT_PLAIN ? ceil_div(g->in_channels * taps_of(g), g->lanes)
                                           : g->in_blocks * taps_of(g);
    g->panels = ceil_div(g->out_blocks, 2);
    g->chunk_columns = 64 / g->lanes, g->chunk_panels = 32 / g->lanes;
    if (is_packed(g)) /* once for many outputs */
        g->chunk_panels = 256 / g->lanes;
    if (g->source == DIRECT_PLAIN) /* few columns, large maps: each thread reads dy once */
        g->chunk_columns = ceil_div(g->columns, g->threads);
    for (;;) { /* enough chunks for the threads */
        g->chunks_in = ceil_div(g->columns, g->chunk_columns);
        g->chunks_out = ceil_div(g->panels, g->chunk_panels);
        int64_t chunks = g->chunks_in * g->chunks_out;
        if (chunks % g->threads == 0 || chunks >= 4 * g->threads)
            break;
        if (g->chunk_panels > 1)
            g->chunk_panels = ceil_div(g->chunk_panels, 2);
        else if (g->chunk_columns > 1)
            g->chunk_columns = ceil_div(g->chunk_columns, 2);
        else
            break;
    }
    g->thread_floats = (is_packed(g) ? g->chunk_columns : 0) * PIECE * g->lanes;
    g->scratch_floats =
        (size_t)(g->columns * g->panels * 2 * g->lanes * g->lanes + g->threads * g->thread_floats);
}

/* --- packing: n pixels from `first` on of an image, [pixel][lanes] --- */

/* Part of one row of outputs: pixels [begin, end) of row y, of which the tap finds [low, high) in
 * the image. */
struct span {
    int64_t y, begin, end, low, high;
};

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static struct span span_at(const struct direct_gradient *g, int64_t pixel, int64_t left,
                           int64_t row, int64_t column)
{
    struct span s = { .y = pixel / g->out_width, .begin = pixel % g->out_width };
    s.end = s.begin + left < g->out_width ? s.begin + left : g->out_width;
    int64_t in_y = s.y * g->stride[0] - g->pad[0] + row * g->dilation[0];
    int64_t shift = column * g->dilation[1] - g->pad[1]; /* in x = x stride + shift */
    bool exists = in_y >= 0 && in_y < g->height;
    s.low = clamp(shift < 0 ? ceil_div(-shift, g->stride[1]) : 0, s.begin, s.end);
    s.high = g->width > shift ? ceil_div(g->width - shift, g->stride[1]) : 0;
    s.high = exists ? clamp(s.high, s.low, s.end) : s.low;
    s.y = in_y;
    return s;
}

/* A size that the compiler knows is a few instructions. */
static void copy_lanes(int64_t lanes, const float *from, float *to)
{
    if (lanes == 16)
        memcpy(to, from, 16 * sizeof *to);
    else
        memcpy(to, from, 8 * sizeof *to);
}

static void pack_blocked(const struct direct_gradient *g, const float *x, int64_t column,
                         int64_t first, int64_t n, float *v)
{
    int64_t lanes = g->lanes, tap = column / g->in_blocks, s = g->stride[1];
    int64_t row = tap / g->kernel[1], at = tap % g->kernel[1];
    x += column % g->in_blocks * g->height * g->width * lanes;
    for (int64_t end = first + n; first < end;) {
        struct span p = span_at(g, first, end - first, row, at);
        const float *from = x + (p.y * g->width + at * g->dilation[1] - g->pad[1]) * lanes;
        memset(v, 0, (size_t)((p.low - p.begin) * lanes) * sizeof *v);
        if (s == 1 && p.high > p.low)
            memcpy(v + (p.low - p.begin) * lanes, from + p.low * lanes,
                   (size_t)((p.high - p.low) * lanes) * sizeof *v);
        for (int64_t i = p.low; s > 1 && i < p.high; i++)
            copy_lanes(lanes, from + i * s * lanes, v + (i - p.begin) * lanes);
        memset(v + (p.high - p.begin) * lanes, 0, (size_t)((p.end - p.high) * lanes) * sizeof *v);
        v += (p.end - p.begin) * lanes;
        first += p.end - p.begin;
    }
}

/* One input channel and tap in every lane. */
static void pack_plain(const struct direct_gradient *g, const float *x, int64_t column,
                       int64_t first, int64_t n, float *v)
{
    int64_t taps = taps_of(g), last = first + n;
    memset(v, 0, (size_t)(n * g->lanes) * sizeof *v);
    for (int64_t lane = 0; lane < g->lanes; lane++) {
        int64_t index = column * g->lanes + lane, tap = index % taps;
        if (index >= g->in_channels * taps)
            return;
        const float *plane = x + index / taps * g->height * g->width;
        int64_t at = tap % g->kernel[1], s = g->stride[1];
        float *to = v + lane;
        for (int64_t pixel = first; pixel < last;) {
            struct span p = span_at(g, pixel, last - pixel, tap / g->kernel[1], at);
            const float *from = plane + p.y * g->width + at * g->dilation[1] - g->pad[1];
            for (int64_t i = p.low; i < p.high; i++)
                to[(i - p.begin) * g->lanes] = from[i * s];
            to += (p.end - p.begin) * g->lanes;
            pixel += p.end - p.begin;
        }
    }
}

static void pack(const struct direct_gradient *g, const float *x, int64_t column, int64_t first,
                 int64_t n, float *v)
{
    if (g->source == DIRECT_PLAIN)
        pack_plain(g, x, column, first, n, v);
    else
        pack_blocked(g, x, column, first, n, v);
}

/* --- sums --- */

/* The columns and panels of a chunk. */
struct chunk {
    int64_t column, columns, panel, panels;
};

/* Adds the products of n pixels of an image, from `first` on. */
static void add_piece(const struct direct_gradient *g, const struct chunk *c, const float *x,
                      const float *dy, int64_t first, int64_t n, float *packed, float *u)
{
    correlate_fn correlate = correlate_of(g->level);
    int64_t lanes = g->lanes, area = area_of(g), step = area * lanes;
    bool direct = !is_packed(g);
    const float *z = dy + 2 * c->panel * step + first * lanes;
    for (int64_t i = 0; i < c->columns; i++) {
        const float *v = packed + i * PIECE * lanes;
        if (direct)
            v = x + (c->column + i) * area * lanes + first * lanes;
        else
            pack(g, x, c->column + i, first, n, packed + i * PIECE * lanes);
        float *to = u + ((c->column + i) * g->panels + c->panel) * 2 * lanes * lanes;
        for (int64_t p = 0; p < c->panels; p++) {
            const float *at = z + 2 * p * step, *after = p + 1 < c->panels ? at + 2 * step : z;
            const float *next[2] = { after, after + step };
            correlate(2 * (c->panel + p) + 1 >= g->out_blocks, n, v, at, step,
                      to + p * 2 * lanes * lanes, next);
        }
    }
}

static void sum_chunk(const struct direct_gradient *g, int64_t number, const float *x,
                      const float *dy, float *packed, float *u)
{
    struct chunk c = { .column = number % g->chunks_in * g->chunk_columns,
                       .panel = number / g->chunks_in * g->chunk_panels };
    int64_t area = area_of(g);
    int64_t x_floats = g->source == DIRECT_PLAIN ? g->in_channels : g->in_blocks * g->lanes;
    x_floats *= g->height * g->width;
    c.columns = clamp(g->columns - c.column, 0, g->chunk_columns);
    c.panels = clamp(g->panels - c.panel, 0, g->chunk_panels);
    size_t held = (size_t)(c.panels * 2 * g->lanes * g->lanes) * sizeof *u;
    for (int64_t i = 0; i < c.columns; i++)
        memset(u + ((c.column + i) * g->panels + c.panel) * 2 * g->lanes * g->lanes, 0, held);
    for (int64_t image = 0; image < g->batch; image++)
        for (int64_t first = 0; first < area; first += PIECE)
            add_piece(g, &c, x + image * x_floats, dy + image * g->out_blocks * area * g->lanes,
                      first, clamp(area - first, 0, PIECE), packed, u);
}

/* Adds U to the weights of a block of outputs by a block of inputs (of columns, if x is plain). */
static void finish(const struct direct_gradient *g, int64_t out, int64_t in, const float *u,
                   float *weights)
{
    int64_t lanes = g->lanes, taps = taps_of(g), row = g->in_channels * taps;
    bool plain = g->source == DIRECT_PLAIN;
    int64_t inner = plain ? 1 : taps, width = plain ? row : g->in_channels;
    int64_t inputs = clamp(width - in * lanes, 0, lanes), tap_step = g->in_blocks * g->panels;
    u += (in * g->panels + out / 2) * 2 * lanes * lanes + out % 2 * lanes;
    for (int64_t o = 0; o < lanes && out * lanes + o < g->out_channels; o++) {
        float *to = weights + (out * lanes + o) * row + in * lanes * inner;
        for (int64_t i = 0; i < inputs; i++)
            for (int64_t t = 0; t < inner; t++)
                to[i * inner + t] += u[t * tap_step * 2 * lanes * lanes + i * 2 * lanes + o];
    }
}

/* Adds the sum over all pixels of a block of outputs, row by row. */
static void sum_bias(const struct direct_gradient *g, int64_t block, const float *dy, float *bias)
{
    int64_t lanes = g->lanes, left = clamp(g->out_channels - block * lanes, 0, lanes);
    int64_t n = g->batch * g->out_height, width = g->out_width;
    double sum[MOST_LANES] = { 0 };
    for (int64_t row = 0; row < n; row++) {
        const float *at = dy + ((row / g->out_height * g->out_blocks + block) * g->out_height +
                                row % g->out_height) *
                                   width * lanes;
        float part[MOST_LANES] = { 0 };
        for (int64_t x = 0; x < width; x++)
            for (int64_t l = 0; l < left; l++)
                part[l] += at[x * lanes + l];
        for (int64_t l = 0; l < left; l++)
            sum[l] += (double)part[l];
    }
    for (int64_t l = 0; l < left; l++)
        bias[block * lanes + l] += (float)sum[l];
}

void direct_gradient_run(const struct direct_gradient *g, const float *x, const float *dy,
                         float *weights, float *bias, float *scratch)
{
    float *u = scratch + g->threads * g->thread_floats;
    int64_t chunks = weights ? g->chunks_in * g->chunks_out : 0;
    int64_t inputs = g->source == DIRECT_PLAIN ? g->columns : g->in_blocks;
#pragma omp parallel num_threads(g->threads) if (g->threads > 1)
    {
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < chunks; i++)
            sum_chunk(g, i, x, dy, scratch + omp_get_thread_num() * g->thread_floats, u);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < (weights ? g->out_blocks * inputs : 0); i++)
            finish(g, i / inputs, i % inputs, u, weights);
#pragma omp for schedule(static)
        for (int64_t k = 0; k < (bias ? g->out_blocks : 0); k++)
            sum_bias(g, k, dy, bias);
    }
}
