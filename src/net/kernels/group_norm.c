/* group_norm.c: see group_norm.h. A channel's mean and variance are found in one pass, about a
 * point near its mean, and those of a group from its channels'. Backward, the gradient behind the
 * activation is written to dx while it is summed, so exponentials are computed once a pass. */
#include "net/kernels/group_norm.h"
#include <math.h>
#include <string.h>
#include "base/divide.h"
#include "net/kernels/wide.h"

#define PART 64 /* so many rows are summed as floats before they are added as doubles */
#define LOOKS 8 /* of them are averaged to find a point near the mean */

/* What is done to the channels of a block, for each of WIDE floats. */
struct lanes {
    float mean[WIDE], scale[WIDE], shift[WIDE];
    float offset[WIDE], slope[WIDE]; /* backward */
};

struct group_norm_loops {
    void (*moments)(int64_t n, const float *x, const float *shift, double *sum, double *square);
    void (*apply)(int64_t n, const float *x, const struct lanes *p, enum group_norm_then then,
                  float *y);
    void (*products)(int64_t n, const float *x, const float *dy, const struct lanes *p,
                     enum group_norm_then then, float *dz, double *sum, double *product);
    void (*apply_back)(int64_t n, const float *x, const float *dz, const struct lanes *p,
                       float *dx);
};

#define LOOPS "net/kernels/group_norm_loops.h"
#include "net/kernels/each_level.h"

/* One call. */
struct pass {
    const struct group_norm *g;
    const struct group_norm_loops *loops;
    const float *x, *dy, *weight, *bias;
    float *stats, *out;
    double *sums; /* [images][channels][2] */
};

/* Whole blocks and whole groups of one image. */
struct piece {
    int64_t image, first_block, end_block, first_group, end_group;
};

size_t group_norm_scratch(const struct group_norm *g)
{
    return (size_t)(g->images * g->channels * 2) * sizeof(double);
}

size_t group_norm_stats_bytes(const struct group_norm *g)
{
    return (size_t)(g->images * g->groups * 2) * sizeof(float);
}

static int64_t group_channels(const struct group_norm *g)
{
    return g->channels / g->groups;
}

/* The fewest blocks at whose end a group ends too. */
static int64_t piece_blocks(const struct group_norm *g)
{
    int64_t blocks = 1;
    while (blocks < g->blocks && blocks * g->block % group_channels(g))
        blocks++;
    return blocks;
}

static struct piece piece_at(const struct group_norm *g, int64_t i)
{
    int64_t blocks = piece_blocks(g), count = ceil_div(g->blocks, blocks);
    struct piece p = { .image = i / count, .first_block = i % count * blocks };
    int64_t end = p.first_block + blocks;
    p.end_block = end < g->blocks ? end : g->blocks;
    p.first_group = p.first_block * g->block / group_channels(g);
    int64_t end_group = p.end_block * g->block / group_channels(g);
    p.end_group = end_group < g->groups ? end_group : g->groups;
    return p;
}

static int64_t run_floats(const struct group_norm *g)
{
    return g->area * g->block;
}

static int64_t run_at(const struct group_norm *g, int64_t image, int64_t block)
{
    return (image * g->blocks + block) * run_floats(g);
}

static double *sums_of(const struct pass *p, int64_t image, int64_t channel)
{
    return p->sums + (image * p->g->channels + channel) * 2;
}

static float *stats_of(const struct pass *p, int64_t image, int64_t group)
{
    return p->stats + (image * p->g->groups + group) * 2;
}

/* A point near the mean of every channel of a block. */
static void find_shift(const struct group_norm *g, const float *x, float shift[WIDE])
{
    int64_t rows = run_floats(g) / WIDE, looks = rows < LOOKS ? rows : LOOKS;
    float sum[WIDE] = { 0 };
    for (int64_t i = 0; i < looks; i++)
        for (int k = 0; k < WIDE; k++)
            sum[k] += x[i * rows / looks * WIDE + k];
    for (int64_t c = 0; c < g->block; c++) {
        float all = 0;
        for (int64_t k = c; k < WIDE; k += g->block)
            all += sum[k];
        all = looks ? all / (float)(looks * (WIDE / g->block)) : x[c];
        for (int64_t k = c; k < WIDE; k += g->block)
            shift[k] = all;
    }
}

/* Mean of every channel of a block, and the sum of squares about it, into sums. */
static void find_channels(const struct pass *p, int64_t image, int64_t block)
{
    const struct group_norm *g = p->g;
    const float *x = p->x + run_at(g, image, block);
    double sum[WIDE] = { 0 }, square[WIDE] = { 0 };
    float shift[WIDE];
    find_shift(g, x, shift);
    p->loops->moments(run_floats(g), x, shift, sum, square);
    for (int64_t k = 0; k < g->block && block * g->block + k < g->channels; k++) {
        double *to = sums_of(p, image, block * g->block + k), a = 0, b = 0;
        for (int64_t l = k; l < WIDE; l += g->block)
            a += sum[l], b += square[l];
        to[0] = (double)shift[k] + a / (double)g->area;
        to[1] = b - a * a / (double)g->area;
    }
}

static void find_group(const struct pass *p, int64_t image, int64_t group)
{
    const struct group_norm *g = p->g;
    int64_t parts = group_channels(g);
    const double *of = sums_of(p, image, group * parts);
    double mean = 0, squares = 0;
    for (int64_t c = 0; c < parts; c++)
        mean += of[2 * c] / (double)parts;
    for (int64_t c = 0; c < parts; c++) {
        double d = of[2 * c] - mean;
        squares += of[2 * c + 1] + d * d * (double)g->area;
    }
    double variance =
        squares > 0 ? squares / (double)(parts * g->area) : squares * 0; /* keeps NaN */
    float *to = stats_of(p, image, group);
    to[0] = (float)mean;
    to[1] = (float)(1 / sqrt(variance + (double)g->epsilon));
}

/* mean, scale and shift of a block. */
static void find_lanes(const struct pass *p, int64_t image, int64_t block, struct lanes *lanes)
{
    const struct group_norm *g = p->g;
    memset(lanes, 0, sizeof *lanes);
    for (int64_t k = 0; k < WIDE; k++) {
        int64_t c = block * g->block + k % g->block;
        if (c >= g->channels)
            continue; /* padding stays 0 */
        const float *stats = stats_of(p, image, c / group_channels(g));
        lanes->mean[k] = stats[0];
        lanes->scale[k] = stats[1] * p->weight[c];
        lanes->shift[k] = p->bias[c];
    }
}

static void do_piece(const struct pass *p, struct piece piece)
{
    const struct group_norm *g = p->g;
    struct lanes lanes;
    for (int64_t b = piece.first_block; b < piece.end_block; b++)
        find_channels(p, piece.image, b);
    for (int64_t group = piece.first_group; group < piece.end_group; group++)
        find_group(p, piece.image, group);
    for (int64_t b = piece.first_block; b < piece.end_block; b++) {
        int64_t at = run_at(g, piece.image, b);
        find_lanes(p, piece.image, b, &lanes);
        p->loops->apply(run_floats(g), p->x + at, &lanes, g->then, p->out + at);
    }
}

/* The gradients of weight and bias of one image, into sums; what reached the activation, to out. */
static void find_products(const struct pass *p, int64_t image, int64_t block,
                          const struct lanes *lanes)
{
    const struct group_norm *g = p->g;
    int64_t at = run_at(g, image, block);
    double sum[WIDE] = { 0 }, product[WIDE] = { 0 };
    p->loops->products(run_floats(g), p->x + at, p->dy + at, lanes, g->then, p->out + at, sum,
                       product);
    for (int64_t k = 0; k < g->block && block * g->block + k < g->channels; k++) {
        int64_t c = block * g->block + k;
        double *to = sums_of(p, image, c), a = 0, b = 0;
        for (int64_t l = k; l < WIDE; l += g->block)
            a += sum[l], b += product[l];
        to[0] = a;
        to[1] = b * (double)stats_of(p, image, c / group_channels(g))[1];
    }
}

/* offset and slope of a block: what the gradients through mean and deviation of its groups take. */
static void find_slopes(const struct pass *p, int64_t image, int64_t block, struct lanes *lanes)
{
    const struct group_norm *g = p->g;
    int64_t parts = group_channels(g), known = -1;
    double sum = 0, product = 0, count = (double)(parts * g->area);
    for (int64_t k = 0; k < WIDE; k++) {
        int64_t c = block * g->block + k % g->block, group = c / parts;
        if (c >= g->channels)
            continue;
        if (group != known) {
            sum = product = 0;
            for (int64_t i = group * parts; i < (group + 1) * parts; i++) {
                sum += (double)p->weight[i] * sums_of(p, image, i)[0];
                product += (double)p->weight[i] * sums_of(p, image, i)[1];
            }
            known = group;
        }
        double scale = (double)stats_of(p, image, group)[1];
        lanes->offset[k] = (float)(scale * sum / count);
        lanes->slope[k] = (float)(scale * scale * product / count);
    }
}

static void do_piece_back(const struct pass *p, struct piece piece)
{
    const struct group_norm *g = p->g;
    struct lanes lanes;
    const float *dz = g->then == GROUP_NORM_THEN_NOTHING ? p->dy : p->out;
    for (int64_t b = piece.first_block; b < piece.end_block; b++) {
        find_lanes(p, piece.image, b, &lanes);
        find_products(p, piece.image, b, &lanes);
    }
    for (int64_t b = piece.first_block; b < piece.end_block; b++) {
        int64_t at = run_at(g, piece.image, b);
        find_lanes(p, piece.image, b, &lanes);
        find_slopes(p, piece.image, b, &lanes);
        p->loops->apply_back(run_floats(g), p->x + at, dz + at, &lanes, p->out + at);
    }
}

static int64_t piece_count(const struct group_norm *g)
{
    return g->images * ceil_div(g->blocks, piece_blocks(g));
}

void group_norm_run(const struct group_norm *g, const float *x, const float *weight,
                    const float *bias, float *y, float *stats, void *scratch)
{
    const struct pass p = { .g = g,
                            .loops = SIMD_PICK(g->level, &loops, &loops_portable),
                            .x = x,
                            .weight = weight,
                            .bias = bias,
                            .stats = stats,
                            .out = y,
                            .sums = scratch };
#pragma omp parallel for num_threads(g->threads) schedule(static) if (g->threads > 1)
    for (int64_t i = 0; i < piece_count(g); i++)
        do_piece(&p, piece_at(g, i));
}

void group_norm_back(const struct group_norm *g, const float *x, const float *weight,
                     const float *bias, const float *stats, const float *dy, float *dx,
                     float *dweight, float *dbias, void *scratch)
{
    const struct pass p = { .g = g,
                            .loops = SIMD_PICK(g->level, &loops, &loops_portable),
                            .x = x,
                            .dy = dy,
                            .weight = weight,
                            .bias = bias,
                            .stats = (float *)stats,
                            .out = dx,
                            .sums = scratch };
#pragma omp parallel for num_threads(g->threads) schedule(static) if (g->threads > 1)
    for (int64_t i = 0; i < piece_count(g); i++)
        do_piece_back(&p, piece_at(g, i));
    for (int64_t c = 0; c < g->channels; c++) {
        double sum = 0, product = 0;
        for (int64_t image = 0; image < g->images; image++)
            sum += sums_of(&p, image, c)[0], product += sums_of(&p, image, c)[1];
        if (dweight)
            dweight[c] += (float)product;
        if (dbias)
            dbias[c] += (float)sum;
    }
}
