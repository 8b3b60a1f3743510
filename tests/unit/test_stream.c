/* test_stream.c: a network that runs tile by tile gives the same outputs and the same gradients as
 * one that runs whole, to rounding: at any size of the image and of the tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/rng.h"
#include "net/stream/stream.h"
#include "net/zoo/zoo.h"
#include "support/zoo_golden.h"

/* The numbers of one step of training: all outputs one after another, all gradients. */
struct result {
    float *outputs, *gradients;
    int64_t n_outputs, n_gradients;
    struct plan_streamed streamed;
};

static void result_free(struct result *r)
{
    free(r->outputs), free(r->gradients);
}

static void fill(float *at, int64_t n, uint64_t seed)
{
    struct rng rng = rng_new(seed, 0, 0);
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)rng_between(&rng, -1, 1);
}

static struct plan *plan_of(const struct graph *graph, const struct plan_options *options)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    if (!plan_new(graph, options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static int64_t output_count(const struct graph *graph, int i)
{
    return shape_count(graph_shape(graph, graph->outputs[i].value));
}

static void step_forward(const struct graph *graph, struct plan *plan, struct result *r)
{
    struct err err = { 0 };
    if (plan_input(plan, 0))
        fill(plan_input(plan, 0), shape_count(graph_shape(graph, graph->inputs[0].value)), 7);
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < graph->n_outputs; i++)
        r->n_outputs += output_count(graph, i);
    r->outputs = malloc((size_t)r->n_outputs * sizeof *r->outputs);
    float *at = r->outputs;
    for (int i = 0; i < graph->n_outputs; at += output_count(graph, i++))
        if (plan_output(plan, i))
            memcpy(at, plan_output(plan, i), (size_t)output_count(graph, i) * sizeof *at);
}

static void step_back(const struct graph *graph, struct plan *plan, struct result *r)
{
    struct err err = { 0 };
    for (int i = 0; i < graph->n_outputs; i++)
        fill(plan_output_gradient(plan, i), output_count(graph, i), (uint64_t)(3 + i));
    if (!plan_backward(plan, &err))
        fail_msg("%s", err.text);
    const float *gradients = plan_gradients(plan, &r->n_gradients);
    r->gradients = malloc((size_t)r->n_gradients * sizeof *r->gradients);
    memcpy(r->gradients, gradients, (size_t)r->n_gradients * sizeof *r->gradients);
    plan_streamed(plan, &r->streamed);
}

static struct result run(const struct graph *graph, const struct plan_options *options)
{
    struct plan *plan = plan_of(graph, options);
    struct result r = { 0 };
    plan_zero_gradients(plan);
    step_forward(graph, plan, &r);
    if (options->mode != PLAN_INFER)
        step_back(graph, plan, &r);
    plan_free(plan);
    return r;
}

/* |a - b| / |b| */
static double distance(const float *a, const float *b, int64_t n)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(difference / size) : sqrt(difference);
}

/* Each of these tile sizes, 0 at the end, against the whole. */
static void compare(const struct graph *graph, const int64_t *tiles_px, double tolerance)
{
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1 };
    struct result whole = run(graph, &options);
    for (; *tiles_px; tiles_px++) {
        struct plan_stream stream = { .tile_px = *tiles_px };
        options.stream = &stream;
        struct result tiled = run(graph, &options);
        double out = distance(tiled.outputs, whole.outputs, whole.n_outputs);
        double gradient = distance(tiled.gradients, whole.gradients, whole.n_gradients);
        print_message("%s, %lld x %lld tiles of %lld px: outputs differ by %.2g, gradients by "
                      "%.2g\n",
                      graph->name, (long long)tiled.streamed.tiles_down,
                      (long long)tiled.streamed.tiles_across, (long long)tiled.streamed.tile_px,
                      out, gradient);
        assert_true(out < tolerance);
        assert_true(gradient < tolerance);
        result_free(&tiled);
    }
    result_free(&whole);
}

/* --- networks --- */

static struct graph *finished(struct graph *graph)
{
    struct err err = { 0 };
    if (!graph_ok(graph, &err) || !graph_allocate(graph, &err) || !graph_initialize(graph, 1, &err))
        fail_msg("%s: %s", graph->name, err.text);
    return graph;
}

static struct conv_attr grouped(int64_t kernel, int64_t dilation, int64_t groups)
{
    struct conv_attr attr = conv_square(kernel, 1, dilation * (kernel / 2));
    attr.dilation[0] = attr.dilation[1] = dilation;
    attr.groups = groups;
    return attr;
}

/* Residual sums over blocks, one of which halves the image, with norms; branches that are joined.
 */
static struct graph *residual(int64_t height, int64_t width)
{
    struct graph *g = graph_new("residual");
    value_id x = graph_input(g, "input", SHAPE(1, 3, height, width));
    x = graph_relu(
        g, graph_batch_norm(g, graph_conv(g, x, "a", 16, false, conv_square(5, 2, 2)), "an"));
    value_id y = graph_conv(g, x, "b", 16, true, conv_square(3, 1, 1));
    y = graph_conv(g, graph_gelu(g, y), "c", 16, true, grouped(3, 2, 4));
    x = graph_relu(g, graph_add(g, x, y));
    y = graph_conv(g, x, "d", 24, true, conv_square(3, 2, 1));
    y = graph_conv(g, graph_relu(g, y), "e", 24, true, conv_square(3, 1, 1));
    x = graph_leaky_relu(g, graph_add(g, graph_conv(g, x, "f", 24, false, conv_square(1, 2, 0)), y),
                         0.1f);
    value_id parts[3] = { graph_conv(g, x, "g", 8, true, conv_square(1, 1, 0)),
                          graph_conv(g, x, "h", 16, true, grouped(3, 3, 1)),
                          graph_average_pool(g, x, pool_square(3, 1, 1)) };
    x = graph_concat(g, parts, 3, 1);
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "logits", graph_linear(g, x, "fc", 2, true));
    return finished(g);
}

/* Poolings of all kinds, with windows that hang over the border, and rectangular windows. */
static struct graph *pooling(int64_t height, int64_t width)
{
    struct graph *g = graph_new("pooling");
    value_id x = graph_input(g, "input", SHAPE(1, 3, height, width));
    struct pool_attr hangs = pool_square(3, 2, 0), counts = pool_square(3, 2, 1),
                     less = pool_square(5, 2, 2);
    hangs.ceil_mode = counts.ceil_mode = less.ceil_mode = true;
    counts.count_include_pad = true;
    x = graph_max_pool(g, graph_conv(g, x, "a", 12, true, conv_square(3, 1, 0)), hangs);
    x = graph_average_pool(g, graph_conv(g, x, "b", 20, true, conv_square(3, 1, 1)), counts);
    x = graph_conv(g, x, "c", 20, true,
                   (struct conv_attr){ .kernel = { 1, 7 }, .pad = { 0, 3, 0, 3 } });
    x = graph_conv(g, x, "d", 20, true,
                   (struct conv_attr){ .kernel = { 3, 1 }, .pad = { 1, 0, 0, 0 } });
    x = graph_pad(g, x, (struct pad_attr){ .pad = { 1, 0, -1, 2 }, .value = 0.5f });
    x = graph_lrn(g, x, (struct lrn_attr){ .size = 5, .alpha = 1e-2f, .beta = 0.75f, .bias = 1 });
    x = graph_average_pool(g, graph_scale(g, x, 2, 0.1f), less);
    graph_output(g, "mean", graph_reduce_mean(g, x, 1u << 2 | 1u << 3, false));
    graph_output(g, "max", graph_global_max_pool(g, x));
    return finished(g);
}

/* Down and up again, with the image itself and all levels joined: a map as large as the image. */
static struct graph *u_net(int64_t height, int64_t width)
{
    struct graph *g = graph_new("u_net");
    value_id x = graph_input(g, "input", SHAPE(1, 3, height, width));
    value_id top = graph_relu(g, graph_conv(g, x, "a", 8, true, conv_square(3, 1, 1)));
    value_id y = graph_max_pool(g, top, pool_square(2, 2, 0));
    value_id middle = graph_relu(g, graph_conv(g, y, "b", 16, true, conv_square(3, 1, 1)));
    y = graph_max_pool(g, middle, pool_square(2, 2, 0));
    y = graph_relu(g, graph_conv(g, y, "c", 16, true, conv_square(3, 1, 1)));
    value_id up = graph_conv_transpose(g, y, "d", 16, true, conv_square(2, 2, 0));
    y = graph_upsample(g, y,
                       (struct upsample_attr){ .mode = UPSAMPLE_BILINEAR, .scale = { 2, 2 } });
    y = graph_concat(g, (value_id[]){ middle, up, y }, 3, 1);
    y = graph_relu(g, graph_conv(g, y, "e", 16, true, conv_square(3, 1, 1)));
    y = graph_upsample(g, y, (struct upsample_attr){ .scale = { 2, 2 } });
    y = graph_concat(g, (value_id[]){ top, y, x }, 3, 1);
    y = graph_conv(g, y, "f", 2, true, conv_square(3, 1, 1));
    graph_output(g, "map", graph_softmax(g, y, 1));
    graph_output(g, "pooled", graph_flatten(g, graph_global_average_pool(g, y)));
    return finished(g);
}

static struct graph *max_head(int64_t height, int64_t width)
{
    struct graph *g = graph_new("max_head");
    value_id x = graph_input(g, "input", SHAPE(1, 3, height, width));
    x = graph_relu(g, graph_conv(g, x, "a", 8, true, conv_square(3, 2, 1)));
    x = graph_relu(g, graph_conv(g, x, "b", 2, true, conv_square(3, 2, 1)));
    graph_output(g, "logits", graph_flatten(g, graph_global_max_pool(g, x)));
    return finished(g);
}

/* A map and the same one with a border, both given: most tiles have no border. */
static struct graph *bordered(int64_t height, int64_t width)
{
    struct graph *g = graph_new("bordered");
    value_id x = graph_input(g, "input", SHAPE(1, 3, height, width));
    x = graph_conv(g, x, "a", 8, true, conv_square(3, 1, 1));
    value_id y = graph_pad(g, x, (struct pad_attr){ .pad = { 2, 1, 2, 3 }, .value = 0.5f });
    graph_output(g, "inner", x);
    graph_output(g, "bordered", y);
    graph_output(g, "mean", graph_flatten(g, graph_global_average_pool(g, y)));
    graph_output(g, "lse", graph_flatten(g, graph_global_lse_pool(g, x, 2)));
    return finished(g);
}

/* --- tests --- */

/* With weights that keep activations off the kinks of ReLUs: where one lies within rounding of a
 * kink, it may fall to the other side, and gradients differ by 1e-4. */
static void resnet_is_the_same(void **state)
{
    (void)state;
    struct graph *graph = NULL;
    struct err err = { 0 };
    struct zoo_options options = { .height = 331, .width = 259, .classes = 3 };
    if (!zoo_build("resnet18", &options, &graph, &err) || !graph_allocate(graph, &err))
        fail_msg("%s", err.text);
    zoo_fill_parameters(graph, 1.0, true);
    compare(graph, (const int64_t[]){ 32, 96, 512, 0 }, 2e-6);
    graph_free(graph);
}

static void toys_are_the_same(void **state)
{
    (void)state;
    struct graph *(*const toys[])(int64_t, int64_t) = { residual, pooling, max_head };
    static const int64_t sizes[][2] = { { 97, 61 }, { 41, 130 } };
    for (size_t k = 0; k < sizeof toys / sizeof *toys; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct graph *graph = toys[k](sizes[i][0], sizes[i][1]);
            compare(graph, (const int64_t[]){ 1, 20, 32, 0 }, 2e-6);
            graph_free(graph);
        }
    struct graph *graph = u_net(92, 60);
    compare(graph, (const int64_t[]){ 4, 24, 64, 0 }, 2e-6);
    graph_free(graph);
    graph = bordered(41, 37);
    compare(graph, (const int64_t[]){ 1, 8, 64, 0 }, 2e-6);
    graph_free(graph);
}

/* Room for gradients that meet at an end is part of the budget. */
static void gradients_that_meet_are_counted(void **state)
{
    (void)state;
    size_t predicted[2];
    for (int outputs = 1; outputs <= 2; outputs++) {
        struct graph *g = graph_new("meeting");
        value_id x = graph_input(g, "input", SHAPE(1, 3, 64, 64));
        x = graph_conv(g, x, "a", 16, true, conv_square(3, 1, 1));
        graph_output(g, "mean", graph_global_average_pool(g, x));
        if (outputs == 2)
            graph_output(g, "max", graph_global_max_pool(g, x));
        finished(g);
        struct plan_stream stream = { .tile_px = 64 };
        struct plan_options options = { .mode = PLAN_TUNE, .threads = 1, .stream = &stream };
        struct plan *plan = plan_of(g, &options);
        struct plan_streamed streamed = { 0 };
        plan_streamed(plan, &streamed);
        predicted[outputs - 1] = streamed.predicted_bytes;
        plan_free(plan);
        graph_free(g);
    }
    size_t map = (size_t)16 * 64 * 64 * sizeof(float);
    assert_true(predicted[1] >= predicted[0] + map);
}

/* Weights that tiles share in the layouts of their kernels follow those of the network. */
static void weights_may_change_between_steps(void **state)
{
    (void)state;
    struct graph *graph = residual(97, 61);
    struct plan_stream stream = { .tile_px = 16 };
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 2, .stream = &stream };
    struct plan *plan = plan_of(graph, &options);
    struct result before = { 0 }, after = { 0 };
    step_forward(graph, plan, &before), step_back(graph, plan, &before);
    for (value_id i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_PARAMETER)
            for (int64_t k = 0; k < shape_count(&graph->values[i].shape); k++)
                graph_data(graph, i)[k] *= 1.25f;
    plan_zero_gradients(plan);
    step_forward(graph, plan, &after), step_back(graph, plan, &after);
    options.stream = NULL;
    struct result whole = run(graph, &options);
    assert_true(distance(before.gradients, whole.gradients, whole.n_gradients) > 1e-2);
    assert_true(distance(after.outputs, whole.outputs, whole.n_outputs) < 2e-6);
    assert_true(distance(after.gradients, whole.gradients, whole.n_gradients) < 2e-6);
    plan_free(plan);
    result_free(&before), result_free(&after), result_free(&whole);
    graph_free(graph);
}

/* Of a max, only the tiles around one cell for each class have a gradient. */
static void tiles_without_gradient_are_skipped(void **state)
{
    (void)state;
    struct graph *graph = max_head(256, 256);
    struct plan_stream stream = { .tile_px = 16 };
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1, .stream = &stream };
    struct result r = run(graph, &options);
    int64_t tiles = r.streamed.tiles_down * r.streamed.tiles_across;
    assert_true(tiles >= 200);
    assert_in_range(r.streamed.tiles_still, tiles - 8, tiles - 1);
    result_free(&r);
    graph_free(graph);
}

static void threads_change_no_bits(void **state)
{
    (void)state;
    struct graph *graph = residual(150, 203);
    struct plan_stream stream = { .tile_px = 40 };
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1, .stream = &stream };
    struct result one = run(graph, &options);
    options.threads = 2;
    struct result two = run(graph, &options);
    assert_memory_equal(one.outputs, two.outputs, (size_t)one.n_outputs * sizeof(float));
    assert_memory_equal(one.gradients, two.gradients, (size_t)one.n_gradients * sizeof(float));
    result_free(&one), result_free(&two);
    graph_free(graph);
}

/* A second pass gives what the first gave, and adds to the gradients. */
static void gradients_add_up(void **state)
{
    (void)state;
    struct graph *graph = residual(90, 70);
    struct plan_stream stream = { .tile_px = 16 };
    int64_t count = graph_parameter_count(graph);
    float *lent = calloc((size_t)count, sizeof *lent);
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 2, .stream = &stream };
    struct result once = run(graph, &options), first = { 0 }, second = { 0 };
    options.gradients = lent;
    struct plan *plan = plan_of(graph, &options);
    step_forward(graph, plan, &first), step_back(graph, plan, &first);
    step_forward(graph, plan, &second), step_back(graph, plan, &second);
    assert_memory_equal(first.gradients, once.gradients, (size_t)count * sizeof *lent);
    for (int64_t i = 0; i < count; i++)
        lent[i] /= 2;
    assert_true(distance(lent, once.gradients, count) < 1e-7);
    assert_memory_equal(second.outputs, once.outputs, (size_t)once.n_outputs * sizeof(float));
    plan_free(plan);
    result_free(&once), result_free(&first), result_free(&second);
    free(lent);
    graph_free(graph);
}

/* --- source and sink --- */

struct picture {
    const struct shape *shape;
    float *pixels;
    float *maps[2];
    const struct graph *graph;
};

static bool read_part(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                      struct err *err)
{
    (void)err;
    const struct picture *p = arg;
    for (int64_t c = 0; c < p->shape->dim[1]; c++)
        for (int64_t r = 0; r < h; r++)
            memcpy(out + (c * h + r) * w,
                   p->pixels + (c * p->shape->dim[2] + y + r) * p->shape->dim[3] + x,
                   (size_t)w * sizeof *out);
    return true;
}

static bool write_part(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w,
                       const float *map, struct err *err)
{
    (void)err;
    const struct picture *p = arg;
    const struct shape *shape = graph_shape(p->graph, p->graph->outputs[output].value);
    for (int64_t c = 0; c < shape->dim[1]; c++)
        for (int64_t r = 0; r < h; r++)
            for (int64_t k = 0; k < w; k++) /* every cell once */
                p->maps[output][(c * shape->dim[2] + y + r) * shape->dim[3] + x + k] +=
                    map[(c * h + r) * w + k];
    return true;
}

static void images_may_come_and_maps_go_in_parts(void **state)
{
    (void)state;
    struct graph *graph = u_net(92, 60);
    struct picture picture = { .shape = graph_shape(graph, graph->inputs[0].value),
                               .graph = graph };
    picture.pixels = malloc((size_t)shape_count(picture.shape) * sizeof(float));
    picture.maps[0] = calloc((size_t)output_count(graph, 0), sizeof(float));
    fill(picture.pixels, shape_count(picture.shape), 7);
    struct plan_source source = { &picture, read_part };
    struct plan_sink sink = { &picture, write_part };
    struct plan_options options = { .mode = PLAN_INFER, .threads = 2 };
    struct result whole = run(graph, &options);
    struct plan_stream stream = { .tile_px = 16, .source = &source, .sink = &sink };
    options.stream = &stream;
    struct plan *plan = plan_of(graph, &options);
    struct err err = { 0 };
    assert_null(plan_input(plan, 0));
    assert_null(plan_output(plan, 0));
    assert_true(plan_forward(plan, &err));
    int64_t cells = output_count(graph, 0);
    assert_true(distance(picture.maps[0], whole.outputs, cells) < 2e-6);
    assert_true(distance(plan_output(plan, 1), whole.outputs + cells, 2) < 2e-6);
    plan_free(plan);
    result_free(&whole);
    free(picture.pixels), free(picture.maps[0]);
    graph_free(graph);
}

/* A source that is still reading the second tile when the sink fails at the first. */
struct overtaken {
    atomic_bool reading, failed;
};

static void wait_for(const atomic_bool *flag)
{
    while (!atomic_load(flag))
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static bool read_late(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                      struct err *err)
{
    (void)y, (void)err;
    struct overtaken *o = arg;
    fill(out, 3 * h * w, 7);
    if (x > 0) {
        atomic_store(&o->reading, true);
        wait_for(&o->failed);
        nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
        atomic_store(&o->reading, false);
    }
    return true;
}

static bool fail_early(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w,
                       const float *map, struct err *err)
{
    (void)output, (void)y, (void)x, (void)h, (void)w, (void)map;
    struct overtaken *o = arg;
    wait_for(&o->reading);
    atomic_store(&o->failed, true);
    return err_set(err, ERR_IO, "full");
}

/* Its owner may close a source after a pass, however that ended. */
static void nothing_is_read_after_a_pass(void **state)
{
    (void)state;
    struct graph *graph = u_net(64, 128);
    struct overtaken overtaken = { false, false };
    struct plan_source source = { &overtaken, read_late };
    struct plan_sink sink = { &overtaken, fail_early };
    struct plan_stream stream = { .tile_px = 64, .source = &source, .sink = &sink };
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1, .stream = &stream };
    struct plan *plan = plan_of(graph, &options);
    assert_false(plan_forward(plan, NULL));
    assert_false(atomic_load(&overtaken.reading));
    plan_free(plan);
    graph_free(graph);
}

/* --- what must fail --- */

/* Strips that are one cell short are noticed: the comparisons above would fail. */
static void short_strips_are_wrong(void **state)
{
    (void)state;
    struct graph *graph = residual(97, 61);
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1 };
    struct result whole = run(graph, &options);
    struct plan_stream stream = { .tile_px = 16 };
    options.stream = &stream;
    for (int axis = 0; axis < 2; axis++) {
        struct plan *plan = plan_of(graph, &options);
        struct stream *inside = (struct stream *)plan;
        const struct stream_axis *a = &inside->tiles.axes[axis];
        int edge = 0; /* of the first convolution behind the stem */
        while (inside->body.edges[0][edge].rule.reach != 3)
            edge++;
        for (int64_t i = 1; i < a->tiles; i++)
            a->needs[edge * a->tiles + i].begin++;
        struct result wrong = { 0 };
        plan_zero_gradients(plan);
        step_forward(graph, plan, &wrong), step_back(graph, plan, &wrong);
        assert_true(distance(wrong.outputs, whole.outputs, whole.n_outputs) > 1e-4);
        assert_true(distance(wrong.gradients, whole.gradients, whole.n_gradients) > 1e-4);
        plan_free(plan);
        result_free(&wrong);
    }
    result_free(&whole);
    graph_free(graph);
}

static void refuse(struct graph *g, value_id x, enum plan_mode mode, const char *why)
{
    struct plan_stream stream = { .tile_px = 32 };
    struct plan_options options = { .mode = mode, .threads = 1, .stream = &stream };
    struct plan *plan = NULL;
    struct err err = { 0 };
    graph_output(g, "out", x);
    finished(g);
    assert_false(plan_new(g, &options, &plan, &err));
    if (!strstr(err.text, why))
        fail_msg("%s: not in: %s", why, err.text);
    graph_free(g);
}

static struct graph *begun(value_id *x)
{
    struct graph *g = graph_new("refused");
    *x = graph_conv(g, graph_input(g, "input", SHAPE(1, 3, 64, 64)), "stem", 8, true,
                    conv_square(3, 1, 1));
    return g;
}

static void what_is_not_streamed_is_named(void **state)
{
    (void)state;
    value_id x;
    struct graph *g = begun(&x);
    refuse(g, graph_batch_norm(g, x, "bn"), PLAN_TRAIN, "network.norm: frozen");
    g = begun(&x);
    refuse(g, graph_group_norm(g, x, "gn", 2, 1e-5f), PLAN_TUNE, "normalises over the whole image");
    g = begun(&x);
    refuse(g, graph_mul(g, x, graph_sigmoid(g, graph_global_average_pool(g, x))), PLAN_TUNE,
           "squeeze and excitation");
    g = begun(&x);
    refuse(g, graph_pad(g, x, (struct pad_attr){ .pad = { 1, 1, 1, 1 }, .mode = PAD_REFLECT }),
           PLAN_TUNE, "network.padding: zero");
    g = begun(&x);
    refuse(g, graph_dropout(g, x, 0.5f), PLAN_TRAIN, "use a network without it");
    g = begun(&x);
    refuse(g, graph_conv_transpose(g, x, "up", 4, true, conv_square(3, 2, 1)), PLAN_TUNE,
           "kernel is as large as its stride");
    g = begun(&x);
    refuse(g, graph_flatten(g, x), PLAN_TUNE, "needs the whole image at once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(toys_are_the_same),
        cmocka_unit_test(resnet_is_the_same),
        cmocka_unit_test(tiles_without_gradient_are_skipped),
        cmocka_unit_test(threads_change_no_bits),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(gradients_that_meet_are_counted),
        cmocka_unit_test(weights_may_change_between_steps),
        cmocka_unit_test(images_may_come_and_maps_go_in_parts),
        cmocka_unit_test(nothing_is_read_after_a_pass),
        cmocka_unit_test(short_strips_are_wrong),
        cmocka_unit_test(what_is_not_streamed_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
