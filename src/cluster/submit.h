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

/* Writes the list and submits the tasks that are not complete; if all are, finishes here. An error
 * while jobs of an earlier submission are alive. With options->dry_run the scripts are written and
 * printed to `out`, and nothing is submitted; with options->wait this returns when the last job has
 * ended, with its result. The claim on the folder is released when everything is submitted. */
bool cluster_submit(const struct task_list *list, const struct task_kind *kind,
                    const struct cluster_options *options, struct claim *claim,
                    const struct ctx *ctx, FILE *out, struct err *err);

/* The same for a list of one task that is one job of `ranks` ranks. It is warned before its time is
 * up; if it then exits with 75 (everything is saved) it is requeued. */
bool cluster_submit_one(const struct task_list *list, const struct task_kind *kind,
                        const struct cluster_options *options, int64_t ranks, struct claim *claim,
                        const struct ctx *ctx, FILE *out, struct err *err);

/* --- steps --- */

/* Fails if jobs of the last submission are alive; else the number and name of the next one. */
bool submission_begin(const struct task_list *list, const struct scheduler *scheduler,
                      struct submission *out, struct err *err);
/* Waits for tasks_finished of this submission, with a progress bar of complete tasks; prints its
 * output. */
bool submission_wait(const struct task_list *list, const struct submission *submission,
                     const struct ctx *ctx, FILE *out, struct err *err);
#endif
