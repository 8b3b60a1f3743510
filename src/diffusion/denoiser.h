/* denoiser.h: a network that was trained to turn noise into images, as it runs on a batch of fixed
 * size. Used by one thread; runs on `threads`. */
#ifndef DIFFUSION_DENOISER_H
#define DIFFUSION_DENOISER_H
#include "diffusion/process.h"
#include "net/plan/plan.h"

struct denoiser {
    struct plan *plan;
    int x, time, condition, output; /* ports; condition -1: the network takes none */
    int64_t batch, floats;          /* of an image */
    int64_t features, conditions;   /* of the time and of the condition */
};

/* The graph must outlive it and has the batch. Free with denoiser_free. */
bool denoiser_new(const struct graph *graph, int threads, struct denoiser *out, struct err *err);
void denoiser_free(struct denoiser *denoiser); /* also fine on a zeroed struct */

/* Ports of a network by name; false with an error if it is no denoiser. */
bool denoiser_ports(const struct graph *graph, struct denoiser *out, struct err *err);

/* x [batch, floats], not scaled, at[batch]; conditions [batch, conditions], NULL: none -> F [batch,
 * floats], valid until the next run; NULL with an error. */
const float *denoiser_run(struct denoiser *denoiser, const struct process_at *at, const float *x,
                          const float *conditions, struct err *err);
#endif
