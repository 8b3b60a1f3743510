/* costs_heads.h: what the layers cost on one of several processes that divide attention heads and
 * MLP columns (transform_heads), from the costs of the whole network. */
#ifndef NET_STAGES_COSTS_HEADS_H
#define NET_STAGES_COSTS_HEADS_H
#include "net/stages/costs.h"

/* Sums over the processes of one pass; bytes at the shapes of the graph. */
struct heads_sums {
    int n;
    size_t bytes;
};

/* costs [n_nodes of whole] -> out [n_nodes of part], and the sums of both passes, which are not in
 * out. Layers take the share of the time that they have of the work; memory is that of a plan of
 * the part. */
bool costs_of_heads(const struct graph *whole, const struct node_cost *costs,
                    const struct graph *part, int parts, struct node_cost *out,
                    struct heads_sums *forward, struct heads_sums *backward, struct err *err);

/* Seconds of the sums of `images` at once over so many processes, each as a ring: 2 (P - 1)
 * messages of 1 / P of it. */
double heads_sums_s(const struct heads_sums *sums, int parts, int64_t images,
                    const struct wire *wire);
#endif
