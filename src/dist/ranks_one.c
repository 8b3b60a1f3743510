/* ranks_one.c: one process (ranks.h). */
#include "dist/ranks.h"

static bool keep_floats(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    (void)ranks, (void)data, (void)n, (void)err;
    return true;
}

static bool keep_reals(struct ranks *ranks, double *data, int64_t n, struct err *err)
{
    (void)ranks, (void)data, (void)n, (void)err;
    return true;
}

struct ranks ranks_one(void)
{
    static const struct ranks_ops ops = { .sum_floats = keep_floats, .sum_reals = keep_reals };
    return (struct ranks){ .rank = 0, .size = 1, .ops = &ops };
}
