/* connection.h: the ranks that run -> how fast they reach each other: messages between two ranks of
 * one host and of two hosts, sums over all, and how much of either computation can hide. Collective
 * over all ranks; the figures are rank 0's. */
#ifndef DOCTOR_CONNECTION_H
#define DOCTOR_CONNECTION_H
#include "dist/ranks.h"

#define CONNECTION_SIZES 12 /* at most: 4 bytes, 16, .. 16 MB */
#define CONNECTION_HOST 64  /* bytes of a name */

/* Messages of one size between two ranks. */
struct connection_message {
    int64_t bytes;
    double latency_s; /* half a round trip */
    double one_way;   /* bytes a second, many messages in flight */
    double both_ways; /* the same in both directions at once: their sum */
    double overlap;   /* share of an exchange's time that computation hid: 0 to 1 */
};

struct connection_pair {
    int ranks[2];
    bool one_host;
    int n;
    struct connection_message messages[CONNECTION_SIZES];
};

/* A sum of floats over all ranks. */
struct connection_sum {
    int64_t bytes;
    double seconds;
    double overlap;
};

struct connection_report {
    int n_ranks, n_hosts;
    int *host_of;                   /* [n_ranks] */
    char (*hosts)[CONNECTION_HOST]; /* [n_hosts] */
    bool crowded;                   /* a host has fewer processors than ranks */
    int n_pairs;                    /* 1 or 2: on one host first */
    struct connection_pair pairs[2];
    int n_sums;
    struct connection_sum sums[CONNECTION_SIZES];
};

/* largest: bytes of the largest message; seconds: for each figure, roughly. Sizes at which a round
 * trip takes half a second are the last. At least two ranks. *out is the caller's; free with
 * connection_free, after a failure too. */
bool connection_measure(struct ranks *ranks, int64_t largest, double seconds,
                        struct connection_report *out, struct err *err);
void connection_free(struct connection_report *report);

/* What a message costs on the slowest connection that was measured: latency and bytes a second, as
 * train --plan-parallel takes them. */
void connection_cost(const struct connection_report *report, double *latency_s,
                     double *bytes_per_s);
/* One line: what kind of connection this is. */
void connection_verdict(const struct connection_report *report, char *text, size_t size);
/* One line: what follows for the section `parallel` of a training. */
void connection_advice(const struct connection_report *report, char *text, size_t size);
#endif
