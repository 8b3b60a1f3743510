/* peer_job.h: one peer's plan of a small network, with what it is to be given and what it gave. */
#ifndef SUPPORT_PEER_JOB_H
#define SUPPORT_PEER_JOB_H
#include "net/plan/plan.h"

/* Threads may not fail a test, so they note whether all went well. */
struct peer_job {
    struct graph *graph;
    struct plan *plan;
    struct plan_options options;
    int64_t first; /* row of an image, or index, at which its part begins */
    bool ok;
};
void peer_job_free(struct peer_job *job); /* what it has */

/* A number in [-0.5, 0.5) for a thing and a place in it. */
float peer_job_number(uint64_t what, uint64_t index);
/* Whether the graph is right and has its starting weights. */
bool peer_job_ready(struct graph *graph);
/* The gradient of the first input; free(). */
float *peer_job_input_gradient(const struct peer_job *job);
#endif
