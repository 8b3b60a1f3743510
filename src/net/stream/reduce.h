/* reduce.h: a pooling over a whole map that is never in memory as a whole: its tiles go in one by
 * one, and later the gradient of each comes out. The same numbers as the op of the graph, to
 * rounding; sums are in double and in a fixed order, so threads change no bits. Kinds: global
 * average (also reduce_mean over height and width, adaptive pooling to 1 x 1), global max (of equal
 * maxima the first in the order of rows), log-sum-exp, attention. Used by one thread at a time. */
#ifndef NET_STREAM_REDUCE_H
#define NET_STREAM_REDUCE_H
#include "net/graph/graph.h"
#include "net/plan/peers.h"

struct reduction;

/* Cells of the map: rows [y, y + h), columns [x, x + w). */
struct stream_region {
    int64_t y, x, h, w;
};

/* Whether a node pools a whole image map in a way known here. */
bool reduction_takes(const struct graph *graph, const struct node *node);
/* The shapes of the node's inputs are those of the whole maps. */
bool reduction_new(const struct graph *graph, const struct node *node, int threads,
                   struct reduction **out, struct err *err);
void reduction_free(struct reduction *reduction);

/* Forward: begin, add every cell once, finish. inputs[k]: plain [C_k, h, w] of this region. bands:
 * other processes have the other rows of the map; NULL: none. *out [output of the node]. */
void reduction_begin(struct reduction *reduction);
void reduction_add(struct reduction *reduction, const struct stream_region *region,
                   const float *const *inputs);
bool reduction_finish(struct reduction *reduction, const struct plan_peers *bands, float *out,
                      struct err *err);

/* Backward: the gradient of the output, then that of every region, in any order; gradients[k] as
 * inputs[k], overwritten. */
void reduction_set_gradient(struct reduction *reduction, const float *gradient);
void reduction_gradient(const struct reduction *reduction, const struct stream_region *region,
                        const float *const *inputs, float *const *gradients);
/* Whether the gradient of the region is 0 everywhere, known without its inputs. */
bool reduction_is_still(const struct reduction *reduction, const struct stream_region *region);
#endif
