/* costs.h: what the layers of a network cost in training, measured on this machine, and cuts into
 * stages that cost alike. */
#ifndef NET_STAGES_COSTS_H
#define NET_STAGES_COSTS_H
#include "net/stages/stages.h"

struct node_cost {
    double forward_s;
    double backward_s; /* all of it */
    double weights_s;  /* the part of backward_s that only makes gradients of parameters */
    size_t kept;       /* bytes that stay from the forward to the backward pass */
    size_t working;    /* bytes that are there besides while it runs backward */
};

struct costs_options {
    int threads;
    size_t room;      /* bytes that measuring may take; 0: any */
    int64_t least_px; /* sides are not made smaller than this */
    int repeats;      /* the shortest counts; 0: 2 */
};

/* costs [n_nodes of the graph], at its shapes (batch and size). A network whose activations do not
 * fit into `room` is measured with a smaller batch, then on smaller images, and times are scaled
 * with the multiply-adds of each layer, or its elements where it has none; *measured_px is the side
 * that was measured, 0 if the input is not an image. Parameters must have floats; running
 * statistics do not change. */
bool costs_measure(const struct graph *graph, const struct costs_options *options,
                   struct node_cost *costs, int64_t *measured_px, struct err *err);
/* The same without measuring, from multiply-adds and bytes: the same on every machine. */
bool costs_count(const struct graph *graph, struct node_cost *costs, struct err *err);

/* A connection between processes: a message of b bytes takes latency_s + b / bytes_per_s. */
struct wire {
    double latency_s, bytes_per_s;
};
/* Where nothing is known: ten-gigabit Ethernet. */
#define WIRE_ASSUMED ((struct wire){ 10e-6, 1e9 })

/* One stage. Bytes at the shapes of the graph. */
struct stage_cost {
    double forward_s, backward_s, weights_s; /* as in node_cost */
    size_t kept;                             /* activations that it keeps, with what it needs
                                                while it runs backward: the arena of its plan */
    size_t inputs;     /* all tensors that it takes, from stages or as images */
    size_t parameters; /* floats * 4 */
};
void costs_of_stages(const struct stages *stages, const struct node_cost *costs,
                     struct stage_cost *out);

/* The cut into n stages whose slowest stage, with what it sends, is the fastest; among those within
 * one percent, the one whose stages keep the least. memory: bytes that a stage may keep; 0: any. A
 * limit that cannot be met is refused with the least that can. Stages share no parameter, and the
 * first output of the graph is made by the last of them. begin [n + 1]. */
bool costs_balance(const struct graph *graph, const struct node_cost *costs, int n,
                   const struct wire *wire, size_t memory, int32_t *begin, struct err *err);
#endif
