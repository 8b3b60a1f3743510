/* winograd_gradient.c: dW = Gt [ sum over tiles of (Bt d B) . (A dY At) ] G. For a block of tiles,
 * inputs (V) and gradients (Z) are transformed, then multiplied point by point over the tiles into
 * U, one chunk of inputs and outputs at a time; after the last block a chunk is transformed into
 * taps. Each number of U is summed tile after tile by one thread, so neither blocks nor threads
 * change it. */
#include "net/kernels/winograd_gradient.h"
#include <omp.h>
#include "base/divide.h"
#include "net/kernels/channel_sums.h"
#include "net/kernels/winograd_loops.h"

#define TILE 4
#define POINTS 36
#define MANY_BYTES 5 /* a cycle: from beyond the second-level cache */

/* Chunks of about 64 x 64 channels, smaller if there were too few for the threads. */
static void choose_chunks(struct winograd_gradient *g, int threads)
{
    const struct winograd_conv *w = &g->conv;
    g->chunk_inputs = 64 / w->lanes, g->chunk_panels = 32 / w->lanes;
    for (;;) {
        g->chunks_in = ceil_div(w->in_blocks, g->chunk_inputs);
        g->chunks_out = ceil_div(w->panels, g->chunk_panels);
        if (g->chunks_in * g->chunks_out % threads == 0 ||
            g->chunks_in * g->chunks_out >= 4 * threads)
            break;
        if (g->chunk_panels > 1)
            g->chunk_panels /= 2;
        else if (g->chunk_inputs > 1)
            g->chunk_inputs /= 2;
        else
            break;
    }
    g->u_step = winograd_odd_lines(g->chunk_inputs * w->lanes * g->chunk_panels * 2 * w->lanes);
    g->chunk_floats = (size_t)(POINTS * g->u_step);
}

/* Cycles, by measured constants: register kernels reach 85 % of the multiply-adds, a point takes 10
 * cycles to transform for each register; V and Z pass once for each chunk, U twice for each block
 * of tiles but the first; the taps of a register of outputs take 600 cycles. */
static double cost_of(const struct winograd_gradient *g)
{
    const struct winograd_conv *w = &g->conv;
    double points = winograd_count_points(w), in = (double)w->in_blocks,
           out = (double)w->out_blocks;
    double products = points * in * w->lanes * out / (simd_multiply_adds(w->level) * 0.85);
    double sides = in * (double)g->chunks_out + out * (double)g->chunks_in;
    double bytes = points * sides * w->lanes * 4 +
                   POINTS * in * out * w->lanes * w->lanes * 8 * (double)(g->blocks - 1);
    return products + 10 * points * (in + out) + bytes / MANY_BYTES + 600 * in * w->lanes * out;
}

double winograd_gradient_plan(struct winograd_gradient *g)
{
    struct winograd_conv *w = &g->conv;
    w->tile = TILE;
    winograd_count_tiles(w);
    int64_t taps = POINTS * w->in_blocks * w->out_blocks * w->lanes * w->lanes;
    int64_t fit =
        taps > 4 * winograd_cache_floats() ? WINOGRAD_MOST_TILES : WINOGRAD_MOST_TILES / 2;
    g->blocks = w->tiles <= WINOGRAD_MOST_TILES ? 1 : ceil_div(w->tiles, fit);
    w->block_tiles = ceil_div(w->tiles, g->blocks);
    w->v_step = winograd_odd_lines(w->block_tiles * w->in_blocks * w->lanes);
    w->m_step = winograd_odd_lines(w->block_tiles * w->out_blocks * w->lanes);
    choose_chunks(g, 1); /* the choice must not depend on the threads */
    double cost = cost_of(g);
    choose_chunks(g, w->threads);
    size_t held = (size_t)(g->blocks == 1 ? w->threads : g->chunks_in * g->chunks_out);
    g->scratch_floats = (size_t)(POINTS * (w->v_step + w->m_step)) + held * g->chunk_floats;
    return cost;
}

/* oneDNN's direct kernels reach 85 % of the multiply-adds, half of them with two of AVX-512. */
double winograd_gradient_direct_cost(const struct winograd_gradient *g)
{
    const struct winograd_conv *w = &g->conv;
    double outputs = (double)(w->batch * w->out_height * w->out_width);
    int units = simd_multiply_adds(w->level);
    double reached = w->level == SIMD_AVX512 && units == 2 ? 0.5 : 0.85;
    return 9 * outputs * (double)(w->in_blocks * w->lanes * w->out_blocks) / (units * reached);
}

/* A chunk of U, [point][panel][input][2 registers of outputs]: = or += the products of the block's
 * tiles. V of the next inputs and Z of the next panel are fetched meanwhile. */
static void multiply(const struct winograd_gradient *g, int64_t chunk,
                     const struct winograd_block *block, const float *v, const float *z, bool add,
                     float *u)
{
    const struct winograd_conv *w = &g->conv;
    const struct winograd_loops *loops = winograd_loops_of(w->level);
    int64_t lanes = w->lanes, part = block->n * lanes;
    int64_t c0 = chunk % g->chunks_in * g->chunk_inputs,
            p0 = chunk / g->chunks_in * g->chunk_panels;
    int64_t inputs = w->in_blocks - c0 < g->chunk_inputs ? w->in_blocks - c0 : g->chunk_inputs;
    int64_t panels = w->panels - p0 < g->chunk_panels ? w->panels - p0 : g->chunk_panels;
    v += c0 * part, z += 2 * p0 * part;
    for (int64_t point = 0; point < POINTS; point++, v += w->v_step, z += w->m_step) {
        int64_t from = 0, to = block->n;
        winograd_tiles_of_point(w, block, point, &from, &to);
        int64_t n = to > from ? to - from : 0, first = from * lanes;
        for (int64_t p = 0; p < panels; p++)
            for (int64_t c = 0; c < inputs; c++) {
                const float *next_z = p + 1 < panels ? z + 2 * (p + 1) * part : z + w->m_step;
                const float *next[2] = { c + 1 < inputs   ? v + (c + 1) * part
                                         : p + 1 < panels ? v
                                                          : v + w->v_step,
                                         next_z + c * 2 * n / inputs * lanes };
                loops->correlate(
                    2 * (p0 + p) + 1 >= w->out_blocks, n, v + c * part + first,
                    z + 2 * p * part + first, part, add,
                    u + point * g->u_step + (p * g->chunk_inputs + c) * 2 * lanes * lanes, next);
            }
    }
}

/* A chunk of U, complete, is added to the taps. */
static void finish(const struct winograd_gradient *g, int64_t chunk, const float taps[6][3],
                   const float *u, float *weights)
{
    const struct winograd_conv *w = &g->conv;
    const struct winograd_loops *loops = winograd_loops_of(w->level);
    int64_t lanes = w->lanes, inputs = g->chunk_inputs * lanes, row = w->in_channels * 9;
    int64_t c0 = chunk % g->chunks_in * inputs, k0 = chunk / g->chunks_in * g->chunk_panels * 2;
    for (int64_t k = 0; k < 2 * g->chunk_panels && k0 + k < w->out_blocks; k++) {
        int64_t first = (k0 + k) * lanes, left = w->out_channels - first;
        for (int64_t c = 0; c < inputs && c0 + c < w->in_channels; c++)
            loops->weight_gradient(taps, u + ((k / 2 * inputs + c) * 2 + k % 2) * lanes, g->u_step,
                                   left < lanes ? left : lanes,
                                   weights + first * row + (c0 + c) * 9, row);
    }
}

void winograd_gradient_run(const struct winograd_gradient *g, const float *x, const float *dy,
                           float *weights, float *bias, float *scratch)
{
    const struct winograd_conv *w = &g->conv;
    const struct channel_sums sums = { w->batch, w->out_channels, w->out_height, w->out_width,
                                       w->lanes };
    const struct winograd_loops *loops = winograd_loops_of(w->level);
    float *v = scratch, *z = v + POINTS * w->v_step, *u = z + POINTS * w->m_step;
    double transform[WINOGRAD_POINTS][3];
    float taps[6][3];
    winograd_weight_transform(TILE, transform);
    for (int i = 0; i < 18; i++)
        taps[i / 3][i % 3] = (float)transform[i / 3][i % 3];
#pragma omp parallel num_threads(w->threads) if (w->threads > 1)
    for (int64_t b = 0; b < g->blocks; b++) {
        struct winograd_block block;
        int64_t first = w->tiles * b / g->blocks, n = w->tiles * (b + 1) / g->blocks - first;
        winograd_find_block_by_place(w, first, n, &block);
#pragma omp for schedule(static, 1)
        for (int64_t i = 0; i < w->in_blocks + w->out_blocks; i++)
            if (i < w->in_blocks)
                loops->transform_in(w, x, &block, i, v);
            else
                loops->transform_gradient(w, dy, &block, i - w->in_blocks, z);
#pragma omp for schedule(static, 1)
        for (int64_t chunk = 0; chunk < g->chunks_in * g->chunks_out; chunk++) {
            int64_t place = g->blocks == 1 ? omp_get_thread_num() : chunk;
            float *its = u + (size_t)place * g->chunk_floats;
            multiply(g, chunk, &block, v, z, b > 0, its);
            if (b + 1 == g->blocks)
                finish(g, chunk, (const float(*)[3])taps, its, weights);
        }
    }
#pragma omp parallel for num_threads(w->threads) if (w->threads > 1 && bias)
    for (int64_t k = 0; k < (bias ? w->out_blocks : 0); k++)
        channel_sums_add(&sums, k, dy, bias);
}
