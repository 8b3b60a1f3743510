/* costs_heads.c: the costs of layers of which a process has some heads or columns. */
#include "net/stages/costs_heads.h"
#include <stdlib.h>
#include <string.h>
#include "net/plan/node_costs.h"

/* What the whole network does not have, the sum of a bias, is counted for such a processor. */
#define ADDED_BYTES_PER_S 1e10

static double work_of(const struct graph *graph, const struct node *node, bool multiplies)
{
    return multiplies ? graph_node_multiply_adds(graph, node)
                      : (double)shape_count(graph_shape(graph, node->output));
}

/* The node of the whole network of which this is a part: it has its name, but for the layers whose
 * outputs are summed. NULL: there is none. */
static const struct node *origin(const struct graph *whole, const struct node *node)
{
    static const char suffix[] = ".part";
    size_t length = strlen(node->name), end = length - (sizeof suffix - 1);
    if (length >= sizeof suffix && strcmp(node->name + end, suffix) == 0)
        length = end;
    for (int32_t i = 0; i < whole->n_nodes; i++) {
        const struct node *found = &whole->nodes[i];
        if (found->op == node->op && strlen(found->name) == length &&
            memcmp(found->name, node->name, length) == 0)
            return found;
    }
    return NULL;
}

static void time_of(const struct graph *whole, const struct node_cost *costs,
                    const struct graph *part, const struct node *node, struct node_cost *out)
{
    const struct node *from = origin(whole, node);
    if (!from) {
        double bytes = (double)shape_count(graph_shape(part, node->output)) * sizeof(float);
        out->forward_s = 2 * bytes / ADDED_BYTES_PER_S;
        out->backward_s = out->weights_s = bytes / ADDED_BYTES_PER_S;
        return;
    }
    const struct node_cost *cost = &costs[from - whole->nodes];
    bool multiplies = work_of(whole, from, true) > 0;
    double share = work_of(part, node, multiplies) / work_of(whole, from, multiplies);
    out->forward_s = cost->forward_s * share;
    out->backward_s = cost->backward_s * share;
    out->weights_s = cost->weights_s * share;
}

static void add_exchanges(size_t bytes, int n, struct heads_sums *sums)
{
    sums->exchanges += n;
    sums->bytes += (size_t)n * bytes;
}

/* What a node sends in both passes; false: it computes. */
static bool exchanges_of(const struct graph *part, const struct node *node,
                         struct heads_sums *forward, struct heads_sums *backward)
{
    const union attr *a = &node->attr;
    size_t x = (size_t)shape_count(graph_shape(part, node->inputs[0])) * sizeof(float);
    size_t y = (size_t)shape_count(graph_shape(part, node->output)) * sizeof(float);
    switch (node->op->kind) {
    case OP_ALL_REDUCE:
        add_exchanges(y, 2 * a->all_reduce.sum_forward, forward);
        add_exchanges(y, 2 * a->all_reduce.sum_backward, backward);
        return true;
    case OP_ALL_GATHER: /* joined again where the gradients of weights need it */
        add_exchanges(y, 1, forward);
        add_exchanges(y, a->all_gather.sum_backward ? 1 + a->all_gather.again : 0, backward);
        return true;
    case OP_REDUCE_SCATTER:
        add_exchanges(x, a->reduce_scatter.sum_forward, forward);
        add_exchanges(x, 1, backward);
        return true;
    default:
        return false;
    }
}

bool costs_of_heads(const struct graph *whole, const struct node_cost *costs,
                    const struct graph *part, int parts, struct node_cost *out,
                    struct heads_sums *forward, struct heads_sums *backward, struct err *err)
{
    struct plan_peers peers = { .rank = parts - 1,
                                .size = parts }; /* a plan that is not run calls none */
    struct plan_options options = { .mode = PLAN_TRAIN,
                                    .threads = 1,
                                    .peers = { [PEERS_HEADS] = &peers } };
    struct plan_node_memory *memory = calloc((size_t)part->n_nodes + 1, sizeof *memory);
    bool ok =
        (memory || err_memory(err, part->name)) && plan_node_memory(part, &options, memory, err);
    *forward = *backward = (struct heads_sums){ 0 };
    for (int32_t i = 0; ok && i < part->n_nodes; i++) {
        const struct node *node = &part->nodes[i];
        out[i] = (struct node_cost){ .kept = memory[i].kept, .working = memory[i].working };
        if (!exchanges_of(part, node, forward, backward))
            time_of(whole, costs, part, node, &out[i]);
    }
    free(memory);
    return ok;
}

double heads_sums_s(const struct heads_sums *sums, int parts, int64_t images,
                    const struct wire *wire)
{
    double bytes = (double)sums->bytes * (double)images / parts;
    return (parts - 1) * (sums->exchanges * wire->latency_s + bytes / wire->bytes_per_s);
}
