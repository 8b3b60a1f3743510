/* sampler.h: images from noise: a denoiser followed along the path of probability flow.
 *
 * Image i depends on the network, the seed, i and its condition alone: not on what is made with it,
 * on ranks or on threads. For that the network always runs on SAMPLER_BATCH rows.
 * Samplers: euler: one run of the network a step. For epsilon and v that is DDIM with eta 0. heun:
 * two, of the second order (Karras et al. 2022); the last step is Euler's. */
#ifndef DIFFUSION_SAMPLER_H
#define DIFFUSION_SAMPLER_H
#include "base/ctx.h"
#include "diffusion/denoiser.h"

#define SAMPLER_BATCH 16 /* rows of the network's batch */

enum sampler_rule { SAMPLER_EULER, SAMPLER_HEUN };

struct sampler_options {
    enum process process;
    enum sampler_rule rule;
    int64_t steps;
    double guidance; /* F = none + guidance (given - none); 1: no second run without condition */
    uint64_t seed;
    int threads;
};

struct sampler;

/* The graph has batch SAMPLER_BATCH and must outlive it. *out is the caller's. */
bool sampler_new(const struct graph *graph, const struct sampler_options *options,
                 struct sampler **out, struct err *err);
void sampler_free(struct sampler *sampler); /* NULL-safe */

/* Images made at once: half of the batch with guidance. */
int64_t sampler_most(const struct sampler *sampler);
/* n <= sampler_most images, number `first` and those that follow; conditions [n, conditions] (NULL:
 * none) -> images [n, floats]. */
bool sampler_run(struct sampler *sampler, int64_t first, int64_t n, const float *conditions,
                 float *images, struct err *err);

/* The noise that image `index` starts from, [count], variance 1. */
void sampler_noise(uint64_t seed, int64_t index, int64_t count, float *out);
#endif
