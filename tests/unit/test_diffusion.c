/* test_diffusion.c: how images become noise and back: schedules against published values, what is
 * learnt against its definition, and the path from noise to an image against the exact one, which
 * is known where images are normally distributed. Then samplers on a network with drawn weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "diffusion/colour.h"
#include "diffusion/sampler.h"
#include "net/zoo/zoo.h"

#define assert_near(found, wanted, tolerance)                                                      \
    assert_true(fabs((double)(found) - (double)(wanted)) <= (double)(tolerance))

#define PROCESSES 4
#define COUNT 64

static void schedules_are_the_published_ones(void **state)
{
    (void)state;
    struct err err = { 0 };
    double times[19];
    assert_near(process_kept(1), .9999, 1e-12);
    assert_near(process_kept(100), .8970181457, 1e-10);
    assert_near(process_kept(500), .07858724288, 1e-10);
    assert_near(process_kept(1000), 4.035829765e-5, 1e-14);
    assert_true(process_times(PROCESS_EDM, 18, times, &err));
    assert_near(times[0], 80, 1e-9);
    assert_near(times[1], 57.585985, 1e-6);
    assert_near(times[16], .007528, 1e-6);
    assert_near(times[17], .002, 1e-12);
    assert_near(times[18], 0, 0);
    assert_true(process_times(PROCESS_V, 10, times, &err));
    for (int i = 0; i <= 10; i++)
        assert_near(times[i], 1000 - 100 * i, 0);
    assert_true(process_times(PROCESS_FLOW, 4, times, &err));
    assert_near(times[1], .75, 1e-15);
    assert_false(process_times(PROCESS_EPSILON, 1001, NULL, &err));
    assert_non_null(strstr(err.text, "at most 1000"));
}

static void draw(float *out, int64_t n, uint64_t stream)
{
    struct rng rng = rng_new(7, stream, 0);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)rng_normal(&rng);
}

/* The image follows from what the network takes and what it should give. */
static void what_is_learnt_gives_the_image(void **state)
{
    (void)state;
    float image[COUNT], noise[COUNT], x[COUNT], wanted[COUNT];
    draw(image, COUNT, 1);
    draw(noise, COUNT, 2);
    for (int p = 0; p < PROCESSES; p++) {
        struct rng rng = rng_new(1, 1, (uint64_t)p);
        for (int k = 0; k < 20; k++) {
            double time = process_draw((enum process)p, &rng);
            struct process_at at = process_at((enum process)p, time);
            process_mix(&at, COUNT, image, noise, x, wanted);
            for (int i = 0; i < COUNT; i++) {
                double plain = at.keep * (double)image[i] + at.spread * (double)noise[i];
                assert_near((double)x[i], at.scale * plain, 1e-5 * (1 + fabs(plain)));
                double found = at.from_x * plain + at.from_f * (double)wanted[i];
                assert_near(found, (double)image[i], 1e-5 * (1 + fabs(at.from_f)));
                double learnt = p == PROCESS_FLOW      ? (double)noise[i] - (double)image[i]
                                : p == PROCESS_EPSILON ? (double)noise[i]
                                : p == PROCESS_V
                                    ? at.keep * (double)noise[i] - at.spread * (double)image[i]
                                    : (double)wanted[i];
                assert_near((double)wanted[i], learnt, 1e-5);
            }
        }
    }
}

/* Times for training cover what is sampled, and the network's number for the time is in its range.
 */
static void times_are_drawn_in_range(void **state)
{
    (void)state;
    static const double least[] = { 0, 1e-4, 1, 1 }, most[] = { 1, 100, 1000, 1000 };
    for (int p = 0; p < PROCESSES; p++) {
        double low = INFINITY, high = -INFINITY;
        for (uint64_t i = 0; i < 4000; i++) {
            struct rng rng = rng_new(3, 4, i);
            double time = process_draw((enum process)p, &rng);
            double code = process_at((enum process)p, time).code;
            assert_true(time >= least[p] && time <= most[p]);
            assert_true(code >= 0 && code <= 1000);
            low = fmin(low, time), high = fmax(high, time);
        }
        assert_true(low < (p == PROCESS_EDM ? .02 : .05 * most[p]));
        assert_true(high > (p == PROCESS_EDM ? 5 : .95 * most[p]));
    }
}

/* --- the path --- */

#define MEAN .3
#define SPREAD .4

/* What the best network gives at x for images of this mean and deviation. */
static float best_output(const struct process_at *at, double x)
{
    double variance = at->keep * at->keep * SPREAD * SPREAD + at->spread * at->spread;
    double image = MEAN + at->keep * SPREAD * SPREAD / variance * (x - at->keep * MEAN);
    return (float)((image - at->from_x * x) / at->from_f);
}

/* The error at the end of the path, after n steps. */
static double path_error(enum process process, bool heun, int64_t n)
{
    double times[2001];
    struct err err = { 0 };
    assert_true(process_times(process, n, times, &err));
    struct process_at at = process_at(process, times[0]);
    double z = 1.3, deviation = hypot(at.keep * SPREAD, at.spread);
    float x = (float)(at.keep * MEAN + deviation * z), slope, next, f, other;
    for (int64_t i = 0; i < n; i++) {
        at = process_at(process, times[i]);
        f = best_output(&at, (double)x);
        process_slope(process, &at, 1, &x, &f, &slope);
        if (heun && times[i + 1] > 0) {
            struct process_at there = process_at(process, times[i + 1]);
            process_move(process, times[i], times[i + 1], 1, &x, &slope, &next);
            f = best_output(&there, (double)next);
            process_slope(process, &there, 1, &next, &f, &other);
            slope = (slope + other) / 2;
        }
        process_move(process, times[i], times[i + 1], 1, &x, &slope, &x);
    }
    return fabs((double)x - (MEAN + SPREAD * z));
}

static void paths_end_where_they_should(void **state)
{
    (void)state;
    for (int p = 0; p < PROCESSES; p++) {
        enum process process = (enum process)p;
        double few = path_error(process, false, 50), many = path_error(process, false, 200);
        double better = path_error(process, true, 50);
        assert_true(few < .05);
        assert_true(many < few / 3); /* of the first order */
        assert_true(better < few / 4);
    }
}

/* DDIM as it is written for DDPM. */
static void euler_is_ddim(void **state)
{
    (void)state;
    float x[COUNT], noise[COUNT], slope[COUNT], out[COUNT];
    draw(x, COUNT, 3);
    draw(noise, COUNT, 4);
    struct process_at at = process_at(PROCESS_EPSILON, 700);
    process_slope(PROCESS_EPSILON, &at, COUNT, x, noise, slope);
    process_move(PROCESS_EPSILON, 700, 600, COUNT, x, slope, out);
    double a = process_kept(700), b = process_kept(600);
    for (int i = 0; i < COUNT; i++) {
        double image = ((double)x[i] - sqrt(1 - a) * (double)noise[i]) / sqrt(a);
        assert_near((double)out[i], sqrt(b) * image + sqrt(1 - b) * (double)noise[i], 1e-5);
    }
}

/* --- samplers --- */

#define SIDE 8
#define FLOATS (3 * SIDE * SIDE)
#define CONDITIONS 3

static struct graph *drawn_network(void)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    struct zoo_options options = {
        .batch = SAMPLER_BATCH, .height = SIDE, .width = SIDE, .conditions = CONDITIONS
    };
    assert_true(zoo_build("unet_tiny", &options, &graph, &err));
    assert_true(graph_initialize(graph, 1, &err));
    for (value_id v = 0; v < graph->n_values; v++) { /* also what starts at zero */
        const struct value *value = &graph->values[v];
        int64_t n = shape_count(&value->shape);
        if (value->kind != VALUE_PARAMETER || value->shape.rank < 2)
            continue;
        draw(graph_data(graph, v), n, (uint64_t)v + 100);
        for (int64_t i = 0; i < n; i++)
            graph_data(graph, v)[i] *= (float)(.5 / sqrt((double)(n / value->shape.dim[0])));
    }
    return graph;
}

static void sample(const struct graph *graph, const struct sampler_options *options, int64_t first,
                   int64_t n, int marked, float *out)
{
    struct sampler *sampler = NULL;
    struct err err = { 0 };
    float conditions[SAMPLER_BATCH * CONDITIONS] = { 0 };
    for (int64_t i = 0; marked >= 0 && i < n; i++)
        conditions[i * CONDITIONS + marked] = 1;
    assert_true(sampler_new(graph, options, &sampler, &err));
    assert_true(n <= sampler_most(sampler));
    assert_true(sampler_run(sampler, first, n, conditions, out, &err));
    sampler_free(sampler);
}

static void images_depend_on_their_number_alone(void **state)
{
    (void)state;
    static float all[SAMPLER_BATCH * FLOATS], some[SAMPLER_BATCH * FLOATS];
    struct graph *graph = drawn_network();
    for (int p = 0; p < PROCESSES; p++) {
        struct sampler_options options = { .process = (enum process)p,
                                           .rule = SAMPLER_HEUN,
                                           .steps = 3,
                                           .guidance = 1,
                                           .seed = 5,
                                           .threads = 1 };
        sample(graph, &options, 0, SAMPLER_BATCH, 1, all);
        options.threads = 2;
        sample(graph, &options, 5, 3, 1, some);
        assert_memory_equal(some, all + 5 * FLOATS, 3 * FLOATS * sizeof *some);
        options.seed = 6;
        sample(graph, &options, 5, 3, 1, some);
        assert_memory_not_equal(some, all + 5 * FLOATS, 3 * FLOATS * sizeof *some);
        for (int i = 0; i < FLOATS; i++)
            assert_true(isfinite(all[i]));
    }
    graph_free(graph);
}

static double distance(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < FLOATS; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

/* With one Euler step, guided = none + guidance (given - none) in the image too. */
static void guidance_goes_beyond_the_condition(void **state)
{
    (void)state;
    static float none[FLOATS], given[FLOATS], guided[FLOATS], expected[FLOATS];
    struct graph *graph = drawn_network();
    struct sampler_options options = {
        .process = PROCESS_FLOW, .steps = 1, .guidance = 1, .seed = 5, .threads = 1
    };
    sample(graph, &options, 2, 1, -1, none);
    sample(graph, &options, 2, 1, 2, given);
    options.guidance = 3;
    sample(graph, &options, 2, 1, 2, guided);
    for (int i = 0; i < FLOATS; i++)
        expected[i] = none[i] + 3 * (given[i] - none[i]);
    assert_true(distance(none, given) > 1e-3);
    assert_true(distance(guided, expected) < 1e-3 * distance(none, given));
    options.guidance = 0;
    sample(graph, &options, 2, 1, 2, guided);
    assert_true(distance(guided, none) < 1e-4);
    graph_free(graph);
}

static void other_networks_are_refused(void **state)
{
    (void)state;
    struct graph *graph = NULL;
    struct denoiser denoiser;
    struct err err = { 0 };
    assert_true(zoo_build("scan_tiny", NULL, &graph, &err));
    assert_false(denoiser_ports(graph, &denoiser, &err));
    assert_non_null(strstr(err.text, "unet_small"));
    graph_free(graph);
}

/* Wanted: by tests/golden/colour.py. */
static void colours_are_taken_apart_and_put_together(void **state)
{
    (void)state;
    const float rgb[6] = { .2f, -1, -.4f, .5f, .9f, 1 }; /* two pixels, [3, 2] */
    float learnt[6], back[6];
    colour_to_learnt(COLOUR_APART, 2, rgb, learnt);
    assert_near(learnt[0], -0.37717377, 1e-5);
    assert_near(learnt[2], -1.03778525, 1e-5);
    assert_near(learnt[4], 8.96856194, 1e-5);
    colour_to_rgb(COLOUR_APART, 2, learnt, back);
    for (int i = 0; i < 6; i++)
        assert_near(back[i], rgb[i], 1e-6);
    colour_to_learnt(COLOUR_GRADED, 2, rgb, learnt);
    assert_near(learnt[0], -0.52804328, 1e-5);
    assert_near(learnt[2], -0.72644967, 1e-5);
    assert_near(learnt[4], 3.13899668, 1e-5);
    colour_to_rgb(COLOUR_GRADED, 2, learnt, back);
    for (int i = 0; i < 6; i++)
        assert_near(back[i], rgb[i], 1e-6);
    colour_to_learnt(COLOUR_RGB, 2, rgb, learnt);
    assert_memory_equal(learnt, rgb, sizeof rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_the_published_ones),
        cmocka_unit_test(what_is_learnt_gives_the_image),
        cmocka_unit_test(times_are_drawn_in_range),
        cmocka_unit_test(paths_end_where_they_should),
        cmocka_unit_test(euler_is_ddim),
        cmocka_unit_test(images_depend_on_their_number_alone),
        cmocka_unit_test(guidance_goes_beyond_the_condition),
        cmocka_unit_test(other_networks_are_refused),
        cmocka_unit_test(colours_are_taken_apart_and_put_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
