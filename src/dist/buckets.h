/* buckets.h: a flat vector of gradients, summed over ranks in buckets while it is still being
 * computed: from its end to its beginning, as a backward pass fills it. A bucket begins its way
 * when its last parameter is there. Used by one thread. */
#ifndef DIST_BUCKETS_H
#define DIST_BUCKETS_H
#include "dist/ranks.h"

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

struct buckets_times {
    int64_t buckets; /* summed so far, over all steps */
    int64_t hidden;  /* of these, done before buckets_finish was called */
    double waited_s; /* in buckets_finish */
};
struct buckets_times buckets_times(const struct buckets *buckets);
#endif
