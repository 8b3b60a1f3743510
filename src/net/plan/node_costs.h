/* node_costs.h: what each node of a graph takes when it is trained: time, as measured by a plan
 * with options.profile, and memory, found without making one. Internal to src/net. */
#ifndef NET_PLAN_NODE_COSTS_H
#define NET_PLAN_NODE_COSTS_H
#include "net/plan/plan.h"

struct plan_node_times {
    double forward_s;
    double backward_s; /* all of it */
    double weights_s;  /* the part of it that only makes gradients of parameters */
};
/* The shortest of all runs so far, [n_nodes] of the plan's graph; what no step was measured for is
 * 0. Refused for plans that are not run whole. */
bool plan_node_times(const struct plan *plan, struct plan_node_times *out, struct err *err);

struct plan_node_memory {
    size_t kept; /* bytes that it makes in the forward pass and that stay for the backward pass */
    size_t working; /* bytes that are there besides what is kept, while it runs backward */
};
/* [n_nodes], for a plan that runs the graph whole and keeps all. Takes milliseconds. */
bool plan_node_memory(const struct graph *graph, const struct plan_options *options,
                      struct plan_node_memory *out, struct err *err);
#endif
