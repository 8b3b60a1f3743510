/* space_memory.c: what a rank takes for activations where patches are divided (parallel.space), and
 * what it sends. Nothing is run: plans are estimated.
 *
 *     space_memory NETWORK SIDE BATCH ROWS COLUMNS [ROWS COLUMNS]..
 *
 * Prints one JSON object a grid, of the part that has most: bytes of activations and their
 * gradients in training, of activations in an evaluation; exchanges with neighbours in a forward
 * pass, and the bytes that it sends in them (as many again come back in the backward pass); the
 * layer that sends most; batch norms of divided maps, which take two sums over all parts forward
 * and one back. */
#include <stdio.h>
#include <stdlib.h>
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"

struct cost {
    size_t training, evaluation, sent, most;
    int exchanges, norms;
    char layer[128];
};

/* What part `spec` sends in a halo: to the one before what that gets behind, and the other way
 * round. */
static size_t sent_bytes(const struct graph *graph, const struct node *node,
                         const struct space_spec *spec)
{
    const struct halo_attr *h = &node->attr.halo;
    const struct shape *x = graph_shape(graph, node->inputs[0]);
    bool rows = h->group == PEERS_BANDS;
    int at = rows ? spec->row : spec->column, parts = rows ? spec->rows : spec->columns;
    int64_t line = shape_count(x) / x->dim[h->axis];
    int64_t first = h->uneven ? h->given[0] : h->after, last = h->uneven ? h->given[1] : h->before;
    int64_t given = (at > 0 && first > 0 ? first : 0) + (at + 1 < parts && last > 0 ? last : 0);
    return (size_t)(given * line) * sizeof(float);
}

static void count_halos(const struct graph *graph, const struct space_spec *spec, struct cost *cost)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        cost->norms += node->op->kind == OP_BATCH_NORM && !node->attr.norm.alike;
        if (node->op->kind != OP_HALO)
            continue;
        size_t bytes = sent_bytes(graph, node, spec);
        cost->exchanges++;
        cost->sent += bytes;
        if (bytes > cost->most) {
            cost->most = bytes;
            snprintf(cost->layer, sizeof cost->layer, "%s", node->name);
        }
    }
}

static bool cost_of(const struct graph *graph, const struct space_spec *spec, struct cost *out,
                    struct err *err)
{
    struct plan_peers rows = { .rank = spec->row, .size = spec->rows };
    struct plan_peers columns = { .rank = spec->column, .size = spec->columns };
    struct plan_options options = { .mode = PLAN_TRAIN,
                                    .threads = 1,
                                    .norm_peers = 1u << PEERS_BANDS | 1u << PEERS_SPACE };
    struct graph *part = NULL, *inference = NULL, *inference_part = NULL;
    struct plan_estimate training, evaluation;
    options.peers[PEERS_BANDS] = spec->rows > 1 ? &rows : NULL;
    options.peers[PEERS_SPACE] = spec->columns > 1 ? &columns : NULL;
    bool ok =
        transform_space(graph, spec, &part, err) && plan_estimate(part, &options, &training, err);
    options.mode = PLAN_INFER;
    ok = ok && transform_for_inference(graph, NULL, 0, &inference, err) &&
         transform_space(inference, spec, &inference_part, err) &&
         plan_estimate(inference_part, &options, &evaluation, err);
    if (ok) {
        *out = (struct cost){ .training = training.arena, .evaluation = evaluation.arena };
        count_halos(part, spec, out);
    }
    graph_free(part), graph_free(inference), graph_free(inference_part);
    return ok;
}

static bool print_grid(const struct graph *graph, int rows, int columns, struct err *err)
{
    struct cost most = { 0 }, cost;
    for (int p = 0; p < rows * columns; p++) {
        struct space_spec spec = { rows, columns, p / columns, p % columns, true };
        if (!cost_of(graph, &spec, &cost, err))
            return false;
        if (cost.training > most.training)
            most.training = cost.training;
        if (cost.evaluation > most.evaluation)
            most.evaluation = cost.evaluation;
        if (cost.sent >= most.sent) {
            cost.training = most.training, cost.evaluation = most.evaluation;
            most = cost;
        }
    }
    printf("{\"rows\": %d, \"columns\": %d, \"training_bytes\": %zu, \"evaluation_bytes\": %zu, "
           "\"exchanges\": %d, \"sent_bytes\": %zu, \"most_bytes\": %zu, \"most\": \"%s\", "
           "\"norms\": %d}\n",
           rows, columns, most.training, most.evaluation, most.exchanges, most.sent, most.most,
           most.layer, most.norms);
    return true;
}

int main(int argc, char **argv)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    if (argc < 6 || argc % 2 != 0) {
        fputs("space_memory NETWORK SIDE BATCH ROWS COLUMNS [ROWS COLUMNS]..\n", stderr);
        return 2;
    }
    struct zoo_options options = { .batch = strtoll(argv[3], NULL, 10),
                                   .height = strtoll(argv[2], NULL, 10),
                                   .width = strtoll(argv[2], NULL, 10),
                                   .classes = 2 };
    bool ok = zoo_build(argv[1], &options, &graph, &err) && graph_initialize(graph, 1, &err);
    for (int i = 4; ok && i < argc; i += 2)
        ok = print_grid(graph, (int)strtol(argv[i], NULL, 10), (int)strtol(argv[i + 1], NULL, 10),
                        &err);
    graph_free(graph);
    if (!ok)
        fprintf(stderr, "space_memory: %s\n", err.text);
    return !ok;
}
