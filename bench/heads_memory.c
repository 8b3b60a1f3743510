/* heads_memory.c: what a rank takes for activations where attention heads and MLP columns are
 * divided (parallel.heads), and where tokens are divided too (parallel.sequence), and what it
 * sends. Nothing is run: plans are estimated.
 *
 *     heads_memory NETWORK CHANNELS HEIGHT WIDTH BATCH HEADS..
 *
 * CHANNELS, HEIGHT and WIDTH as in tests/golden/zoo/cases.txt: of texts the vocabulary, the tokens
 * and 1. Prints one JSON object for each number of heads, and of them with tokens divided: the
 * bytes of activations and their gradients in training on the last rank, which has most tokens; the
 * same with sums that are waited for; its parameters; the bytes that it sends in a forward and a
 * backward pass. */
#include <stdio.h>
#include <stdlib.h>
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/stages/costs_heads.h"
#include "net/zoo/zoo.h"

static bool make_part(const struct graph *whole, int heads, bool tokens, struct graph **out,
                      struct err *err)
{
    struct graph *divided = NULL;
    bool *summed = NULL;
    if (heads == 1)
        return graph_copy(whole, out, err);
    if (!transform_heads(whole, heads, heads - 1, out, NULL, err) || !tokens)
        return *out != NULL;
    divided = *out, *out = NULL;
    bool ok = transform_tokens(divided, heads, heads - 1, out, &summed, err);
    free(summed);
    graph_free(divided);
    return ok;
}

static bool print_part(const struct graph *whole, int heads, bool tokens, struct err *err)
{
    struct plan_peers peers = { .rank = heads - 1, .size = heads };
    struct plan_options options = { .mode = PLAN_TRAIN,
                                    .threads = 1,
                                    .peers = { [PEERS_HEADS] = heads > 1 ? &peers : NULL } };
    struct plan_estimate training, waiting;
    struct heads_sums forward = { 0 }, backward = { 0 };
    struct graph *part = NULL;
    struct node_cost *costs = NULL, *own = NULL;
    bool ok = make_part(whole, heads, tokens, &part, err) &&
              plan_estimate(part, &options, &training, err);
    options.wait_for_sums = true;
    ok = ok && plan_estimate(part, &options, &waiting, err);
    if (ok && heads > 1) {
        costs = calloc((size_t)whole->n_nodes + 1, sizeof *costs);
        own = calloc((size_t)part->n_nodes + 1, sizeof *own);
        ok = ((costs && own) || err_memory(err, "costs")) &&
             costs_of_heads(whole, costs, part, heads, own, &forward, &backward, err);
    }
    if (ok)
        printf("{\"heads\": %d, \"tokens\": %s, \"training_bytes\": %zu, \"waiting_bytes\": %zu, "
               "\"parameters\": %lld, \"sent_forward\": %zu, \"sent_backward\": %zu}\n",
               heads, tokens ? "true" : "false", training.arena, waiting.arena,
               (long long)graph_parameter_count(part),
               forward.bytes / (size_t)heads * (size_t)(heads - 1),
               backward.bytes / (size_t)heads * (size_t)(heads - 1));
    free(costs), free(own);
    graph_free(part);
    return ok;
}

int main(int argc, char **argv)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    if (argc < 7) {
        fputs("heads_memory NETWORK CHANNELS HEIGHT WIDTH BATCH HEADS..\n", stderr);
        return 2;
    }
    struct zoo_options options = { .channels = strtoll(argv[2], NULL, 10),
                                   .height = strtoll(argv[3], NULL, 10),
                                   .width = strtoll(argv[4], NULL, 10),
                                   .batch = strtoll(argv[5], NULL, 10),
                                   .classes = 2 };
    bool ok = zoo_build(argv[1], &options, &graph, &err) && graph_initialize(graph, 1, &err);
    for (int i = 6; ok && i < argc; i++) {
        int heads = (int)strtol(argv[i], NULL, 10);
        ok = print_part(graph, heads, false, &err) &&
             (heads == 1 || print_part(graph, heads, true, &err));
    }
    graph_free(graph);
    if (!ok)
        fprintf(stderr, "heads_memory: %s\n", err.text);
    return !ok;
}
