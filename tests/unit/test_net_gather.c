/* test_net_gather.c: parts of tensors that peers (here: threads) have, joined, and sums of which
 * each gets a part, in both passes: exactly what they stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "support/peer_job.h"
#include "support/thread_peers.h"

#define PEERS 3

/* --- parts gathered, and sums for different losses --- */

struct gather_case {
    int64_t axis;
    bool blocked;      /* behind a convolution of whole blocks */
    bool sum_backward; /* every peer has its own gradient; else all have the same */
    bool reduce;       /* all_reduce in both passes in place of all_gather */
};

struct gather_jobs {
    struct gather_case what;
    struct peer_job jobs[PEERS];
};

#define SIDE 6

/* An identity convolution, if blocked, and the op. */
static struct graph *gather_network(const struct gather_case *what)
{
    struct graph *g = graph_new("gather");
    value_id x = graph_input(g, "input", SHAPE(2, 16, SIDE, SIDE));
    if (what->blocked)
        x = graph_conv(g, x, "conv", 16, false, conv_square(1, 1, 0));
    x = what->reduce
            ? graph_all_reduce(g, x, (struct all_reduce_attr){ PEERS_DATA, true, true })
            : graph_all_gather(g, x,
                               (struct all_gather_attr){ .axis = what->axis,
                                                         .parts = PEERS,
                                                         .group = PEERS_DATA,
                                                         .sum_backward = what->sum_backward });
    graph_output(g, "y", x);
    if (!peer_job_ready(g)) {
        graph_free(g);
        return NULL;
    }
    for (int i = 0; what->blocked && i < 16 * 16; i++)
        graph_data(g, graph_find(g, "conv.weight"))[i] = i % 17 == 0;
    return g;
}

static void work_on_gather(void *arg, int rank)
{
    struct gather_jobs *all = arg;
    struct peer_job *job = &all->jobs[rank];
    job->graph = gather_network(&all->what);
    job->options.mode = PLAN_TRAIN, job->options.threads = 1, job->options.input_gradients = true;
    if (!job->graph || !plan_new(job->graph, &job->options, &job->plan, NULL))
        return;
    int64_t in = 2 * 16 * SIDE * SIDE;
    int64_t out = shape_count(graph_shape(job->graph, job->graph->outputs[0].value));
    bool own = all->what.sum_backward || all->what.reduce;
    for (int64_t i = 0; i < in; i++)
        plan_input(job->plan, 0)[i] = peer_job_number(10 + (uint64_t)rank, (uint64_t)i);
    for (int64_t i = 0; i < out; i++)
        plan_output_gradient(job->plan, 0)[i] =
            peer_job_number(own ? 20 + (uint64_t)rank : 20, (uint64_t)i);
    job->ok = plan_forward(job->plan, NULL) && plan_backward(job->plan, NULL);
}

/* The number at index i of peer r's part, in the output of a gather along an axis of extent e,
 * whose following axes have `inner` numbers. */
static int64_t place_in_whole(int64_t i, int r, int64_t e, int64_t inner)
{
    return (i / (e * inner) * PEERS + r) * e * inner + i % (e * inner);
}

static void check_gather(const struct gather_jobs *all)
{
    const int64_t extents[] = { 2, 16, SIDE, SIDE };
    const struct gather_case *what = &all->what;
    int64_t inner = 1, n = 2 * 16 * SIDE * SIDE, e = extents[what->axis];
    for (int64_t a = what->axis + 1; a < 4; a++)
        inner *= extents[a];
    for (int me = 0; me < PEERS; me++) {
        float *d = peer_job_input_gradient(&all->jobs[me]);
        const float *y = plan_output(all->jobs[me].plan, 0);
        for (int64_t i = 0; i < n; i++) {
            float sum = 0, d_sum = 0;
            for (int r = 0; r < PEERS; r++) {
                float x = peer_job_number(10 + (uint64_t)r, (uint64_t)i);
                int64_t at = what->reduce ? i : place_in_whole(i, me, e, inner);
                sum += x;
                d_sum += peer_job_number(20 + (uint64_t)r, (uint64_t)at);
                if (!what->reduce)
                    assert_true(y[place_in_whole(i, r, e, inner)] == x);
            }
            bool own = what->sum_backward || what->reduce;
            float once = peer_job_number(20, (uint64_t)place_in_whole(i, me, e, inner));
            assert_true(!what->reduce || y[i] == sum);
            assert_true(d[i] == (own ? d_sum : once));
        }
        free(d);
    }
}

static void parts_are_gathered_and_summed(void **state)
{
    (void)state;
    static const struct gather_case cases[] = {
        { 0, false, false, false }, { 1, false, true, false }, { 3, false, false, false },
        { 1, true, true, false },   { 2, true, false, false }, { 2, true, true, false },
        { 0, false, false, true },  { 0, true, false, true },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct gather_jobs all = { .what = cases[k] };
        struct thread_peers *peers = thread_peers_new(PEERS);
        assert_non_null(peers);
        for (int r = 0; r < PEERS; r++)
            all.jobs[r].options.peers[PEERS_DATA] = thread_peers_of(peers, r);
        thread_peers_run(peers, work_on_gather, &all);
        for (int r = 0; r < PEERS; r++)
            assert_true(all.jobs[r].ok);
        check_gather(&all);
        for (int r = 0; r < PEERS; r++)
            peer_job_free(&all.jobs[r]);
        thread_peers_free(peers);
    }
}

/* --- parts of different extents --- */

#define ALL 7 /* of the extent; parts of 2, 2 and 3 */

/* Parts joined, then each one's part of the sum of what all have. */
static void work_on_uneven(void *arg, int rank)
{
    struct peer_job *job = (struct peer_job *)arg + rank;
    int64_t own = (rank + 1) * ALL / PEERS - rank * ALL / PEERS;
    struct graph *g = job->graph = graph_new("uneven");
    value_id x = graph_input(g, "input", SHAPE(2, own, 5));
    x = graph_all_gather(
        g, x,
        (struct all_gather_attr){
            .axis = 1, .parts = PEERS, .group = PEERS_HEADS, .sum_backward = true, .extent = ALL });
    graph_output(g, "whole", x);
    graph_output(g, "own",
                 graph_reduce_scatter(g, x,
                                      (struct reduce_scatter_attr){ .axis = 1,
                                                                    .parts = PEERS,
                                                                    .part = rank,
                                                                    .group = PEERS_HEADS,
                                                                    .sum_forward = true }));
    job->options.mode = PLAN_TRAIN, job->options.threads = 1, job->options.input_gradients = true;
    if (!peer_job_ready(g) || !plan_new(g, &job->options, &job->plan, NULL))
        return;
    for (int64_t i = 0; i < 2 * own * 5; i++) {
        plan_input(job->plan, 0)[i] = peer_job_number(30 + (uint64_t)rank, (uint64_t)i);
        plan_output_gradient(job->plan, 1)[i] = peer_job_number(40 + (uint64_t)rank, (uint64_t)i);
    }
    job->ok = plan_forward(job->plan, NULL) && plan_backward(job->plan, NULL);
}

static float three_times(float x)
{
    return x + x + x;
}

static void parts_may_differ(void **state)
{
    (void)state;
    struct thread_peers *peers = thread_peers_new(PEERS);
    struct peer_job jobs[PEERS];
    for (int r = 0; r < PEERS; r++) {
        jobs[r] = (struct peer_job){ 0 };
        jobs[r].options.peers[PEERS_HEADS] = thread_peers_of(peers, r);
    }
    thread_peers_run(peers, work_on_uneven, jobs);
    for (int r = 0; r < PEERS; r++) {
        assert_true(jobs[r].ok);
        float *d = peer_job_input_gradient(&jobs[r]);
        int64_t begin = r * ALL / PEERS, own = (r + 1) * ALL / PEERS - begin;
        for (int64_t i = 0; i < 2 * own * 5; i++) {
            float x = peer_job_number(30 + (uint64_t)r, (uint64_t)i);
            int64_t at = (i / (own * 5) * ALL + begin) * 5 + i % (own * 5);
            for (int other = 0; other < PEERS; other++)
                assert_true(plan_output(jobs[other].plan, 0)[at] == x);
            assert_true(plan_output(jobs[r].plan, 1)[i] == three_times(x));
            assert_true(d[i] == three_times(peer_job_number(40 + (uint64_t)r, (uint64_t)i)));
        }
        free(d);
    }
    for (int r = 0; r < PEERS; r++)
        peer_job_free(&jobs[r]);
    thread_peers_free(peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_gathered_and_summed),
        cmocka_unit_test(parts_may_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
