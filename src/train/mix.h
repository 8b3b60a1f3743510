/* mix.h: mixup (Zhang et al. 2018): the network learns from blends of two patches, with their
 * labels blended in the same way. Each patch of a batch is blended with its neighbour (0 with 1, 2
 * with 3 and so on; an odd last one stays as it is), so ranks with an even batch make the same
 * pairs as one rank. The share of a patch is Beta(alpha, alpha), folded to at least 1/2, and keyed
 * by (seed, epoch, sample). */
#ifndef TRAIN_MIX_H
#define TRAIN_MIX_H
#include "prepare/augment.h"
#include "train/loader.h"

/* shares [count]: drawn; others [count]: the neighbours' labels; pixels [count, floats]: blended.
 * alpha > 0. key.sample is ignored. */
void mix_batch(const struct batch *batch, int64_t count, int64_t floats, double alpha,
               struct augment_key key, float *shares, int32_t *others, float *pixels);
#endif
