/* test_stream_skip.c: where only some cells of a map are wanted, tiles that none of them depends on
 * are neither read nor computed, and the wanted cells are those of the network run whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/stream/work.h"
#include "net/zoo/zoo.h"

#define HEIGHT 416
#define WIDTH 480
#define WINDOW 64
#define STRIDE 16

/* One run: pixels, wanted cells, what came of it. */
struct run {
    const float *image;    /* [3, HEIGHT, WIDTH] */
    int64_t reads;         /* of tiles */
    int64_t rows, columns; /* of the output */
    int64_t channels;
    bool *wanted; /* [rows, columns] */
    float *map;   /* [channels, rows, columns] */
};

static bool read_pixels(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                        struct err *err)
{
    struct run *run = arg;
    (void)err;
    run->reads++;
    for (int64_t line = 0; line < 3 * h; line++)
        memcpy(out + line * w, run->image + (line / h * HEIGHT + y + line % h) * WIDTH + x,
               (size_t)w * sizeof *out);
    return true;
}

static bool take_map(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w,
                     const float *map, struct err *err)
{
    struct run *run = arg;
    (void)output, (void)err;
    for (int64_t line = 0; line < run->channels * h; line++)
        memcpy(run->map + (line / h * run->rows + y + line % h) * run->columns + x, map + line * w,
               (size_t)w * sizeof *map);
    return true;
}

static bool any_wanted(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w)
{
    const struct run *run = arg;
    assert_int_equal(output, 0);
    assert_true(y >= 0 && x >= 0 && y + h <= run->rows && x + w <= run->columns);
    for (int64_t row = y; row < y + h; row++)
        if (memchr(run->wanted + row * run->columns + x, true, (size_t)w))
            return true;
    return false;
}

/* Zero padding, branches, strides and dilation; it sees 132 px. */
static struct graph *small_network(void)
{
    struct graph *graph = graph_new("small");
    value_id x = graph_input(graph, "input", SHAPE(1, 3, WINDOW, WINDOW));
    x = graph_relu(graph, graph_conv(graph, x, "conv1", 8, true, conv_square(5, 2, 2)));
    x = graph_max_pool(graph, x, pool_square(3, 2, 1));
    value_id y = graph_relu(graph, graph_conv(graph, x, "conv2", 8, true, conv_square(3, 1, 1)));
    x = graph_add(graph, x, graph_conv(graph, y, "conv3", 8, true, conv_square(3, 1, 1)));
    x = graph_relu(graph, graph_conv(graph, x, "conv4", 16, true, conv_square(3, 2, 1)));
    x = graph_relu(graph, graph_conv(graph, x, "conv5", 16, true, conv_square(3, 2, 1)));
    x = graph_flatten(graph, graph_global_average_pool(graph, x));
    graph_output(graph, "logits", graph_linear(graph, x, "fc", 2, true));
    return graph;
}

/* Densely, one score every STRIDE px. */
static struct graph *dense_graph(struct graph *plain)
{
    struct dense_spec spec = { WINDOW, STRIDE, HEIGHT, WIDTH };
    struct graph *folded = NULL, *dense = NULL, *fused = NULL;
    struct err err = { 0 };
    if (!graph_initialize(plain, 3, &err) ||
        !transform_fold_batch_norm(plain, NULL, 0, &folded, &err) ||
        !transform_dense(folded, &spec, &dense, &err) ||
        !transform_fuse(dense, NULL, 0, &fused, &err))
        fail_msg("%s", err.text);
    graph_free(plain), graph_free(folded), graph_free(dense);
    return fused;
}

static struct run run_new(const struct graph *graph, const float *image)
{
    const struct shape *shape = graph_shape(graph, graph->outputs[0].value);
    struct run run = {
        .image = image, .channels = shape->dim[1], .rows = shape->dim[2], .columns = shape->dim[3]
    };
    run.wanted = calloc((size_t)(run.rows * run.columns), sizeof *run.wanted);
    run.map = calloc((size_t)(run.channels * run.rows * run.columns), sizeof *run.map);
    return run;
}

static struct plan_streamed stream(const struct graph *graph, struct run *run, int64_t tile_px,
                                   struct stream_work *work)
{
    struct plan_source source = { run, read_pixels };
    struct plan_sink sink = { run, take_map };
    struct plan_wish wish = { run, any_wanted };
    struct plan_stream how = {
        .source = &source, .sink = &sink, .wish = &wish, .tile_px = tile_px
    };
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1, .stream = &how };
    struct plan_streamed did = { 0 };
    struct plan *plan = NULL;
    struct err err = { 0 };
    run->reads = 0;
    memset(run->map, 0x7f, (size_t)(run->channels * run->rows * run->columns) * sizeof(float));
    if (!plan_new(graph, &options, &plan, &err) || !plan_forward(plan, &err) ||
        !plan_streamed(plan, &did) || !stream_work(graph, &how, work, &err))
        fail_msg("%s", err.text);
    plan_free(plan);
    return did;
}

/* Of the wanted cells, relative to the largest number of the map. */
static double gap(const struct run *run, const float *whole)
{
    double most = 0, difference = 0;
    int64_t cells = run->rows * run->columns;
    for (int64_t i = 0; i < run->channels * cells; i++) {
        most = fmax(most, fabs((double)whole[i]));
        if (run->wanted[i % cells])
            difference = fmax(difference, fabs((double)whole[i] - (double)run->map[i]));
    }
    return difference / most;
}

static float *run_whole(const struct graph *graph, const float *image, int64_t floats)
{
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1 };
    struct plan *plan = NULL;
    struct err err = { 0 };
    float *whole = malloc((size_t)floats * sizeof *whole);
    if (!plan_new(graph, &options, &plan, &err))
        fail_msg("%s", err.text);
    memcpy(plan_input(plan, 0), image, sizeof(float) * 3 * HEIGHT * WIDTH);
    assert_true(plan_forward(plan, &err));
    memcpy(whole, plan_output(plan, 0), (size_t)floats * sizeof *whole);
    plan_free(plan);
    return whole;
}

static float *drawn_image(void)
{
    float *image = malloc(sizeof(float) * 3 * HEIGHT * WIDTH);
    struct rng rng = rng_new(5, 0, 0);
    for (int64_t i = 0; i < 3 * HEIGHT * WIDTH; i++)
        image[i] = (float)rng_between(&rng, -1, 1);
    return image;
}

static void check(const struct graph *graph, struct run *run, const float *whole, int64_t tile_px,
                  bool some)
{
    struct stream_work work;
    struct plan_streamed did = stream(graph, run, tile_px, &work);
    int64_t tiles = did.tiles_down * did.tiles_across;
    double most = gap(run, whole);
    print_message("%s: %lld of %lld tiles of %lld px, %.2f of the work: %.2g\n", graph->name,
                  (long long)work.computed, (long long)tiles, (long long)tile_px, work.share, most);
    assert_true(most < 1e-5);
    assert_int_equal(run->reads, tiles - did.tiles_left_out);
    assert_int_equal(work.tiles, tiles);
    assert_int_equal(work.computed, tiles - did.tiles_left_out);
    if (some)
        assert_true(did.tiles_left_out > 0 && work.share < 0.9);
    else
        assert_true(fabs(work.share - 1) < 1e-12);
}

/* All cells, each of four, three of them, none. */
static void wanted_cells_are_right(void **state)
{
    (void)state;
    struct graph *graph = dense_graph(small_network());
    float *image = drawn_image();
    struct run run = run_new(graph, image);
    float *whole = run_whole(graph, image, run.channels * run.rows * run.columns);
    int64_t cells = run.rows * run.columns;
    int64_t places[] = { 0, run.columns - 1, cells - 1, cells / 2 + run.columns / 2 };
    const int64_t tiles_px[] = { 16, 48, 80, 512 };
    for (size_t t = 0; t < 4; t++) {
        memset(run.wanted, true, (size_t)cells);
        check(graph, &run, whole, tiles_px[t], false);
        for (size_t i = 0; i < 4; i++) {
            memset(run.wanted, false, (size_t)cells);
            run.wanted[places[i]] = true;
            check(graph, &run, whole, tiles_px[t], tiles_px[t] < 512);
        }
        run.wanted[0] = run.wanted[cells - 3] = true; /* three, far apart */
        check(graph, &run, whole, tiles_px[t], tiles_px[t] < 512);
    }
    memset(run.wanted, false, (size_t)cells);
    struct stream_work work;
    struct plan_streamed did = stream(graph, &run, 64, &work);
    assert_true(run.reads == 0 && did.tiles_left_out == work.tiles && work.share == 0);
    free(whole), free(image), free(run.wanted), free(run.map);
    graph_free(graph);
}

/* A network as published, which sees nearly all of this image. */
static void so_are_those_of_a_residual_network(void **state)
{
    (void)state;
    struct zoo_options options = { .classes = 2, .height = WINDOW, .width = WINDOW };
    struct graph *plain = NULL;
    struct err err = { 0 };
    assert_true(zoo_build("resnet18", &options, &plain, &err));
    struct graph *graph = dense_graph(plain);
    float *image = drawn_image();
    struct run run = run_new(graph, image);
    float *whole = run_whole(graph, image, run.channels * run.rows * run.columns);
    run.wanted[run.columns - 1] = run.wanted[3 * run.columns + 2] = true;
    check(graph, &run, whole, 64, true);
    free(whole), free(image), free(run.wanted), free(run.map);
    graph_free(graph);
}

static void poolings_need_all(void **state)
{
    (void)state;
    struct zoo_options zoo = { .classes = 2, .height = 256, .width = 256 };
    struct graph *graph = NULL;
    struct err err = { 0 };
    struct run run = { 0 };
    struct plan_wish wish = { &run, any_wanted };
    struct plan_stream how = { .wish = &wish, .tile_px = 64 };
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1, .stream = &how };
    struct stream_work work;
    struct plan *plan = NULL;
    assert_true(zoo_build("resnet18", &zoo, &graph, &err) && graph_initialize(graph, 1, &err));
    assert_false(plan_new(graph, &options, &plan, &err));
    assert_string_equal(err.text, "resnet18: tiles are left out only in one process, in inference, "
                                  "and where all outputs are maps");
    assert_false(stream_work(graph, &how, &work, &err));
    assert_string_equal(err.text, "resnet18: pools its whole map");
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wanted_cells_are_right),
        cmocka_unit_test(so_are_those_of_a_residual_network),
        cmocka_unit_test(poolings_need_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
