/* sparse.h: deep gradient compression: in every step each rank sends the few largest gradients and
 * keeps the rest for later. Momentum is applied before sending: u = m u + g, v = v + u; where v is
 * sent, u and v become 0. Used by one thread. */
#ifndef DIST_SPARSE_H
#define DIST_SPARSE_H
#include "dist/ranks.h"

struct sparse;

/* at [n + 1]: the offsets of the n parameters in the flat vector; whole [n]: those always sent in
 * full (norms, biases). *out is the caller's; free with sparse_free. */
bool sparse_new(const int64_t *at, const bool *whole, int64_t n, double momentum,
                struct sparse **out, struct err *err);
void sparse_free(struct sparse *sparse); /* NULL-safe */

/* Collective: gradients of this rank -> the sum of what all ranks send, the same on all. keep: the
 * fraction of each parameter that is sent, at least one float; 1: everything, which is ordinary
 * momentum. */
bool sparse_sum(struct sparse *sparse, struct ranks *ranks, float *gradients, double keep,
                struct err *err);

/* The state of a rank: velocity u and rest v, [*count] each. */
float *sparse_velocity(struct sparse *sparse, int64_t *count);
float *sparse_rest(struct sparse *sparse, int64_t *count);
/* Clears both. */
void sparse_clear(struct sparse *sparse);
#endif
