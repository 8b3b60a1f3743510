/* pack.h: tasks -> jobs of about equal cost: the costliest first, each to the job with the lowest
 * cost so far (longest processing time first: at most 4/3 of the best possible). */
#ifndef CLUSTER_PACK_H
#define CLUSTER_PACK_H
#include "cluster/list.h"

struct packed {
    int64_t n_jobs;
    int64_t *ids;   /* [n], job after job, ascending within a job */
    int64_t *first; /* [n_jobs + 1]: job j has ids [first[j], first[j + 1]) */
};

/* ids [n] of the list. alone [n]: gets a separate job, or NULL for none. wanted: total number of
 * jobs, 0 for one per task. Jobs are ordered by decreasing cost. *out is the caller's; free with
 * packed_free. */
bool pack_tasks(const struct task_list *list, const int64_t *ids, int64_t n, const bool *alone,
                int64_t wanted, struct packed *out, struct err *err);
void packed_free(struct packed *packed);
#endif
