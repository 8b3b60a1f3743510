/* record.h: what became of a task, in DIR/tasks/record/N.json: written when it begins and when it
 * ends. A hint for people (status, accounting); what counts is whether the task's file exists. */
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
    int64_t job_tasks;   /* that it was given in one go */
    int64_t threads;
    int64_t attempts;                 /* how often it was begun */
    char submission[TASK_SUBMISSION]; /* by which it was begun; "" by hand */
    char host[128];
    long pid;
    char log[256];   /* relative to DIR/tasks, or "" */
    char error[900]; /* why it failed, or "" */
};

/* False only where the record cannot be written. */
bool record_write(const struct task_list *list, int64_t id, const struct task_record *record,
                  struct err *err);
/* TASK_LEFT and zeros where there is no readable record. */
void record_read(const struct task_list *list, int64_t id, struct task_record *out);

/* Was it stopped because its job came to the end of its time? */
bool record_out_of_time(const struct task_record *record);

double clock_now_s(void); /* seconds since 1970 */
#endif
