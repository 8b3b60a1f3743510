/* test_stages_simulate.c: simulated schedules against what can be said on paper: the times of all
 * schedules with free messages, published bubbles, memory, processors that ranks share, messages of
 * a chain, sums and updates, recomputation, and a program that cannot end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/stages/simulate.h"

#define MOST 16

/* A chain of stages that cost alike. */
struct chain {
    struct stage_cost costs[MOST];
    struct stage_edge edges[MOST];
    struct program program;
    struct simulate_options options;
};

static void chain_new(struct chain *chain, enum program_kind schedule, int stages, int micros,
                      struct stage_cost cost, size_t bytes)
{
    struct err err = { 0 };
    memset(chain, 0, sizeof *chain);
    assert_true(program_new(schedule, stages, micros, &chain->program, &err));
    for (int s = 0; s < stages; s++) {
        chain->costs[s] = cost;
        chain->edges[s] = (struct stage_edge){ .from = s, .to = s + 1, .bytes = bytes };
    }
    chain->options = (struct simulate_options){ .program = &chain->program,
                                                .costs = chain->costs,
                                                .edges = chain->edges,
                                                .n_edges = stages - 1,
                                                .wire = { 0, INFINITY } };
}

static struct simulation run(const struct chain *chain)
{
    struct simulation result;
    struct err err = { 0 };
    bool ok = simulate(&chain->options, &result, &err);
    if (!ok)
        fail_msg("%s", err.text);
    return result;
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fmax(1, fabs(wanted))))
        fail_msg("%.12g instead of %.12g", value, wanted);
}

static double seconds(enum program_kind schedule, int stages, int micros, struct stage_cost cost)
{
    struct chain chain;
    chain_new(&chain, schedule, stages, micros, cost, 0);
    struct simulation result = run(&chain);
    double work_s = (cost.forward_s + cost.backward_s) * micros;
    near(result.busy, work_s / result.seconds);
    double taken_s = result.seconds;
    simulation_free(&result);
    program_free(&chain.program);
    return taken_s;
}

static const struct stage_cost two_forwards = { .forward_s = 1, .backward_s = 2, .weights_s = 1 };

/* Basic takes 6D for two micro-batches. A pair of MAST takes 5D + 1: the second micro-batch follows
 * the gradient of the first, which needs 2 for each rank, and so is at its last stage at 3D. Each
 * further pair takes 4D + 2, which is what is published for "a pair", and what the bubble of GEMS,
 * (D - 1) / (D + 1/2), comes from: it is the limit for many. */
static void times_of_gems(void **state)
{
    (void)state;
    for (int d = 1; d <= 12; d++) {
        near(seconds(PROGRAM_BASIC, d, 2, two_forwards), 6 * d);
        near(seconds(PROGRAM_BASIC, d, 5, two_forwards), 15 * d);
        near(seconds(PROGRAM_MAST, d, 2, two_forwards), 5 * d + 1);
        for (int times = 1; times <= 8; times++) {
            double master = seconds(PROGRAM_MASTER, d, 2 * times, two_forwards);
            near(master, 5 * d + 1 + (times - 1) * (4 * d + 2));
        }
        int many = 2000;
        double bubble = 1 - 3.0 * many / seconds(PROGRAM_MASTER, d, many, two_forwards);
        assert_true(fabs(bubble - (d - 1) / (d + 0.5)) < 1e-3);
    }
}

/* 7.25, 6.28 and 4.21 h on four GPUs (GEMS, SC20): the ratio of MAST follows from its schedule,
 * that of MASTER is below what any number of pairs can reach, even if a backward pass took only as
 * long as a forward pass. */
static void published_hours(void **state)
{
    (void)state;
    const double basic_h = 7.25, mast_h = 6.28, master_h = 4.21;
    double basic = seconds(PROGRAM_BASIC, 4, 2, two_forwards);
    double mast = seconds(PROGRAM_MAST, 4, 2, two_forwards) / basic;
    near(mast, 0.875);
    assert_true(fabs(mast - mast_h / basic_h) < 0.01);
    struct stage_cost quick = { .forward_s = 1, .backward_s = 1 };
    double many = seconds(PROGRAM_MASTER, 4, 1000, two_forwards) / (500 * basic);
    double best = seconds(PROGRAM_MASTER, 4, 1000, quick) / (500 * 2.0 * 4 * 2);
    assert_true(many > 0.75 && many < 0.752);
    assert_true(best > 0.625 && best < 0.627);
    assert_true(master_h / basic_h < best);
}

/* (D - 1) / (N + D - 1) of the time is lost, in either, whatever a backward pass takes. */
static void bubble_of_turns(void **state)
{
    (void)state;
    static const double backwards[] = { 1, 2, 3 };
    for (int d = 1; d <= 8; d++)
        for (int n = d; n <= 16; n++)
            for (int i = 0; i < 3; i++) {
                struct stage_cost cost = { .forward_s = 1, .backward_s = backwards[i] };
                double takes = (1 + backwards[i]) * (n + d - 1);
                near(seconds(PROGRAM_GPIPE, d, n, cost), takes);
                near(seconds(PROGRAM_1F1B, d, n, cost), takes);
            }
}

/* With F = B = W, (D - 1) instead of 3 (D - 1). In general it is (D - 1) (F + B - W), here with B
 * and W apart. */
static void bubble_of_zero_bubble(void **state)
{
    (void)state;
    static const double weights[] = { 1, 0.5, 0.75 };
    for (int d = 1; d <= 8; d++)
        for (int n = d; n <= 16; n++)
            for (int i = 0; i < 3; i++) {
                struct stage_cost cost = { .forward_s = 1,
                                           .backward_s = 1 + weights[i],
                                           .weights_s = weights[i] };
                double lost = seconds(PROGRAM_ZB_H1, d, n, cost) - n * (2 + weights[i]);
                near(lost, (d - 1) * (2 - weights[i]));
                if (i == 0)
                    near(3 * lost, seconds(PROGRAM_1F1B, d, n, cost) - n * 3);
            }
}

static void memory(void **state)
{
    (void)state;
    struct stage_cost cost = two_forwards;
    cost.kept = 1000, cost.inputs = 10;
    static const struct {
        enum program_kind schedule;
        int micros;
        bool recompute;
        size_t peak[4]; /* without messages */
    } cases[] = {
        { PROGRAM_BASIC, 8, false, { 1000, 1000, 1000, 1000 } },
        { PROGRAM_MAST, 2, false, { 1000, 1000, 1000, 1000 } },
        { PROGRAM_MASTER, 8, false, { 1000, 1000, 1000, 1000 } },
        { PROGRAM_GPIPE, 8, false, { 8000, 8000, 8000, 8000 } },
        { PROGRAM_GPIPE, 8, true, { 1080, 1080, 1080, 1080 } },
        { PROGRAM_1F1B, 8, false, { 4000, 3000, 2000, 1000 } },
        { PROGRAM_1F1B, 2, false, { 2000, 2000, 2000, 1000 } },
        { PROGRAM_1F1B, 8, true, { 1040, 1030, 1020, 1010 } },
        { PROGRAM_ZB_H1, 8, false, { 4000, 4000, 4000, 4000 } },
        { PROGRAM_ZB_H1, 8, true, { 1040, 2030, 3020, 4010 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct chain chain;
        chain_new(&chain, cases[i].schedule, 4, cases[i].micros, cost, 7);
        chain.options.recompute = cases[i].recompute;
        struct simulation result = run(&chain);
        for (int r = 0; r < 4; r++) {
            /* from and to each neighbour, two forward and two back; at the first stage, which
             * either end has in two-way programs, images of 10 bytes, at others 7 of them come */
            size_t neighbours = r == 0 || r == 3 ? 1 : 2;
            bool first = r == 0 || (r == 3 && chain.program.two_way);
            assert_int_equal(result.peak[r],
                             cases[i].peak[r] + neighbours * 4 * 7 + (first ? 10 : 3));
        }
        simulation_free(&result);
        program_free(&chain.program);
    }
}

/* Forward again before all backward passes but those of the last rank, which directly follow their
 * forward pass; never in schedules that keep one set. */
static void recomputation(void **state)
{
    (void)state;
    struct chain chain;
    chain_new(&chain, PROGRAM_1F1B, 4, 16, two_forwards, 0);
    chain.options.recompute = true;
    struct simulation result = run(&chain);
    int again = 0, again_last = 0;
    for (int i = 0; i < result.n_spans; i++)
        if (result.spans[i].kind == SPAN_RECOMPUTE)
            again++, again_last += result.spans[i].rank == 3;
    assert_int_equal(again, 3 * 16);
    assert_int_equal(again_last, 0);
    near(result.busy * result.seconds, (3 * 16 * 4 + 16 * 3) / 4.0);
    simulation_free(&result);
    program_free(&chain.program);

    static const enum program_kind gems[] = { PROGRAM_BASIC, PROGRAM_MASTER };
    for (int i = 0; i < 2; i++) { /* nothing is computed again: one set is there */
        chain_new(&chain, gems[i], 4, 4, two_forwards, 0);
        struct simulation plain = run(&chain);
        chain.options.recompute = true;
        result = run(&chain);
        near(result.seconds, plain.seconds);
        assert_int_equal(result.n_spans, plain.n_spans);
        simulation_free(&plain);
        simulation_free(&result);
        program_free(&chain.program);
    }
}

/* Ranks that work at the same time on one core take the sum of their work; those that take turns
 * lose nothing; two cores are enough for two. */
static void shared_cores(void **state)
{
    (void)state;
    struct chain chain;
    chain_new(&chain, PROGRAM_GPIPE, 2, 8, two_forwards, 0);
    struct simulation alone = run(&chain);
    near(alone.seconds, 27);
    chain.options.ranks_a_machine = 2, chain.options.cores = 1, chain.options.threads = 1;
    struct simulation shared = run(&chain);
    near(shared.seconds, 2 * 8 * 3); /* one core is never idle: all the work of both */
    simulation_free(&shared);
    chain.options.cores = 2;
    shared = run(&chain);
    near(shared.seconds, alone.seconds);
    simulation_free(&shared);
    chain.options.cores = 4, chain.options.threads = 8; /* each wants 8 of 4, both 16 */
    shared = run(&chain);
    near(shared.seconds, 2 * 2 * 8 * 3);
    simulation_free(&shared);
    chain.options.ranks_a_machine = 1; /* each has 4 for itself */
    shared = run(&chain);
    near(shared.seconds, 2 * 27);
    simulation_free(&shared);
    simulation_free(&alone);
    program_free(&chain.program);

    chain_new(&chain, PROGRAM_BASIC, 2, 8, two_forwards, 0);
    chain.options.ranks_a_machine = 2, chain.options.cores = 1, chain.options.threads = 1;
    shared = run(&chain);
    near(shared.seconds, 2 * 8 * 3);
    simulation_free(&shared);
    program_free(&chain.program);
}

/* Latency 0.5, 100 bytes at 200 bytes a second: a message takes 1. */
static void messages(void **state)
{
    (void)state;
    struct chain chain;
    chain_new(&chain, PROGRAM_BASIC, 3, 1, two_forwards, 100);
    chain.options.wire = (struct wire){ 0.5, 200 };
    struct simulation result = run(&chain);
    near(result.seconds, 3 * 3 + 4 * 1); /* two messages forward, two back */
    simulation_free(&result);
    program_free(&chain.program);

    /* Two tensors between two ranks leave one after another: 0.5 + 0.5 and 0.5 latency. */
    chain_new(&chain, PROGRAM_BASIC, 2, 1, two_forwards, 100);
    chain.edges[1] = chain.edges[0];
    chain.options.n_edges = 2;
    chain.options.wire = (struct wire){ 0.5, 200 };
    result = run(&chain);
    near(result.seconds, 2 * 3 + 2 * 1.5);
    simulation_free(&result);
    program_free(&chain.program);

    /* A skip past the stage between: it leaves rank 0 behind the tensor to rank 1, while rank 1
     * works, and delays nothing. Its gradient is at rank 0 before that of rank 1. */
    chain_new(&chain, PROGRAM_BASIC, 3, 1, two_forwards, 100);
    chain.edges[2] = (struct stage_edge){ .from = 0, .to = 2, .bytes = 100 };
    chain.options.n_edges = 3;
    chain.options.wire = (struct wire){ 0.5, 200 };
    result = run(&chain);
    near(result.seconds, 3 * 3 + 4 * 1);
    simulation_free(&result);
    program_free(&chain.program);

    /* GPipe: the messages of all but the first micro-batch are hidden behind work: the last rank
     * begins at 2, works 8 forwards and 8 x 2 back, and the last gradient takes 1 + 2 more. */
    chain_new(&chain, PROGRAM_GPIPE, 2, 8, two_forwards, 100);
    chain.options.wire = (struct wire){ 0.5, 200 };
    result = run(&chain);
    near(result.seconds, 2 + 8 + 16 + 1 + 2);
    simulation_free(&result);
    program_free(&chain.program);
}

/* A ring of P: 2 (P - 1) messages of 1 / P of the parameters. */
static void sums_and_updates(void **state)
{
    (void)state;
    struct stage_cost cost = two_forwards;
    cost.parameters = 400;
    struct chain chain;
    chain_new(&chain, PROGRAM_GPIPE, 2, 2, cost, 0);
    chain.options.wire = (struct wire){ 0.5, 200 };
    chain.options.copies = 4;
    chain.options.update_s_per_byte = 0.01;
    struct simulation result = run(&chain);
    /* Latencies are 0.5 forward and back: 1 + 0.5 + (2 + 4) + 0.5 + 2; the sum takes 6 (0.5 + 0.5)
     * and the update 4. The last rank's sum runs while the first rank still works. */
    near(result.seconds, 10 + 6 + 4);
    double last_sum = -1;
    for (int i = 0; i < result.n_spans; i++)
        if (result.spans[i].kind == SPAN_SUM && result.spans[i].rank == 1)
            last_sum = result.spans[i].begin_s;
    near(last_sum, 7.5);
    simulation_free(&result);
    program_free(&chain.program);

    /* Two ways, three stages: stages 0 and 2 are on ranks 0 and 2, both sums on the same pair, one
     * after another; stage 1 is on one rank and needs none. */
    chain_new(&chain, PROGRAM_MAST, 3, 2, cost, 0);
    chain.options.wire = (struct wire){ 0.5, INFINITY };
    chain.options.copies = 2;
    result = run(&chain);
    int sums[3] = { 0 };
    double ends[3][2];
    for (int i = 0; i < result.n_spans; i++)
        if (result.spans[i].kind == SPAN_SUM)
            ends[result.spans[i].rank][sums[result.spans[i].rank]++] = result.spans[i].end_s;
    assert_int_equal(sums[0], 2);
    assert_int_equal(sums[1], 0);
    assert_int_equal(sums[2], 2);
    near(ends[0][1], result.seconds);
    near(ends[0][1], ends[2][1]);
    assert_true(ends[0][1] - ends[0][0] >= 1 - 1e-12);
    simulation_free(&result);
    program_free(&chain.program);
}

/* No rank does two things at once; sums apart. */
static void spans_in_order(void **state)
{
    (void)state;
    for (int schedule = 0; schedule < PROGRAMS; schedule++) {
        struct chain chain;
        chain_new(&chain, schedule, 5, schedule == PROGRAM_MAST ? 2 : 8, two_forwards, 30);
        chain.options.wire = (struct wire){ 0.1, 100 };
        chain.options.ranks_a_machine = 3, chain.options.cores = 2, chain.options.threads = 1;
        struct simulation result = run(&chain);
        int works = 0;
        for (int i = 0; i < result.n_spans; i++) {
            const struct sim_span *span = &result.spans[i], *before = span - 1;
            works += span->kind <= SPAN_WEIGHTS;
            assert_true(span->begin_s < span->end_s && span->end_s <= result.seconds);
            if (i > 0 && before->rank == span->rank)
                assert_true(before->end_s <= span->begin_s + 1e-12);
            else if (i > 0)
                assert_true(before->rank < span->rank);
        }
        assert_int_equal(works, 5 * chain.program.micros * (chain.program.split ? 3 : 2));
        simulation_free(&result);
        program_free(&chain.program);
    }
}

static void no_end(void **state)
{
    (void)state;
    struct chain chain;
    chain_new(&chain, PROGRAM_1F1B, 2, 2, two_forwards, 0);
    struct work *work = chain.program.work[0], first = work[0]; /* F0 F1 B0 B1 -> B0 F0 F1 B1 */
    work[0] = work[2], work[2] = work[1], work[1] = first;
    struct simulation result;
    struct err err = { 0 };
    assert_false(simulate(&chain.options, &result, &err));
    assert_string_equal(err.text, "schedule 1f1b: rank 0 waits for ever for the gradients of "
                                  "micro-batch 0 at stage 0");
    simulation_free(&result);
    program_free(&chain.program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_gems),    cmocka_unit_test(published_hours),
        cmocka_unit_test(bubble_of_turns),  cmocka_unit_test(bubble_of_zero_bubble),
        cmocka_unit_test(memory),           cmocka_unit_test(recomputation),
        cmocka_unit_test(shared_cores),     cmocka_unit_test(messages),
        cmocka_unit_test(sums_and_updates), cmocka_unit_test(spans_in_order),
        cmocka_unit_test(no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
