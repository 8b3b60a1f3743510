/* test_space_ops.c: every kind of layer that can be divided among processes (here: threads), on
 * odd sizes and uneven grids, against the whole network in one plan; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "net/graph/transform.h"
#include "net/zoo/zoo.h"
#include "support/golden.h"
#include "support/space_parts.h"

#define HEIGHT 37
#define WIDTH 53
#define CHANNELS 16

typedef value_id (*layers_fn)(struct graph *g, value_id x);

struct kind {
    const char *name;
    layers_fn layers; /* of the middle: x is a map */
};

static struct graph *network(void *arg)
{
    const struct kind *kind = arg;
    struct graph *g = graph_new(kind->name);
    value_id x = graph_input(g, "input", SHAPE(2, 3, HEIGHT, WIDTH));
    x = graph_gelu(g, graph_conv(g, x, "first", CHANNELS, true, conv_square(3, 1, 1)));
    x = kind->layers(g, x);
    if (x != NO_VALUE && graph_shape(g, x)->rank == 4 && graph_shape(g, x)->dim[2] > 1) {
        x = graph_gelu(g, graph_conv(g, x, "last", CHANNELS, true, conv_square(3, 1, 1)));
        x = graph_global_average_pool(g, x);
    }
    graph_output(g, "logits", graph_linear(g, graph_flatten(g, x), "fc", 3, true));
    if (graph_ok(g, NULL) && graph_allocate(g, NULL) && graph_initialize(g, 3, NULL))
        return g;
    fprintf(stderr, "%s: %s\n", kind->name, g->err.text);
    graph_free(g);
    return NULL;
}

/* --- windows --- */

static value_id dilated(struct graph *g, value_id x)
{
    struct conv_attr attr = { .kernel = { 3, 5 },
                              .stride = { 1, 2 },
                              .pad = { 2, 3, 1, 4 },
                              .dilation = { 2, 1 },
                              .groups = 4 };
    return graph_gelu(g, graph_conv(g, x, "dilated", CHANNELS, true, attr));
}

static value_id strided(struct graph *g, value_id x)
{
    value_id a = graph_conv(g, x, "a", CHANNELS, false, conv_square(3, 2, 1));
    value_id b = graph_conv(g, x, "b", CHANNELS, false, conv_square(1, 2, 0));
    x = graph_gelu(g, graph_add(g, a, b));
    return graph_conv(g, x, "c", CHANNELS, true, conv_square(7, 3, 2));
}

static value_id unpadded(struct graph *g, value_id x)
{
    x = graph_gelu(g, graph_conv(g, x, "a", CHANNELS, true, conv_square(5, 1, 0)));
    return graph_conv(g, x, "b", CHANNELS, true, conv_square(4, 2, 0));
}

static value_id max_pools(struct graph *g, value_id x)
{
    struct pool_attr ceil = pool_square(3, 2, 1);
    ceil.ceil_mode = true;
    x = graph_scale(g, x, 1, -2); /* below the zeros of a padding */
    return graph_max_pool(g, graph_max_pool(g, x, pool_square(3, 1, 1)), ceil);
}

static value_id means(struct graph *g, value_id x)
{
    struct pool_attr with = pool_square(3, 1, 1), without = pool_square(3, 2, 1);
    with.count_include_pad = true;
    without.ceil_mode = true;
    return graph_average_pool(g, graph_average_pool(g, x, with), without);
}

static value_id padded(struct graph *g, value_id x)
{
    x = graph_pad(g, x, (struct pad_attr){ .pad = { 2, 3, 1, 0 }, .mode = PAD_REFLECT });
    x = graph_conv(g, x, "conv", CHANNELS, true, conv_square(3, 1, 0));
    x = graph_pad(g, x, (struct pad_attr){ .pad = { 1, 2, 2, 1 }, .mode = PAD_REPLICATE });
    return graph_pad(g, x, (struct pad_attr){ .pad = { -2, 1, -3, -4 }, .value = 0.5f });
}

static value_id enlarged(struct graph *g, value_id x)
{
    struct upsample_attr twice = { .mode = UPSAMPLE_BILINEAR, .scale = { 2, 2 } };
    struct upsample_attr thrice = { .mode = UPSAMPLE_NEAREST, .scale = { 3, 1 } };
    value_id half = graph_max_pool(g, x, pool_square(2, 2, 0));
    half = graph_upsample(g, half, twice);
    return graph_upsample(g, graph_gelu(g, half), thrice);
}

static value_id transposed(struct graph *g, value_id x)
{
    struct conv_attr two = { .kernel = { 2, 2 }, .stride = { 2, 2 } };
    struct conv_attr four = {
        .kernel = { 4, 3 }, .stride = { 2, 2 }, .pad = { 1, 1, 1, 1 }, .output_pad = { 0, 1 }
    };
    value_id skip = x;
    x = graph_max_pool(g, x, pool_square(2, 2, 0));
    x = graph_conv_transpose(g, x, "up1", CHANNELS, true, two); /* 36 x 52 */
    x = graph_pad(g, x, (struct pad_attr){ .pad = { 0, 0, 1, 1 } });
    x = graph_concat(g, (value_id[]){ x, skip }, 2, 1);
    return graph_conv_transpose(g, graph_gelu(g, x), "up2", CHANNELS, true, four);
}

/* --- whole maps --- */

static value_id maximum(struct graph *g, value_id x)
{
    return graph_global_max_pool(g, x);
}

static value_id log_sum_exp(struct graph *g, value_id x)
{
    return graph_global_lse_pool(g, x, 3);
}

static value_id attended(struct graph *g, value_id x)
{
    value_id scores = graph_conv(g, x, "scores", 1, false, conv_square(1, 1, 0));
    return graph_attention_pool(g, x, scores);
}

static value_id mean_of_axes(struct graph *g, value_id x)
{
    return graph_reduce_mean(g, x, 1u << 2 | 1u << 3, false);
}

/* Each part uses the pooled numbers for its own cells. */
static value_id squeezed(struct graph *g, value_id x)
{
    value_id gate = graph_conv(g, graph_global_average_pool(g, x), "gate", CHANNELS, true,
                               conv_square(1, 1, 0));
    return graph_mul(g, x, graph_sigmoid(g, gate));
}

/* Batch norm of maps, and of what all parts have alike. */
static value_id normed(struct graph *g, value_id x)
{
    x = graph_batch_norm(g, x, "maps");
    x = graph_adaptive_average_pool(g, graph_gelu(g, x), 4, 5);
    x = graph_conv(g, x, "joined", CHANNELS, false, conv_square(3, 1, 1));
    x = graph_gelu(g, graph_batch_norm(g, x, "alike"));
    return graph_flatten(g, x);
}

static value_id channelwise(struct graph *g, value_id x)
{
    value_id a = graph_slice(g, x, 1, 0, CHANNELS / 2), b = graph_slice(g, x, 1, 8, CHANNELS);
    x = graph_concat(
        g, (value_id[]){ graph_softmax(g, a, 1), graph_div(g, b, graph_scale(g, a, 0, 2)) }, 2, 1);
    return graph_lrn(g, x, (struct lrn_attr){ 5, 1e-2f, 0.75f, 1 });
}

static const struct kind kinds[] = {
    { "dilated", dilated },         { "strided", strided },       { "unpadded", unpadded },
    { "max pools", max_pools },     { "means", means },           { "padded", padded },
    { "enlarged", enlarged },       { "transposed", transposed }, { "maximum", maximum },
    { "log-sum-exp", log_sum_exp }, { "attended", attended },     { "mean of axes", mean_of_axes },
    { "squeezed", squeezed },       { "normed", normed },         { "channelwise", channelwise },
};

/* As far as two orders of the same sums are apart. */
static double apart(const struct space_result *a, const struct space_result *b)
{
    int64_t image = 2 * 3 * HEIGHT * WIDTH;
    double worst = relative_error(a->outputs[0], b->outputs[0], 6);
    double d = relative_error(a->input_gradient, b->input_gradient, image);
    assert_int_equal(a->count, b->count);
    worst = d > worst ? d : worst;
    const float *x = a->gradients, *y = b->gradients;
    for (int32_t i = 0; i < a->graph->n_values; i++) {
        const struct value *v = &a->graph->values[i];
        int64_t n = shape_count(&v->shape);
        if (v->kind == VALUE_PARAMETER)
            d = relative_error(x, y, n), x += n, y += n;
        else if (v->kind == VALUE_BUFFER)
            d = relative_error(graph_data(a->graph, i), graph_data(b->graph, i), n);
        worst = d > worst ? d : worst;
    }
    return worst;
}

static void layers_in_parts_are_whole(void **state)
{
    static const int grids[][2] = { { 1, 2 }, { 3, 1 }, { 2, 2 }, { 2, 3 }, { 3, 4 } };
    int wrong = 0;
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct kind kind = kinds[k];
        struct space_job job = { .build = network, .arg = &kind, .rows = 1, .columns = 1 };
        struct space_result whole = { 0 };
        space_parts_run(&job, &whole);
        for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
            struct space_result parts = { 0 };
            job.rows = grids[i][0], job.columns = grids[i][1];
            job.recompute = i == 2;
            space_parts_run(&job, &parts);
            double d = apart(&parts, &whole);
            if (!(d < 1e-5)) {
                print_error("%s in %d x %d parts: %.1e\n", kind.name, job.rows, job.columns, d);
                wrong++;
            }
            space_result_free(&parts);
        }
        space_result_free(&whole);
    }
    assert_int_equal(wrong, 0);
}

/* A class for every pixel, as one map on every part. */
static struct graph *pixels(void *arg)
{
    struct graph *g = graph_new(arg);
    value_id x = graph_input(g, "input", SHAPE(2, 3, HEIGHT, WIDTH));
    x = graph_conv(g, x, "first", CHANNELS, false, conv_square(3, 1, 1));
    x = transposed(g, graph_gelu(g, graph_batch_norm(g, x, "norm")));
    x = graph_max_pool(g, graph_gelu(g, x), pool_square(2, 2, 0));
    graph_output(g, "logits", graph_conv(g, x, "last", 3, true, conv_square(3, 1, 1)));
    return graph_allocate(g, NULL) && graph_initialize(g, 3, NULL) ? g : NULL;
}

static void maps_for_outputs_are_whole(void **state)
{
    static const int grids[][2] = { { 1, 2 }, { 2, 1 }, { 2, 3 } };
    struct space_job job = { .build = pixels, .arg = "pixels", .rows = 1, .columns = 1 };
    struct space_result whole = { 0 }, parts = { 0 };
    (void)state;
    space_parts_run(&job, &whole);
    job.whole_outputs = true;
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        job.rows = grids[i][0], job.columns = grids[i][1];
        space_parts_run(&job, &parts);
        assert_true(relative_error(parts.outputs[0], whole.outputs[0],
                                   shape_count(graph_shape(whole.graph,
                                                           whole.graph->outputs[0].value))) < 1e-5);
        assert_true(apart(&parts, &whole) < 1e-5);
        space_result_free(&parts);
    }
    space_result_free(&whole);
}

/* Winograd's tiles begin elsewhere in a part. */
static void winograd_in_parts(void **state)
{
    (void)state;
    struct kind kind = { "strided", strided };
    struct space_result whole = { 0 }, parts = { 0 };
    struct space_job job = {
        .build = network, .arg = &kind, .rows = 1, .columns = 1, .winograd = true
    };
    space_parts_run(&job, &whole);
    job.rows = job.columns = 2;
    space_parts_run(&job, &parts);
    assert_true(apart(&parts, &whole) < 2e-5);
    space_result_free(&parts);
    space_result_free(&whole);
}

/* --- what is refused --- */

static void refused(struct graph *g, int rows, int columns, const char *message)
{
    struct space_spec spec = { rows, columns, 0, 0, false };
    struct graph *out = NULL;
    struct err err = { 0 };
    assert_non_null(g);
    assert_false(transform_space(g, &spec, &out, &err));
    assert_string_equal(err.text, message);
    graph_free(g);
}

static struct graph *zoo(const char *name, int64_t side)
{
    struct zoo_options options = { .height = side, .width = side };
    struct graph *g = NULL;
    return zoo_build(name, &options, &g, NULL) ? g : NULL;
}

static struct graph *dropped(void)
{
    struct graph *g = graph_new("dropped");
    value_id x = graph_input(g, "input", SHAPE(1, 3, 32, 32));
    graph_output(g, "y", graph_dropout(g, x, 0.5f));
    return g;
}

static void bad_divisions_are_named(void **state)
{
    (void)state;
    refused(zoo("resnet18", 32), 2, 2,
            "layer4.0.conv1: its map has 1 rows, too few for 2 parts; divide images among fewer "
            "processes (parallel.space) or use larger ones");
    refused(zoo("vit_small_patch16_224", 224), 1, 2,
            "reshape_1: reshape needs the whole image at once, which is not divided; use a "
            "convolutional network, or cut it into stages (parallel.stages) instead");
    refused(
        zoo("unet", 32), 2, 1,
        "down.0.0.norm1: group_norm normalises over the whole image, which is not divided; use a "
        "network with batch norm, or cut it into stages (parallel.stages) instead");
    refused(dropped(), 2, 1,
            "dropout_0: dropout between maps is not divided; use a network without it, or cut it "
            "into stages (parallel.stages) instead");
    refused(zoo("resnet18", 64), 65, 1, "no part 0, 0 of 65 x 1 (at most 64 along an axis)");
}

static void parts_make_up_the_image(void **state)
{
    (void)state;
    for (int64_t extent = 7; extent < 1100; extent += 13)
        for (int n = 1; n <= 7; n++) {
            int64_t at = 0, most = 0, least = extent;
            for (int p = 0; p < n; p++) {
                struct space_spec spec = { n, 1, p, 0, false };
                struct space_part part = space_part(&spec, extent, 10);
                int64_t own = part.y1 - part.y0;
                assert_int_equal(part.y0, at);
                assert_true(own > 0 && part.x0 == 0 && part.x1 == 10);
                most = own > most ? own : most, least = own < least ? own : least;
                at = part.y1;
            }
            assert_int_equal(at, extent);
            assert_true(most - least <= 1 + extent / n / 4);
        }
    /* at multiples of strides */
    struct space_part part = space_part(&(struct space_spec){ 2, 2, 1, 0, false }, 1000, 1024);
    assert_int_equal(part.y0, 512);
    assert_int_equal(part.x1, 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_in_parts_are_whole), cmocka_unit_test(maps_for_outputs_are_whole),
        cmocka_unit_test(winograd_in_parts),         cmocka_unit_test(bad_divisions_are_named),
        cmocka_unit_test(parts_make_up_the_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
