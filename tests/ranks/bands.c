/* bands.c: one image over real ranks by bands of rows, and data x bands: outputs and the sum of the
 * gradients against the whole images in one plan each. Every rank computes those too and compares.
 */
#include <string.h>
#include "base/rng.h"
#include "check.h"
#include "net/plan/plan.h"
#include "support/golden.h"
#include "train/peers.h"

#define HEIGHT 333
#define WIDTH 101
#define CLASSES 3

/* Strides of 4, a wide branch, a pooling of all. */
static struct graph *network(const struct ranks *all)
{
    struct graph *g = graph_new("bands");
    struct err err = { 0 };
    struct pool_attr pool = { { 3, 3 }, { 2, 2 }, { 1, 1, 1, 1 }, { 1, 1 }, false, false };
    value_id x = graph_input(g, "input", SHAPE(1, 3, HEIGHT, WIDTH));
    x = graph_gelu(g, graph_conv(g, x, "stem", 16, true, conv_square(5, 2, 2)));
    x = graph_max_pool(g, x, pool);
    value_id wide = graph_gelu(g, graph_conv(g, x, "wide", 16, true, conv_square(5, 1, 2)));
    x = graph_add(g, x,
                  graph_gelu(g, graph_conv(g, wide, "wider", 16, true, conv_square(7, 1, 3))));
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "logits", graph_linear(g, x, "fc", CLASSES, true));
    CHECK_OK(all, graph_ok(g, &err), &err);
    CHECK_OK(all, graph_allocate(g, &err), &err);
    CHECK_OK(all, graph_initialize(g, 3, &err), &err);
    return g;
}

static void fill(float *to, int64_t n, uint64_t image)
{
    for (int64_t i = 0; i < n; i++) {
        struct rng rng = rng_new(5, image, (uint64_t)i);
        to[i] = (float)(rng_uniform(&rng) - 0.5);
    }
}

/* A step on an image; adds to gradients. */
static void step(const struct ranks *all, const struct graph *graph,
                 const struct plan_options *options, uint64_t image, float out[CLASSES])
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    CHECK_OK(all, plan_new(graph, options, &plan, &err), &err);
    fill(plan_input(plan, 0), 3 * HEIGHT * WIDTH, image);
    CHECK_OK(all, plan_forward(plan, &err), &err);
    memcpy(out, plan_output(plan, 0), CLASSES * sizeof *out);
    fill(plan_output_gradient(plan, 0), CLASSES, 100 + image);
    CHECK_OK(all, plan_backward(plan, &err), &err);
    plan_free(plan);
}

/* Two images one after another on each rank of data. */
static void try_grid(struct ranks *all, int bands, int64_t tile_px)
{
    struct err err = { 0 };
    struct rank_grid grid;
    struct plan_peers peers[GRID_AXES];
    CHECK_OK(all, rank_grid_new(all, (int64_t[]){ 0, 1, 1, bands, 1 }, &grid, &err), &err);
    peers_of_grid(&grid, peers);
    struct graph *graph = network(all);
    int64_t n = graph_parameter_count(graph);
    float *parts = calloc((size_t)n, sizeof *parts), *whole = calloc((size_t)n, sizeof *whole);
    float own[CLASSES], expected[CLASSES];
    struct plan_stream stream = { .tile_px = tile_px };
    struct plan_options divided = { .mode = PLAN_TUNE, .threads = 1, .stream = &stream };
    struct plan_options alone = { .mode = PLAN_TUNE, .threads = 1, .gradients = whole };
    divided.gradients = parts;
    divided.peers[PEERS_BANDS] = &peers[PEERS_BANDS];
    for (int i = 0; i < 2 * grid.extent[GRID_DATA]; i++) {
        step(all, graph, &alone, (uint64_t)i, expected);
        if (i % grid.extent[GRID_DATA] != grid.at[GRID_DATA])
            continue;
        step(all, graph, &divided, (uint64_t)i, own);
        CHECK(all, relative_error(own, expected, CLASSES) < 1e-5);
    }
    CHECK_OK(all, ranks_sum_floats(all, parts, n, &err), &err);
    CHECK(all, relative_error(parts, whole, n) < 1e-5);
    free(parts), free(whole);
    graph_free(graph);
    rank_grid_free(&grid);
}

/* A plan that cannot be made fails on all ranks with the same words; the group still works. */
static void try_failure(struct ranks *all)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    struct plan_peers peers = peers_of_ranks(all);
    struct graph *graph = network(all);
    struct plan_stream stream = { .tile_px = 32, .budget = all->rank == all->size - 1 ? 4096 : 0 };
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1, .stream = &stream };
    options.peers[PEERS_BANDS] = &peers;
    CHECK(all, !plan_new(graph, &options, &plan, &err));
    CHECK(all, err.kind != ERR_NONE && err.text[0]);
    double sum = 1;
    CHECK_OK(all, ranks_sum_reals(all, &sum, 1, &err), &err);
    CHECK(all, sum == all->size);
    graph_free(graph);
}

int main(void)
{
    struct ranks ranks;
    struct err err = { 0 };
    if (!ranks_begin(&ranks, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 77;
    }
    try_grid(&ranks, ranks.size, 32);
    try_grid(&ranks, ranks.size, 500);
    if (ranks.size % 2 == 0)
        try_grid(&ranks, ranks.size / 2, 48);
    try_failure(&ranks);
    ranks_end(&ranks, true);
    return 0;
}
