/* submit.h: a task list -> jobs of a scheduler. DIR/tasks gets, for submission number K,
 *
 *   jobs-K.txt     one line per job: the tasks it runs
 *   array-K.sh     an element of the array: the tasks on its line
 *   last-K.sh      waits for all, merges the results, reports what is missing
 *   submit-K.sh    submits both; runs here, or as a separate job (the master) if there are
 *                  more jobs than one array may have
 *   submission.json  the last submission: scheduler, name of its jobs, numbers
 *
 * The scripts are meant to be read, and can be submitted by hand. */
#ifndef CLUSTER_SUBMIT_H
#define CLUSTER_SUBMIT_H
#include "base/claim.h"
#include "base/ctx.h"
#include "cluster/scheduler.h"
#include "cluster/tasks.h"

struct submission {
    char scheduler[16], name[JOB_NAME];
    int64_t number; /* 1 for the first in a folder */
    int64_t tasks, jobs, arrays;
    int64_t time_s;
    double at; /* seconds since 1970, for people */
};

/* False if nothing was submitted in this folder. */
bool submission_read(const struct task_list *list, struct submission *out);
bool submission_write(const struct task_list *list, const struct submission *submission,
                      struct err *err);

/* Work that a command gives to a scheduler. */
struct task_request {
    const struct task_kind *kind;
    const char *folder; /* of the results */
    int argc;           /* as typed */
    char *const *argv;
    const struct slide_list *slides; /* if the kind keeps them */
    const void *request;             /* for kind->list */
    const struct cluster_options *options;
    int64_t ranks; /* MPI ranks of a task; 0 or 1: one process */
};

/* Claims the folder, makes the list of tasks, writes it and submits those that are not complete; if
 * all are, finishes here. An error while jobs of an earlier submission are alive. With
 * options->dry_run the scripts are written and printed to `out`, and nothing is submitted; with
 * options->wait this returns when the last job has ended, with its result. The claim on the folder
 * is released when everything is submitted. A kind whose tasks save what they have done and that
 * lists a single task gets a single job, else there are arrays. */
bool cluster_submit(const struct task_request *request, const struct ctx *ctx, FILE *out,
                    struct err *err);

/* Checks options that need a scheduler, and that there is one, before any work is done. */
bool cluster_check(const struct cluster_options *options, struct err *err);
/* A run on this computer: an error while jobs of a submission use the folder. */
bool cluster_check_idle(const char *folder, struct err *err);

/* --- steps --- */

/* Fails if jobs of the last submission are alive; else the number and name of the next one. */
bool submission_begin(const struct task_list *list, const struct scheduler *scheduler,
                      struct submission *out, struct err *err);
/* Waits for tasks_finished of this submission, with a progress bar of complete tasks; prints its
 * output. */
bool submission_wait(const struct task_list *list, const struct submission *submission,
                     const struct ctx *ctx, FILE *out, struct err *err);
#endif
