/* balance.c: where to cut: the nodes of a graph, in their order, divided into stages so that the
 * slowest is the fastest. By dynamic programming over all places: the best cut of the first i nodes
 * into s stages follows from the best cuts of fewer nodes into s - 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/stages/costs.h"

/* A stage of the nodes [begin, end). */
struct part {
    double seconds; /* of its work and of what it sends, forward and back */
    double bytes;   /* that it keeps */
};

struct balance {
    const struct graph *graph;
    const struct node_cost *costs;
    struct wire wire;
    int n;
    int32_t nodes;
    int32_t *last_reader;        /* by node: of its output; -1: none */
    bool *forbidden;             /* [nodes + 1]: no stage begins here */
    bool *output;                /* by node: an output of the graph */
    int64_t *counted;            /* by value: the round in which this input of the graph was */
    int64_t round;               /* of parts_ending */
    double *received, *messages; /* [nodes + 2]: scratch of parts_ending */
    struct part *parts;          /* [nodes]: of the stages that begin at each node, for one end */
    double *best;                /* [n + 1][nodes + 1] */
    int32_t *from;               /* the same: where the last of the stages begins */
};

static double bytes_of(const struct graph *graph, value_id value)
{
    return (double)shape_count(graph_shape(graph, value)) * sizeof(float);
}

/* --- where a stage may begin --- */

/* Between two nodes that read a parameter; between a weight that is computed and its convolution;
 * behind the first output, which belongs to the last stage. */
static bool forbid(struct balance *b, struct err *err)
{
    const struct graph *graph = b->graph;
    int32_t *first_reader = malloc(((size_t)graph->n_values + 1) * sizeof *first_reader);
    if (!first_reader)
        return err_memory(err, graph->name);
    for (int32_t v = 0; v < graph->n_values; v++)
        first_reader[v] = -1;
    for (int32_t i = 0; i < b->nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++) {
            value_id x = graph->nodes[i].inputs[k];
            if (x == NO_VALUE)
                continue;
            const struct node *maker = graph_maker(graph, x);
            bool weight = maker && maker->op->kind == OP_STANDARDIZE;
            if (graph->values[x].kind == VALUE_NODE)
                b->last_reader[graph->values[x].node] = i;
            if (weight && first_reader[x] < 0)
                first_reader[x] = graph->values[x].node;
            if (graph->values[x].kind == VALUE_PARAMETER && first_reader[x] < 0)
                first_reader[x] = i;
            for (int32_t at = first_reader[x] + 1; first_reader[x] >= 0 && at <= i; at++)
                b->forbidden[at] = true;
        }
    free(first_reader);
    for (int32_t at = graph->values[graph->outputs[0].value].node + 1; at < b->nodes; at++)
        b->forbidden[at] = true;
    return true;
}

/* Activations that run with the layer before them if they are in the same stage. Returns whether
 * enough places are left. */
static bool spare_activations(struct balance *b, bool *spared)
{
    int left = 1;
    for (int32_t i = 0; i < b->nodes; i++) {
        const struct node *node = &b->graph->nodes[i];
        bool acts = node->op->kind >= OP_RELU && node->op->kind <= OP_TANH;
        spared[i] =
            b->forbidden[i] || (i > 0 && acts && b->graph->values[node->inputs[0]].node >= 0);
        left += i > 0 && !spared[i];
    }
    return left >= b->n;
}

/* --- what stages cost --- */

/* What the stages [j, end) receive, for all j: a value made at m < j and last read before `end` at
 * r comes to those with j <= r. */
static void sum_received(struct balance *b, int32_t end)
{
    const struct graph *graph = b->graph;
    memset(b->received, 0, ((size_t)b->nodes + 2) * sizeof *b->received);
    memset(b->messages, 0, ((size_t)b->nodes + 2) * sizeof *b->messages);
    for (int32_t i = 0; i < b->nodes; i++)
        b->parts[i].bytes = -1; /* the last reader before `end`: none yet */
    for (int32_t i = 0; i < end; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++) {
            value_id x = graph->nodes[i].inputs[k];
            if (x != NO_VALUE && graph->values[x].kind == VALUE_NODE)
                b->parts[graph->values[x].node].bytes = i;
        }
    for (int32_t m = 0; m < end; m++) {
        int32_t reader = (int32_t)b->parts[m].bytes;
        if (reader <= m)
            continue;
        double bytes = bytes_of(graph, graph->nodes[m].output);
        b->received[m + 1] += bytes, b->received[reader + 1] -= bytes;
        b->messages[m + 1]++, b->messages[reader + 1]--;
    }
    for (int32_t j = 1; j <= b->nodes; j++) {
        b->received[j] += b->received[j - 1];
        b->messages[j] += b->messages[j - 1];
    }
}

/* Inputs and outputs of the network that are at node j, and at none behind it in its stage; with
 * outputs there are gradients. What is sent is counted there. */
static double end_bytes(struct balance *b, int32_t j, bool sent)
{
    const struct node *node = &b->graph->nodes[j];
    double bytes = b->output[j] && !sent ? 2 * bytes_of(b->graph, node->output) : 0;
    for (int k = 0; k < node->n_inputs; k++) {
        value_id x = node->inputs[k];
        if (x == NO_VALUE || b->graph->values[x].kind != VALUE_INPUT || b->counted[x] == b->round)
            continue;
        b->counted[x] = b->round;
        bytes += bytes_of(b->graph, x);
    }
    return bytes;
}

/* parts[j]: the stage [j, end), for all j < end. Gradients of what it received go back. */
static void parts_ending(struct balance *b, int32_t end)
{
    double work_s = 0, sent = 0, messages = 0, kept = 0, ends = 0;
    sum_received(b, end);
    b->round++;
    for (int32_t j = end - 1; j >= 0; j--) {
        const struct node_cost *cost = &b->costs[j];
        work_s += cost->forward_s + cost->backward_s;
        kept = (double)cost->kept + fmax(kept, (double)cost->working);
        bool goes = b->last_reader[j] >= end;
        if (goes)
            sent += bytes_of(b->graph, b->graph->nodes[j].output), messages++;
        ends += end_bytes(b, j, goes);
        double moved = sent + b->received[j];
        b->parts[j] = (struct part){
            .seconds = work_s + (messages + b->messages[j]) * b->wire.latency_s +
                       (b->wire.bytes_per_s > 0 ? moved / b->wire.bytes_per_s : 0),
            .bytes =
                kept + ends + 2 * moved, /* and gradients, or another layout: costs_of_stages */
        };
    }
}

/* --- the best of all cuts --- */

enum aim { AIM_SECONDS, AIM_BYTES };

/* The least that the largest of n stages can be, of cuts whose stages take no more than these;
 * INFINITY: there is none. begin [n + 1]. */
static double search(struct balance *b, const bool *forbidden, enum aim aim, struct part most,
                     int32_t *begin)
{
    size_t row = (size_t)b->nodes + 1;
    for (size_t i = 0; i < row * (size_t)(b->n + 1); i++)
        b->best[i] = INFINITY;
    b->best[0] = 0;
    for (int32_t end = 1; end <= b->nodes; end++) {
        if (end < b->nodes && forbidden[end])
            continue;
        parts_ending(b, end);
        for (int32_t j = 0; j < end; j++) {
            const struct part *part = &b->parts[j];
            if (part->seconds > most.seconds || part->bytes > most.bytes || (j && forbidden[j]))
                continue;
            double size = aim == AIM_SECONDS ? part->seconds : part->bytes;
            for (int s = 1; s <= b->n; s++) {
                double worst = fmax(b->best[(size_t)(s - 1) * row + (size_t)j], size);
                size_t at = (size_t)s * row + (size_t)end;
                if (worst < b->best[at])
                    b->best[at] = worst, b->from[at] = j;
            }
        }
    }
    double found = b->best[(size_t)b->n * row + (size_t)b->nodes];
    begin[b->n] = b->nodes;
    for (int s = b->n; s > 0 && isfinite(found); s--)
        begin[s - 1] = b->from[(size_t)s * row + (size_t)begin[s]];
    return found;
}

/* After a search without limits that found none. */
static int most_stages(const struct balance *b)
{
    int most = b->n;
    while (most > 1 && !isfinite(b->best[(size_t)most * ((size_t)b->nodes + 1) + (size_t)b->nodes]))
        most--;
    return most;
}

/* Within one percent of the fastest, the one that keeps the least. */
static bool choose(struct balance *b, const bool *forbidden, size_t memory, int32_t *begin,
                   struct err *err)
{
    struct part any = { INFINITY, INFINITY };
    struct part most = { INFINITY, memory ? (double)memory : INFINITY };
    double fastest = search(b, forbidden, AIM_SECONDS, most, begin);
    if (!isfinite(fastest)) {
        double least = search(b, forbidden, AIM_BYTES, any, begin);
        if (!isfinite(least))
            return err_set(err, ERR_USAGE, "%s: cannot be cut into %d stages, only into %d",
                           b->graph->name, b->n, most_stages(b));
        return err_set(err, ERR_MEMORY,
                       "%s: cut into %d stages, one keeps at least %.0f MB, but only %.0f MB are "
                       "allowed; use more stages, a smaller batch or smaller images",
                       b->graph->name, b->n, ceil(least / 1e6), (double)memory / 1e6);
    }
    most.seconds = 1.01 * fastest;
    search(b, forbidden, AIM_BYTES, most, begin);
    return true;
}

static bool balance_new(struct balance *b, struct err *err)
{
    size_t nodes = (size_t)b->nodes + 2, cells = nodes * (size_t)(b->n + 1);
    b->last_reader = malloc(nodes * sizeof *b->last_reader);
    b->forbidden = calloc(nodes, sizeof *b->forbidden);
    b->output = calloc(nodes, sizeof *b->output);
    b->counted = calloc((size_t)b->graph->n_values + 1, sizeof *b->counted);
    b->received = malloc(nodes * sizeof *b->received);
    b->messages = malloc(nodes * sizeof *b->messages);
    b->parts = malloc(nodes * sizeof *b->parts);
    b->best = malloc(cells * sizeof *b->best);
    b->from = malloc(cells * sizeof *b->from);
    for (size_t i = 0; b->last_reader && i < nodes; i++)
        b->last_reader[i] = -1;
    bool ok = b->last_reader && b->forbidden && b->output && b->counted && b->received &&
              b->messages && b->parts && b->best && b->from;
    for (int i = 0; ok && i < b->graph->n_outputs; i++)
        if (graph_maker(b->graph, b->graph->outputs[i].value))
            b->output[b->graph->values[b->graph->outputs[i].value].node] = true;
    return ok || err_memory(err, b->graph->name);
}

static void balance_free(struct balance *b)
{
    free(b->last_reader), free(b->forbidden), free(b->output), free(b->counted);
    free(b->received), free(b->messages);
    free(b->parts), free(b->best), free(b->from);
}

bool costs_balance(const struct graph *graph, const struct node_cost *costs, int n,
                   const struct wire *wire, size_t memory, int32_t *begin, struct err *err)
{
    if (n < 1 || n > STAGES_MOST)
        return err_set(err, ERR_USAGE, "%s: cannot be cut into %d stages; the most is %d",
                       graph->name, n, STAGES_MOST);
    if (n > graph->n_nodes)
        return err_set(err, ERR_USAGE, "%s: cannot be cut into %d stages: it has %d layers",
                       graph->name, n, (int)graph->n_nodes);
    struct balance b = {
        .graph = graph, .costs = costs, .wire = *wire, .n = n, .nodes = graph->n_nodes
    };
    bool *spared = calloc((size_t)graph->n_nodes + 1, sizeof *spared);
    bool ok = spared || err_memory(err, graph->name);
    ok = ok && balance_new(&b, err) && forbid(&b, err);
    ok = ok && choose(&b, spare_activations(&b, spared) ? spared : b.forbidden, memory, begin, err);
    balance_free(&b);
    free(spared);
    return ok;
}
