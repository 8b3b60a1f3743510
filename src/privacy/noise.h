/* noise.h: normal noise that nobody without the key can subtract.
 *
 * Value i of a step is made from words 2 * (i / 2) and the one after it of the cipher's stream of
 * that step by Box and Muller's transform in double precision: from uniforms of 53 bits in (0, 1]
 * and [0, 1). So values lie within 8.58 standard deviations (the probability of more is 1e-17) and
 * are a grid finer than floats, to which the sum is rounded once. What an attacker could learn from
 * the low bits of floats (Mironov 2012) is not covered by epsilon, here as in other programs. */
#ifndef PRIVACY_NOISE_H
#define PRIVACY_NOISE_H
#include "privacy/cipher.h"

/* out [n]: values first, first + 1, .. of the step, of mean 0 and variance 1. Thread-safe. */
void noise_normals(const struct secret *secret, uint64_t step, int64_t first, int64_t n,
                   double *out);
/* to [n] = (to + scale * noise) * factor, with the noise of values first, .. . Thread-safe. */
void noise_add(const struct secret *secret, uint64_t step, int64_t first, int64_t n, double scale,
               double factor, float *to);
#endif
