/* convs.c: see convs.h. */
#include "tests/unit/support/convs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

float *convs_floats(size_t count)
{
    void *at = NULL;
    if (posix_memalign(&at, 64, (count + 1) * sizeof(float)) != 0)
        abort();
    memset(at, 0xff, (count + 1) * sizeof(float));
    return at;
}

float *convs_drawn(struct rng *rng, int64_t count)
{
    float *values = convs_floats((size_t)count);
    for (int64_t i = 0; i < count; i++) {
        double x = rng_normal(rng);
        values[i] = (float)(rng_between(rng, 0, 1) < 0.01 ? 20 * x : x);
    }
    return values;
}

float *convs_drawn_blocked(struct rng *rng, int64_t batch, int64_t channels, int64_t pixels,
                           int64_t lanes)
{
    int64_t blocks = (channels + lanes - 1) / lanes;
    float *values = convs_drawn(rng, batch * blocks * pixels * lanes);
    for (int64_t i = 0; i < batch * blocks * pixels * lanes; i++)
        if (i / (pixels * lanes) % blocks * lanes + i % lanes >= channels)
            values[i] = 0;
    return values;
}

/* Where a channel's pixel lies: in an image of blocks of `lanes` channels (1: plain). */
static int64_t place(int64_t lanes, int64_t channels, int64_t pixels, int64_t n, int64_t channel,
                     int64_t pixel)
{
    int64_t blocks = (channels + lanes - 1) / lanes;
    return ((n * blocks + channel / lanes) * pixels + pixel) * lanes + channel % lanes;
}

/* The terms of one input channel: adds to the sum and to the sum of squares. x: its first pixel;
 * weight: its first tap, of which the next ones are `turned` or not. */
static void add_channel(const struct conv_result *c, const float *x, const float *weight,
                        int64_t top, int64_t left, double *sum, double *squares)
{
    int64_t lanes = c->plain ? 1 : c->lanes, last = c->kernel[0] * c->kernel[1] - 1, tap = 0;
    for (int64_t i = 0; i < c->kernel[0]; i++)
        for (int64_t k = 0; k < c->kernel[1]; k++, tap++) {
            int64_t row = top + i * c->dilation[0], column = left + k * c->dilation[1];
            if (row < 0 || row >= c->height || column < 0 || column >= c->width)
                continue;
            double term = (double)weight[c->turned ? last - tap : tap] *
                          (double)x[(row * c->width + column) * lanes];
            *sum += term, *squares += term * term;
        }
}

/* One output before the activation; *size is the root of the sum of its squared terms. */
static double sum_of(const struct conv_result *c, int64_t n, int64_t o, int64_t pixel, double *size)
{
    int64_t taps = c->kernel[0] * c->kernel[1], in = c->height * c->width;
    int64_t top = pixel / c->out_width * c->stride[0] - c->pad[0];
    int64_t left = pixel % c->out_width * c->stride[1] - c->pad[1];
    double bias = c->bias ? (double)c->bias[o] : 0, residual = 0;
    if (c->residual)
        residual = (double)c->residual[place(c->lanes, c->out_channels,
                                             c->out_height * c->out_width, n, o, pixel)];
    double sum = bias + residual, squares = bias * bias + residual * residual;
    for (int64_t i = 0; i < c->in_channels; i++) {
        int64_t kernel = c->turned ? i * c->out_channels + o : o * c->in_channels + i;
        int64_t first = place(c->plain ? 1 : c->lanes, c->in_channels, in, n, i, 0);
        add_channel(c, c->x + first, c->weight + kernel * taps, top, left, &sum, &squares);
    }
    *size = sqrt(squares);
    return sum;
}

double convs_error(const struct conv_result *c)
{
    double worst = 0, largest = 0;
    int64_t pixels = c->out_height * c->out_width;
    int64_t channels = (c->out_channels + c->lanes - 1) / c->lanes * c->lanes;
    for (int64_t i = 0; i < c->batch * channels * pixels; i++) {
        int64_t n = i / (channels * pixels), o = i / pixels % channels, pixel = i % pixels;
        float got = c->y[place(c->lanes, c->out_channels, pixels, n, o, pixel)];
        if (o >= c->out_channels) {
            assert_true(got == 0);
            continue;
        }
        double size, sum = sum_of(c, n, o, pixel, &size);
        double error = fabs((double)got - (c->relu && sum < 0 ? 0 : sum));
        worst = error <= worst ? worst : error; /* NaN: worst of all */
        largest = fmax(largest, size);
    }
    return worst / largest;
}

void convs_each_level(bool (*available)(enum simd level), void (*check)(enum simd level))
{
    for (int level = SIMD_AVX2; level < SIMD_LEVELS; level++)
        if (available((enum simd)level))
            check((enum simd)level);
        else
            print_message("level %d is not on this processor: skipped\n", level);
}

static int64_t count_outputs(const struct graph *graph)
{
    int64_t count = 0;
    for (int i = 0; i < graph->n_outputs; i++)
        count += shape_count(graph_shape(graph, graph->outputs[i].value));
    return count;
}

/* All outputs, one after another; the caller's. */
static float *run_plan(const struct graph *graph, const struct plan_options *options, int *steps)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    struct rng rng = rng_new(8, 8, 9);
    int64_t in = shape_count(graph_shape(graph, graph->inputs[0].value)), at = 0;
    float *out = malloc((size_t)count_outputs(graph) * sizeof *out);
    assert_non_null(out);
    if (!plan_new(graph, options, &plan, &err))
        fail_msg("%s", err.text);
    for (int64_t k = 0; k < in; k++)
        plan_input(plan, 0)[k] = (float)rng_normal(&rng);
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < graph->n_outputs; i++) {
        int64_t count = shape_count(graph_shape(graph, graph->outputs[i].value));
        memcpy(out + at, plan_output(plan, i), (size_t)count * sizeof *out);
        at += count;
    }
    if (steps)
        *steps = plan_steps(plan);
    plan_free(plan);
    return out;
}

/* The largest |a - b| of one output, over its largest |b|. */
static double gap_of(const float *a, const float *b, int64_t count)
{
    double worst = 0, largest = 0;
    for (int64_t k = 0; k < count; k++) {
        double error = fabs((double)a[k] - (double)b[k]);
        worst = error <= worst ? worst : error; /* NaN: worst of all */
        largest = fmax(largest, fabs((double)b[k]));
    }
    return worst / largest;
}

void convs_compare_plans(const struct graph *graph, const struct plan_options *options, int n,
                         int *steps)
{
    size_t bytes = (size_t)count_outputs(graph) * sizeof(float);
    float *first = run_plan(graph, &options[0], steps);
    float *second = run_plan(graph, &options[1], steps ? &steps[1] : NULL);
    for (int64_t i = 0, at = 0, count; i < graph->n_outputs; i++, at += count) {
        count = shape_count(graph_shape(graph, graph->outputs[i].value));
        double gap = gap_of(second + at, first + at, count);
        if (!(gap < 2e-6))
            fail_msg("%s, %s: the second plan is off by %g", graph->name, graph->outputs[i].name,
                     gap);
    }
    for (int i = 2; i < n; i++) {
        float *other = run_plan(graph, &options[i], steps ? &steps[i] : NULL);
        assert_memory_equal(other, second, bytes);
        free(other);
    }
    free(first), free(second);
}

/* Draws values and gradients by the outputs, and runs a plan for training there and back. */
static void train_plan(const struct graph *graph, struct plan *plan)
{
    struct rng rng = rng_new(8, 9, 8);
    struct err err = { 0 };
    int64_t in = shape_count(graph_shape(graph, graph->inputs[0].value));
    int64_t out = shape_count(graph_shape(graph, graph->outputs[0].value));
    for (int64_t k = 0; k < in; k++)
        plan_input(plan, 0)[k] = (float)rng_normal(&rng);
    assert_true(plan_forward(plan, &err));
    for (int64_t k = 0; k < out; k++)
        plan_output_gradient(plan, 0)[k] = (float)rng_normal(&rng);
    assert_true(plan_backward(plan, &err));
}

static void compare_tensors(const char *name, const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t k = 0; k < count; k++) {
        difference += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
        size += (double)a[k] * (double)a[k];
    }
    if (!(difference <= 1e-10 * size))
        fail_msg("%s: off by %g", name, sqrt(difference / size));
}

void convs_compare_gradients(struct graph *graph)
{
    struct plan *plans[2] = { NULL };
    struct err err = { 0 };
    int64_t out = shape_count(graph_shape(graph, graph->outputs[0].value));
    for (int i = 0; i < 2; i++) {
        struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1, .direct = i == 0 };
        if (!plan_new(graph, &options, &plans[i], &err))
            fail_msg("%s", err.text);
    }
    for (int run = 0; run < 2; run++) {
        train_plan(graph, plans[0]), train_plan(graph, plans[1]);
        compare_tensors("outputs", plan_output(plans[0], 0), plan_output(plans[1], 0), out);
        for (int32_t v = 0; v < graph->n_values; v++) {
            const float *gradient = plan_parameter_gradient(plans[0], v);
            int64_t count = shape_count(graph_shape(graph, v));
            if (!gradient)
                continue;
            compare_tensors(graph->values[v].name, gradient, plan_parameter_gradient(plans[1], v),
                            count);
            for (int64_t k = 0; k < count; k++) /* the second run is with other weights */
                graph_data(graph, v)[k] *= 1 + (float)(k % 7) / 8;
        }
    }
    plan_free(plans[0]), plan_free(plans[1]);
}
