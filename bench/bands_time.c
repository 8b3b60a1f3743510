/* bands_time.c: one gradient of an image that is divided into bands over the ranks that mpirun
 * started, or of one rank.
 *
 *     bands_time NETWORK HEIGHT WIDTH TILE REPEATS
 *
 * Sizes in pixels, one thread a rank. The first rank prints one JSON object, of the fastest of the
 * repeats: the seconds until the sum of the gradients is on all ranks; of the rank with most
 * processor time, that time (waiting for others included); bytes of the cells that a band receives
 * of the next one; and of the gradients. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/clock.h"
#include "net/stream/stream.h"
#include "net/zoo/zoo.h"
#include "train/peers.h"

struct timing {
    double seconds, processor_s;
};

static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool read_noise(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                       struct err *err)
{
    (void)arg, (void)err;
    for (int64_t i = 0; i < 3 * h * w; i++)
        out[i] = (float)((y * 31 + x * 17 + i * 7) % 255) / 128 - 1;
    return true;
}

static bool one_gradient(struct ranks *ranks, struct plan *plan, struct timing *out,
                         struct err *err)
{
    int64_t n = 0, ready = 0;
    float *gradients = plan_gradients(plan, &n);
    plan_zero_gradients(plan);
    if (!ranks_most(ranks, &ready, 1, err)) /* all begin together */
        return false;
    double began_s = clock_monotonic_s(), processor = processor_s();
    bool ok = plan_forward(plan, err);
    if (ok)
        plan_output_gradient(plan, 0)[0] = 1;
    ok = ok && plan_backward(plan, err) && ranks_sum_floats(ranks, gradients, n, err);
    out->seconds = clock_monotonic_s() - began_s;
    int64_t most = (int64_t)(1e6 * (processor_s() - processor));
    ok = ok && ranks_most(ranks, &most, 1, err);
    out->processor_s = 1e-6 * (double)most;
    return ok;
}

static bool run(struct ranks *ranks, char **argv, struct err *err)
{
    struct graph *graph = NULL;
    struct plan *plan = NULL;
    struct plan_peers peers = peers_of_ranks(ranks);
    struct plan_source source = { NULL, read_noise };
    struct plan_stream stream = { .source = &source, .tile_px = strtoll(argv[4], NULL, 10) };
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1, .stream = &stream };
    struct zoo_options zoo = { .height = strtoll(argv[2], NULL, 10),
                               .width = strtoll(argv[3], NULL, 10) };
    struct timing best = { INFINITY, INFINITY };
    if (ranks->size > 1)
        options.peers[PEERS_BANDS] = &peers;
    bool ok = zoo_build(argv[1], &zoo, &graph, err) && graph_initialize(graph, 1, err) &&
              plan_new(graph, &options, &plan, err);
    for (int64_t i = strtoll(argv[5], NULL, 10); ok && i > 0; i--) {
        struct timing now;
        ok = one_gradient(ranks, plan, &now, err);
        best.seconds = fmin(best.seconds, now.seconds);
        best.processor_s = fmin(best.processor_s, now.processor_s);
    }
    int64_t strip = ok ? (int64_t)(stream_of(plan)->borders.below_floats * sizeof(float)) : 0;
    ok = ok && ranks_most(ranks, &strip, 1, err);
    if (ok && ranks->rank == 0)
        printf("{\"ranks\": %d, \"seconds\": %.4f, \"processor_s\": %.4f, \"strip_bytes\": %lld, "
               "\"gradient_bytes\": %lld}\n",
               ranks->size, best.seconds, best.processor_s, (long long)strip,
               (long long)(graph_parameter_count(graph) * (int64_t)sizeof(float)));
    plan_free(plan);
    graph_free(graph);
    return ok;
}

int main(int argc, char **argv)
{
    struct ranks ranks;
    struct err err = { 0 };
    if (argc != 6 || !ranks_begin(&ranks, &err)) {
        fprintf(stderr, "usage: bands_time NETWORK HEIGHT WIDTH TILE REPEATS\n%s\n", err.text);
        return 2;
    }
    bool ok = run(&ranks, argv, &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    ranks_end(&ranks, ok);
    return ok ? 0 : 1;
}
