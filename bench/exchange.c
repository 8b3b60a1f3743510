/* exchange.c: how long two ranks take to exchange a message, both directions at once, for sizes
 * from 8 bytes to 16 MB. Run by mpirun on an even number of ranks, which form pairs; the first rank
 * prints a line for each size: bytes, the seconds of an exchange, and those of the same with the
 * message started, moved by ranks_progress and finished. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/clock.h"
#include "dist/ranks.h"

#define LARGEST ((size_t)16 << 20)

/* In flight: started, progress until it can be finished at once. */
static bool once(struct ranks *pair, char *send, char *receive, size_t bytes, bool in_flight,
                 struct err *err)
{
    int other = 1 - pair->rank;
    struct ranks_exchange exchange = { other, other, send, bytes, receive, bytes };
    if (!in_flight)
        return ranks_exchange(pair, &exchange, err);
    return ranks_start_receive(pair, other, receive, bytes, NULL, err) &&
           ranks_start_send(pair, other, send, bytes, NULL, err) && ranks_progress(pair, err) &&
           ranks_finish(pair, RANKS_ALL, err);
}

/* The fastest mean of a few series. */
static bool measure(struct ranks *pair, char *send, char *receive, size_t bytes, bool in_flight,
                    double *out_s, struct err *err)
{
    int repeats = bytes < 100000 ? 2000 : bytes < 10000000 ? 50 : 5;
    *out_s = INFINITY;
    for (int series = 0; series < 7; series++) {
        double began_s = clock_monotonic_s();
        for (int i = 0; i < repeats; i++)
            if (!once(pair, send, receive, bytes, in_flight, err))
                return false;
        *out_s = fmin(*out_s, (clock_monotonic_s() - began_s) / repeats);
    }
    return true;
}

int main(void)
{
    struct ranks ranks, pair = { 0 };
    struct err err = { 0 };
    if (!ranks_begin(&ranks, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    char *send = calloc(LARGEST, 1), *receive = calloc(LARGEST, 1);
    bool ok = send && receive && ranks_split(&ranks, ranks.rank / 2, 0, "pair", &pair, &err) &&
              pair.size == 2;
    for (size_t bytes = 8; ok && bytes <= LARGEST; bytes *= 8) {
        double blocking_s = 0, in_flight_s = 0;
        ok = measure(&pair, send, receive, bytes, false, &blocking_s, &err) &&
             measure(&pair, send, receive, bytes, true, &in_flight_s, &err);
        if (ok && ranks.rank == 0)
            printf("%zu %.9f %.9f\n", bytes, blocking_s, in_flight_s);
    }
    free(send);
    free(receive);
    if (!ok)
        fprintf(stderr, "%s\n", err.text[0] ? err.text : "not an even number of ranks");
    ranks_free(&pair);
    ranks_end(&ranks, ok);
    return ok ? 0 : 1;
}
