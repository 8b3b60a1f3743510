/* peers.h: the others that run a plan of the same network at the same time, each on its own part of
 * the work: other samples, other parts of an image, other heads. A plan knows them only by these
 * functions; whoever makes the plan supplies them, over MPI or, in tests, between threads.
 *
 * Groups: work may be divided in several ways at once, and a process has other peers for each. The
 * ways are few and known (enum peer_group in net/graph/attr.h), so plan_options has one place for
 * each, and an op that talks names its group by an attribute. So a graph says what it needs of
 * whom, not how many there are or who: the same graph runs on one process, where the group is NULL
 * or of size 1, and on any number of others.
 *
 * Every function returns false with the reason if it fails; the plan is then unusable, for the
 * others may wait. All but send and receive are collective: every peer calls the same function with
 * the same sizes, in the same order. A plan calls them from the thread that runs it, and a step
 * that calls them is never run twice in a pass. */
#ifndef NET_PLAN_PEERS_H
#define NET_PLAN_PEERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define PEER_NONE (-1) /* in place of a rank: nobody */

/* Sends to one and receives from another at once. */
struct peers_exchange {
    int to, from; /* or PEER_NONE: then the bytes are not touched */
    const void *out;
    size_t out_bytes;
    void *in;
    size_t in_bytes;
};

/* All functions are set, unless size is 1: then none is called but the sums. */
struct plan_peers {
    void *arg;
    int rank, size; /* 0 <= rank < size */
    /* Sums over all peers, in place: the same bits on every peer. */
    bool (*sum)(void *arg, double *values, int64_t n, struct err *err);
    bool (*sum_floats)(void *arg, float *values, int64_t n, struct err *err);
    /* Each waits until its data may be used again. What one sends to another arrives in order. */
    bool (*send)(void *arg, int to, const void *data, size_t bytes, struct err *err);
    bool (*receive)(void *arg, int from, void *data, size_t bytes, struct err *err);
    /* Waits for both; any pattern of exchanges in which every send is received comes to an end. */
    bool (*exchange)(void *arg, const struct peers_exchange *exchange, struct err *err);
    /* all [size][bytes]: what every peer gave, in the order of the ranks. */
    bool (*gather)(void *arg, const void *own, size_t bytes, void *all, struct err *err);
    /* The same as send and receive, while the plan computes: the data belong to the message until
     * `finish` with its handle, which waits for it. In one order with the others. Nothing may move
     * without `progress`, which does not wait. */
    bool (*start_send)(void *arg, int to, const void *data, size_t bytes, int64_t *handle,
                       struct err *err);
    bool (*start_receive)(void *arg, int from, void *data, size_t bytes, int64_t *handle,
                          struct err *err);
    bool (*progress)(void *arg, struct err *err);
    bool (*finish)(void *arg, int64_t handle, struct err *err);
    /* After a failure: the data of started messages are the caller's again, and the peers are lost.
     */
    void (*abandon)(void *arg);
};
#endif
