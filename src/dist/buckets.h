/* buckets.h: a flat vector of gradients, summed over ranks in buckets while it is still being
 * computed: from its end to its beginning, as a backward pass fills it. A bucket begins its way
 * when its last parameter is there. The one that is complete last, and so can never be summed
 * beside anything, is kept small: BUCKETS_LAST_BYTES. Used by one thread. */
#ifndef DIST_BUCKETS_H
#define DIST_BUCKETS_H
#include "dist/ranks.h"

#define BUCKETS_LAST_BYTES (1 << 20)

struct buckets;

/* at [n + 1]: where the n parameters stand in the vector, ascending; the last is its length.
 * *out is the caller's; free with buckets_free. */
bool buckets_new(const int64_t *at, int64_t n, int64_t bucket_bytes, struct buckets **out,
                 struct err *err);
void buckets_free(struct buckets *buckets); /* NULL-safe */

/* A new step with the vector at `data`. */
void buckets_begin(struct buckets *buckets, float *data);
/* The parameter at place `at` is complete. Starts what can start, and moves on what has started;
 * a failure is kept for buckets_finish. */
void buckets_ready(struct buckets *buckets, struct ranks *ranks, int64_t at);
/* Collective: starts what has not started, and waits for all. */
bool buckets_finish(struct buckets *buckets, struct ranks *ranks, struct err *err);

/* Collective: counts the waiting of the steps since the last call into exposed_s. */
bool buckets_count_waiting(struct buckets *buckets, struct ranks *ranks, struct err *err);

/* Over all steps so far. */
struct buckets_times {
    int64_t buckets, bytes;               /* summed */
    int64_t hidden_buckets, hidden_bytes; /* of these, done before buckets_finish was called */
    double waited_s;                      /* in buckets_finish, also for ranks that come later */
    double exposed_s; /* of every step what that rank waited which waited least, the last to come:
                       * the summing alone */
};
struct buckets_times buckets_times(const struct buckets *buckets);
#endif
