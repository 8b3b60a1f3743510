/* linear_gradient.c: see linear_gradient.h. Rows are taken in blocks. Of a block all threads pack x
 * into panels of inputs, [row, gemm_panel] each, of which one stays in the caches while it
 * meets some outputs of dy, which a thread has packed into tiles, [row, gemm_rows], in the level-2
 * cache. */
#include "net/kernels/linear_gradient.h"
#include <omp.h>
#include <string.h>
#include "base/divide.h"
#include "net/kernels/gemm.h"

typedef void sum_function(int64_t rows, int64_t n, const float *dy, int64_t step, double *sums);

#define LOOPS "net/kernels/linear_gradient_loops.h"
#include "net/kernels/each_level.h"

/* At most: half of the smallest level-1 cache, or with AVX-512 384 rows in the level-2 cache, see
 * linear.c. */
#define PANEL_FLOATS 4096
#define PANEL_FLOATS_AVX512 18432
#define MOST_OUTPUTS 144 /* of a task; whole tiles, of 6 outputs or 8 */

struct division {
    int64_t block;               /* rows; sums depend on it */
    int64_t outputs;             /* of a task; no bits depend on it */
    int64_t x_floats, dy_floats; /* packed: of a block, and of a task, which every thread has */
};

static struct division divide(const struct linear_gradient *g)
{
    const int64_t tile = gemm_rows(g->level), panel = gemm_panel(g->level);
    const int64_t most = (g->level == SIMD_AVX512 ? PANEL_FLOATS_AVX512 : PANEL_FLOATS) / panel;
    const int64_t rounds = ceil_div(g->outputs, MOST_OUTPUTS * g->threads);
    struct division d = { 0 };
    d.block = ceil_div(ceil_div(g->rows, ceil_div(g->rows, most)), 8) * 8;
    d.outputs = ceil_div(ceil_div(g->outputs, rounds * g->threads), tile) * tile;
    d.x_floats = ceil_div(gemm_packed_floats(g->level, g->inputs, d.block), 16) * 16;
    d.dy_floats = ceil_div(d.outputs * d.block, 16) * 16;
    return d;
}

size_t linear_gradient_scratch_floats(const struct linear_gradient *g)
{
    const struct division d = divide(g);
    size_t sums = (size_t)g->outputs * sizeof(double) / sizeof(float);
    return (size_t)(d.x_floats + g->threads * d.dy_floats) + sums;
}

/* Adds n rows: x packed, with `outputs` of dy and of the weight; packed: memory for that dy. */
static void add_rows(const struct linear_gradient *g, int64_t n, int64_t outputs, const float *x,
                     const float *dy, float *weight, float *packed)
{
    const int64_t panel = gemm_panel(g->level), tile = gemm_rows(g->level);
    gemm_pack_rows(g->level, outputs, n, dy, g->outputs, packed);
    gemm_of(g->level)(&(struct gemm){ .m = outputs,
                                      .n = g->inputs,
                                      .k = n,
                                      .a = packed,
                                      .a_row = 1,
                                      .a_column = tile,
                                      .a_panel = n * tile,
                                      .b = x,
                                      .b_row = panel,
                                      .b_panel = n * panel,
                                      .c = weight,
                                      .c_row = g->inputs,
                                      .add = true,
                                      .next = weight,
                                      .next_row = g->inputs });
}

void linear_gradient_run(const struct linear_gradient *g, const float *x, const float *dy,
                         float *weight, float *bias, float *scratch)
{
    const struct division d = divide(g);
    const int64_t panels = weight ? ceil_div(g->inputs, gemm_panel(g->level)) : 0;
    sum_function *sum = SIMD_PICK(g->level, sum_rows, sum_rows_portable);
    float *packed = scratch + d.x_floats;
    double *sums = (double *)(void *)(packed + g->threads * d.dy_floats); /* of the bias */
    memset(sums, 0, (size_t)g->outputs * sizeof *sums);
#pragma omp parallel num_threads(g->threads) if (g->threads > 1)
    for (int64_t row = 0; row < g->rows; row += d.block) {
        const int64_t n = smaller_of(d.block, g->rows - row);
#pragma omp for schedule(static)
        for (int64_t p = 0; p < panels; p++)
            gemm_pack(g->level, g->inputs, n, x + row * g->inputs, g->inputs, 1, p, p + 1, scratch);
#pragma omp for schedule(static)
        for (int64_t o = 0; o < g->outputs; o += d.outputs) {
            const int64_t outputs = smaller_of(d.outputs, g->outputs - o);
            const float *from = dy + row * g->outputs + o;
            if (weight)
                add_rows(g, n, outputs, scratch, from, weight + o * g->inputs,
                         packed + omp_get_thread_num() * d.dy_floats);
            if (bias)
                sum(n, outputs, from, g->outputs, sums + o);
        }
    }
    for (int64_t o = 0; bias && o < g->outputs; o++)
        bias[o] += (float)sums[o];
}
