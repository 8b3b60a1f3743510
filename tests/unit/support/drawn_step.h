/* drawn_step.h: weights, inputs and gradients for a step of training that follow from names and
 * numbers alone, so that a network and its parts, in several processes, are given the same. */
#ifndef TESTS_UNIT_SUPPORT_DRAWN_STEP_H
#define TESTS_UNIT_SUPPORT_DRAWN_STEP_H
#include "net/plan/plan.h"

int64_t floats_of(const struct graph *graph, value_id value);
/* Uniform weights of He's variance: graph_initialize takes seconds for large networks. False if no
 * memory. */
bool draw_weights(struct graph *graph);
/* An input of a micro-batch. It is told by its name, for its port is another one in each part. */
void draw_input(const struct graph *graph, int port, int micro, float *to);
/* Gradients with respect to the outputs, which depend on them. */
void draw_loss(const struct graph *graph, struct plan *plan, int micro);
#endif
