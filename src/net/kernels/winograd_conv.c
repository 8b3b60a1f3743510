/* winograd_conv.c: geometry, blocking and threads of Winograd convolutions; the vector code is in
 * winograd_conv_loops.h. For a block of tiles: transform the inputs (V), multiply by the weights
 * point by point (M), transform back. V and M of a block are meant to stay in the second-level
 * cache. */
#include "net/kernels/winograd_conv.h"
#include <math.h>
#include <omp.h>
#include <unistd.h>
#include "base/divide.h"
#include "net/kernels/winograd_loops.h"

#define FEW_TILES 14  /* for a thread: below, reading all weights for them does not pay */
#define FEW_THREADS 4 /* that transform the inputs each for itself */

bool winograd_conv_available(enum simd level)
{
    return winograd_loops_of(level) != NULL && simd_best() >= level;
}

int64_t winograd_cache_floats(void)
{
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return (bytes < (256 << 10) ? 256 << 10 : bytes) / (int64_t)sizeof(float);
}

/* Bits do not depend on the blocking. */
static void choose_blocks(struct winograd_conv *w)
{
    const struct winograd_loops *loops = winograd_loops_of(w->level);
    int64_t points = (w->tile + 2) * (w->tile + 2), cache = winograd_cache_floats();
    int64_t channels = w->in_blocks * w->lanes, panel = 2 * w->lanes;
    int64_t weights = points * channels * w->panels * panel;
    int64_t fit = cache / 2 / (points * channels) / loops->rows * loops->rows;
    if (fit < 2 * loops->rows)
        fit = 2 * loops->rows;
    if (weights > 8 * cache) /* read from memory: for as many tiles as possible */
        fit = WINOGRAD_MOST_TILES / loops->rows * loops->rows;
    if (fit > 4 * loops->rows && weights <= 8 * cache)
        fit = 4 * loops->rows;
    int64_t blocks = ceil_div(w->tiles, fit < w->tiles ? fit : w->tiles);
    int64_t few = FEW_TILES * w->threads;
    if (weights > cache && w->tiles <= fit && points * channels * w->tiles <= cache / 2)
        few *= 2; /* all inputs stay in the cache while weights pass */
    w->shared = w->threads > 1 && w->tiles < few && w->panels >= w->threads;
    if (!w->shared && blocks % w->threads)
        blocks += w->threads - blocks % w->threads;
    if (blocks > w->tiles)
        blocks = w->tiles;
    w->block_tiles = ceil_div(w->tiles, blocks);
    w->block_panels = cache / 4 / (points * w->block_tiles * panel);
    if (w->block_panels < 1)
        w->block_panels = 1;
    int64_t parts = ceil_div(w->panels, w->block_panels);
    if (w->shared && parts % w->threads)
        parts += w->threads - parts % w->threads;
    w->block_panels = ceil_div(w->panels, parts);
    w->v_step = winograd_odd_lines(w->block_tiles * channels);
    w->m_step = winograd_odd_lines(w->block_tiles * w->block_panels * panel);
    w->weight_floats = (size_t)weights;
    w->scratch_floats = (size_t)(points * (w->v_step + w->m_step) * w->threads);
}

/* Cycles, by measured constants: register kernels reach 85 % of the multiply-adds, weights
 * come at about 5 bytes a cycle (they pass once for every block of tiles), a point of a tile takes
 * about 4 cycles to transform for each register, there or back; transforming weights writes
 * 4 bytes a cycle. */
static double cost_of(const struct winograd_conv *w)
{
    double points = winograd_count_points(w);
    double in = (double)w->in_blocks, out = (double)w->out_blocks;
    double products = points * in * w->lanes * out / (simd_multiply_adds(w->level) * 0.85);
    double blocks = (double)ceil_div(w->tiles, w->block_tiles);
    double weights = (double)w->weight_floats * 4 * blocks / 5;
    double transform = w->learning ? (double)w->weight_floats * 4 / 4 : 0;
    return (products > weights ? products : weights) + 0.25 * weights + transform +
           4 * points * (in + out);
}

/* oneDNN's direct kernels reach 90 % of the multiply-adds with AVX2, 55 % with two of AVX-512 on
 * maps of 28 x 28 and less (85 % on larger ones, where Winograd's lead does not hang on it), 98 %
 * with one. */
double winograd_conv_direct_cost(const struct winograd_conv *w)
{
    double outputs = (double)(w->batch * w->out_height * w->out_width);
    double reached = w->level == SIMD_AVX2               ? 2 * 0.9
                     : simd_multiply_adds(w->level) == 2 ? 2 * 0.55
                                                         : 0.98;
    return 9 * outputs * (double)(w->in_blocks * w->lanes * w->out_blocks) / reached;
}

/* Sets all but the choice; returns the cost on one thread: the choice must not depend on them. */
static double plan_tile(struct winograd_conv *w, int tile)
{
    int threads = w->threads;
    w->tile = tile;
    winograd_count_tiles(w);
    w->threads = 1;
    choose_blocks(w);
    double cost = cost_of(w);
    w->threads = threads;
    choose_blocks(w);
    return cost;
}

double winograd_conv_plan(struct winograd_conv *w, int tile)
{
    double least = INFINITY;
    int cheapest = 0;
    for (int t = 2; t <= (w->fast ? 6 : 4); t += 2) {
        double cost = plan_tile(w, t);
        if (cost <= least)
            least = cost, cheapest = t;
    }
    return plan_tile(w, tile ? tile : cheapest);
}

/* For the points 0, +-p.. and infinity: (1, p, p p) / product of (p - q) over the others. */
void winograd_weight_transform(int tile, double g[WINOGRAD_POINTS][3])
{
    static const double points[][7] = {
        { 0, 1, -1 },
        { 0, 0.70710678118654752, -0.70710678118654752, 1.41421356237309505, -1.41421356237309505 },
        { 0, 0.5, -0.5, 1, -1, 2, -2 },
    };
    const double *p = points[tile / 2 - 1];
    int n = tile + 1;
    for (int i = 0; i < n; i++) {
        double others = 1;
        for (int j = 0; j < n; j++)
            others *= j == i ? 1 : p[i] - p[j];
        g[i][0] = 1 / others, g[i][1] = p[i] / others, g[i][2] = p[i] * p[i] / others;
    }
    g[n][0] = g[n][1] = 0, g[n][2] = 1;
}

void winograd_conv_weights(const struct winograd_conv *w, const float *from, bool turned, float *to)
{
    double g[WINOGRAD_POINTS][3];
    winograd_weight_transform(w->tile, g);
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int64_t p = 0; p < w->panels; p++)
        winograd_loops_of(w->level)->weights(w, (const double(*)[3])g, p, from, turned, to);
}

/* One call's arguments. */
struct winograd_run {
    const struct winograd_conv *w;
    const float *weights, *x, *bias, *residual;
    float *y, *scratch;
};

/* What one thread has of a block of tiles: where they are, and the products' two sides. */
struct winograd_work {
    struct winograd_block block;
    float *v, *m;
};

/* M of `panels` panels from `first` on, of the work's tiles from .. to: all points. */
static void multiply(const struct winograd_conv *w, const float *weights,
                     const struct winograd_work *work, int64_t from, int64_t to, int64_t first,
                     int64_t panels)
{
    const struct winograd_loops *loops = winograd_loops_of(w->level);
    int64_t lanes = w->lanes, depth = w->in_blocks * lanes;
    int64_t points = (w->tile + 2) * (w->tile + 2), panel = depth * 2 * lanes;
    for (int64_t point = 0; point < points; point++) {
        int64_t t0 = from, t1 = to;
        winograd_tiles_of_point(w, &work->block, point, &t0, &t1);
        int64_t groups = t1 > t0 ? ceil_div(t1 - t0, loops->rows) : 0;
        int64_t lines = groups ? ceil_div(2 * lanes * lanes / 16, groups) : 0;
        const float *u = weights + (point * w->panels + first) * panel;
        for (int64_t p = 0; p < panels; p++, u += panel) {
            bool last = p + 1 == panels, very_last = last && point + 1 == points;
            const float *next = very_last ? u
                                : last    ? u + (w->panels - panels + 1) * panel
                                          : u + panel;
            bool one = 2 * (first + p) + 1 >= w->out_blocks;
            const float *v = work->v + point * w->v_step;
            float *m = work->m + point * w->m_step + p * 2 * (to - from) * lanes;
            for (int64_t g = 0, t = t0; g < groups; g++) {
                int64_t rows = (t1 - t + groups - g - 1) / (groups - g);
                loops->products[rows](one, w->in_blocks, v + t * lanes, work->block.n * lanes, u,
                                      m + (t - from) * lanes, (to - from) * lanes,
                                      next + g * lines * 16 * w->in_blocks, lines);
                t += rows;
            }
        }
    }
}

/* Panels first .. end of the work's tiles from .. to. */
static void run_panels(const struct winograd_run *r, const struct winograd_work *work,
                       int64_t first, int64_t end, int64_t from, int64_t to)
{
    const struct winograd_conv *w = r->w;
    for (int64_t p = first, n = to - from; n > 0 && p < end; p += w->block_panels) {
        int64_t panels = end - p < w->block_panels ? end - p : w->block_panels;
        multiply(w, r->weights, work, from, to, p, panels);
        winograd_loops_of(w->level)->transform_out(w, work->m, work->block.tiles + from, n, p,
                                                   panels, r->bias, r->residual, r->y);
    }
}

/* Finds n tiles from `first` on, and gives the thread its V and M. */
static void begin_work(const struct winograd_run *r, int64_t first, int64_t n,
                       struct winograd_work *work)
{
    const struct winograd_conv *w = r->w;
    int64_t points = (w->tile + 2) * (w->tile + 2);
    winograd_find_block(w, first, n, &work->block);
    work->v = r->scratch + points * (w->v_step + w->m_step) * omp_get_thread_num();
    work->m = work->v + points * w->v_step;
}

static void transform_inputs(const struct winograd_run *r, const struct winograd_work *work)
{
    for (int64_t c = 0; c < r->w->in_blocks; c++)
        winograd_loops_of(r->w->level)->transform_in(r->w, r->x, &work->block, c, work->v);
}

/* Few tiles: every thread takes as many panels of outputs, and its share of the tiles of the panels
 * that are left. A few threads transform all inputs each for itself, which is less than fetching
 * them from another core; more share that too. */
static void run_shared(const struct winograd_run *r, int64_t first, int64_t n)
{
    const struct winograd_conv *w = r->w;
#pragma omp parallel num_threads(w->threads)
    {
        struct winograd_work work;
        int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
        int64_t own = w->panels / threads;
        begin_work(r, first, n, &work);
        if (threads <= FEW_THREADS) {
            transform_inputs(r, &work);
        } else {
            work.v = r->scratch;
#pragma omp for schedule(static)
            for (int64_t c = 0; c < w->in_blocks; c++)
                winograd_loops_of(w->level)->transform_in(w, r->x, &work.block, c, work.v);
        }
        run_panels(r, &work, me * own, (me + 1) * own, 0, n);
        run_panels(r, &work, threads * own, w->panels, n * me / threads, n * (me + 1) / threads);
    }
}

void winograd_conv_run(const struct winograd_conv *w, const float *weights, const float *x,
                       const float *bias, const float *residual, float *y, float *scratch)
{
    struct winograd_run r = { w, weights, x, bias, residual, y, scratch };
    int64_t blocks = ceil_div(w->tiles, w->block_tiles);
    if (w->shared) {
        for (int64_t b = 0; b < blocks; b++) {
            int64_t first = w->tiles * b / blocks;
            run_shared(&r, first, w->tiles * (b + 1) / blocks - first);
        }
        return;
    }
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1 && blocks > 1)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = w->tiles * b / blocks, n = w->tiles * (b + 1) / blocks - first;
        struct winograd_work work;
        begin_work(&r, first, n, &work);
        transform_inputs(&r, &work);
        run_panels(&r, &work, 0, w->panels, 0, n);
    }
}
