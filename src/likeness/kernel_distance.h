/* kernel_distance.h: the kernel distance of two sets of features (Binkowski et al. 2018: KID): the
 * squared maximum mean discrepancy for the kernel (x . y / d + 1)^3, without bias: about 0, and
 * often below, for sets of one distribution, whatever their size. Deterministic. */
#ifndef LIKENESS_KERNEL_DISTANCE_H
#define LIKENESS_KERNEL_DISTANCE_H
#include "base/ctx.h"
#include "likeness/rows.h"

/* Of all rows, at least 2 of each. */
double kernel_distance(const struct rows *a, const struct rows *b);

struct kernel_estimate {
    double mean, std_error; /* over random subsets */
    int64_t subsets, size;
};
/* Of `subsets` random subsets, of at most `most` rows each. */
bool kernel_distance_subsets(const struct rows *a, const struct rows *b, int64_t subsets,
                             int64_t most, uint64_t seed, const struct ctx *ctx,
                             struct kernel_estimate *out, struct err *err);
#endif
