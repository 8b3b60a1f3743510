/* clock.c: see clock.h. */
#include "base/clock.h"
#include <math.h>
#include <sys/resource.h>
#include <time.h>

double clock_monotonic_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double clock_cpu_s(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return NAN;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

double clock_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
