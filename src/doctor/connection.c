/* connection.c: measures connections between ranks (connection.h). A figure is the fastest of a few
 * series, each the mean of as many turns as its share of the time allows, on the slowest rank. */
#include "doctor/connection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"

#define SERIES 8
#define MOST_TURNS 4000
#define WINDOW_BYTES ((int64_t)32 << 20) /* of the messages in flight */
#define LONGEST_S 0.5                    /* of a round trip */
#define SLICE_S 50e-6                    /* of computation between two calls of progress */

struct bench {
    struct ranks *group;
    char *send, *receive; /* WINDOW_BYTES each */
    int64_t bytes;
    int64_t spins;         /* of computation during a turn */
    double spins_per_s;    /* of this processor */
    volatile double spent; /* what computation gives, so that it is done */
};

typedef bool turn_function(struct bench *bench, struct err *err);

/* --- what is timed --- */

static void compute(struct bench *bench, int64_t spins)
{
    double value = bench->spent;
    for (int64_t i = 0; i < spins; i++)
        value = value * 0.999 + 1;
    bench->spent = value;
}

static bool turn_ping(struct bench *bench, struct err *err)
{
    size_t bytes = (size_t)bench->bytes;
    int other = 1 - bench->group->rank;
    if (bench->group->rank == 0)
        return ranks_send(bench->group, other, bench->send, bytes, err) &&
               ranks_receive(bench->group, other, bench->receive, bytes, err);
    return ranks_receive(bench->group, other, bench->receive, bytes, err) &&
           ranks_send(bench->group, other, bench->send, bytes, err);
}

static int64_t window(const struct bench *bench)
{
    int64_t fit = WINDOW_BYTES / bench->bytes;
    return fit < 2 ? 2 : fit > 64 ? 64 : fit;
}

/* A window of messages in one direction or both, and an empty one back. */
static bool fly(struct bench *bench, bool sends, bool receives, struct err *err)
{
    int other = 1 - bench->group->rank;
    size_t bytes = (size_t)bench->bytes;
    bool ok = true;
    for (int64_t i = 0; ok && i < window(bench); i++)
        ok = (!receives ||
              ranks_start_receive(bench->group, other, bench->receive + (size_t)i * bytes, bytes,
                                  NULL, err)) &&
             (!sends || ranks_start_send(bench->group, other, bench->send + (size_t)i * bytes,
                                         bytes, NULL, err));
    ok = ok && ranks_finish(bench->group, RANKS_ALL, err);
    if (!ok || (sends && receives))
        return ok;
    return sends ? ranks_receive(bench->group, other, bench->receive, 0, err)
                 : ranks_send(bench->group, other, bench->send, 0, err);
}

static bool turn_one_way(struct bench *bench, struct err *err)
{
    return fly(bench, bench->group->rank == 0, bench->group->rank == 1, err);
}

static bool turn_both_ways(struct bench *bench, struct err *err)
{
    return fly(bench, true, true, err);
}

/* Computation with progress in between, and the end of what was started. */
static bool hide(struct bench *bench, struct err *err)
{
    int64_t slice = (int64_t)(SLICE_S * bench->spins_per_s) + 1;
    bool ok = true;
    for (int64_t left = bench->spins; ok && left > 0; left -= slice) {
        compute(bench, left < slice ? left : slice);
        ok = ranks_progress(bench->group, err);
    }
    return ok && ranks_finish(bench->group, RANKS_ALL, err);
}

static bool turn_exchange(struct bench *bench, struct err *err)
{
    int other = 1 - bench->group->rank;
    size_t bytes = (size_t)bench->bytes;
    return ranks_start_receive(bench->group, other, bench->receive, bytes, NULL, err) &&
           ranks_start_send(bench->group, other, bench->send, bytes, NULL, err) && hide(bench, err);
}

static bool turn_sum(struct bench *bench, struct err *err)
{
    return ranks_sum_floats(bench->group, (float *)(void *)bench->send,
                            bench->bytes / (int64_t)sizeof(float), err);
}

static bool turn_hidden_sum(struct bench *bench, struct err *err)
{
    return ranks_start_sum(bench->group, (float *)(void *)bench->send,
                           bench->bytes / (int64_t)sizeof(float), err) &&
           hide(bench, err);
}

static bool turn_compute(struct bench *bench, struct err *err)
{
    (void)err;
    compute(bench, bench->spins);
    return true;
}

/* --- timing --- */

static bool series(struct bench *bench, turn_function *turn, int64_t turns, int64_t *out_ns,
                   struct err *err)
{
    int64_t nothing = 0;
    bool ok = ranks_most(bench->group, &nothing, 1, err); /* all begin together */
    double began_s = clock_monotonic_s();
    for (int64_t i = 0; ok && i < turns; i++)
        ok = turn(bench, err);
    *out_ns = (int64_t)(1e9 * (clock_monotonic_s() - began_s));
    return ok;
}

/* Seconds of a turn; the first one, which opens connections, does not count. */
static bool measure(struct bench *bench, turn_function *turn, double for_s, double *out_s,
                    struct err *err)
{
    int64_t first_ns = 0, ns[SERIES], shortest = INT64_MAX;
    if (!turn(bench, err) || !series(bench, turn, 1, &first_ns, err) ||
        !ranks_most(bench->group, &first_ns, 1, err))
        return false;
    double first_s = fmax((double)first_ns / 1e9, 1e-9), fit = for_s / SERIES / first_s;
    int64_t turns = fit < 1 ? 1 : fit > MOST_TURNS ? MOST_TURNS : (int64_t)fit;
    int n = first_s * SERIES < 3 * for_s ? SERIES : 2;
    for (int i = 0; i < n; i++)
        if (!series(bench, turn, turns, &ns[i], err))
            return false;
    if (!ranks_most(bench->group, ns, n, err)) /* the slowest rank's */
        return false;
    for (int i = 0; i < n; i++)
        shortest = ns[i] < shortest ? ns[i] : shortest;
    *out_s = (double)shortest / 1e9 / (double)turns;
    return true;
}

/* How fast this processor computes. */
static void calibrate(struct bench *bench)
{
    const int64_t spins = 1 << 20;
    double best_s = INFINITY;
    for (int i = 0; i < 5; i++) {
        double began_s = clock_monotonic_s();
        compute(bench, spins);
        best_s = fmin(best_s, clock_monotonic_s() - began_s);
    }
    bench->spins_per_s = (double)spins / fmax(best_s, 1e-9);
}

/* The share of a turn without computation that is hidden when as much is computed meanwhile. */
static bool measure_overlap(struct bench *bench, turn_function *turn, double for_s, double *overlap,
                            struct err *err)
{
    double alone_s = 0, computing_s = 0, together_s = 0;
    bench->spins = 0;
    if (!measure(bench, turn, for_s, &alone_s, err))
        return false;
    bench->spins = (int64_t)(alone_s * bench->spins_per_s) + 1;
    bool ok = measure(bench, turn_compute, for_s, &computing_s, err) &&
              measure(bench, turn, for_s, &together_s, err);
    *overlap = fmin(1, fmax(0, 1 - (together_s - computing_s) / fmax(alone_s, 1e-9)));
    bench->spins = 0;
    return ok;
}

static bool measure_messages(struct bench *bench, int64_t largest, double for_s,
                             struct connection_pair *pair, struct err *err)
{
    bool slow = false;
    for (bench->bytes = 4; bench->bytes <= largest && !slow && pair->n < CONNECTION_SIZES;
         bench->bytes *= 4) {
        struct connection_message *row = &pair->messages[pair->n++];
        double round_s = 0, one_way_s = 0, both_ways_s = 0;
        row->bytes = bench->bytes;
        if (!measure(bench, turn_ping, for_s, &round_s, err) ||
            !measure(bench, turn_one_way, for_s, &one_way_s, err) ||
            !measure(bench, turn_both_ways, for_s, &both_ways_s, err) ||
            !measure_overlap(bench, turn_exchange, for_s, &row->overlap, err))
            return false;
        double moved = (double)(window(bench) * bench->bytes);
        row->latency_s = round_s / 2;
        row->one_way = moved / fmax(one_way_s, 1e-9);
        row->both_ways = 2 * moved / fmax(both_ways_s, 1e-9);
        slow = round_s > LONGEST_S;
    }
    return true;
}

static bool measure_sums(struct bench *bench, int64_t largest, double for_s,
                         struct connection_report *out, struct err *err)
{
    bool slow = false;
    memset(bench->send, 0, (size_t)largest); /* sums of sums stay finite */
    for (bench->bytes = 4; bench->bytes <= largest && !slow && out->n_sums < CONNECTION_SIZES;
         bench->bytes *= 4) {
        struct connection_sum *row = &out->sums[out->n_sums++];
        row->bytes = bench->bytes;
        if (!measure(bench, turn_sum, for_s, &row->seconds, err) ||
            !measure_overlap(bench, turn_hidden_sum, for_s, &row->overlap, err))
            return false;
        slow = row->seconds > LONGEST_S;
    }
    return true;
}

/* --- who is measured --- */

/* All meet; those who have nothing to do meanwhile do not take the processors of the others. */
static bool meet(struct ranks *ranks, struct err *err)
{
    const struct timespec pause = { .tv_nsec = 2000000 };
    float one = 1;
    bool ok = ranks_start_sum(ranks, &one, 1, err);
    while (ok && ranks->ended < ranks->started) {
        ok = ranks_progress(ranks, err);
        if (ok && ranks->ended < ranks->started)
            nanosleep(&pause, NULL);
    }
    return ok && ranks_finish(ranks, RANKS_ALL, err);
}

static bool measure_pair(struct ranks *ranks, struct bench *bench, int64_t largest, double for_s,
                         struct connection_pair *pair, struct err *err)
{
    struct ranks group;
    bool taken = ranks->rank == pair->ranks[0] || ranks->rank == pair->ranks[1];
    if (!ranks_split(ranks, taken ? 0 : 1, 0, "a pair", &group, err))
        return false;
    bench->group = &group;
    bool ok = !taken || measure_messages(bench, largest, for_s, pair, err);
    ranks_free(&group);
    bench->group = ranks;
    return ok && meet(ranks, err);
}

/* Names of hosts, in the order of their first rank. */
static bool find_hosts(struct ranks *ranks, struct connection_report *out, struct err *err)
{
    char own[CONNECTION_HOST] = "";
    size_t n = (size_t)ranks->size;
    int64_t crowded = ranks->processors < ranks->local_size;
    out->n_ranks = ranks->size;
    out->host_of = calloc(n, sizeof *out->host_of);
    out->hosts = calloc(n, sizeof *out->hosts);
    char(*all)[CONNECTION_HOST] = calloc(n, sizeof *all);
    bool ok = (out->host_of && out->hosts && all) || err_memory(err, "names of hosts");
    gethostname(own, sizeof own - 1);
    ok = ranks_agree(ranks, ok, NULL, err) &&
         ranks_gather_equal(ranks, own, sizeof own, all, err) &&
         ranks_most(ranks, &crowded, 1, err);
    out->crowded = crowded;
    for (int r = 0; ok && r < ranks->size; r++) {
        int h = 0;
        while (h < out->n_hosts && strcmp(out->hosts[h], all[r]) != 0)
            h++;
        if (h == out->n_hosts)
            memcpy(out->hosts[out->n_hosts++], all[r], CONNECTION_HOST);
        out->host_of[r] = h;
    }
    free(all);
    return ok;
}

/* Rank 0 with the first other on its host, and with the first on another host. */
static void choose_pairs(struct connection_report *out)
{
    for (int other_host = 0; other_host < 2; other_host++)
        for (int r = 1; r < out->n_ranks; r++)
            if ((out->host_of[r] != out->host_of[0]) == (other_host == 1)) {
                out->pairs[out->n_pairs++] =
                    (struct connection_pair){ .ranks = { 0, r }, .one_host = other_host == 0 };
                break;
            }
}

bool connection_measure(struct ranks *ranks, int64_t largest, double seconds,
                        struct connection_report *out, struct err *err)
{
    *out = (struct connection_report){ 0 };
    if (ranks->size < 2)
        return err_set(err, ERR_USAGE,
                       "connections need at least two ranks; pass --ranks N, or start the command "
                       "with mpirun");
    struct bench bench = { .group = ranks, .send = NULL };
    bench.send = calloc((size_t)WINDOW_BYTES, 1);
    bench.receive = calloc((size_t)WINDOW_BYTES, 1);
    bool ok = (bench.send && bench.receive) || err_memory(err, "messages between ranks");
    largest = largest < WINDOW_BYTES / 2 ? largest : WINDOW_BYTES / 2;
    ok = ranks_agree(ranks, ok, NULL, err) && find_hosts(ranks, out, err);
    if (ok) {
        calibrate(&bench);
        choose_pairs(out);
    }
    for (int i = 0; ok && i < out->n_pairs; i++)
        ok = measure_pair(ranks, &bench, largest, seconds, &out->pairs[i], err);
    ok = ok && measure_sums(&bench, largest, seconds, out, err);
    free(bench.send);
    free(bench.receive);
    return ok;
}

void connection_free(struct connection_report *report)
{
    free(report->host_of);
    free(report->hosts);
    *report = (struct connection_report){ 0 };
}
