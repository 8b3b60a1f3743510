/* heads_time.c: one step of training a Transformer over the ranks that mpirun started, each with a
 * thread: as copies with samples of their own (data), with its attention heads and MLP columns
 * divided (heads), and with its tokens divided too (tokens); each with sums that run while others
 * compute, and with sums that are waited for. On one rank: the whole network.
 *
 *     heads_time NETWORK CHANNELS HEIGHT WIDTH BATCH DEPTH ROUNDS
 *
 * CHANNELS, HEIGHT and WIDTH as in tests/golden/zoo/cases.txt: of texts the vocabulary, the tokens
 * and 1; DEPTH 0: as the network has it. A step: BATCH samples forward and backward, sums of
 * gradients over copies as the trainer does them, AdamW. Ways take turns in ROUNDS rounds; the
 * first rank prints one JSON object: for each way the seconds of the slowest rank in the fastest
 * round, and the bytes of activations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/clock.h"
#include "dist/buckets.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "train/optimizer.h"
#include "train/peers.h"

#define CLASSES 6
#define BUCKET_BYTES (25 << 20)

enum way { WAY_DATA, WAY_HEADS, WAY_TOKENS, WAYS };
static const char *const way_names[WAYS] = { "data", "heads", "tokens" };

/* One way to divide the work. */
struct division {
    struct ranks *ranks;
    enum way way;
    struct graph *graph;
    struct plan_peers peers;
    struct plan *plan[2]; /* sums run while others compute, and are waited for */
    struct optimizer *optimizer;
    struct buckets *buckets; /* data */
    bool *summed;            /* tokens */
    float *gradients, *room; /* of tokens: what is summed */
    double best_s[2];
};

static bool make_graph(const struct zoo_options *options, const char *network, struct division *d,
                       struct err *err)
{
    struct zoo_options own = *options;
    struct graph *whole = NULL, *heads = NULL;
    int parts = d->ranks->size, part = d->ranks->rank;
    own.batch /= d->way == WAY_DATA ? parts : 1;
    bool ok = zoo_build(network, &own, &whole, err) && graph_initialize(whole, 1, err);
    if (ok && d->way == WAY_DATA)
        d->graph = whole, whole = NULL;
    else
        ok = ok && transform_heads(whole, parts, part, &heads, NULL, err);
    if (ok && d->way == WAY_TOKENS)
        ok = transform_tokens(heads, parts, part, &d->graph, &d->summed, err);
    else if (ok && d->way == WAY_HEADS)
        d->graph = heads, heads = NULL;
    graph_free(whole), graph_free(heads);
    return ok;
}

static bool make_buckets(struct division *d, struct err *err)
{
    int64_t *at = calloc((size_t)d->graph->n_values + 1, sizeof *at), n = 0, count = 0;
    for (value_id v = 0; at && v < d->graph->n_values; v++)
        if (d->graph->values[v].kind == VALUE_PARAMETER) {
            at[n++] = count;
            count += shape_count(&d->graph->values[v].shape);
        }
    if (at)
        at[n] = count;
    bool ok =
        (at || err_memory(err, "buckets")) && buckets_new(at, n, BUCKET_BYTES, &d->buckets, err);
    free(at);
    return ok;
}

static void fill_inputs(struct plan *plan, const struct graph *graph, int64_t vocabulary)
{
    for (int i = 0; i < graph->n_inputs; i++) {
        int64_t n = shape_count(graph_shape(graph, graph->inputs[i].value));
        for (int64_t k = 0; k < n; k++)
            plan_input(plan, i)[k] = graph->n_inputs == 1 ? (float)(k * 7 % 255) / 128 - 1
                                     : i == 0             ? (float)(k * 7 % vocabulary)
                                                          : 1;
    }
}

static bool division_new(const struct zoo_options *options, const char *network, struct division *d,
                         struct err *err)
{
    struct optimizer_options adam = {
        .kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .threads = 1
    };
    if (!make_graph(options, network, d, err))
        return false;
    d->peers = peers_of_ranks(d->ranks);
    int64_t n = graph_parameter_count(d->graph);
    d->gradients = calloc((size_t)n + 1, sizeof *d->gradients);
    d->room = calloc((size_t)n + 1, sizeof *d->room);
    bool ok = ((d->gradients && d->room) || err_memory(err, "gradients")) &&
              optimizer_new(d->graph, &adam, &d->optimizer, err) &&
              (d->way != WAY_DATA || make_buckets(d, err));
    for (int wait = 0; ok && wait < 2; wait++) {
        struct plan_options plan = {
            .mode = PLAN_TRAIN, .threads = 1, .gradients = d->gradients, .wait_for_sums = wait
        };
        plan.peers[PEERS_HEADS] = d->way == WAY_DATA ? NULL : &d->peers;
        ok = plan_new(d->graph, &plan, &d->plan[wait], err);
        if (ok)
            fill_inputs(d->plan[wait], d->graph, options->channels);
        d->best_s[wait] = INFINITY;
    }
    return ok;
}

static void division_free(struct division *d)
{
    plan_free(d->plan[0]), plan_free(d->plan[1]);
    optimizer_free(d->optimizer);
    buckets_free(d->buckets);
    graph_free(d->graph);
    free(d->summed), free(d->gradients), free(d->room);
}

static void on_gradient(void *arg, value_id parameter, float *gradient, int64_t count)
{
    struct division *d = arg;
    (void)parameter, (void)count;
    buckets_ready(d->buckets, d->ranks, gradient - d->gradients);
}

/* The gradients of which each rank has added up its own tokens, to the room or back. */
static int64_t move_sums(struct division *d, bool back)
{
    int64_t n = 0, at = 0;
    for (value_id v = 0; v < d->graph->n_values; v++) {
        const struct value *value = &d->graph->values[v];
        int64_t count = value->kind == VALUE_PARAMETER ? shape_count(&value->shape) : 0;
        for (int64_t i = 0; d->summed[v] && i < count; i++)
            *(back ? &d->gradients[at + i] : &d->room[n + i]) =
                back ? d->room[n + i] : d->gradients[at + i];
        n += d->summed[v] ? count : 0;
        at += count;
    }
    return n;
}

static bool step(struct division *d, int wait, struct err *err)
{
    struct plan *plan = d->plan[wait];
    bool copies = d->buckets && d->ranks->size > 1;
    plan_zero_gradients(plan);
    if (!plan_forward(plan, err))
        return false;
    int64_t n = shape_count(graph_shape(d->graph, d->graph->outputs[0].value));
    for (int64_t i = 0; i < n; i++)
        plan_output_gradient(plan, 0)[i] = i % 2 ? -1e-3f : 1e-3f;
    if (copies)
        buckets_begin(d->buckets, d->gradients);
    plan_on_gradient(plan, copies && !wait ? on_gradient : NULL, d);
    bool ok = plan_backward(plan, err) && (!copies || buckets_finish(d->buckets, d->ranks, err));
    if (ok && d->summed) {
        ok = ranks_sum_floats(d->ranks, d->room, move_sums(d, false), err);
        move_sums(d, true);
    }
    if (ok)
        optimizer_step(d->optimizer, d->gradients, 1e-4);
    return ok;
}

static bool take_turns(struct division *divisions, int n, int rounds, struct err *err)
{
    struct ranks *ranks = divisions[0].ranks;
    bool ok = true;
    for (int i = 0; ok && i < (rounds + 1) * n * 2; i++) {
        struct division *d = &divisions[i / 2 % n];
        int64_t us = 0;
        ok = ranks_most(ranks, &us, 1, err); /* all begin together */
        double start = clock_monotonic_s();
        ok = ok && step(d, i % 2, err);
        us = (int64_t)(1e6 * (clock_monotonic_s() - start));
        ok = ok && ranks_most(ranks, &us, 1, err);
        if (i >= 2 * n) /* the first round touches all memory */
            d->best_s[i % 2] = fmin(d->best_s[i % 2], 1e-6 * (double)us);
    }
    return ok;
}

static void print(const struct division *divisions, int n)
{
    printf("{");
    for (int i = 0; i < n; i++)
        printf(
            "%s\"%s\": {\"seconds\": %.6f, \"waiting_seconds\": %.6f, \"activation_bytes\": %zu}",
            i ? ", " : "", way_names[divisions[i].way], divisions[i].best_s[0],
            divisions[i].best_s[1], plan_memory(divisions[i].plan[0]).arena);
    puts("}");
}

int main(int argc, char **argv)
{
    struct ranks ranks;
    struct err err = { 0 };
    if (argc != 8 || !ranks_begin(&ranks, &err)) {
        fprintf(stderr, "heads_time NETWORK CHANNELS HEIGHT WIDTH BATCH DEPTH ROUNDS\n%s\n",
                err.text);
        return 2;
    }
    struct zoo_options options = { .channels = strtoll(argv[2], NULL, 10),
                                   .height = strtoll(argv[3], NULL, 10),
                                   .width = strtoll(argv[4], NULL, 10),
                                   .batch = strtoll(argv[5], NULL, 10),
                                   .depth = strtoll(argv[6], NULL, 10),
                                   .classes = CLASSES };
    struct division divisions[WAYS] = { 0 };
    int n = ranks.size > 1 ? WAYS : 1;
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        divisions[i] = (struct division){ .ranks = &ranks, .way = (enum way)i };
        ok = ranks_agree(&ranks, division_new(&options, argv[1], &divisions[i], &err), NULL, &err);
    }
    ok = ok && take_turns(divisions, n, (int)strtol(argv[7], NULL, 10), &err);
    if (ok && ranks.rank == 0)
        print(divisions, n);
    for (int i = 0; i < n; i++)
        division_free(&divisions[i]);
    if (!ok)
        fprintf(stderr, "heads_time: %s\n", err.text);
    ranks_end(&ranks, ok);
    return !ok;
}
