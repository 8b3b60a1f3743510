/* ranks.h: the processes that train together, and groups of them. The trainer uses only this
 * interface; a single process is an implementation like any other. Every function that takes a
 * struct ranks is collective unless noted: all ranks of the group call it, in the same order, from
 * the thread that called ranks_begin. "The same" means bitwise the same on every rank.
 *
 * Groups: ranks_split divides a group; a group is a struct ranks like the one of all ranks, and
 * everything here works on it. What is sent in one group never meets what is sent in another, even
 * between the same two ranks.
 *
 * Messages: between two ranks of a group they arrive in the order in which they were started: the
 * nth send from a to b is the nth receive at b from a. Receives must have exactly the size of what
 * was sent; otherwise they fail. Two users of one group whose orders are independent of each other
 * need a group each: split it once more, with a single colour. A rank cannot send to itself, on one
 * rank either: whoever computes neighbours leaves out those that do not exist (RANKS_NONE).
 *
 * Progress: there is no thread behind the computation. Sums and messages that were started advance
 * while a function of this interface runs on any group, and ranks_progress exists to be called
 * between steps of computation. A message up to MPI's eager limit (4 KB within a machine) leaves
 * with its start. A larger one waits for a call by the receiver, in which it is copied as a whole,
 * and then for one by the sender, which learns that its data are free. Without such calls it is
 * moved when somebody waits for it.
 *
 * Costs, between two processes of one machine (Open MPI 4.1, Zen 3; bench/exchange.c): an exchange
 * of 8 bytes takes 0.5 us, of 4 KB 4.5 us, of 256 KB 22 us, of 16 MB 1.4 ms (12 GB/s each way), in
 * flight as well; ranks_progress with eight messages in flight 0.14 us, and the time of copying in
 * the call that does it (64 MB: 7 ms). ranks_split: 10 us, the first time 60 us. Where more ranks
 * run than there are processors, whatever waits takes as long as the others' turns do: ranks_split
 * on four ranks and two processors 40 ms.
 *
 * Failures: an error is that of one rank, or after ranks_agree (and what is built on it) that of
 * all ranks in the group. A rank that fails alone, with others waiting for it, exits with a nonzero
 * code: mpirun then ends the others. After an error in a message or a sum the group can only be
 * freed; nothing is written to the data of its receives any more. */
#ifndef DIST_RANKS_H
#define DIST_RANKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct ranks;
struct watch;

#define RANKS_NONE (-1) /* in place of a rank: nobody */
#define RANKS_ALL (-1)  /* in place of a handle: everything in flight in the group */

struct ranks_ops {
    bool (*split)(struct ranks *ranks, int colour, int key, struct ranks *out, struct err *err);
    void (*free)(struct ranks *ranks); /* of a group */
    bool (*sum_floats)(struct ranks *ranks, float *data, int64_t n, struct err *err);
    bool (*sum_reals)(struct ranks *ranks, double *data, int64_t n, struct err *err);
    bool (*most)(struct ranks *ranks, int64_t *values, int64_t n, struct err *err);
    bool (*start_sum)(struct ranks *ranks, float *data, int64_t n, struct err *err);
    bool (*start_send)(struct ranks *ranks, int to, const void *data, size_t bytes, int64_t *handle,
                       struct err *err);
    bool (*start_receive)(struct ranks *ranks, int from, void *data, size_t bytes, int64_t *handle,
                          struct err *err);
    bool (*progress)(struct ranks *ranks, struct err *err);
    bool (*finish)(struct ranks *ranks, int64_t handle, struct err *err);
    void (*abandon)(struct ranks *ranks);
    bool (*broadcast)(struct ranks *ranks, void *data, size_t bytes, int root, struct err *err);
    bool (*gather_parts)(struct ranks *ranks, float *data, const int64_t *begin, struct err *err);
    bool (*gather_equal)(struct ranks *ranks, const void *own, size_t bytes, void *all,
                         struct err *err);
    void (*end)(struct ranks *ranks);
};

/* rank < size; world_rank is that of the same process among all. Does not move while it has groups.
 */
struct ranks {
    int rank, size;
    int world_rank;
    const char *name;     /* of the group, for messages: "stage"; NULL: all ranks */
    struct ranks *parent; /* the group it was split from; NULL: all ranks */
    int local_size;       /* ranks of the group on this machine */
    int local_rank;       /* this one among them */
    int processors;       /* that these may use together */
    bool placed;          /* not all of these may use the same ones: their launcher bound them */
    int64_t piece;       /* most elements (in messages: bytes) in one call of MPI, which counts with
                            int; the same on all ranks of the group */
    int started, ended;  /* sums started by ranks_start_sum, and those that are done */
    bool failed;         /* all ranks of the group know that they are ending, and why */
    struct watch *watch; /* notices when it waits too long (watch.h); NULL: nobody does */
    const struct ranks_ops *ops; /* NULL: one process */
    void *state;                 /* of the implementation */
};

/* One process: sums change nothing. */
struct ranks ranks_one(void);

/* The ranks with which mpirun (or srun) started this process; one process otherwise. In a build
 * without MPI, several ranks are an error. End with ranks_end. Call once, before threads that use
 * MPI. */
bool ranks_begin(struct ranks *out, struct err *err);
/* Not collective if a rank failed alone (ranks->failed is false): mpirun then ends the others when
 * this process exits with a nonzero code. */
void ranks_end(struct ranks *ranks, bool ok);

/* Number of ranks according to the environment; 1: alone. Not collective. */
int ranks_started(void);

/* The ranks that give the same colour (>= 0) become a group, ordered by key, then by rank. `name`
 * is for messages and must outlive it. *out is the caller's; free with ranks_free, before `ranks`
 * ends. */
bool ranks_split(struct ranks *ranks, int colour, int key, const char *name, struct ranks *out,
                 struct err *err);
/* Nothing may be in flight, other than after an error. Safe on a zeroed struct. */
void ranks_free(struct ranks *group);
/* All ranks of the group know that they are ending: so do all ranks, if these are all. Not
 * collective. */
void ranks_set_failed(struct ranks *ranks);

/* Sums over all ranks, in place; the same on every rank. */
bool ranks_sum_floats(struct ranks *ranks, float *data, int64_t n, struct err *err);
bool ranks_sum_reals(struct ranks *ranks, double *data, int64_t n, struct err *err);
/* The largest over all ranks, element by element. */
bool ranks_most(struct ranks *ranks, int64_t *values, int64_t n, struct err *err);

/* Messages between two ranks; not collective. Each waits until its data may be used again: a send
 * beyond the eager limit until the receiver has begun to receive, so that two ranks that send to
 * each other first wait forever. ranks_exchange does both at once and never waits for an order;
 * `to` and `from` may differ, and either may be RANKS_NONE. */
bool ranks_send(struct ranks *ranks, int to, const void *data, size_t bytes, struct err *err);
bool ranks_receive(struct ranks *ranks, int from, void *data, size_t bytes, struct err *err);
struct ranks_exchange {
    int to, from; /* or RANKS_NONE */
    const void *send;
    size_t send_bytes;
    void *receive;
    size_t receive_bytes;
};
bool ranks_exchange(struct ranks *ranks, const struct ranks_exchange *exchange, struct err *err);

/* Starts a message that is moved during computation; data belong to it until ranks_finish with its
 * handle, or with RANKS_ALL. handle may be NULL: then only RANKS_ALL finishes it. Not collective.
 */
bool ranks_start_send(struct ranks *ranks, int to, const void *data, size_t bytes, int64_t *handle,
                      struct err *err);
bool ranks_start_receive(struct ranks *ranks, int from, void *data, size_t bytes, int64_t *handle,
                         struct err *err);
/* Starts a sum that runs during computation; data belong to it until ranks_finish with RANKS_ALL.
 * The result is bitwise that of a blocking sum. */
bool ranks_start_sum(struct ranks *ranks, float *data, int64_t n, struct err *err);
/* Makes progress on what is in flight: without calls nothing advances. Not collective. */
bool ranks_progress(struct ranks *ranks, struct err *err);
/* Waits for one message, or for all messages and sums of the group. A handle that was finished
 * before stays finished. Collective only if sums were started. */
bool ranks_finish(struct ranks *ranks, int64_t handle, struct err *err);
/* After a failure of another kind, as after one in a message: everything in flight in the group is
 * left, and its data are the caller's again. The group can only be freed. Not collective. */
void ranks_abandon(struct ranks *ranks);

/* Broadcasts the root's bytes. */
bool ranks_broadcast(struct ranks *ranks, void *data, size_t bytes, int root, struct err *err);
/* Sends rank r's data [begin[r], begin[r + 1]) to all; begin [size + 1]. */
bool ranks_gather_parts(struct ranks *ranks, float *data, const int64_t *begin, struct err *err);
/* all [size][bytes]: every rank's bytes, as many from each; own must not be a part of it. */
bool ranks_gather_equal(struct ranks *ranks, const void *own, size_t bytes, void *all,
                        struct err *err);
/* All ranks' bytes, one rank after another; *out (NULL-safe to free) is the caller's, and bytes of
 * rank r are at [at[r], at[r + 1]), at [size + 1]. */
bool ranks_gather(struct ranks *ranks, const void *mine, size_t bytes, char **out, size_t *at,
                  struct err *err);

/* True if all ranks are ok. If not, all get the error of the lowest rank that is not, prefixed with
 * its number among all ranks, and false. *stop (may be NULL) becomes true if it is on any rank. */
bool ranks_agree(struct ranks *ranks, bool ok, bool *stop, struct err *err);
/* True if all ranks have the same number. If not, all get an error that names the rank that
 * differs: "rank 2 (node7) has different <what> from rank 0 (node1)". */
bool ranks_same(struct ranks *ranks, uint64_t number, const char *what, struct err *err);
#endif
