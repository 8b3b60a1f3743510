/* test_stream_reduce.c: poolings of whole maps, fed tile by tile in any order and cut, against the
 * op of a plain plan: outputs and gradients; on several threads bit for bit; and divided among
 * bands (here: threads) that agree on the result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/plan/plan.h"
#include "net/stream/reduce.h"
#include "support/golden.h"
#include "support/thread_peers.h"

#define CHANNELS 19
#define HEIGHT 37
#define WIDTH 29
#define CELLS (HEIGHT * WIDTH)
#define MOST_INPUTS 2
#define BANDS 3

enum pooling { AVERAGE, ADAPTIVE, MEAN_KEPT, MEAN_REMOVED, MAXIMUM, LSE, ATTENTION, POOLINGS };

/* A graph of one pooling, and what a plain plan makes of it. */
struct whole {
    struct graph *graph;
    const struct node *node;
    int inputs;
    int64_t channels[MOST_INPUTS];
    float *x[MOST_INPUTS], *dx[MOST_INPUTS];
    float y[CHANNELS], dy[CHANNELS];
};

static float number(uint64_t what, int64_t index)
{
    struct rng rng = rng_new(11, what, (uint64_t)index);
    return (float)(6 * rng_uniform(&rng) - 3);
}

static value_id add_pooling(struct graph *g, enum pooling pooling, value_id x)
{
    if (pooling == ATTENTION)
        return graph_attention_pool(g, x, graph_input(g, "scores", SHAPE(1, 1, HEIGHT, WIDTH)));
    switch (pooling) {
    case AVERAGE:
        return graph_global_average_pool(g, x);
    case ADAPTIVE:
        return graph_adaptive_average_pool(g, x, 1, 1);
    case MEAN_KEPT:
        return graph_reduce_mean(g, x, 1u << 2 | 1u << 3, true);
    case MEAN_REMOVED:
        return graph_reduce_mean(g, x, 1u << 2 | 1u << 3, false);
    case LSE:
        return graph_global_lse_pool(g, x, 2);
    default:
        return graph_global_max_pool(g, x);
    }
}

static float *floats(int64_t n)
{
    float *out = calloc((size_t)n, sizeof *out);
    assert_non_null(out);
    return out;
}

/* Of the maximum every value occurs many times, so that the first one counts. */
static void draw(struct whole *w, enum pooling pooling)
{
    for (int k = 0; k < w->inputs; k++) {
        w->x[k] = floats(w->channels[k] * CELLS), w->dx[k] = floats(w->channels[k] * CELLS);
        for (int64_t i = 0; i < w->channels[k] * CELLS; i++) {
            float value = number((uint64_t)k, i);
            w->x[k][i] = pooling == MAXIMUM ? floorf(value) : k == 1 ? 20 * value : value;
        }
    }
    for (int64_t c = 0; c < CHANNELS; c++)
        w->dy[c] = number(9, c);
}

static void whole_new(struct whole *w, enum pooling pooling)
{
    *w = (struct whole){ .inputs = pooling == ATTENTION ? 2 : 1, .channels = { CHANNELS, 1 } };
    w->graph = graph_new("pooling");
    value_id x = graph_input(w->graph, "x", SHAPE(1, CHANNELS, HEIGHT, WIDTH));
    graph_output(w->graph, "y", add_pooling(w->graph, pooling, x));
    assert_true(graph_ok(w->graph, NULL));
    w->node = &w->graph->nodes[w->graph->n_nodes - 1];
    draw(w, pooling);

    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1, .input_gradients = true };
    struct plan *plan;
    assert_true(plan_new(w->graph, &options, &plan, NULL));
    for (int k = 0; k < w->inputs; k++)
        memcpy(plan_input(plan, k), w->x[k], (size_t)(w->channels[k] * CELLS) * sizeof(float));
    assert_true(plan_forward(plan, NULL));
    memcpy(w->y, plan_output(plan, 0), sizeof w->y);
    memcpy(plan_output_gradient(plan, 0), w->dy, sizeof w->dy);
    assert_true(plan_backward(plan, NULL));
    for (int k = 0; k < w->inputs; k++)
        assert_true(plan_activation_gradient(plan, w->graph->inputs[k].value, w->dx[k], NULL));
    plan_free(plan);
}

static void whole_free(struct whole *w)
{
    for (int k = 0; k < w->inputs; k++) {
        free(w->x[k]);
        free(w->dx[k]);
    }
    graph_free(w->graph);
}

/* Rows [begin, end) of the map, cut into tiles. */
struct tiling {
    int64_t begin, end, tile_h, tile_w;
    bool backwards; /* from the last to the first */
};

struct pass {
    const struct whole *w;
    struct reduction *r;
    const struct tiling *tiling;
    float y[CHANNELS];
    float *dx[MOST_INPUTS]; /* of the whole map; gradients of other rows are not touched */
    int64_t still;
    bool ok;
};

/* Between a region and the whole map; `into` the map or out of it. */
static void move_region(const struct stream_region *at, int64_t channels, float *map, float *part,
                        bool into)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < at->h; y++) {
            float *outer = map + (c * HEIGHT + at->y + y) * WIDTH + at->x;
            float *inner = part + (c * at->h + y) * at->w;
            memcpy(into ? outer : inner, into ? inner : outer, (size_t)at->w * sizeof(float));
        }
}

static void visit(struct pass *pass, const struct stream_region *at, bool backward)
{
    float *in[MOST_INPUTS] = { 0 }, *gradient[MOST_INPUTS] = { 0 };
    for (int k = 0; k < pass->w->inputs; k++) {
        int64_t channels = pass->w->channels[k];
        in[k] = floats(channels * at->h * at->w), gradient[k] = floats(channels * at->h * at->w);
        move_region(at, channels, pass->w->x[k], in[k], false);
    }
    if (!backward)
        reduction_add(pass->r, at, (const float *const *)in);
    else
        reduction_gradient(pass->r, at, (const float *const *)in, gradient);
    bool still = backward && reduction_is_still(pass->r, at);
    pass->still += still;
    for (int k = 0; k < pass->w->inputs; k++) {
        for (int64_t i = 0; still && i < pass->w->channels[k] * at->h * at->w; i++)
            pass->ok = pass->ok && gradient[k][i] == 0;
        if (backward)
            move_region(at, pass->w->channels[k], pass->dx[k], gradient[k], true);
        free(in[k]);
        free(gradient[k]);
    }
}

static void visit_all(struct pass *pass, bool backward)
{
    const struct tiling *t = pass->tiling;
    int64_t down = (t->end - t->begin + t->tile_h - 1) / t->tile_h;
    int64_t across = (WIDTH + t->tile_w - 1) / t->tile_w, n = down * across;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = backward != t->backwards ? n - 1 - k : k;
        struct stream_region at = { .y = t->begin + i / across * t->tile_h,
                                    .x = i % across * t->tile_w };
        at.h = at.y + t->tile_h > t->end ? t->end - at.y : t->tile_h;
        at.w = at.x + t->tile_w > WIDTH ? WIDTH - at.x : t->tile_w;
        visit(pass, &at, backward);
    }
}

/* Not with assertions: it may run in a thread. */
static void run_pass(struct pass *pass, int threads, const struct plan_peers *bands)
{
    if (!reduction_takes(pass->w->graph, pass->w->node) ||
        !reduction_new(pass->w->graph, pass->w->node, threads, &pass->r, NULL))
        return;
    pass->ok = true;
    for (int again = 0; again < 2; again++) { /* an image after another */
        reduction_begin(pass->r);
        visit_all(pass, false);
        pass->ok = pass->ok && reduction_finish(pass->r, bands, pass->y, NULL);
    }
    reduction_set_gradient(pass->r, pass->w->dy);
    visit_all(pass, true);
    reduction_free(pass->r);
}

static struct pass pass_new(const struct whole *w, const struct tiling *tiling)
{
    struct pass pass = { .w = w, .tiling = tiling };
    for (int k = 0; k < w->inputs; k++)
        pass.dx[k] = floats(w->channels[k] * CELLS);
    return pass;
}

static void pass_free(struct pass *pass)
{
    for (int k = 0; k < pass->w->inputs; k++)
        free(pass->dx[k]);
}

static void check(const struct pass *pass, enum pooling pooling)
{
    const struct whole *w = pass->w;
    double limit = pooling == MAXIMUM ? 0 : 1e-6;
    assert_true(pass->ok);
    assert_true(relative_error(pass->y, w->y, CHANNELS) <= limit);
    for (int k = 0; k < w->inputs; k++)
        assert_true(relative_error(pass->dx[k], w->dx[k], w->channels[k] * CELLS) <= limit);
}

static void test_any_tiling(void **state)
{
    (void)state;
    static const struct tiling tilings[] = {
        { 0, HEIGHT, HEIGHT, WIDTH, false }, { 0, HEIGHT, 1, 1, false },
        { 0, HEIGHT, 8, 8, false },          { 0, HEIGHT, 8, 8, true },
        { 0, HEIGHT, 5, 17, true },          { 0, HEIGHT, 36, 28, false },
    };
    for (enum pooling p = 0; p < POOLINGS; p++) {
        struct whole w;
        whole_new(&w, p);
        for (size_t t = 0; t < sizeof tilings / sizeof *tilings; t++) {
            struct pass one = pass_new(&w, &tilings[t]), many = pass_new(&w, &tilings[t]);
            run_pass(&one, 1, NULL);
            run_pass(&many, 3, NULL);
            check(&one, p);
            assert_true(many.ok);
            assert_memory_equal(one.y, many.y, sizeof one.y);
            for (int k = 0; k < w.inputs; k++)
                assert_memory_equal(one.dx[k], many.dx[k],
                                    (size_t)(w.channels[k] * CELLS) * sizeof(float));
            assert_true(one.still == 0 || p == MAXIMUM);
            assert_true(one.still > 0 || p != MAXIMUM || tilings[t].tile_h > 1);
            pass_free(&one);
            pass_free(&many);
        }
        whole_free(&w);
    }
}

struct bands {
    struct thread_peers *peers;
    struct pass pass[BANDS];
};

static void run_band(void *arg, int rank)
{
    struct bands *bands = arg;
    run_pass(&bands->pass[rank], 1, thread_peers_of(bands->peers, rank));
}

static void test_bands(void **state)
{
    (void)state;
    static const struct tiling tilings[BANDS] = {
        { 0, 11, 4, 8, false },
        { 11, 12, 4, WIDTH, false },
        { 12, HEIGHT, 9, 5, false },
    };
    for (enum pooling p = 0; p < POOLINGS; p++) {
        struct whole w;
        whole_new(&w, p);
        struct bands bands = { .peers = thread_peers_new(BANDS) };
        struct pass joined = pass_new(&w, &tilings[0]);
        for (int b = 0; b < BANDS; b++) {
            bands.pass[b] = pass_new(&w, &tilings[b]);
            for (int k = 0; k < w.inputs; k++) { /* all bands write into one gradient */
                free(bands.pass[b].dx[k]);
                bands.pass[b].dx[k] = joined.dx[k];
            }
        }
        thread_peers_run(bands.peers, run_band, &bands);
        for (int b = 0; b < BANDS; b++) {
            check(&bands.pass[b], p);
            assert_memory_equal(bands.pass[b].y, bands.pass[0].y, sizeof bands.pass[0].y);
        }
        pass_free(&joined);
        thread_peers_free(bands.peers);
        whole_free(&w);
    }
}

/* No gradient: nothing to do anywhere. Of a maximum, only where it is. */
static void test_still(void **state)
{
    (void)state;
    struct whole w;
    whole_new(&w, MAXIMUM);
    struct reduction *r;
    struct stream_region all = { 0, 0, HEIGHT, WIDTH }, one = { 3, 7, 1, 1 };
    float y[CHANNELS], dy[CHANNELS] = { 0 };
    w.x[0][5 * CELLS + 3 * WIDTH + 7] = 100;
    assert_true(reduction_new(w.graph, w.node, 1, &r, NULL));
    reduction_add(r, &all, (const float *const *)w.x);
    assert_true(reduction_finish(r, NULL, y, NULL));
    assert_true(y[5] == 100.0f);
    reduction_set_gradient(r, dy);
    assert_true(reduction_is_still(r, &all));
    dy[5] = 2;
    reduction_set_gradient(r, dy);
    assert_false(reduction_is_still(r, &one));
    one.x++;
    assert_true(reduction_is_still(r, &one));
    reduction_free(r);
    whole_free(&w);
}

/* NaN is seen, wherever it is: training stops because of it. */
static void test_nan(void **state)
{
    (void)state;
    for (enum pooling p = 0; p < POOLINGS; p++) {
        struct whole w;
        whole_new(&w, p);
        w.x[0][2 * CELLS + 40] = NAN;
        static const struct tiling tiling = { 0, HEIGHT, 8, 8, false };
        struct pass pass = pass_new(&w, &tiling);
        run_pass(&pass, 1, NULL);
        assert_true(pass.ok && isnan(pass.y[2]) && !isnan(pass.y[1]));
        pass_free(&pass);
        whole_free(&w);
    }
}

/* Tiles and bands in which nothing has any weight: exponents of -infinity. */
static void test_minus_infinity(void **state)
{
    (void)state;
    static const struct tiling once = { 0, HEIGHT, HEIGHT, WIDTH, false },
                               tiled = { 0, HEIGHT, 8, 8, false };
    for (enum pooling p = LSE; p <= ATTENTION; p++) {
        struct whole w;
        whole_new(&w, p);
        float *exponents = p == ATTENTION ? w.x[1] : w.x[0] + 2 * CELLS;
        for (int64_t i = 0; i < 17 * WIDTH; i++)
            exponents[i] = -INFINITY;
        struct pass one = pass_new(&w, &once), many = pass_new(&w, &tiled);
        run_pass(&one, 1, NULL);
        run_pass(&many, 1, NULL);
        assert_true(isfinite(one.y[2]) && many.ok);
        assert_true(relative_error(many.y, one.y, CHANNELS) < 1e-6);
        for (int k = 0; k < w.inputs; k++)
            assert_true(relative_error(many.dx[k], one.dx[k], w.channels[k] * CELLS) < 1e-6);
        pass_free(&one);
        pass_free(&many);
        whole_free(&w);
    }
}

/* A band that has nothing but NaN is not lost among the others. */
static void test_band_of_nan(void **state)
{
    (void)state;
    static const struct tiling tilings[BANDS] = { { 0, 11, 11, WIDTH, false },
                                                  { 11, 12, 1, WIDTH, false },
                                                  { 12, HEIGHT, 25, WIDTH, false } };
    for (enum pooling p = LSE; p <= ATTENTION; p++) {
        struct whole w;
        whole_new(&w, p);
        float *exponents = p == ATTENTION ? w.x[1] : w.x[0] + 2 * CELLS;
        for (int64_t i = 11 * WIDTH; i < 12 * WIDTH; i++)
            exponents[i] = NAN;
        struct bands bands = { .peers = thread_peers_new(BANDS) };
        for (int b = 0; b < BANDS; b++)
            bands.pass[b] = pass_new(&w, &tilings[b]);
        thread_peers_run(bands.peers, run_band, &bands);
        for (int b = 0; b < BANDS; b++) {
            assert_true(bands.pass[b].ok && isnan(bands.pass[b].y[2]));
            pass_free(&bands.pass[b]);
        }
        thread_peers_free(bands.peers);
        whole_free(&w);
    }
}

static void test_refused(void **state)
{
    (void)state;
    struct graph *g = graph_new("others");
    value_id x = graph_input(g, "x", SHAPE(2, 4, 8, 8));
    graph_relu(g, x);
    graph_adaptive_average_pool(g, x, 1, 2);
    graph_reduce_mean(g, x, 1u << 1, true);
    graph_output(g, "y", graph_global_average_pool(g, x));
    assert_true(graph_ok(g, NULL));
    for (int i = 0; i < 3; i++)
        assert_false(reduction_takes(g, &g->nodes[i]));
    struct reduction *r = NULL;
    struct err err;
    assert_false(reduction_new(g, &g->nodes[0], 1, &r, &err));
    assert_non_null(strstr(err.text, "relu"));
    assert_false(reduction_new(g, &g->nodes[3], 1, &r, &err));
    assert_non_null(strstr(err.text, "batch of 2"));
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_tiling),  cmocka_unit_test(test_bands),
        cmocka_unit_test(test_still),       cmocka_unit_test(test_nan),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_minus_infinity),
        cmocka_unit_test(test_band_of_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
