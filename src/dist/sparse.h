/* sparse.h: deep gradient compression: of every step's gradients each rank sends the largest few
 * and keeps the rest for later. Momentum is taken before sending: u = m u + g, v = v + u; where v
 * is sent, u and v become 0. Used by one thread. */
#ifndef DIST_SPARSE_H
#define DIST_SPARSE_H
#include "dist/ranks.h"

struct sparse;

/* at [n + 1]: where the n parameters stand in the flat vector; whole [n]: those that are always
 * sent whole (norms, biases). *out is the caller's; free with sparse_free. */
bool sparse_new(const int64_t *at, const bool *whole, int64_t n, double momentum,
                struct sparse **out, struct err *err);
void sparse_free(struct sparse *sparse); /* NULL-safe */

/* Collective: gradients of this rank -> the sum of what all ranks send, the same on all. keep: the
 * share of each parameter that is sent, at least one float; 1: everything, and then it is momentum
 * as ever. */
bool sparse_sum(struct sparse *sparse, struct ranks *ranks, float *gradients, double keep,
                struct err *err);

/* What a rank has to remember: velocity u and rest v, [*count] each. */
float *sparse_velocity(struct sparse *sparse, int64_t *count);
float *sparse_rest(struct sparse *sparse, int64_t *count);
/* Forgets both. */
void sparse_clear(struct sparse *sparse);
#endif
