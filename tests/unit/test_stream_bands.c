/* test_stream_bands.c: one image over several processes by bands of rows, here threads: outputs and
 * the sum of the gradients are those of one process, for networks with strides, dilations, branches
 * and every kind of head, at odd sizes and with bands of different heights; which cells each band
 * computes; how an image is divided by its work; images that are too small, and failures of one
 * band, which all of them report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/stream/divide.h"
#include "net/stream/tiles.h"
#include "net/zoo/zoo.h"
#include "support/thread_peers.h"

#define MOST_BANDS 4

static const struct plan_options tuned = { .mode = PLAN_TUNE };

/* --- networks --- */

enum head { HEAD_MEAN, HEAD_MAX, HEAD_LSE, HEAD_ATTENTION, HEAD_MAP };

static value_id conv(struct graph *g, value_id x, const char *name, int64_t channels,
                     struct conv_attr attr)
{
    return graph_gelu(g, graph_conv(g, x, name, channels, true, attr));
}

/* Strides of 4 in all; a wide branch, a dilated one and a plain one, added and joined. */
static struct graph *toy(int64_t height, int64_t width, enum head head)
{
    struct graph *g = graph_new("toy");
    struct err err = { 0 };
    struct pool_attr pool = { { 3, 3 }, { 2, 2 }, { 1, 1, 1, 1 }, { 1, 1 }, false, false };
    struct conv_attr dilated = conv_square(3, 1, 3);
    dilated.dilation[0] = dilated.dilation[1] = 3;
    value_id x = graph_input(g, "input", SHAPE(1, 3, height, width));
    x = conv(g, x, "stem", 8, conv_square(5, 2, 2));
    x = graph_max_pool(g, x, pool);
    value_id wide =
        conv(g, conv(g, x, "wide1", 8, conv_square(5, 1, 2)), "wide2", 8, conv_square(5, 1, 2));
    value_id sum = graph_add(g, x, wide);
    value_id parts[] = { sum, conv(g, sum, "dilated", 8, dilated),
                         conv(g, x, "plain", 4, conv_square(1, 1, 0)) };
    x = conv(g, graph_concat(g, parts, 3, 1), "last", 8, conv_square(3, 1, 1));
    if (head == HEAD_MAP) {
        graph_output(g, "map", x);
    } else {
        value_id pooled = head == HEAD_MAX   ? graph_global_max_pool(g, x)
                          : head == HEAD_LSE ? graph_global_lse_pool(g, x, 4)
                          : head == HEAD_ATTENTION
                              ? graph_attention_pool(
                                    g, x, graph_conv(g, x, "scores", 1, true, conv_square(1, 1, 0)))
                              : graph_global_average_pool(g, x);
        graph_output(g, "logits", graph_linear(g, graph_flatten(g, pooled), "fc", 3, true));
    }
    if (!graph_ok(g, &err) || !graph_allocate(g, &err) || !graph_initialize(g, 1, &err))
        fail_msg("%s", err.text);
    return g;
}

static struct graph *from_zoo(const char *name, int64_t height, int64_t width)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    struct zoo_options options = { .height = height, .width = width, .classes = 3 };
    if (!zoo_build(name, &options, &graph, &err) || !graph_initialize(graph, 1, &err))
        fail_msg("%s", err.text);
    return graph;
}

/* --- runs --- */

/* What a step gives. */
struct result {
    float *output, *gradients;
    int64_t n_output, n_gradients;
    bool ok;
    struct err err;
};

static void fill(float *at, int64_t n, uint64_t stream)
{
    for (int64_t i = 0; i < n; i++) {
        struct rng rng = rng_new(1, stream, (uint64_t)i);
        at[i] = (float)(2 * rng_uniform(&rng) - 1);
    }
}

static float *copy(const float *from, int64_t n)
{
    float *to = malloc((size_t)n * sizeof *to);
    memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

static struct result step(const struct graph *graph, const struct plan_options *options)
{
    struct result r = { .n_output = shape_count(graph_shape(graph, graph->outputs[0].value)) };
    struct plan *plan = NULL;
    if (!plan_new(graph, options, &plan, &r.err))
        return r;
    r.ok = true;
    for (int pass = 0; r.ok && pass < 2; pass++) { /* a plan is used again */
        plan_zero_gradients(plan);
        fill(plan_input(plan, 0), shape_count(graph_shape(graph, graph->inputs[0].value)), 7);
        r.ok = plan_forward(plan, &r.err);
        if (r.ok && pass == 0)
            continue; /* an evaluation */
        if (r.ok) {
            r.output = copy(plan_output(plan, 0), r.n_output);
            fill(plan_output_gradient(plan, 0), r.n_output, 3);
            r.ok = plan_backward(plan, &r.err);
            const float *gradients = plan_gradients(plan, &r.n_gradients);
            r.gradients = copy(gradients, r.n_gradients);
        }
    }
    plan_free(plan);
    return r;
}

static void result_free(struct result *r)
{
    free(r->output), free(r->gradients);
}

struct shared {
    const struct graph *graph;
    struct thread_peers *peers;
    const int64_t *rows;
    int64_t tile_px;
    struct result results[MOST_BANDS];
};

static void run_band(void *arg, int rank)
{
    struct shared *shared = arg;
    struct plan_stream stream = { .tile_px = shared->tile_px, .band_rows = shared->rows };
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1, .stream = &stream };
    options.peers[PEERS_BANDS] = thread_peers_of(shared->peers, rank);
    shared->results[rank] = step(shared->graph, &options);
}

static struct shared run_bands(const struct graph *graph, int bands, const int64_t *rows,
                               int64_t tile_px)
{
    struct shared shared = { graph, thread_peers_new(bands), rows, tile_px, { { 0 } } };
    thread_peers_run(shared.peers, run_band, &shared);
    thread_peers_free(shared.peers);
    return shared;
}

/* The largest |a - b| / |b| of a parameter; one with a gradient of rounding errors alone is
 * measured by the whole. */
static double distance(const struct graph *graph, const float *a, const float *b, int64_t n)
{
    double worst = 0, all = 0;
    for (int64_t i = 0; i < n; i++)
        all += (double)b[i] * (double)b[i];
    for (value_id v = 0; v < graph->n_values; v++) {
        if (graph->values[v].kind != VALUE_PARAMETER)
            continue;
        double difference = 0, size = 0;
        int64_t count = shape_count(&graph->values[v].shape);
        for (int64_t i = 0; i < count; i++, a++, b++) {
            difference += ((double)*a - (double)*b) * ((double)*a - (double)*b);
            size += (double)*b * (double)*b;
        }
        double apart = sqrt(difference / (size > 1e-8 * all ? size : all));
        worst = apart > worst ? apart : worst;
    }
    return worst;
}

static void add(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static double apart(const float *a, const float *b, int64_t n)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / size);
}

/* Against one process that runs the network whole. A map is made of the rows of all bands. */
static void compare(const struct graph *graph, const struct result *whole, int bands,
                    const int64_t *rows, int64_t tile_px, double tolerance)
{
    bool map = graph_shape(graph, graph->outputs[0].value)->rank == 4;
    struct shared shared = run_bands(graph, bands, rows, tile_px);
    struct result *sum = &shared.results[0];
    for (int r = 0; r < bands; r++)
        if (!shared.results[r].ok)
            fail_msg("band %d of %d: %s", r, bands, shared.results[r].err.text);
    for (int r = 1; r < bands; r++) {
        struct result *band = &shared.results[r];
        if (map)
            add(sum->output, band->output, sum->n_output);
        else
            assert_memory_equal(sum->output, band->output,
                                (size_t)sum->n_output * sizeof *sum->output);
        add(sum->gradients, band->gradients, sum->n_gradients);
        result_free(band);
    }
    double output = apart(sum->output, whole->output, whole->n_output);
    double gradient = distance(graph, sum->gradients, whole->gradients, whole->n_gradients);
    if (!(output < tolerance && gradient < tolerance))
        fail_msg("%s, %d bands, tiles of %lld px: output %.2g, gradient %.2g", graph->name, bands,
                 (long long)tile_px, output, gradient);
    result_free(sum);
}

static struct result run_whole(const struct graph *graph)
{
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 2 };
    struct result whole = step(graph, &options);
    if (!whole.ok)
        fail_msg("%s", whole.err.text);
    return whole;
}

static void bands_equal_one_process(void **state)
{
    (void)state;
    static const struct {
        int64_t height, width, tile_px;
        enum head head;
    } cases[] = {
        { 200, 37, 16, HEAD_MEAN }, { 187, 53, 32, HEAD_MEAN },      { 201, 41, 500, HEAD_MEAN },
        { 190, 29, 8, HEAD_MAX },   { 197, 41, 24, HEAD_ATTENTION }, { 203, 35, 20, HEAD_LSE },
        { 198, 31, 16, HEAD_MAP },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct graph *graph = toy(cases[i].height, cases[i].width, cases[i].head);
        struct result whole = run_whole(graph);
        for (int bands = 2; bands <= MOST_BANDS; bands++)
            compare(graph, &whole, bands, NULL, cases[i].tile_px, 2e-5);
        result_free(&whole);
        graph_free(graph);
    }
}

static void bands_may_differ(void **state)
{
    (void)state;
    static const int64_t rows[][MOST_BANDS + 1] = { { 0, 40, 96, 140, 205 },
                                                    { 0, 84, 128, 168, 205 } };
    struct graph *graph = toy(205, 33, HEAD_MEAN);
    struct result whole = run_whole(graph);
    for (int i = 0; i < 2; i++)
        compare(graph, &whole, MOST_BANDS, rows[i], 16, 2e-5);
    result_free(&whole);
    graph_free(graph);
}

static void networks_of_the_zoo(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t height, width;
        int bands;
        double tolerance;
    } cases[] = { { "resnet18", 613, 65, 2, 1e-4 },
                  { "googlenet", 905, 65, 3, 1e-4 },
                  { "scan_tiny", 811, 240, 2, 1e-4 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct graph *graph = from_zoo(cases[i].name, cases[i].height, cases[i].width);
        struct result whole = run_whole(graph);
        compare(graph, &whole, cases[i].bands, NULL, 128, cases[i].tolerance);
        result_free(&whole);
        graph_free(graph);
    }
}

/* --- geometry --- */

/* Every cell belongs to one band; what a tile needs is there: computed by its own band before, or
 * by the first tiles of the next. */
static void check_cells(const struct body *body, const struct tiles *tiles, int bands)
{
    for (int m = 1; m < body->n_maps; m++)
        for (int b = 0; b < bands; b++) {
            const struct stream_axis *axis = &tiles[b].axes[0];
            int64_t extent = graph_shape(body->graph, body->maps[m])->dim[2];
            int64_t end = stream_axis_prefix(axis, m, axis->tiles);
            assert_true(b > 0 || stream_axis_prefix(axis, m, 0) == 0);
            assert_int_equal(end, b == bands - 1 ? extent
                                                 : stream_axis_prefix(&tiles[b + 1].axes[0], m, 0));
        }
    for (int e = 0; e < body->n_edges; e++)
        for (int b = 0; b < bands; b++) {
            const struct stream_axis *axis = &tiles[b].axes[0];
            int map = body->edges[0][e].from;
            for (int64_t i = 0; map > 0 && i < axis->tiles; i++) {
                const struct axis_need *need = stream_axis_need(axis, e, i);
                bool last = i == axis->tiles - 1 && b < bands - 1;
                assert_true(need->begin >= stream_axis_prefix(axis, map, 0));
                assert_true(need->end <= (last ? stream_axis_prefix(&tiles[b + 1].axes[0], map, 1)
                                               : stream_axis_prefix(axis, map, i + 1)));
            }
        }
}

static void every_cell_once(void **state)
{
    (void)state;
    static const char *const names[] = { "resnet50", "googlenet", "densenet121", "inception_v3" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int64_t height = 12288; height < 12340; height += 17)
            for (int bands = 2; bands <= MOST_BANDS; bands++) {
                struct graph *graph = NULL;
                struct body body;
                struct tiles tiles[MOST_BANDS];
                struct err err = { 0 };
                int64_t rows[MOST_BANDS + 1];
                struct zoo_options options = { .height = height, .width = 512, .classes = 3 };
                assert_true(zoo_build(names[i], &options, &graph, &err));
                assert_true(body_new(graph, &tuned, &body, &err));
                assert_true(bands_divide_evenly(&body, bands, rows, &err));
                for (int b = 0; b < bands; b++) {
                    struct tiles_spec spec = { 1024, { rows[b], rows[b + 1] } };
                    assert_true(tiles_new(&body, &spec, &tiles[b], &err));
                    assert_true(tiles[b].axes[0].tiles >= 2); /* nobody waits */
                }
                check_cells(&body, tiles, bands);
                for (int b = 0; b < bands; b++)
                    tiles_free(&tiles[b]);
                body_free(&body);
                graph_free(graph);
            }
}

/* As many as a large slide may have: still two rows of tiles in each. */
static void many_bands(void **state)
{
    (void)state;
    struct graph *graph = NULL;
    struct body body;
    struct err err = { 0 };
    int64_t rows[33];
    struct zoo_options options = { .height = 20000, .width = 512, .classes = 3 };
    assert_true(zoo_build("resnet50", &options, &graph, &err));
    assert_true(body_new(graph, &tuned, &body, &err));
    if (!bands_divide_evenly(&body, 32, rows, &err))
        fail_msg("%s", err.text);
    for (int b = 0; b < 32; b++) {
        struct tiles_spec spec = { 1024, { rows[b], rows[b + 1] } };
        struct tiles tiles;
        assert_true(tiles_new(&body, &spec, &tiles, &err));
        assert_true(tiles.axes[0].tiles >= 2);
        tiles_free(&tiles);
    }
    body_free(&body);
    graph_free(graph);
}

/* --- division --- */

static void work_is_balanced(void **state)
{
    (void)state;
    struct graph *graph = toy(1200, 16, HEAD_MEAN);
    struct err err = { 0 };
    double work[1200];
    int64_t rows[MOST_BANDS + 1];
    for (int y = 0; y < 1200; y++)
        work[y] = y < 300 ? 0.05 : y < 700 ? 1 : 0.3; /* 15 + 400 + 150 */
    for (int bands = 2; bands <= MOST_BANDS; bands++) {
        double most = 0;
        assert_true(bands_divide(graph, &tuned, work, bands, rows, &err));
        assert_int_equal(rows[0], 0);
        assert_int_equal(rows[bands], 1200);
        for (int b = 0; b < bands; b++) {
            double sum = 0;
            assert_true(rows[b] < rows[b + 1] && rows[b] % 4 == 0);
            for (int64_t y = rows[b]; y < rows[b + 1]; y++)
                sum += work[y];
            most = sum > most ? sum : most;
        }
        assert_true(most < 565.0 / bands + 4); /* a step more than its share */
    }
    assert_true(bands_divide(graph, &tuned, NULL, 3, rows, &err));
    assert_int_equal(rows[1], 400);
    assert_int_equal(rows[2], 800);
    memset(work, 0, sizeof work); /* no tissue: all rows alike */
    assert_true(bands_divide(graph, &tuned, work, 4, rows, &err));
    assert_int_equal(rows[2], 600);
    work[1199] = 1; /* no band becomes too thin for the network */
    assert_true(bands_divide(graph, &tuned, work, 4, rows, &err));
    struct body body;
    assert_true(body_new(graph, &tuned, &body, &err));
    assert_true(bands_check(&body, rows, 4, &err));
    body_free(&body);
    graph_free(graph);
}

static void small_images_are_refused(void **state)
{
    (void)state;
    struct graph *graph = from_zoo("resnet18", 520, 64);
    struct err err = { 0 };
    int64_t rows[33];
    assert_true(bands_divide(graph, &tuned, NULL, 2, rows, &err));
    assert_false(bands_divide(graph, &tuned, NULL, 32, rows, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    print_message("%s\n", err.text);
    int fit = 0;
    assert_int_equal(sscanf(err.text,
                            "resnet18: an image of 520 rows is too small for 32 bands; use at most "
                            "%d (parallel.bands), or larger images",
                            &fit),
                     1);
    assert_true(fit >= 2 && bands_divide(graph, &tuned, NULL, fit, rows, &err));
    assert_false(bands_divide(graph, &tuned, NULL, fit + 1, rows, &err));
    graph_free(graph);
}

/* Plans fail together, and with the same words. */
static void bands_fail_together(void **state)
{
    (void)state;
    static const struct {
        int64_t rows[MOST_BANDS + 1];
        const char *says;
    } cases[] = {
        { { 0, 40, 96, 140, 200 },
          "toy: bands must begin at 0, end at 205 and have multiples of 4 rows" },
        { { 0, 40, 98, 140, 205 },
          "toy: bands must begin at 0, end at 205 and have multiples of 4 rows" },
        { { 0, 96, 96, 140, 205 },
          "toy: bands must begin at 0, end at 205 and have multiples of 4 rows" },
        { { 0, 96, 100, 140, 205 },
          "toy: an image of 205 rows is too small for 4 bands; use at most 3 (parallel.bands), or "
          "larger images" },
    };
    struct graph *graph = toy(205, 33, HEAD_MEAN);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shared shared = run_bands(graph, MOST_BANDS, cases[i].rows, 16);
        for (int r = 0; r < MOST_BANDS; r++) {
            assert_false(shared.results[r].ok);
            assert_string_equal(shared.results[r].err.text, cases[i].says);
        }
    }
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_equal_one_process),
        cmocka_unit_test(bands_may_differ),
        cmocka_unit_test(networks_of_the_zoo),
        cmocka_unit_test(every_cell_once),
        cmocka_unit_test(many_bands),
        cmocka_unit_test(work_is_balanced),
        cmocka_unit_test(small_images_are_refused),
        cmocka_unit_test(bands_fail_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
