/* test_stream_random.c: random networks on random sizes of images and tiles: what runs tile by tile
 * gives what runs whole: windows smaller and larger than their stride, dilations, uneven paddings,
 * poolings that hang over the border, branches of unequal depth, several outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/graph.h"
#include "net/plan/plan.h"

#define MOST_MAPS 24

/* A network in the making. */
struct draw {
    struct rng rng;
    struct graph *graph;
    value_id maps[MOST_MAPS];
    int n_maps;
};

static int64_t number(struct draw *d, int64_t least, int64_t most)
{
    return least + (int64_t)rng_below(&d->rng, (uint32_t)(most - least + 1));
}

static value_id any_map(struct draw *d)
{
    /* mostly the last: networks are deep */
    return d->maps[number(d, 0, 2) ? d->n_maps - 1 : number(d, 0, d->n_maps - 1)];
}

static struct conv_attr any_window(struct draw *d)
{
    struct conv_attr attr = { .groups = 1 };
    for (int a = 0; a < 2; a++) {
        attr.kernel[a] = number(d, 1, 4), attr.stride[a] = number(d, 0, 2) ? 1 : number(d, 2, 4);
        attr.dilation[a] = number(d, 1, 2);
        attr.pad[a] = number(d, 0, attr.kernel[a] - 1);
        attr.pad[2 + a] = number(d, 0, attr.kernel[a] - 1);
    }
    return attr;
}

static struct pool_attr any_pool(struct draw *d, bool dilated)
{
    struct pool_attr attr = { .ceil_mode = number(d, 0, 1), .count_include_pad = number(d, 0, 1) };
    for (int a = 0; a < 2; a++) {
        attr.kernel[a] = number(d, 1, 4), attr.stride[a] = number(d, 1, 3);
        attr.dilation[a] = dilated ? number(d, 1, 2) : 1;
        attr.pad[a] = attr.pad[2 + a] = number(d, 0, attr.kernel[a] / 2);
    }
    return attr;
}

/* Two maps of the same extents, if there are. */
static value_id joined(struct draw *d, const char *name)
{
    value_id a = any_map(d);
    const struct shape *x = graph_shape(d->graph, a);
    for (int k = 0; k < d->n_maps; k++) {
        value_id b = d->maps[(k + d->n_maps / 2) % d->n_maps];
        const struct shape *y = graph_shape(d->graph, b);
        if (b == a || x->dim[2] != y->dim[2] || x->dim[3] != y->dim[3])
            continue;
        if (x->dim[1] == y->dim[1] && number(d, 0, 1))
            return graph_add(d->graph, a, b);
        return graph_concat(d->graph, (value_id[]){ a, b }, 2, 1);
    }
    return graph_conv(d->graph, a, name, x->dim[1], true, conv_square(3, 1, 1));
}

static value_id any_op(struct draw *d, const char *name)
{
    struct graph *g = d->graph;
    struct upsample_attr up = { .scale = { 2, 2 },
                                .mode = number(d, 0, 1) ? UPSAMPLE_BILINEAR : UPSAMPLE_NEAREST };
    struct pad_attr pad = { .value = 0.5f };
    for (int s = 0; s < SIDES; s++)
        pad.pad[s] = number(d, -1, 2);
    switch (number(d, 0, 11)) {
    case 0:
        return graph_max_pool(g, any_map(d), any_pool(d, true));
    case 1:
        return graph_average_pool(g, any_map(d), any_pool(d, false));
    case 2:
        return graph_upsample(g, any_map(d), up);
    case 3:
        return graph_conv_transpose(g, any_map(d), name, 3, true, conv_square(2, 2, 0));
    case 4:
        return graph_pad(g, any_map(d), pad);
    case 5:
        return graph_gelu(g, any_map(d));
    case 6:
    case 7:
        return joined(d, name);
    case 8:
        return graph_conv(g, any_map(d), name, 8, true, conv_square(3, 1, 1));
    default:
        return graph_conv(g, any_map(d), name, number(d, 1, 9), true, any_window(d));
    }
}

static void any_head(struct draw *d, const char *name)
{
    struct graph *g = d->graph;
    value_id x = any_map(d);
    char scores[32];
    snprintf(scores, sizeof scores, "%s.scores", name);
    switch (number(d, 0, 4)) {
    case 0:
        graph_output(g, name, graph_global_max_pool(g, x));
        return;
    case 1:
        graph_output(g, name, graph_global_lse_pool(g, x, 3));
        return;
    case 2:
        x = graph_attention_pool(g, x, graph_conv(g, x, scores, 1, true, conv_square(1, 1, 0)));
        graph_output(g, name, x);
        return;
    case 3:
        graph_output(g, name, x);
        return;
    default:
        graph_output(g, name, graph_flatten(g, graph_global_average_pool(g, x)));
    }
}

static bool fits(const struct graph *graph)
{
    return graph->err.kind == ERR_NONE;
}

/* NULL: the image is too small for what was drawn. */
static struct graph *draw_network(struct draw *d)
{
    char name[24];
    struct err err = { 0 };
    struct graph *g = d->graph = graph_new("random");
    value_id x = graph_input(g, "input", SHAPE(1, 2, number(d, 1, 70), number(d, 1, 70)));
    d->maps[d->n_maps++] = graph_conv(g, x, "stem", 5, true, any_window(d));
    if (number(d, 0, 4) == 0 && fits(g)) /* the image has other readers */
        d->maps[d->n_maps++] = graph_conv(g, x, "other", 4, true, any_window(d));
    int64_t ops = number(d, 1, 10);
    for (int i = 0; i < ops && fits(g); i++) {
        snprintf(name, sizeof name, "op%d", i);
        value_id made = any_op(d, name);
        if (fits(g) && shape_count(graph_shape(g, made)) < 200000)
            d->maps[d->n_maps++] = made;
    }
    int64_t heads = number(d, 1, 3);
    for (int i = 0; i < heads && fits(g); i++) {
        snprintf(name, sizeof name, "head%d", i);
        any_head(d, name);
    }
    if (graph_ok(g, &err) && graph_allocate(g, &err) && graph_initialize(g, 1, &err))
        return g;
    graph_free(g);
    return NULL;
}

/* --- one step of training --- */

struct result {
    float *numbers; /* all outputs, all gradients */
    int64_t n_outputs, n;
};

static void fill(float *at, int64_t n, uint64_t seed)
{
    struct rng rng = rng_new(seed, 0, 0);
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)rng_between(&rng, -1, 1);
}

static int64_t output_count(const struct graph *graph, int i)
{
    return shape_count(graph_shape(graph, graph->outputs[i].value));
}

static bool run(const struct graph *graph, const struct plan_options *options, struct result *r,
                struct err *err)
{
    struct plan *plan = NULL;
    if (!plan_new(graph, options, &plan, err))
        return false;
    plan_zero_gradients(plan);
    fill(plan_input(plan, 0), shape_count(graph_shape(graph, graph->inputs[0].value)), 7);
    bool ok = plan_forward(plan, err);
    for (int i = 0; i < graph->n_outputs; i++) {
        r->n_outputs += output_count(graph, i);
        fill(plan_output_gradient(plan, i), output_count(graph, i), (uint64_t)(3 + i));
    }
    ok = ok && plan_backward(plan, err);
    int64_t count;
    const float *gradients = plan_gradients(plan, &count);
    r->n = r->n_outputs + count;
    r->numbers = malloc((size_t)r->n * sizeof *r->numbers);
    float *at = r->numbers;
    for (int i = 0; i < graph->n_outputs; at += output_count(graph, i++))
        memcpy(at, plan_output(plan, i), (size_t)output_count(graph, i) * sizeof *at);
    memcpy(at, gradients, (size_t)count * sizeof *at);
    plan_free(plan);
    return ok;
}

/* The largest difference, relative to the norm. */
static double distance(const float *a, const float *b, int64_t n)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / (size > 1e-6 ? size : 1e-6));
}

static void print_network(const struct graph *graph)
{
    char text[SHAPE_TEXT];
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        print_message("  %s %s (%d, %d) -> %d %s\n", node->op->name, node->name, node->inputs[0],
                      node->n_inputs > 1 ? node->inputs[1] : -1, node->output,
                      shape_text(graph_shape(graph, node->output), text));
    }
}

/* False: nothing was compared. */
static bool compare(uint64_t seed, int *bad)
{
    struct draw d = { .rng = rng_new(seed, 1, 0) };
    struct graph *graph = draw_network(&d);
    if (!graph)
        return false;
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1 };
    struct plan_stream stream = { .tile_px = number(&d, 1, 80) };
    struct result whole = { 0 }, tiled = { 0 };
    struct err err = { 0 };
    if (!run(graph, &options, &whole, &err))
        fail_msg("network %llu: %s", (unsigned long long)seed, err.text);
    options.stream = &stream;
    options.threads = (int)number(&d, 1, 2);
    bool ok = run(graph, &options, &tiled, &err);
    double out = ok ? distance(tiled.numbers, whole.numbers, whole.n_outputs) : 0;
    double gradient = ok ? distance(tiled.numbers + whole.n_outputs,
                                    whole.numbers + whole.n_outputs, whole.n - whole.n_outputs)
                         : 0;
    if (!ok || !(out < 1e-5) || !(gradient < 1e-4)) {
        print_message("network %llu, tiles of %lld px: outputs differ by %.2g, gradients by %.2g "
                      "%s\n",
                      (unsigned long long)seed, (long long)stream.tile_px, out, gradient, err.text);
        print_network(graph);
        ++*bad;
    }
    free(whole.numbers), free(tiled.numbers);
    graph_free(graph);
    return true;
}

static void random_networks_are_the_same(void **state)
{
    (void)state;
    const char *more = getenv("MICROTOME_RANDOM_NETWORKS");
    int compared = 0, bad = 0, n = more ? (int)strtol(more, NULL, 10) : 40;
    for (int seed = 1; seed <= n; seed++)
        compared += compare((uint64_t)seed, &bad);
    print_message("%d of %d networks compared\n", compared, n);
    assert_true(compared > n / 3);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_networks_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
