/* group_norm.h: group normalisation with the relu or SiLU that follows it, forward and backward, in
 * plain or blocked layout. An image's channels are processed by one thread in pieces of whole
 * blocks and whole groups, and sums over images are added in their order: the result does not
 * depend on the number of threads. */
#ifndef NET_KERNELS_GROUP_NORM_H
#define NET_KERNELS_GROUP_NORM_H
#include <stddef.h>
#include <stdint.h>
#include "net/kernels/simd.h"

enum group_norm_then { GROUP_NORM_THEN_NOTHING, GROUP_NORM_THEN_RELU, GROUP_NORM_THEN_SILU };

/* x [images, blocks, area, block]: block channels, of which the last ones may be padding (0). */
struct group_norm {
    enum simd level;
    int threads;
    int64_t images, blocks, area, block; /* block: 16, 8 or 1 */
    int64_t channels, groups;            /* channels: a multiple of groups */
    float epsilon;
    enum group_norm_then then;
};

/* Bytes of scratch for either pass, and of `stats` [images, groups, 2]: mean, 1 / deviation. */
size_t group_norm_scratch(const struct group_norm *g);
size_t group_norm_stats_bytes(const struct group_norm *g);
/* stats is written. y may be x. */
void group_norm_run(const struct group_norm *g, const float *x, const float *weight,
                    const float *bias, float *y, float *stats, void *scratch);
/* dx is written and may be dy; dweight and dbias [channels] are added to and may be NULL. */
void group_norm_back(const struct group_norm *g, const float *x, const float *weight,
                     const float *bias, const float *stats, const float *dy, float *dx,
                     float *dweight, float *dbias, void *scratch);
#endif
