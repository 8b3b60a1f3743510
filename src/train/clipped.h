/* clipped.h: gradients of units, each clipped to a norm, summed. A unit is a few rows of input (the
 * copies of a patch, or patches of a patient). Every thread has a plan of one thread for a few
 * units, whose gradients it keeps apart (plan_options.units), or for one where a layer or a limit
 * of memory forbids that. Units are added to the sum in the order of their numbers: how many
 * threads there are changes no bit. Memory: for every thread a plan and a gradient for each of its
 * units.
 *
 * Where that is cheaper (plan_options.join), only norms of units are made ("ghost norms"), and the
 * clipped gradients as one sum, without a second backward pass; docs/private-training.md has the
 * costs. */
#ifndef TRAIN_CLIPPED_H
#define TRAIN_CLIPPED_H
#include "net/plan/plan.h"

struct clipped_options {
    int64_t copies;     /* rows of a unit */
    int64_t step_units; /* in a step, about: few are better spread over threads; 0: many */
    double clip;
    int threads;
    struct plan_options plan; /* mode, saving, arena_budget, norm_frozen; the rest is set here */
};

struct clipped;

/* The graph, of any batch, must outlive it. Batch norm that is not frozen couples rows: refused.
 * *out is the caller's; free with clipped_free. */
bool clipped_new(const struct graph *graph, const struct clipped_options *options,
                 struct clipped **out, struct err *err);
void clipped_free(struct clipped *clipped); /* NULL-safe */

/* Units that run at the same time. */
int clipped_slots(const struct clipped *clipped);
/* The graph of a unit, with the values of the graph. */
const struct graph *clipped_graph(const struct clipped *clipped);
/* Where the inputs of the unit in a slot go, its outputs are and their gradients go. */
float *clipped_input(struct clipped *clipped, int slot, int i);
const float *clipped_output(const struct clipped *clipped, int slot, int i);
float *clipped_output_gradient(struct clipped *clipped, int slot, int i);
/* See plan_set_random. */
void clipped_set_random(struct clipped *clipped, int slot, uint64_t seed, uint64_t first_sample);

/* After parameters have changed, before the next _forward. */
bool clipped_refresh(struct clipped *clipped, struct err *err);
/* Units in the slots 0 .. n - 1. After _forward come the gradients of the outputs, then _backward,
 * which adds the clipped gradients to sum [graph_parameter_count]. norms [n]: before clipping; may
 * be NULL. */
bool clipped_forward(struct clipped *clipped, int n, struct err *err);
bool clipped_backward(struct clipped *clipped, int n, float *sum, double *norms, struct err *err);
#endif
