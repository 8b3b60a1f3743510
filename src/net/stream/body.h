/* body.h: a network divided for streaming: the body, whose values are maps that are computed tile
 * by tile; the poolings that end it; and the tail behind them, an ordinary graph. Nodes that see
 * parameters alone (standardised weights) belong to both. What cannot be computed by tiles is
 * refused by its name. Internal to net/stream. */
#ifndef NET_STREAM_BODY_H
#define NET_STREAM_BODY_H
#include "net/graph/rewrite.h"
#include "net/plan/plan.h"
#include "net/stream/axis.h"

enum part {
    PART_UNUSED,
    PART_FIXED, /* a parameter, or computed from parameters alone */
    PART_MAP,
    PART_TAIL, /* what a pooling gives, and all that follows */
};

struct body {
    const struct graph *graph; /* at the size of the whole image */
    enum part *parts;          /* [graph->n_values] */
    int *map_of;               /* [graph->n_values]; -1: not a map */
    value_id *maps;            /* [n_maps], in the order of the graph; 0 is the image */
    int n_maps;
    struct axis_edge *edges[2]; /* [n_edges]: for height and width; differ in their rules only */
    int32_t *edge_nodes;        /* [n_edges]: who reads */
    int *edge_inputs;           /* [n_edges]: as which input */
    int n_edges;
    int32_t *poolings; /* [n_poolings]: nodes */
    int n_poolings;
    int *ends; /* [n_ends]: maps that poolings read or that are outputs */
    int n_ends;
    struct graph *tail; /* NULL: all outputs are maps. Its inputs are what the poolings give, in
                           their order; its outputs those of the graph that are not maps */
};

bool body_new(const struct graph *graph, const struct plan_options *options, struct body *out,
              struct err *err);
void body_free(struct body *body);
/* The index of a map among the ends. */
int body_end(const struct body *body, int map);

/* Marks the nodes [graph->n_nodes] of the tail or of the maps, with the fixed ones that they need.
 */
void body_mark(const struct body *body, bool tail, bool *nodes);
/* Starts a graph that has all parameters in their order, so that its gradients lie as those of the
 * whole graph, and nothing else. */
bool body_rewrite(const struct body *body, struct rewrite *r, struct err *err);

/* rules.c: how the map that a node makes follows from its input 0; other maps that it reads are
 * read cell by cell. False: it cannot be computed by tiles. */
bool rules_of(const struct body *body, const struct node *node, const struct plan_options *options,
              struct axis_rule rules[2], struct err *err);
#endif
