/* process.c: see process.h. */
#include "diffusion/process.h"

#include <math.h>

const char *const process_names[] = { "flow", "edm", "epsilon", "v", 0 };

#define FIRST_BETA 1e-4
#define LAST_BETA 0.02
#define MOST_SIGMA 80.0
#define LEAST_SIGMA 0.002
#define RHO 7.0

double process_kept(int64_t step)
{
    double kept = 1;
    for (int64_t i = 0; i < step; i++)
        kept *= 1 - (FIRST_BETA + (LAST_BETA - FIRST_BETA) * (double)i / (PROCESS_STEPS - 1));
    return kept;
}

static struct process_at flow_at(double t)
{
    return (struct process_at){ 1 - t, t, 1, 1000 * t, 1, -t };
}

static struct process_at edm_at(double sigma)
{
    const double d = PROCESS_DEVIATION, sum = sigma * sigma + d * d, root = sqrt(sum);
    double code = sigma > 0 ? 250 * (log(sigma) / 4 + 2) : 0; /* 112 .. 774 for .002 .. 80 */
    return (struct process_at){ 1, sigma, 1 / root, code, d * d / sum, sigma * d / root };
}

static struct process_at ddpm_at(double step, bool v)
{
    double kept = process_kept((int64_t)step), keep = sqrt(kept), spread = sqrt(1 - kept);
    if (v)
        return (struct process_at){ keep, spread, 1, step, keep, -spread };
    return (struct process_at){ keep, spread, 1, step, 1 / keep, -spread / keep };
}

struct process_at process_at(enum process process, double time)
{
    switch (process) {
    case PROCESS_FLOW:
        return flow_at(time);
    case PROCESS_EDM:
        return edm_at(time);
    default:
        return ddpm_at(time, process == PROCESS_V);
    }
}

double process_draw(enum process process, struct rng *rng)
{
    switch (process) {
    case PROCESS_FLOW:
        return 1 / (1 + exp(-rng_normal(rng)));
    case PROCESS_EDM:
        return exp(-1.2 + 1.2 * rng_normal(rng));
    default:
        return 1 + (double)rng_below(rng, PROCESS_STEPS);
    }
}

bool process_times(enum process process, int64_t n, double *times, struct err *err)
{
    double most = pow(MOST_SIGMA, 1 / RHO), least = pow(LEAST_SIGMA, 1 / RHO);
    if (process >= PROCESS_EPSILON && n > PROCESS_STEPS)
        return err_set(err, ERR_USAGE, "--steps: a model of process %s has at most %d",
                       process_names[process], PROCESS_STEPS);
    for (int64_t i = 0; i < n; i++) {
        double part = n > 1 ? (double)i / (double)(n - 1) : 0;
        if (process == PROCESS_FLOW)
            times[i] = 1 - (double)i / (double)n;
        else if (process == PROCESS_EDM)
            times[i] = pow(most + part * (least - most), RHO);
        else
            times[i] = floor((double)PROCESS_STEPS * (double)(n - i) / (double)n);
    }
    times[n] = 0;
    return true;
}

void process_mix(const struct process_at *at, int64_t count, const float *x0, const float *noise,
                 float *x, float *wanted)
{
    double keep = at->keep, spread = at->spread;
    /* F such that from_x x + from_f F = x0 */
    float of_x0 = (float)((1 - at->from_x * keep) / at->from_f),
          of_noise = (float)(-at->from_x * spread / at->from_f);
    float to_x0 = (float)(at->scale * keep), to_noise = (float)(at->scale * spread);
    for (int64_t i = 0; i < count; i++) {
        x[i] = to_x0 * x0[i] + to_noise * noise[i];
        wanted[i] = of_x0 * x0[i] + of_noise * noise[i];
    }
}

double process_place(enum process process, double time)
{
    if (process == PROCESS_FLOW)
        return time;
    struct process_at at = process_at(process, time);
    return at.spread / at.keep;
}

void process_slope(enum process process, const struct process_at *at, int64_t count, const float *x,
                   const float *f, float *slope)
{
    /* flow: F. Otherwise the noise: (x - keep x0) / spread with x0 = from_x x + from_f F */
    float of_x = (float)((1 - at->keep * at->from_x) / at->spread),
          of_f = (float)(-at->keep * at->from_f / at->spread);
    if (process == PROCESS_FLOW)
        of_x = 0, of_f = 1;
    for (int64_t i = 0; i < count; i++)
        slope[i] = of_x * x[i] + of_f * f[i];
}

void process_move(enum process process, double from, double to, int64_t count, const float *x,
                  const float *slope, float *out)
{
    struct process_at here = process_at(process, from), there = process_at(process, to);
    bool flow = process == PROCESS_FLOW;
    double way = process_place(process, to) - process_place(process, from);
    float of_x = (float)(flow ? 1 : there.keep / here.keep),
          of_slope = (float)(flow ? way : there.keep * way);
    for (int64_t i = 0; i < count; i++)
        out[i] = of_x * x[i] + of_slope * slope[i];
}
