/* ranks.h: the processes that train together. The trainer speaks to this interface only; one
 * process is an implementation like any other. Every function that takes a struct ranks is
 * collective unless it says otherwise: all ranks call it, in the same order, from the thread that
 * called ranks_begin. A result that is said to be the same is the same bits on every rank. */
#ifndef DIST_RANKS_H
#define DIST_RANKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct ranks;

struct ranks_ops {
    bool (*sum_floats)(struct ranks *ranks, float *data, int64_t n, struct err *err);
    bool (*sum_reals)(struct ranks *ranks, double *data, int64_t n, struct err *err);
    bool (*most)(struct ranks *ranks, int64_t *values, int64_t n, struct err *err);
    bool (*start_sum)(struct ranks *ranks, float *data, int64_t n, struct err *err);
    bool (*progress)(struct ranks *ranks, struct err *err);
    bool (*finish_sums)(struct ranks *ranks, struct err *err);
    bool (*broadcast)(struct ranks *ranks, void *data, size_t bytes, int root, struct err *err);
    bool (*gather_parts)(struct ranks *ranks, float *data, const int64_t *begin, struct err *err);
    void (*end)(struct ranks *ranks);
};

struct ranks {
    int rank, size;
    int local_size;     /* ranks on this machine */
    int processors;     /* that the ranks of this machine may use, together */
    int started, ended; /* sums begun by ranks_start_sum, and those that are done */
    bool failed;        /* all ranks know that they end now, and why */
    const struct ranks_ops *ops;
    void *state; /* of the implementation */
};

/* One process: sums change nothing. */
struct ranks ranks_one(void);

/* The ranks that mpirun (or srun) started this process among; one process if none did. Without MPI
 * in the build, several are refused. End with ranks_end. Call once, before threads that use MPI. */
bool ranks_begin(struct ranks *out, struct err *err);
/* Not collective if a rank failed alone (ranks->failed is false): the others are then ended by
 * mpirun, when this process ends with an exit code that is not zero. */
void ranks_end(struct ranks *ranks, bool ok);

/* How many ranks the environment says this process was started among; 1: alone. Not collective. */
int ranks_started(void);

/* Sums over all ranks, in place; the same on every rank. */
bool ranks_sum_floats(struct ranks *ranks, float *data, int64_t n, struct err *err);
bool ranks_sum_reals(struct ranks *ranks, double *data, int64_t n, struct err *err);
/* The largest over all ranks, element by element. */
bool ranks_most(struct ranks *ranks, int64_t *values, int64_t n, struct err *err);

/* Begins a sum that goes on beside the computation; data belong to it until ranks_finish_sums. The
 * bits are those of the same sum finished at once. */
bool ranks_start_sum(struct ranks *ranks, float *data, int64_t n, struct err *err);
/* Moves the sums on that have begun: without calls of it they stand still. Not collective. */
bool ranks_progress(struct ranks *ranks, struct err *err);
bool ranks_finish_sums(struct ranks *ranks, struct err *err);

/* The root's bytes to all. */
bool ranks_broadcast(struct ranks *ranks, void *data, size_t bytes, int root, struct err *err);
/* Rank r's data [begin[r], begin[r + 1]) to all; begin [size + 1]. */
bool ranks_gather_parts(struct ranks *ranks, float *data, const int64_t *begin, struct err *err);
/* All ranks' bytes, one rank after another; *out (NULL-safe to free) is the caller's, and bytes of
 * rank r are at [at[r], at[r + 1]), at [size + 1]. */
bool ranks_gather(struct ranks *ranks, const void *mine, size_t bytes, char **out, size_t *at,
                  struct err *err);

/* Do all ranks say ok? If not, all get the error of the lowest rank that does not, with its number
 * before it, and false. *stop (may be NULL) becomes true if it is on any rank. */
bool ranks_agree(struct ranks *ranks, bool ok, bool *stop, struct err *err);
/* Do all ranks hold the same number? If not, all get an error that names the rank that differs:
 * "rank 2 (node7) holds other <what> than rank 0 (node1)". */
bool ranks_same(struct ranks *ranks, uint64_t number, const char *what, struct err *err);
#endif
