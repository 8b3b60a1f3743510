/* direct_gradient.c: see direct_gradient.h. The gradient is a product of two matrices, summed over
 * the pixels: for every tap the inputs that it meets (columns), and the gradients of the outputs.
 * Where x is blocked and has one tap both lie in memory as the register kernel needs them,
 * [block][pixel][lanes]; else a piece of some pixels is packed. A chunk of inputs with all their
 * taps and of outputs is summed by one thread into U, [column][panel][input][2 blocks of outputs],
 * which is then, while it is in the caches, added to the weights. */
#include "net/kernels/direct_gradient.h"
#include <omp.h>
#include <string.h>
#include "base/divide.h"
#include "net/kernels/channel_sums.h"

#define SIMD_BITS 128
#include "net/kernels/vectors.h"

#include "net/kernels/squares.h"
#ifdef SIMD_X86
#include <immintrin.h>
#define SIMD_BITS 256
#include "net/kernels/vectors.h"

#include "net/kernels/direct_gradient_loops.h"
#define SIMD_BITS 512
#include "net/kernels/vectors.h"

#include "net/kernels/direct_gradient_loops.h"
#endif

#define PIECE 128 /* pixels of which a column and the outputs stay in the first-level cache */

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

static int64_t kernel_of(const struct direct_gradient *g)
{
    return g->kernel[0] * g->kernel[1];
}

static bool is_packed(const struct direct_gradient *g)
{
    bool whole = g->stride[0] == 1 && g->stride[1] == 1 && g->pad[0] == 0 && g->pad[1] == 0 &&
                 g->out_height == g->height && g->out_width == g->width;
    return g->source != DIRECT_BLOCKED || kernel_of(g) > 1 || !whole;
}

static int64_t area_of(const struct direct_gradient *g)
{
    return g->out_height * g->out_width;
}

static int64_t chunk_floats(const struct direct_gradient *g)
{
    return g->chunk_inputs * g->taps * g->chunk_panels * 2 * g->lanes * g->lanes;
}

void direct_gradient_plan(struct direct_gradient *g)
{
    bool plain = g->source == DIRECT_PLAIN;
    g->lanes = g->level == SIMD_AVX512 ? 16 : 8;
    g->taps = plain ? 1 : kernel_of(g);
    g->inputs = ceil_div(g->in_channels * (plain ? kernel_of(g) : 1), g->lanes);
    g->out_blocks = ceil_div(g->out_channels, g->lanes);
    g->panels = ceil_div(g->out_blocks, 2);
    g->chunk_inputs = ceil_div(64 / g->lanes, g->taps), g->chunk_panels = 32 / g->lanes;
    if (is_packed(g)) /* once for many outputs */
        g->chunk_panels = 128 / g->lanes;
    if (plain) /* few columns, large maps: each thread reads dy once */
        g->chunk_inputs = ceil_div(g->inputs, g->threads);
    for (;;) { /* enough chunks for the threads */
        g->chunks_in = ceil_div(g->inputs, g->chunk_inputs);
        g->chunks_out = ceil_div(g->panels, g->chunk_panels);
        int64_t chunks = g->chunks_in * g->chunks_out;
        if (chunks % g->threads == 0 || chunks >= 4 * g->threads)
            break;
        if (g->chunk_panels > 1)
            g->chunk_panels = ceil_div(g->chunk_panels, 2);
        else if (g->chunk_inputs > 1)
            g->chunk_inputs = ceil_div(g->chunk_inputs, 2);
        else
            break;
    }
    g->packed_floats = is_packed(g) ? PIECE * g->lanes : 0;
    g->thread_floats = g->packed_floats + chunk_floats(g);
    g->scratch_floats = (size_t)(g->threads * g->thread_floats);
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
    int64_t lanes = g->lanes, tap = column % g->taps, s = g->stride[1];
    int64_t row = tap / g->kernel[1], at = tap % g->kernel[1];
    x += column / g->taps * g->height * g->width * lanes;
    for (int64_t end = first + n; first < end;) {
        struct span p = span_at(g, first, end - first, row, at);
        const float *from = x + (p.y * g->width + at * g->dilation[1] - g->pad[1]) * lanes;
        for (int64_t i = p.begin; i < p.end; i++)
            if (i >= p.low && i < p.high)
                copy_lanes(lanes, from + i * s * lanes, v + (i - p.begin) * lanes);
            else
                memset(v + (i - p.begin) * lanes, 0, (size_t)lanes * sizeof *v);
        v += (p.end - p.begin) * lanes;
        first += p.end - p.begin;
    }
}

/* One input channel and tap in every lane. */
static void pack_plain(const struct direct_gradient *g, const float *x, int64_t column,
                       int64_t first, int64_t n, float *v)
{
    int64_t taps = kernel_of(g), last = first + n;
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

struct chunk {
    int64_t input, inputs, panel, panels;
};

static struct chunk chunk_at(const struct direct_gradient *g, int64_t number)
{
    int64_t input = number % g->chunks_in * g->chunk_inputs;
    int64_t panel = number / g->chunks_in * g->chunk_panels;
    return (struct chunk){ input, clamp(g->inputs - input, 0, g->chunk_inputs), panel,
                           clamp(g->panels - panel, 0, g->chunk_panels) };
}

/* Adds the products of n pixels of an image, from `first` on. */
static void add_piece(const struct direct_gradient *g, const struct chunk *c, const float *x,
                      const float *dy, int64_t first, int64_t n, float *packed, float *u)
{
    correlate_fn correlate = correlate_of(g->level);
    int64_t lanes = g->lanes, area = area_of(g), step = area * lanes;
    bool direct = !is_packed(g);
    const float *z = dy + 2 * c->panel * step + first * lanes;
    for (int64_t i = 0; i < c->inputs * g->taps; i++) {
        int64_t column = c->input * g->taps + i;
        const float *v = direct ? x + column * area * lanes + first * lanes : packed;
        if (!direct)
            pack(g, x, column, first, n, packed);
        for (int64_t p = 0; p < c->panels; p++) {
            const float *at = z + 2 * p * step, *after = p + 1 < c->panels ? at + 2 * step : z;
            const float *next[2] = { after, after + step };
            correlate(2 * (c->panel + p) + 1 >= g->out_blocks, n, v, at, step,
                      u + (i * c->panels + p) * 2 * lanes * lanes, next);
        }
    }
}

/* u of a chunk. */
static void sum_chunk(const struct direct_gradient *g, const struct chunk *c, const float *x,
                      const float *dy, float *packed, float *u)
{
    int64_t area = area_of(g);
    int64_t x_floats = g->source == DIRECT_PLAIN ? g->in_channels : g->inputs * g->lanes;
    x_floats *= g->height * g->width;
    memset(u, 0, (size_t)chunk_floats(g) * sizeof *u);
    for (int64_t image = 0; image < g->batch; image++)
        for (int64_t first = 0; first < area; first += PIECE)
            add_piece(g, c, x + image * x_floats, dy + image * g->out_blocks * area * g->lanes,
                      first, clamp(area - first, 0, PIECE), packed, u);
}

#define FOUR _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)

/* Adds the sums from[0 .. n - 1] [outputs], n <= 4, to n weights of each output, a row apart.
 * Meanwhile what is `ahead` is fetched. */
static void add_weights(const float *const from[4], int64_t n, int64_t outputs, int64_t row,
                        float *to, int64_t ahead)
{
    int64_t o = 0;
    for (; n == 4 && o + 4 <= outputs; o += 4, to += 4 * row) {
        vector128 sums[4];
        FOUR sums[j] = *(const vector128_at *)(from[j] + o);
        square_turn(sums);
        FOUR *(vector128_at *)(to + j * row) += sums[j];
        FOUR __builtin_prefetch(to + j * row + ahead, 1, 3);
    }
    for (; o < outputs; o++, to += row)
        for (int64_t i = 0; i < n; i++)
            to[i] += from[i][o];
}

/* Adds u of a chunk to the weights of one of its inputs by one of its blocks of outputs. */
static void finish_block(const struct direct_gradient *g, const struct chunk *c, int64_t in,
                         int64_t out, const float *u, float *weights)
{
    int64_t lanes = g->lanes, row = g->in_channels * kernel_of(g), span = lanes * g->taps;
    int64_t first = (c->input + in) * span, count = clamp(row - first, 0, span);
    int64_t k = (2 * c->panel + out) * lanes, outputs = clamp(g->out_channels - k, 0, lanes);
    int64_t tap_step = c->panels * 2 * lanes * lanes, input = 0, tap = 0;
    int64_t ahead = k + 2 * lanes <= g->out_channels ? lanes * row : 0; /* the next block */
    u += (in * g->taps * c->panels + out / 2) * 2 * lanes * lanes + out % 2 * lanes;
    for (int64_t i = 0; i < count; i += 4) {
        const float *from[4] = { NULL };
        int64_t n = clamp(count - i, 0, 4);
        for (int64_t j = 0; j < n; j++) {
            from[j] = u + tap * tap_step + input * 2 * lanes;
            tap = tap + 1 < g->taps ? tap + 1 : 0, input += tap == 0;
        }
        add_weights(from, n, outputs, row, weights + k * row + first + i, ahead);
    }
}

static void do_chunk(const struct direct_gradient *g, int64_t number, const float *x,
                     const float *dy, float *weights, float *scratch)
{
    struct chunk c = chunk_at(g, number);
    float *u = scratch + g->packed_floats;
    sum_chunk(g, &c, x, dy, scratch, u);
    for (int64_t in = 0; in < c.inputs; in++)
        for (int64_t out = 0; out < 2 * c.panels && 2 * c.panel + out < g->out_blocks; out++)
            finish_block(g, &c, in, out, u, weights);
}

void direct_gradient_run(const struct direct_gradient *g, const float *x, const float *dy,
                         float *weights, float *bias, float *scratch)
{
    const struct channel_sums sums = { g->batch, g->out_channels, g->out_height, g->out_width,
                                       g->lanes };
    int64_t chunks = weights ? g->chunks_in * g->chunks_out : 0;
#pragma omp parallel num_threads(g->threads) if (g->threads > 1)
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < chunks; i++)
            do_chunk(g, i, x, dy, weights, scratch + omp_get_thread_num() * g->thread_floats);
#pragma omp for schedule(static)
        for (int64_t k = 0; k < (bias ? g->out_blocks : 0); k++)
            channel_sums_add(&sums, k, dy, bias);
    }
}
