/* ranks.h: the processes that train together. The trainer speaks to this interface only; one
 * process is an implementation like any other. Every function is collective: all ranks call it, in
 * the same order. */
#ifndef DIST_RANKS_H
#define DIST_RANKS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct ranks;

struct ranks_ops {
    /* Sums over all ranks, in place; the result is the same bits on every rank. */
    bool (*sum_floats)(struct ranks *ranks, float *data, int64_t n, struct err *err);
    bool (*sum_reals)(struct ranks *ranks, double *data, int64_t n, struct err *err);
};

struct ranks {
    int rank, size;
    const struct ranks_ops *ops;
    void *state; /* of the implementation */
};

/* One process: sums change nothing. */
struct ranks ranks_one(void);

static inline bool ranks_sum_floats(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    return ranks->ops->sum_floats(ranks, data, n, err);
}
static inline bool ranks_sum_reals(struct ranks *ranks, double *data, int64_t n, struct err *err)
{
    return ranks->ops->sum_reals(ranks, data, n, err);
}
#endif
