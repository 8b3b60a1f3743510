/* stages.h: a network cut into stages that run one after another, each on another process. A cut
 * goes between two nodes of the graph's order and may cross any number of values: residual skips
 * are further tensors that are sent, also past stages that do not need them.
 *
 * Stage graphs share the floats of their parameters with the whole graph, in which every stage sees
 * what others have learnt once it is brought there. */
#ifndef NET_STAGES_STAGES_H
#define NET_STAGES_STAGES_H
#include "net/graph/graph.h"

#define STAGES_MOST 64

/* A tensor that one stage makes and a later one reads. A value with several readers has one edge
 * for each of them; the gradients that come back are added from the last edge to the first, as in
 * the whole network. */
struct stage_edge {
    int from, to;      /* stages; from < to */
    int output, input; /* port of `from`'s graph, port of `to`'s graph */
    size_t bytes;      /* floats, plain, at the shapes of the graph */
};

struct stages {
    int n;
    int32_t
        begin[STAGES_MOST + 1]; /* stage s has the nodes [begin[s], begin[s + 1]) of the graph */
    struct graph *graphs[STAGES_MOST];
    struct stage_edge *edges; /* by `to`, then `from`, then `input` */
    int n_edges;
};

/* begin: as above, n + 1 numbers, strictly ascending. Inputs of the whole graph become inputs,
 * under their names, of every stage that reads them; its outputs are outputs of the stages that
 * make them. Refused with names: a parameter that two stages would share, an output of the graph
 * that is an input of it. *out is the caller's; free with stages_free. */
bool stages_new(const struct graph *graph, const int32_t *begin, int n, struct stages *out,
                struct err *err);
void stages_free(struct stages *stages); /* also fine on a zeroed struct */

/* Where the user cuts: the names of the last layers of all stages but the last (graph_layer), in
 * order -> begin. */
bool stages_at(const struct graph *graph, const char *const *layers, int n_layers, int32_t *begin,
               struct err *err);

/* The parameters and buffers of these stages, one stage after another, in a graph without nodes:
 * what a process that has these stages learns. Shares the floats. Parameters are in the order of
 * the stage graphs, so that the flat gradients (plan_gradients) of stage held[i] begin at at[i] of
 * those of this graph. *out is the caller's. */
bool stages_held(const struct stages *stages, const int *held, int n_held, struct graph **out,
                 int64_t *at, struct err *err);

/* A stage that two processes have, of which each sees every second micro-batch (two-way programs):
 * batch norm of its graph from now on forgets with each what one process would with two (1 -
 * momentum becomes its square). Then a weighted mean of the two running statistics after a step is
 * what one process has after all micro-batches, if their number is even. shares [values of the
 * stage graph]: the weight of this process, which has the even (copy 0) or the odd ones (copy 1); 0
 * for what is not a running statistic. Once for each stage. */
void stages_pair_statistics(struct stages *stages, int stage, int copy, float *shares);
#endif
