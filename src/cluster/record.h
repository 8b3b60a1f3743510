/* record.h: the outcome of a task, in DIR/tasks/record/N.json: written when it starts and when it
 * ends. For information only (status, accounting); what counts is whether the task's file exists.
 */
#ifndef CLUSTER_RECORD_H
#define CLUSTER_RECORD_H
#include "cluster/list.h"

enum task_state { TASK_LEFT, TASK_RUNNING, TASK_DONE, TASK_FAILED, TASK_STOPPED };
extern const char *const task_state_names[]; /* NULL-terminated, for enum task_state */

#define TASK_SUBMISSION 32 /* room for the name of a submission */

struct task_record {
    enum task_state state;
    double began, ended; /* seconds since 1970; ended is 0 while running */
    double cpu_s;        /* of its process, over all attempts */
    double job_began;    /* of the job that ran it; 0: no job */
    int64_t limit_s;     /* of that job; 0: none */
    int64_t job_tasks;   /* that it was given at once */
    int64_t threads;
    int64_t attempts;                 /* number of attempts */
    char submission[TASK_SUBMISSION]; /* that started it; "" by hand */
    char host[128];
    long pid;
    char log[256];   /* relative to DIR/tasks, or "" */
    char error[900]; /* why it failed, or "" */
};

/* False only if the record cannot be written. */
bool record_write(const struct task_list *list, int64_t id, const struct task_record *record,
                  struct err *err);
/* TASK_LEFT and zeros if there is no readable record. */
void record_read(const struct task_list *list, int64_t id, struct task_record *out);

/* Whether it was stopped because its job reached its time limit. */
bool record_out_of_time(const struct task_record *record);
#endif
