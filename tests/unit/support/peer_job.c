/* peer_job.c: see peer_job.h. */
#include "support/peer_job.h"
#include <stdio.h>
#include <stdlib.h>
#include "base/rng.h"

void peer_job_free(struct peer_job *job)
{
    plan_free(job->plan);
    graph_free(job->graph);
}

float peer_job_number(uint64_t what, uint64_t index)
{
    struct rng rng = rng_new(5, what, index);
    return (float)(rng_uniform(&rng) - 0.5);
}

bool peer_job_ready(struct graph *graph)
{
    return graph_ok(graph, NULL) && graph_allocate(graph, NULL) && graph_initialize(graph, 3, NULL);
}

float *peer_job_input_gradient(const struct peer_job *job)
{
    value_id input = job->graph->inputs[0].value;
    float *out = malloc((size_t)shape_count(graph_shape(job->graph, input)) * sizeof *out);
    struct err err = { 0 };
    if (!out || !plan_activation_gradient(job->plan, input, out, &err)) {
        fprintf(stderr, "the gradient of the input: %s\n", err.text);
        exit(1);
    }
    return out;
}
