/* buckets.h: a flat vector of gradients, summed over ranks in buckets while it is still being
 * computed: from its end to its beginning, as a backward pass fills it. Summing a bucket starts
 * when its last parameter is complete. The bucket that is complete last, and so can never overlap
 * with computation, is kept small: BUCKETS_LAST_BYTES. Used by one thread. */
#ifndef DIST_BUCKETS_H
#define DIST_BUCKETS_H
#include "dist/ranks.h"

#define BUCKETS_LAST_BYTES (1 << 20)

struct buckets;

/* at [n + 1]: the offsets of the n parameters in the vector, ascending; the last is its length.
 * *out is the caller's; free with buckets_free. */
bool buckets_new(const int64_t *at, int64_t n, int64_t bucket_bytes, struct buckets **out,
                 struct err *err);
void buckets_free(struct buckets *buckets); /* NULL-safe */

/* A new step with the vector at `data`. */
void buckets_begin(struct buckets *buckets, float *data);
/* The parameter at offset `at` is complete. Starts the sums that can start and makes progress on
 * those running; a failure is kept for buckets_finish. */
void buckets_ready(struct buckets *buckets, struct ranks *ranks, int64_t at);
/* The same for all parameters in [begin, end); begin = end: progress alone. */
void buckets_ready_range(struct buckets *buckets, struct ranks *ranks, int64_t begin, int64_t end);
/* Collective: starts the remaining sums and waits for all. */
bool buckets_finish(struct buckets *buckets, struct ranks *ranks, struct err *err);

/* Collective: adds the wait of the steps since the last call to exposed_s. */
bool buckets_count_waiting(struct buckets *buckets, struct ranks *ranks, struct err *err);

/* Over all steps so far. */
struct buckets_times {
    int64_t buckets, bytes;               /* summed */
    int64_t hidden_buckets, hidden_bytes; /* of these, done before buckets_finish was called */
    double waited_s;  /* in buckets_finish, including for ranks that arrive later */
    double exposed_s; /* summed over steps: the wait of the rank that waited least, the last to
                         arrive, which is the time for summing alone */
};
struct buckets_times buckets_times(const struct buckets *buckets);
#endif
