/* ranks.h: the processes that train together. The trainer uses only this interface; a single
 * process is an implementation like any other. Every function that takes a struct ranks is
 * collective unless noted: all ranks call it, in the same order, from the thread that called
 * ranks_begin. "The same" means bitwise the same on every rank. */
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
    int processors;     /* that the ranks on this machine may use together */
    int started, ended; /* sums started by ranks_start_sum, and those that are done */
    bool failed;        /* all ranks know that they are ending, and why */
    const struct ranks_ops *ops;
    void *state; /* of the implementation */
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

/* Sums over all ranks, in place; the same on every rank. */
bool ranks_sum_floats(struct ranks *ranks, float *data, int64_t n, struct err *err);
bool ranks_sum_reals(struct ranks *ranks, double *data, int64_t n, struct err *err);
/* The largest over all ranks, element by element. */
bool ranks_most(struct ranks *ranks, int64_t *values, int64_t n, struct err *err);

/* Starts a sum that runs during computation; data belong to it until ranks_finish_sums. The result
 * is bitwise that of a blocking sum. */
bool ranks_start_sum(struct ranks *ranks, float *data, int64_t n, struct err *err);
/* Makes progress on running sums: without calls they do not advance. Not collective. */
bool ranks_progress(struct ranks *ranks, struct err *err);
bool ranks_finish_sums(struct ranks *ranks, struct err *err);

/* Broadcasts the root's bytes. */
bool ranks_broadcast(struct ranks *ranks, void *data, size_t bytes, int root, struct err *err);
/* Sends rank r's data [begin[r], begin[r + 1]) to all; begin [size + 1]. */
bool ranks_gather_parts(struct ranks *ranks, float *data, const int64_t *begin, struct err *err);
/* All ranks' bytes, one rank after another; *out (NULL-safe to free) is the caller's, and bytes of
 * rank r are at [at[r], at[r + 1]), at [size + 1]. */
bool ranks_gather(struct ranks *ranks, const void *mine, size_t bytes, char **out, size_t *at,
                  struct err *err);

/* True if all ranks are ok. If not, all get the error of the lowest rank that is not, prefixed with
 * its number, and false. *stop (may be NULL) becomes true if it is on any rank. */
bool ranks_agree(struct ranks *ranks, bool ok, bool *stop, struct err *err);
/* True if all ranks have the same number. If not, all get an error that names the rank that
 * differs: "rank 2 (node7) has different <what> from rank 0 (node1)". */
bool ranks_same(struct ranks *ranks, uint64_t number, const char *what, struct err *err);
#endif
