/* tasks.h: runs tasks of a list and merges their results. The command defines what a task does, as
 * a task_kind; this folder only deals with lists of them. */
#ifndef CLUSTER_TASKS_H
#define CLUSTER_TASKS_H
#include <stdio.h>
#include "base/args.h"
#include "base/ctx.h"
#include "base/run.h"
#include "cluster/list.h"
#include "cluster/record.h"
#include "slide/slide_list.h"

/* How a task ended, for task_kind.finish. */
struct task_end {
    bool complete;
    double seconds;    /* 0 if not known */
    double cpu_s;      /* of its process while it ran; 0 if not known */
    const char *error; /* why there is no result; NULL if complete */
};

/* What the tasks of one process share: what the list was made with, and the kind's own state. */
struct task_given {
    const struct task_list *list;
    const void *options;                /* the command's, from the list's command line */
    const struct args_result *operands; /* likewise */
    const struct slide_list *slides;    /* kept with the list; empty if the kind has none */
    struct task_parsed *parsed;         /* owns these */
    void *state;                        /* of the kind; zeroed before open */
};

/* What a command's tasks do. Everything else is done here: keeping the command line and the slides
 * with the list, parsing and reading them again in a job, claims, records and clean-up. */
struct task_kind {
    const struct args_spec *command; /* its name is the kind's */
    size_t options_size;             /* of the command's option struct */
    size_t state_size;               /* of `state`; 0: none */
    bool keeps_slides;               /* the list keeps the command's slides for the tasks */
    /* A task that is stopped saves what it has done, and fails with ERR_REQUEUE: its job is warned
     * before its time is up, and queued again. */
    bool saves;
    /* Adds the tasks to an empty list; `request` is the submission's. */
    bool (*list)(const void *request, const struct ctx *ctx, struct task_list *list,
                 struct err *err);
    /* Prepares the state; may be NULL. */
    bool (*open)(const struct task_given *given, const struct ctx *ctx, struct err *err);
    /* Makes the file at path, a pure function of the inputs; it is renamed into place afterwards.
     * With `in_place`, path is the task's file itself, and run does the renaming. Only called if
     * the file does not exist. */
    bool in_place;
    bool (*run)(const struct task_given *given, const struct task *task, const char *path,
                const struct ctx *ctx, struct err *err);
    /* Merges the existing results. ends [list->n]. False if something failed; the caller reports
     * what is missing. */
    bool (*finish)(const struct task_given *given, const struct task_end *ends,
                   const struct ctx *ctx, FILE *out, struct err *err);
    /* Frees what is in the state, also after a failed open; may be NULL. */
    void (*close)(void *state);
};

/* A list's slides in DIR/tasks/slides.csv. */
bool task_slides_save(const struct task_list *list, const struct slide_list *slides,
                      struct err *err);
/* Parses the list's command line, reads its slides and opens the kind's state. *out is the
 * caller's; end with task_given_close, also after a failure. It points into the list. */
bool task_given_open(const struct task_list *list, const struct task_kind *kind,
                     const struct ctx *ctx, struct task_given *out, struct err *err);
void task_given_close(const struct task_kind *kind, struct task_given *given);

/* The place of a task's slide in given->slides. */
bool task_given_slide(const struct task_given *given, const struct task *task, size_t *out,
                      struct err *err);
/* For each slide the times of its tasks, added up, and their first error: [slides], the caller's;
 * NULL on failure. */
struct run_outcome *task_given_outcomes(const struct task_given *given, const struct task_end *ends,
                                        struct err *err);

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
