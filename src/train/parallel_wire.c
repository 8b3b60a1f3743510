/* parallel_wire.c: how fast messages between two ranks are: small ones there and back, then large
 * ones. */
#include <math.h>
#include <stdlib.h>
#include "base/clock.h"
#include "train/parallel_plan.h"

#define SMALL_BYTES 8
#define SMALL_TURNS 1000
#define LARGE_BYTES ((size_t)4 << 20)
#define LARGE_TURNS 40

/* One message there and one back. */
static bool turn(struct ranks *ranks, char *data, size_t bytes, struct err *err)
{
    int last = ranks->size - 1;
    if (ranks->rank == 0)
        return ranks_send(ranks, last, data, bytes, err) &&
               ranks_receive(ranks, last, data, bytes, err);
    return ranks->rank < last ||
           (ranks_receive(ranks, 0, data, bytes, err) && ranks_send(ranks, 0, data, bytes, err));
}

/* Seconds of one message, on the first rank: half of the fastest turn, which others that use the
 * processors have disturbed least. */
static bool fastest(struct ranks *ranks, char *data, size_t bytes, int turns, double *out,
                    struct err *err)
{
    *out = INFINITY;
    for (int i = 0; i < turns; i++) {
        double start = clock_monotonic_s();
        if (!turn(ranks, data, bytes, err))
            return false;
        *out = fmin(*out, (clock_monotonic_s() - start) / 2);
    }
    return true;
}

bool parallel_wire(struct ranks *ranks, struct wire *out, struct err *err)
{
    double small_s = 0, large_s = 0;
    char *data = calloc(LARGE_BYTES, 1);
    bool ok = ranks_agree(ranks, data || err_memory(err, "messages"), NULL, err);
    ok = ok && fastest(ranks, data, SMALL_BYTES, SMALL_TURNS, &small_s, err) &&
         fastest(ranks, data, LARGE_BYTES, LARGE_TURNS, &large_s, err);
    free(data);
    double more_s = large_s > 2 * small_s ? large_s - small_s : large_s;
    *out = (struct wire){ small_s, (double)LARGE_BYTES / more_s };
    return ok && ranks_broadcast(ranks, out, sizeof *out, 0, err);
}
