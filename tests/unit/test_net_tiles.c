/* test_net_tiles.c: an image in 2 x 2 tiles, each on its own peer (here: a thread), in two groups:
 * rows of tiles and columns of tiles. Halos along one axis, then along the other, also bring the
 * corners, and batch norm takes its statistics over both groups. Against the whole image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/plan/plan.h"
#include "support/golden.h"
#include "support/thread_peers.h"

#define ACROSS 2 /* tiles, along both axes */
#define TILES (ACROSS * ACROSS)
#define SIDE 16
#define TILE (SIDE / ACROSS)
#define CHANNELS 16

struct tile {
    struct graph *graph;
    struct plan *plan;
    struct plan_options options;
    int64_t row, column; /* in the image */
    bool ok;
};

static value_id around(struct graph *g, value_id x)
{
    x = graph_halo(g, x, (struct halo_attr){ 2, 1, 1, PEERS_SPACE, false, { 0, 0 } });
    return graph_halo(g, x, (struct halo_attr){ 3, 1, 1, PEERS_BANDS, false, { 0, 0 } });
}

/* Two convolutions with batch norm between them; of a tile: with halos instead of padding. */
static struct graph *network(int64_t side)
{
    bool divided = side < SIDE;
    struct conv_attr attr = conv_square(3, 1, divided ? 0 : 1);
    struct graph *g = graph_new("tiles");
    value_id x = graph_input(g, "input", SHAPE(2, 3, side, side));
    x = graph_conv(g, divided ? around(g, x) : x, "conv1", 20, true, attr);
    x = graph_gelu(g, graph_batch_norm(g, x, "bn"));
    x = graph_conv(g, divided ? around(g, x) : x, "conv2", CHANNELS, true, attr);
    graph_output(g, "maps", graph_gelu(g, x));
    if (graph_ok(g, NULL) && graph_initialize(g, 3, NULL))
        return g;
    graph_free(g);
    return NULL;
}

/* planes of side x side px at (row, column) of planes of SIDE x SIDE numbers. */
static void fill(float *to, uint64_t what, int64_t planes, int64_t side, const struct tile *tile)
{
    for (int64_t i = 0; i < planes * side * side; i++) {
        int64_t row = tile->row + i / side % side, column = tile->column + i % side;
        int64_t at = (i / (side * side) * SIDE + row) * SIDE + column;
        struct rng rng = rng_new(5, what, (uint64_t)at);
        to[i] = (float)(rng_uniform(&rng) - 0.5);
    }
}

static void run(struct tile *tile, int64_t side)
{
    tile->graph = network(side);
    tile->options.mode = PLAN_TRAIN, tile->options.threads = 1, tile->options.direct = true;
    tile->options.input_gradients = true;
    if (!tile->graph || !plan_new(tile->graph, &tile->options, &tile->plan, NULL))
        return;
    fill(plan_input(tile->plan, 0), 1, 2 * 3, side, tile);
    fill(plan_output_gradient(tile->plan, 0), 2, 2 * CHANNELS, side, tile);
    plan_zero_gradients(tile->plan);
    tile->ok = plan_forward(tile->plan, NULL) && plan_backward(tile->plan, NULL);
}

static void work(void *tiles, int rank)
{
    run((struct tile *)tiles + rank, TILE);
}

/* A tile's planes, put into those of the whole image. */
static void put(const float *part, int64_t planes, const struct tile *tile, float *whole)
{
    for (int64_t p = 0; p < planes; p++)
        for (int64_t r = 0; r < TILE; r++)
            memcpy(whole + (p * SIDE + tile->row + r) * SIDE + tile->column,
                   part + (p * TILE + r) * TILE, TILE * sizeof *whole);
}

static void read_gradient(const struct tile *tile, float *out)
{
    struct err err = { 0 };
    if (!plan_activation_gradient(tile->plan, tile->graph->inputs[0].value, out, &err))
        fail_msg("%s", err.text);
}

static void compare(const struct tile *tiles, const struct tile *whole)
{
    enum { MAPS = 2 * CHANNELS * SIDE * SIDE, PIXELS = 2 * 3 * SIDE * SIDE };
    static float maps[MAPS], d[PIXELS], d_whole[PIXELS], d_tile[2 * 3 * TILE * TILE];
    int64_t n, m;
    const float *gradients = plan_gradients(whole->plan, &n);
    float *sum = calloc((size_t)n, sizeof *sum);
    assert_non_null(sum);
    for (int t = 0; t < TILES; t++) {
        put(plan_output(tiles[t].plan, 0), 2 * CHANNELS, &tiles[t], maps);
        read_gradient(&tiles[t], d_tile);
        put(d_tile, 2 * 3, &tiles[t], d);
        const float *part = plan_gradients(tiles[t].plan, &m);
        assert_int_equal(n, m);
        for (int64_t i = 0; i < n; i++)
            sum[i] += part[i];
        for (int k = 0; k < 2; k++) {
            const char *name = k ? "bn.running_var" : "bn.running_mean";
            assert_true(relative_error(graph_data(tiles[t].graph, graph_find(tiles[t].graph, name)),
                                       graph_data(whole->graph, graph_find(whole->graph, name)),
                                       20) < 1e-5);
        }
    }
    read_gradient(whole, d_whole);
    assert_true(relative_error(maps, plan_output(whole->plan, 0), MAPS) < 1e-5);
    assert_true(relative_error(d, d_whole, PIXELS) < 1e-5);
    assert_true(relative_error(sum, gradients, n) < 1e-5);
    free(sum);
}

static void tiles_in_two_groups_are_the_whole_image(void **state)
{
    (void)state;
    struct tile tiles[TILES] = { 0 }, whole = { 0 };
    struct thread_peers *all = thread_peers_new(TILES), *space[ACROSS], *bands[ACROSS];
    assert_non_null(all);
    for (int i = 0; i < ACROSS; i++) {
        space[i] = thread_peers_new(ACROSS), bands[i] = thread_peers_new(ACROSS);
        assert_true(space[i] && bands[i]);
    }
    for (int t = 0; t < TILES; t++) {
        int row = t / ACROSS, column = t % ACROSS;
        tiles[t].row = row * TILE, tiles[t].column = column * TILE;
        tiles[t].options.peers[PEERS_SPACE] = thread_peers_of(space[column], row);
        tiles[t].options.peers[PEERS_BANDS] = thread_peers_of(bands[row], column);
        tiles[t].options.norm_peers = 1u << PEERS_SPACE | 1u << PEERS_BANDS;
    }
    run(&whole, SIDE);
    thread_peers_run(all, work, tiles);
    assert_true(whole.ok);
    for (int t = 0; t < TILES; t++)
        assert_true(tiles[t].ok);
    compare(tiles, &whole);
    for (int t = 0; t < TILES; t++)
        plan_free(tiles[t].plan), graph_free(tiles[t].graph);
    plan_free(whole.plan), graph_free(whole.graph);
    for (int i = 0; i < ACROSS; i++)
        thread_peers_free(space[i]), thread_peers_free(bands[i]);
    thread_peers_free(all);
}

static void peers_must_make_sense(void **state)
{
    (void)state;
    struct plan_peers peers = { .rank = 2, .size = 2 };
    struct plan_options options = { .threads = 1, .peers = { [PEERS_HEADS] = &peers } };
    struct graph *g = network(SIDE);
    struct plan *plan = NULL;
    struct err err = { 0 };
    assert_non_null(g);
    assert_false(plan_new(g, &options, &plan, &err));
    assert_string_equal(err.text, "tiles: no peer has rank 2 in a group of 2");
    peers.rank = 1;
    assert_true(plan_new(g, &options, &plan, &err));
    plan_free(plan);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_in_two_groups_are_the_whole_image),
        cmocka_unit_test(peers_must_make_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
