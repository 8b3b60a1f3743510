/* status.h: how far a task list has come, from its files alone; what the scheduler knows is added
 * where it answers. */
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
    bool submitted, asked; /* there was a submission; its scheduler answers */
    struct submission submission;
    struct job_counts jobs;
    bool finished, ok; /* the last job has put all together; and nothing was missing */
    char word[900];    /* what it said */
    bool claimed;      /* someone has the folder now */
    struct claim_holder holder;
};

/* A task that was begun and has not ended counts as running as long as jobs are alive, or as the
 * scheduler does not answer. *out is the caller's; free with status_free; it points into the list.
 */
bool status_look(const struct task_list *list, struct status *out, struct err *err);
void status_free(struct status *status);
#endif
