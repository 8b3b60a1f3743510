/* process.h: how an image becomes noise, and what a network learns that turns noise into images.
 *
 * At a time t an image x0 is x = keep x0 + spread n, with n normal noise of variance 1:
 *   flow      keep = 1 - t, spread = t, t in [0, 1]; learnt is n - x0 (flow matching, Lipman 2023)
 *   edm       keep = 1, spread = sigma = t; the network is preconditioned for images of deviation
 *             0.5 (Karras et al. 2022)
 *   epsilon   keep = sqrt(abar), spread = sqrt(1 - abar), t in 1 .. 1000 with beta from 1e-4 to
 *             0.02; learnt is n (DDPM, Ho et al. 2020)
 *   v         the same; learnt is keep n - spread x0 (Salimans and Ho 2022)
 * All of them are one line here: the network takes scale x and a number for the time, and its
 * output F gives the image by x0 = from_x x + from_f F. Everything is drawn by name (base/rng.h):
 * no state, thread-safe. */
#ifndef DIFFUSION_PROCESS_H
#define DIFFUSION_PROCESS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/rng.h"

enum process { PROCESS_FLOW, PROCESS_EDM, PROCESS_EPSILON, PROCESS_V };
extern const char *const process_names[]; /* NULL-terminated, in the order of the enum */

#define PROCESS_STEPS 1000   /* of epsilon and v */
#define PROCESS_DEVIATION .5 /* of images, for edm */

/* What holds at one time. */
struct process_at {
    double keep, spread;   /* x = keep x0 + spread n */
    double scale;          /* the network takes scale x */
    double code;           /* and this number for the time, 0 .. 1000 or so */
    double from_x, from_f; /* x0 = from_x x + from_f F */
};
struct process_at process_at(enum process process, double time);

/* A time for training: flow: the logistic function of a normal number; edm: exp(-1.2 + 1.2 of one);
 * epsilon and v: any of the 1000. */
double process_draw(enum process process, struct rng *rng);

/* abar of step t in 0 .. 1000: the product of 1 - beta. */
double process_kept(int64_t step);

/* n + 1 times from noise to the image, for n steps of a sampler: flow: 1 .. 0 evenly; edm: Karras'
 * from 80 to 0.002 with exponent 7, then 0; epsilon and v: n of the steps 1 .. 1000, evenly, the
 * last of which is 1000, then 0. False if there are more steps than those. */
bool process_times(enum process process, int64_t n, double *times, struct err *err);

/* What the network should give for x0 and n [count]; x: scaled as it takes it. */
void process_mix(const struct process_at *at, int64_t count, const float *x0, const float *noise,
                 float *x, float *wanted);

/* Along the path of probability flow: the image moves from `time` by (to - time) * slope in the
 * coordinate of process_place: x itself for flow, x / keep otherwise. */
double process_place(enum process process, double time);
/* slope [count] from x (unscaled) and the network's F. */
void process_slope(enum process process, const struct process_at *at, int64_t count, const float *x,
                   const float *f, float *slope);
/* x at `from` moved along a slope to `to`. */
void process_move(enum process process, double from, double to, int64_t count, const float *x,
                  const float *slope, float *out);
#endif
