/* sync_norm.h: what batch norm needs besides oneDNN's primitive if a batch is spread over several
 * processes (plan_options.norm_peers): statistics of the whole batch, and in the backward pass the
 * terms that come from them. Every function is collective over these. Sums are in double
 * and in a fixed order. */
#ifndef NET_PLAN_SYNC_NORM_H
#define NET_PLAN_SYNC_NORM_H
#include "net/plan/plan.h"

/* Physical extents [n, blocks, area, b]: channel c is in block c / b at c % b. */
struct sync_norm {
    int64_t n, blocks, area, b;
    int64_t channels;
    float epsilon;
    int n_groups; /* 0: the batch is whole */
    const struct plan_peers *groups[PEER_GROUPS];
};

/* x -> mean [channels] and biased variance [channels] of the whole batch, and of how many elements
 * each is: processes may have different numbers of them. */
bool sync_norm_statistics(const struct sync_norm *s, const float *x, float *mean, float *variance,
                          double *count, struct err *err);

/* dx contains the gradient of batch norm with fixed statistics; dweight and dbias [channels] are
 * those of this process, count is that of the statistics. Subtracts from dx the part that flows
 * through the statistics. */
bool sync_norm_correct(const struct sync_norm *s, const float *x, const float *mean,
                       const float *variance, double count, const float *weight,
                       const float *dweight, const float *dbias, float *dx, struct err *err);
#endif
