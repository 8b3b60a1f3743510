/* graphs.c: a network of which every rank has a part, over real ranks, against the whole network in
 * one plan: an image cut into tiles, exchanging borders in both directions (with corners), a mean
 * over all of it, tiles joined again; a linear layer whose features are divided; batch norm over
 * ranks. Every rank computes the whole too and compares. */
#include <string.h>
#include "base/rng.h"
#include "check.h"
#include "net/plan/plan.h"
#include "support/golden.h"
#include "train/peers.h"

#define HEIGHT 24
#define WIDTH 36
#define CHANNELS 16
#define CLASSES 3

static float number(uint64_t what, uint64_t index)
{
    struct rng rng = rng_new(5, what, index);
    return (float)(rng_uniform(&rng) - 0.5);
}

/* A plan of a graph, whole or a part; the caller frees both. */
struct run {
    struct graph *graph;
    struct plan *plan;
    int64_t top, left, height, width; /* the part of the image */
    const struct ranks *ranks;
};

static void run_free(struct run *run)
{
    plan_free(run->plan);
    graph_free(run->graph);
}

/* grid NULL: alone. */
static void make_plan(struct run *run, struct rank_grid *grid, struct plan_peers *peers,
                      uint32_t norm_peers)
{
    struct plan_options options = {
        .mode = PLAN_TRAIN, .threads = 1, .direct = true, .input_gradients = true
    };
    struct err err = { 0 };
    if (grid) {
        peers_of_grid(grid, peers);
        options.norm_peers = norm_peers;
        for (int g = 0; g < PEER_GROUPS; g++)
            options.peers[g] = &peers[g];
    }
    CHECK_OK(run->ranks, graph_ok(run->graph, &err), &err);
    CHECK_OK(run->ranks, graph_allocate(run->graph, &err), &err);
    CHECK_OK(run->ranks, graph_initialize(run->graph, 3, &err), &err);
    CHECK_OK(run->ranks, plan_new(run->graph, &options, &run->plan, &err), &err);
    plan_zero_gradients(run->plan);
}

static void run_passes(struct run *run)
{
    struct err err = { 0 };
    CHECK_OK(run->ranks, plan_forward(run->plan, &err), &err);
    CHECK_OK(run->ranks, plan_backward(run->plan, &err), &err);
}

static float *input_gradient(struct run *run)
{
    struct err err = { 0 };
    value_id input = run->graph->inputs[0].value;
    float *out = malloc((size_t)shape_count(graph_shape(run->graph, input)) * sizeof *out);
    CHECK_OK(run->ranks, plan_activation_gradient(run->plan, input, out, &err), &err);
    return out;
}

/* --- an image in tiles --- */

/* A convolution that sees one or two pixels beyond its own; a tile gets them from its neighbours,
 * those of the corners through both. */
static value_id conv(struct graph *g, value_id x, const char *name, int64_t border, bool divided)
{
    struct conv_attr attr = conv_square(2 * border + 1, 1, divided ? 0 : border);
    if (divided) {
        x = graph_halo(g, x, (struct halo_attr){ 2, border, border, PEERS_SPACE, false, { 0, 0 } });
        x = graph_halo(g, x, (struct halo_attr){ 3, border, border, PEERS_BANDS, false, { 0, 0 } });
    }
    return graph_gelu(g, graph_conv(g, x, name, CHANNELS, true, attr));
}

static value_id sum_over(struct graph *g, value_id x, enum peer_group group)
{
    return graph_all_reduce(g, x, (struct all_reduce_attr){ .group = group, .sum_forward = true });
}

/* Outputs: the tile's maps, all tiles' maps, logits of the mean over all. */
static void tile_network(struct run *run, const int *extent)
{
    bool divided = extent != NULL;
    struct graph *g = run->graph = graph_new("tiles");
    value_id x = graph_input(g, "input", SHAPE(2, 3, run->height, run->width));
    x = conv(g, conv(g, x, "conv1", 1, divided), "conv2", 2, divided);
    graph_output(g, "maps", x);
    value_id mean = graph_flatten(g, graph_global_average_pool(g, x));
    mean = graph_scale(g, mean, (float)(run->height * run->width) / (HEIGHT * WIDTH), 0);
    if (divided) {
        mean = sum_over(g, sum_over(g, mean, PEERS_BANDS), PEERS_SPACE);
        x = graph_all_gather(g, x,
                             (struct all_gather_attr){
                                 .axis = 3, .parts = extent[GRID_BANDS], .group = PEERS_BANDS });
        x = graph_all_gather(g, x,
                             (struct all_gather_attr){
                                 .axis = 2, .parts = extent[GRID_SPACE], .group = PEERS_SPACE });
    }
    graph_output(g, "joined", graph_scale(g, x, 1, 0));
    graph_output(g, "logits", graph_linear(g, mean, "fc", CLASSES, true));
}

/* A tile of planes of HEIGHT x WIDTH numbers, given by their places there. */
static void fill_tile(const struct run *run, float *to, uint64_t what, int64_t planes)
{
    for (int64_t p = 0; p < planes; p++)
        for (int64_t y = 0; y < run->height; y++)
            for (int64_t x = 0; x < run->width; x++)
                to[(p * run->height + y) * run->width + x] =
                    number(what, (uint64_t)((p * HEIGHT + run->top + y) * WIDTH + run->left + x));
}

static float *tile_of(const struct run *run, const float *whole, int64_t planes)
{
    float *out = malloc((size_t)(planes * run->height * run->width) * sizeof *out);
    for (int64_t p = 0; p < planes; p++)
        for (int64_t y = 0; y < run->height; y++)
            memcpy(out + (p * run->height + y) * run->width,
                   whole + (p * HEIGHT + run->top + y) * WIDTH + run->left,
                   (size_t)run->width * sizeof *out);
    return out;
}

static void run_tile(struct run *run)
{
    struct run whole = { .height = HEIGHT, .width = WIDTH };
    fill_tile(run, plan_input(run->plan, 0), 1, 2 * 3);
    fill_tile(run, plan_output_gradient(run->plan, 0), 2, 2 * CHANNELS);
    fill_tile(&whole, plan_output_gradient(run->plan, 1), 3, 2 * CHANNELS);
    for (uint64_t i = 0; i < 2 * CLASSES; i++)
        plan_output_gradient(run->plan, 2)[i] = number(4, i);
    run_passes(run);
}

static void compare_tiles(struct ranks *all, struct run *part, struct run *whole)
{
    int64_t n = 0, planes = 2 * CHANNELS, pixels = part->height * part->width;
    float *maps = tile_of(part, plan_output(whole->plan, 0), planes);
    float *d_whole = input_gradient(whole), *d = input_gradient(part);
    float *d_tile = tile_of(part, d_whole, 2 * 3);
    struct err err = { 0 };
    CHECK(all,
          memcmp(plan_output(part->plan, 0), maps, (size_t)(planes * pixels) * sizeof *maps) == 0);
    CHECK(all, memcmp(plan_output(part->plan, 1), plan_output(whole->plan, 1),
                      (size_t)(planes * HEIGHT * WIDTH) * sizeof *maps) == 0);
    CHECK(all, relative_error(plan_output(part->plan, 2), plan_output(whole->plan, 2),
                              2 * CLASSES) < 1e-6);
    CHECK(all, relative_error(d, d_tile, 2 * 3 * pixels) < 2e-6);
    float *gradients = plan_gradients(part->plan, &n), *expected = plan_gradients(whole->plan, &n);
    for (int k = 0; k < 2; k++) { /* every rank has the whole of the classifier's: it counts once */
        value_id id = graph_find(part->graph, k ? "fc.bias" : "fc.weight");
        for (int64_t i = 0; i < shape_count(graph_shape(part->graph, id)); i++)
            plan_parameter_gradient(part->plan, id)[i] /= (float)all->size;
    }
    CHECK_OK(all, ranks_sum_floats(all, gradients, n, &err), &err);
    CHECK(all, relative_error(gradients, expected, n) < 5e-6);
    free(maps), free(d), free(d_whole), free(d_tile);
}

static void try_tiles(struct ranks *all)
{
    int rows = all->size % 2 == 0 ? 2 : 1; /* 4 ranks: 2 x 2, 6 ranks: 2 x 3 */
    struct err err = { 0 };
    struct rank_grid grid;
    struct plan_peers peers[GRID_AXES];
    struct run whole = { .height = HEIGHT, .width = WIDTH, .ranks = all };
    CHECK_OK(all, rank_grid_new(all, (int64_t[]){ 0, 1, rows, all->size / rows, 1 }, &grid, &err),
             &err);
    struct run part = { .height = HEIGHT / grid.extent[GRID_SPACE],
                        .width = WIDTH / grid.extent[GRID_BANDS],
                        .ranks = all };
    part.top = grid.at[GRID_SPACE] * part.height;
    part.left = grid.at[GRID_BANDS] * part.width;
    tile_network(&part, grid.extent);
    tile_network(&whole, NULL);
    make_plan(&part, &grid, peers, 0);
    make_plan(&whole, NULL, NULL, 0);
    run_tile(&part);
    run_tile(&whole);
    compare_tiles(all, &part, &whole);
    run_free(&part);
    run_free(&whole);
    rank_grid_free(&grid);
}

/* --- a layer whose features are divided --- */

#define ROWS 4
#define IN 12
#define HIDDEN 24
#define OUT 5

/* Two linear layers; of the features between them a rank has `hidden`. */
static void features_network(struct run *run, int64_t hidden, bool divided)
{
    struct graph *g = run->graph = graph_new("features");
    value_id x = graph_input(g, "input", SHAPE(ROWS, IN));
    if (divided)
        x = graph_all_reduce(
            g, x, (struct all_reduce_attr){ .group = PEERS_HEADS, .sum_backward = true });
    x = graph_linear(g, graph_gelu(g, graph_linear(g, x, "fc1", hidden, true)), "fc2", OUT, false);
    graph_output(g, "y", divided ? sum_over(g, x, PEERS_HEADS) : x);
}

static void draw_features(struct graph *g, int64_t hidden, int64_t first)
{
    for (int64_t h = 0; h < hidden; h++) {
        for (int64_t i = 0; i < IN; i++)
            graph_data(g, graph_find(g, "fc1.weight"))[h * IN + i] =
                number(4, (uint64_t)((first + h) * IN + i));
        graph_data(g, graph_find(g, "fc1.bias"))[h] = number(5, (uint64_t)(first + h));
        for (int64_t o = 0; o < OUT; o++)
            graph_data(g, graph_find(g, "fc2.weight"))[o * hidden + h] =
                number(6, (uint64_t)((first + h) * OUT + o));
    }
}

static void run_features(struct run *run, int64_t hidden, int64_t first)
{
    draw_features(run->graph, hidden, first);
    for (uint64_t i = 0; i < ROWS * IN; i++)
        plan_input(run->plan, 0)[i] = number(7, i);
    for (uint64_t i = 0; i < ROWS * OUT; i++)
        plan_output_gradient(run->plan, 0)[i] = number(8, i);
    run_passes(run);
}

static void try_features(struct ranks *all)
{
    int64_t hidden = HIDDEN / all->size, first = all->rank * hidden;
    struct err err = { 0 };
    struct rank_grid grid;
    struct plan_peers peers[GRID_AXES];
    struct run part = { .ranks = all }, whole = { .ranks = all };
    CHECK_OK(all, rank_grid_new(all, (int64_t[]){ 0, 1, 1, 1, all->size }, &grid, &err), &err);
    features_network(&part, hidden, true);
    features_network(&whole, HIDDEN, false);
    make_plan(&part, &grid, peers, 0);
    make_plan(&whole, NULL, NULL, 0);
    run_features(&part, hidden, first);
    run_features(&whole, HIDDEN, 0);
    const float *d1 = plan_parameter_gradient(part.plan, graph_find(part.graph, "fc1.weight"));
    const float *whole_d1 =
        plan_parameter_gradient(whole.plan, graph_find(whole.graph, "fc1.weight"));
    float *d = input_gradient(&part), *d_whole = input_gradient(&whole);
    CHECK(all,
          relative_error(plan_output(part.plan, 0), plan_output(whole.plan, 0), ROWS * OUT) < 1e-6);
    CHECK(all, relative_error(d, d_whole, ROWS * IN) < 1e-6);
    CHECK(all, relative_error(d1, whole_d1 + first * IN, hidden * IN) < 1e-6);
    free(d), free(d_whole);
    run_free(&part);
    run_free(&whole);
    rank_grid_free(&grid);
}

/* --- batch norm over ranks --- */

static void norm_network(struct run *run, int64_t batch)
{
    struct graph *g = run->graph = graph_new("norm");
    value_id x = graph_input(g, "input", SHAPE(batch, 3, 9, 9));
    x = graph_conv(g, x, "conv", CHANNELS, true, conv_square(3, 1, 1));
    x = graph_gelu(g, graph_batch_norm(g, x, "bn"));
    graph_output(g, "y", graph_linear(g, graph_flatten(g, x), "fc", CLASSES, true));
}

static void run_norm(struct run *run, int64_t batch, int64_t first)
{
    enum { EACH = 3 * 9 * 9 };
    for (int64_t i = 0; i < batch * EACH; i++)
        plan_input(run->plan, 0)[i] = number(1, (uint64_t)(first * EACH + i));
    for (int64_t i = 0; i < batch * CLASSES; i++)
        plan_output_gradient(run->plan, 0)[i] = number(2, (uint64_t)(first * CLASSES + i));
    run_passes(run);
}

static void try_norm(struct ranks *all)
{
    int64_t n = 0;
    struct err err = { 0 };
    struct rank_grid grid;
    struct plan_peers peers[GRID_AXES];
    struct run part = { .ranks = all }, whole = { .ranks = all };
    CHECK_OK(all, rank_grid_new(all, (int64_t[]){ 0, 1, 1, 1, 1 }, &grid, &err), &err);
    norm_network(&part, 2);
    norm_network(&whole, 2 * all->size);
    make_plan(&part, &grid, peers, 1u << PEERS_DATA);
    make_plan(&whole, NULL, NULL, 0);
    run_norm(&part, 2, 2 * all->rank);
    run_norm(&whole, 2 * all->size, 0);
    float *gradients = plan_gradients(part.plan, &n);
    CHECK_OK(all, ranks_sum_floats(all, gradients, n, &err), &err);
    CHECK(all,
          relative_error(plan_output(part.plan, 0),
                         plan_output(whole.plan, 0) + 2 * all->rank * CLASSES, 2 * CLASSES) < 5e-6);
    CHECK(all, relative_error(gradients, plan_gradients(whole.plan, &n), n) < 5e-6);
    run_free(&part);
    run_free(&whole);
    rank_grid_free(&grid);
}

int main(void)
{
    struct ranks ranks;
    struct err err = { 0 };
    if (!ranks_begin(&ranks, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 77;
    }
    try_tiles(&ranks);
    try_features(&ranks);
    try_norm(&ranks);
    ranks_end(&ranks, true);
    return 0;
}
