/* all_reduce.c: how long ranks take to sum floats, as the trainer does it, for sizes from 4 KB to
 * 100 MB. Run by mpirun; the first rank prints a line for each size: bytes, and the seconds of
 * the fastest of a few sums; the slowest rank counts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/console.h"
#include "dist/ranks.h"
#include "base/clock.h"

#define REPEATS 7

static bool measure(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    double fastest_s = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        int64_t nanoseconds = 0;
        if (!ranks_most(ranks, &nanoseconds, 1, err)) /* all begin together */
            return false;
        double began_s = clock_monotonic_s();
        if (!ranks_start_sum(ranks, data, n, err) || !ranks_finish(ranks, RANKS_ALL, err))
            return false;
        nanoseconds = (int64_t)(1e9 * (clock_monotonic_s() - began_s));
        if (!ranks_most(ranks, &nanoseconds, 1, err))
            return false;
        fastest_s = fmin(fastest_s, 1e-9 * (double)nanoseconds);
    }
    if (ranks->rank == 0)
        printf("%lld %.9f\n", (long long)n * 4, fastest_s);
    return true;
}

int main(void)
{
    static const int64_t sizes[] = { 1024, 16384, 262144, 1048576, 4194304, 11689512, 25000000 };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct ranks ranks;
    struct err err = { 0 };
    if (!ranks_begin(&ranks, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    float *data = calloc((size_t)sizes[SIZES - 1], sizeof *data);
    bool ok = data != NULL;
    for (int i = 0; ok && i < SIZES; i++)
        ok = measure(&ranks, data, sizes[i], &err);
    free(data);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    ranks_end(&ranks, ok);
    return ok ? 0 : 1;
}
