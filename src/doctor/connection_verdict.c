/* connection_verdict.c: figures of connections -> what they mean (connection.h). */
#include <math.h>
#include <stdio.h>
#include "doctor/connection.h"

#define FAST_S 5e-6     /* memory of one host and fabrics of clusters stay below, TCP above */
#define SMALL_BYTES 256 /* messages that take as long as an empty one */
#define MAP_BYTES 16e6
#define WEIGHTS_BYTES 100e6

void connection_cost(const struct connection_report *report, double *latency_s, double *bytes_per_s)
{
    *latency_s = 0;
    *bytes_per_s = 0;
    for (int i = 0; i < report->n_pairs; i++) {
        const struct connection_pair *pair = &report->pairs[i];
        double most = 0, least_s = INFINITY;
        for (int m = 0; m < pair->n; m++) {
            most = fmax(most, pair->messages[m].one_way);
            if (pair->messages[m].bytes <= SMALL_BYTES)
                least_s = fmin(least_s, pair->messages[m].latency_s);
        }
        if (pair->n > 0)
            *latency_s = fmax(*latency_s, least_s);
        if (pair->n > 0 && (*bytes_per_s <= 0 || most < *bytes_per_s))
            *bytes_per_s = most;
    }
}

/* Seconds of a sum of so many bytes, at the rate of the largest that was measured. */
static double sum_time_s(const struct connection_report *report, double bytes)
{
    if (report->n_sums == 0)
        return 0;
    const struct connection_sum *last = &report->sums[report->n_sums - 1];
    return last->seconds * bytes / (double)last->bytes;
}

/* "1.4 ms" */
static void print_time(double seconds, char *text, size_t size)
{
    if (seconds < 1e-3)
        snprintf(text, size, "%.3g us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(text, size, "%.3g ms", seconds * 1e3);
    else
        snprintf(text, size, "%.3g s", seconds);
}

void connection_verdict(const struct connection_report *report, char *text, size_t size)
{
    double latency_s = 0, bytes_per_s = 0;
    connection_cost(report, &latency_s, &bytes_per_s);
    const char *kind = "a fast fabric (InfiniBand or the like)";
    if (report->crowded)
        kind = "more ranks than processors, which take turns: measure with at most one rank for "
               "each processor";
    else if (report->n_hosts == 1 && latency_s <= FAST_S)
        kind = "shared memory";
    else if (report->n_hosts == 1)
        kind = "one host, but slower than shared memory: other programs are running, or Open MPI's "
               "settings exclude it (OMPI_MCA_btl)";
    else if (latency_s > FAST_S)
        kind = "looks like TCP; where the hosts have a faster fabric, check that Open MPI is built "
               "with it (ompi_info | grep ucx)";
    snprintf(text, size, "latency %.4g us, %.3g GB/s: %s", latency_s * 1e6, bytes_per_s / 1e9,
             kind);
}

void connection_advice(const struct connection_report *report, char *text, size_t size)
{
    double latency_s = 0, bytes_per_s = 0;
    char map[24], sum[24];
    connection_cost(report, &latency_s, &bytes_per_s);
    print_time(latency_s + MAP_BYTES / (bytes_per_s > 0 ? bytes_per_s : 1), map, sizeof map);
    print_time(sum_time_s(report, WEIGHTS_BYTES), sum, sizeof sum);
    const char *space = report->n_hosts == 1 ? "parallel.space, which waits before every "
                                               "convolution, is possible"
                        : latency_s > FAST_S ? "keep parallel.space within a host: it waits before "
                                               "every convolution"
                                             : "parallel.space is possible across hosts";
    snprintf(text, size,
             "parallel.stages: 16 MB of activations reach the next stage in %s; parallel.data: "
             "gradients of 25 million parameters are summed in %s; %s",
             map, sum, space);
}
