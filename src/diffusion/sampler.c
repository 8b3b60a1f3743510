/* sampler.c: see sampler.h. */
#include "diffusion/sampler.h"

#include <stdlib.h>
#include <string.h>

struct sampler {
    struct sampler_options options;
    struct denoiser denoiser;
    double *times;                                 /* [steps + 1] */
    float *x, *slope, *next, *next_slope, *guided; /* [SAMPLER_BATCH, floats] */
    float *conditions;                             /* [SAMPLER_BATCH, conditions] */
};

void sampler_noise(uint64_t seed, int64_t index, int64_t count, float *out)
{
    struct rng rng = rng_new(seed, rng_hash("start of a sample"), (uint64_t)index);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)rng_normal(&rng);
}

static bool guides(const struct sampler *sampler)
{
    return sampler->options.guidance != 1 && sampler->denoiser.condition >= 0;
}

int64_t sampler_most(const struct sampler *sampler)
{
    return guides(sampler) ? SAMPLER_BATCH / 2 : SAMPLER_BATCH;
}

void sampler_free(struct sampler *sampler)
{
    if (!sampler)
        return;
    denoiser_free(&sampler->denoiser);
    free(sampler->times);
    free(sampler->x);
    free(sampler->slope);
    free(sampler->next);
    free(sampler->next_slope);
    free(sampler->guided);
    free(sampler->conditions);
    free(sampler);
}

static bool allocate(struct sampler *sampler, struct err *err)
{
    size_t images = (size_t)(SAMPLER_BATCH * sampler->denoiser.floats);
    float **const rooms[] = { &sampler->x, &sampler->slope, &sampler->next, &sampler->next_slope,
                              &sampler->guided };
    bool ok = true;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        ok = (*rooms[i] = calloc(images, sizeof(float))) && ok;
    sampler->conditions =
        calloc((size_t)(SAMPLER_BATCH * (sampler->denoiser.conditions + 1)), sizeof(float));
    sampler->times = calloc((size_t)sampler->options.steps + 1, sizeof *sampler->times);
    return (ok && sampler->conditions && sampler->times) || err_memory(err, "samples");
}

bool sampler_new(const struct graph *graph, const struct sampler_options *options,
                 struct sampler **out, struct err *err)
{
    struct sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return err_memory(err, "samples");
    sampler->options = *options;
    if (!denoiser_new(graph, options->threads, &sampler->denoiser, err) ||
        !allocate(sampler, err) ||
        !process_times(options->process, options->steps, sampler->times, err)) {
        sampler_free(sampler);
        return false;
    }
    *out = sampler;
    return true;
}

/* The slope of all rows at a time, from x. With guidance the second half of the rows is the first
 * one without its condition; both get the guided slope. */
static bool find_slope(struct sampler *sampler, double time, const float *x, float *slope,
                       struct err *err)
{
    enum process process = sampler->options.process;
    struct process_at all[SAMPLER_BATCH], at = process_at(process, time);
    int64_t floats = sampler->denoiser.floats, half = SAMPLER_BATCH / 2 * floats;
    float guidance = (float)sampler->options.guidance;
    for (int i = 0; i < SAMPLER_BATCH; i++)
        all[i] = at;
    const float *f = denoiser_run(&sampler->denoiser, all, x, sampler->conditions, err);
    if (!f)
        return false;
    if (guides(sampler)) {
        for (int64_t i = 0; i < half; i++)
            sampler->guided[i] = sampler->guided[half + i] =
                f[half + i] + guidance * (f[i] - f[half + i]);
        f = sampler->guided;
    }
    process_slope(process, &at, SAMPLER_BATCH * floats, x, f, slope);
    return true;
}

static bool step(struct sampler *sampler, double from, double to, struct err *err)
{
    enum process process = sampler->options.process;
    int64_t count = SAMPLER_BATCH * sampler->denoiser.floats;
    float *slope = sampler->slope;
    if (!find_slope(sampler, from, sampler->x, slope, err))
        return false;
    if (sampler->options.rule == SAMPLER_HEUN && to > 0) {
        process_move(process, from, to, count, sampler->x, slope, sampler->next);
        if (!find_slope(sampler, to, sampler->next, sampler->next_slope, err))
            return false;
        for (int64_t i = 0; i < count; i++)
            slope[i] = 0.5f * (slope[i] + sampler->next_slope[i]);
    }
    process_move(process, from, to, count, sampler->x, slope, sampler->x);
    return true;
}

bool sampler_run(struct sampler *sampler, int64_t first, int64_t n, const float *conditions,
                 float *images, struct err *err)
{
    const struct denoiser *d = &sampler->denoiser;
    int64_t most = sampler_most(sampler);
    struct process_at at = process_at(sampler->options.process, sampler->times[0]);
    memset(sampler->conditions, 0,
           (size_t)(SAMPLER_BATCH * d->conditions) * sizeof *sampler->conditions);
    if (conditions && d->condition >= 0)
        memcpy(sampler->conditions, conditions, (size_t)(n * d->conditions) * sizeof *conditions);
    for (int64_t i = 0; i < SAMPLER_BATCH; i++) {
        float *x = sampler->x + i * d->floats;
        sampler_noise(sampler->options.seed, first + i % most, d->floats, x);
        for (int64_t k = 0; k < d->floats; k++)
            x[k] *= (float)at.spread;
    }
    for (int64_t i = 0; i < sampler->options.steps; i++)
        if (!step(sampler, sampler->times[i], sampler->times[i + 1], err))
            return false;
    memcpy(images, sampler->x, (size_t)(n * d->floats) * sizeof *images);
    return true;
}
