/* pool.h: a fixed set of threads that work through numbered pieces of a job.
 * The caller is worker 0 and helps while it waits, so a pool of one has no threads at all.
 * Pieces are handed out in order; the result of a piece must depend on its index alone. */
#ifndef BASE_POOL_H
#define BASE_POOL_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct pool;

/* One piece of a job. worker is in [0, pool_workers) and may index scratch memory. */
typedef bool (*pool_fn)(void *arg, int64_t index, int worker, struct err *err);

/* A job in flight; the fields belong to pool.c. Lives in the caller's memory until pool_join. */
struct pool_job {
    pool_fn fn;
    void *arg;
    int64_t count, next, running;
    int64_t failed_index; /* the lowest index that failed, or count */
    struct err err;
    const atomic_bool *stop;
    struct pool_job *later;
};

/* threads <= 0: one per processor this process may use. NULL if out of memory. Starts the threads,
 * so one pool serves a whole program. */
struct pool *pool_new(int threads);
void pool_free(struct pool *pool);
int pool_workers(const struct pool *pool);

/* Of this machine, that this process may use; at least 1. */
int pool_processors(void);

/* Queues a job of `count` pieces and returns at once; the other workers start on it. A piece costs
 * a lock, 0.1 us. */
void pool_start(struct pool *pool, struct pool_job *job, int64_t count, pool_fn fn, void *arg,
                const atomic_bool *stop);

/* Helps until the job is done. After a failure or a stop no new pieces start; the error of the
 * lowest failed index is returned. */
bool pool_join(struct pool *pool, struct pool_job *job, struct err *err);

/* pool_start + pool_join. */
bool pool_for(struct pool *pool, int64_t count, pool_fn fn, void *arg, const atomic_bool *stop,
              struct err *err);
#endif
