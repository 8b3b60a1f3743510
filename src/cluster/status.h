/* status.h: the progress of a task list, from its files alone; the scheduler's information is added
 * if it responds. */
#ifndef CLUSTER_STATUS_H
#define CLUSTER_STATUS_H
#include "base/claim.h"
#include "cluster/submit.h"

struct slide_status {
    const char *slide; /* the list's */
    int64_t tasks, done, running, failed, left;
};

struct failed_task {
    int64_t id;
    const char *slide; /* the list's */
    struct task_record record;
    char *log; /* the last lines of its log, or NULL */
};

#define STATUS_FAILED 5 /* failed tasks whose logs are shown */

struct status {
    struct slide_status *slides; /* [n_slides] in the order of the list */
    int64_t n_slides;
    struct slide_status all; /* slide is NULL */
    double rate_per_s;       /* tasks, of those that ended since the submission; 0: not known */
    double left_s;           /* at that rate, by cost; -1: not known */
    struct failed_task failed[STATUS_FAILED];
    int64_t n_failed;
    bool submitted, asked; /* there was a submission; its scheduler responds */
    struct submission submission;
    struct job_counts jobs;
    bool finished, ok; /* the last job has merged the results; and nothing was missing */
    char word[900];    /* its output */
    bool claimed;      /* a process has claimed the folder */
    struct claim_holder holder;
};

/* A task that has started and not ended counts as running while jobs are alive, or while the
 * scheduler does not respond. *out is the caller's; free with status_free; it points into the list.
 * Looks for the file of every task and asks the scheduler. */
bool status_look(const struct task_list *list, struct status *out, struct err *err);
void status_free(struct status *status);
#endif
