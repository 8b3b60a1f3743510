/* tasks.h: runs tasks of a list and merges their results. The command defines what a task does, as
 * a task_kind; this folder only deals with lists of them. */
#ifndef CLUSTER_TASKS_H
#define CLUSTER_TASKS_H
#include <stdio.h>
#include "base/ctx.h"
#include "cluster/list.h"
#include "cluster/record.h"

/* How a task ended, for task_kind.finish. */
struct task_end {
    bool complete;
    double seconds;    /* 0 if not known */
    double cpu_s;      /* of its process while it ran; 0 if not known */
    const char *error; /* why there is no result; NULL if complete */
};

struct task_kind {
    const char *name; /* the command's */
    /* Prepares what all tasks of one process share, from the list's command line. */
    bool (*open)(const struct task_list *list, const struct ctx *ctx, void **state,
                 struct err *err);
    /* Makes the file at path, a pure function of the inputs; it is renamed into place afterwards.
     * With `in_place`, path is the task's file itself, and run does the renaming. Only called if
     * the file does not exist. */
    bool in_place;
    bool (*run)(void *state, const struct task *task, const char *path, const struct ctx *ctx,
                struct err *err);
    /* Merges the existing results. ends [list->n]. False if something failed; the caller reports
     * what is missing. */
    bool (*finish)(void *state, const struct task_list *list, const struct task_end *ends,
                   const struct ctx *ctx, FILE *out, struct err *err);
    void (*close)(void *state);
};

/* The job around the tasks. */
struct task_job {
    double began;           /* seconds since 1970; 0: not run by a scheduler */
    int64_t limit_s;        /* 0: none */
    const char *log;        /* relative to DIR/tasks, or "" */
    const char *submission; /* its name; "": by hand */
};

/* Runs tasks ids [n], one after the other, each on all threads; those whose file exists are
 * skipped. If one fails, it is recorded and the others continue; the result is then false. */
bool tasks_run(const struct task_list *list, const struct task_kind *kind, const int64_t *ids,
               int64_t n, const struct task_job *job, const struct ctx *ctx, struct err *err);

/* Timing of the tasks, as in tables of parallel runs. */
struct account {
    int64_t tasks, complete;
    double serial_s;   /* sum of the tasks' times */
    double parallel_s; /* from the first start to the last end */
    int64_t workers;   /* the most that ran at once */
    double speed_up;   /* serial / parallel */
    double efficiency; /* speed-up / workers */
};

/* Claims nothing itself: kind->finish does. Its output and the account go to `out` and to
 * DIR/tasks/finished.txt; then DIR/tasks/finished.json records that the submission of this name has
 * ended. False if results are missing (the first few are named) or finish failed. */
bool tasks_finish(const struct task_list *list, const struct task_kind *kind,
                  const char *submission, const struct ctx *ctx, FILE *out, struct err *err);

/* The last tasks_finish of a folder: whether it belongs to this submission, and its output. Names
 * are compared, never times: clocks in a cluster differ. */
bool tasks_finished(const struct task_list *list, const char *submission, bool *ok, char text[900]);
#endif
