/* costs_heads.h: what the layers cost on one of several processes that divide attention heads and
 * MLP columns (transform_heads), from the costs of the whole network. */
#ifndef NET_STAGES_COSTS_HEADS_H
#define NET_STAGES_COSTS_HEADS_H
#include "net/stages/costs.h"

/* What processes send each other in one pass: a sum is two exchanges (net/plan/peer_parts.h), a
 * part of a sum or the joining of parts one. bytes: of the whole tensors, at the shapes of the
 * graph. */
struct heads_sums {
    int exchanges;
    size_t bytes;
};

/* part: of the last process, which has most tokens where they are divided. costs [n_nodes of whole]
 * -> out [n_nodes of part], and the exchanges of both passes, which are
 * not in out. Nothing is taken to hide them. Layers take the share of the time that they have of
 * the work; memory is that of a plan of the part. */
bool costs_of_heads(const struct graph *whole, const struct node_cost *costs,
                    const struct graph *part, int parts, struct node_cost *out,
                    struct heads_sums *forward, struct heads_sums *backward, struct err *err);

/* Seconds of the exchanges of `images` at once over so many processes, each as P - 1 messages of 1
 * / P of the tensor. */
double heads_sums_s(const struct heads_sums *sums, int parts, int64_t images,
                    const struct wire *wire);
#endif
