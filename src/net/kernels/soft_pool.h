/* soft_pool.h: poolings of a whole map by exponentials, plain layout, in pieces of any extent: what
 * was seen is kept as the largest exponent so far and sums relative to it, in double. So nothing
 * overflows, and a map may come tile by tile. */
#ifndef NET_KERNELS_SOFT_POOL_H
#define NET_KERNELS_SOFT_POOL_H
#include <stdint.h>

/* Sum of exp(exponents), divided by exp(top). */
struct soft_sum {
    double top, sum;
};
#define SOFT_SUM_NONE ((struct soft_sum){ -INFINITY, 0 })

/* exp(r x) of n floats is added. */
void soft_sum_add(struct soft_sum *s, float r, const float *x, int64_t n);
void soft_sum_merge(struct soft_sum *s, struct soft_sum other);
/* y[i] = exp(r x[i]) / sum, times `factor`. */
void soft_sum_shares(struct soft_sum s, float r, double factor, const float *x, int64_t n,
                     float *y);

/* Images [channels, cells], one after another. */
struct soft_pool {
    int64_t images, channels, cells;
    int threads;
};

/* Log-sum-exp of every channel: y = 1/r log mean exp(r x). */
void lse_pool(const struct soft_pool *p, float r, const float *x, float *y);
void lse_pool_back(const struct soft_pool *p, float r, const float *x, const float *dy, float *dx);

/* y [images, channels] = x weighted with the softmax of scores [images, cells]. sums [channels]:
 * scratch. */
void attention_pool(const struct soft_pool *p, const float *x, const float *scores, double *sums,
                    float *y);
/* dx and dscores may be NULL. */
void attention_pool_back(const struct soft_pool *p, const float *x, const float *scores,
                         const float *dy, double *sums, float *dx, float *dscores);

/* The parts of the latter for one image, which may be a tile [channels, cells] of a larger one
 * whose scores add up to s. sums [channels] are relative to exp(top). */
void attention_add(const struct soft_pool *p, struct soft_sum s, const float *x,
                   const float *scores, double *sums);
/* level: the sum over channels of dy times the result. */
void attention_back(const struct soft_pool *p, struct soft_sum s, double level, const float *x,
                    const float *scores, const float *dy, float *dx, float *dscores);
#endif
