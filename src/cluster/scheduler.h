/* scheduler.h: SLURM and Grid Engine behind one table of functions, through their own commands. A
 * scheduler is one file that defines one struct scheduler; schedulers[] lists them. All jobs of a
 * submission have one unique name, by which they are found and cancelled. */
#ifndef CLUSTER_SCHEDULER_H
#define CLUSTER_SCHEDULER_H
#include <stdint.h>
#include <stdio.h>
#include "cluster/site.h"

#define JOB_NAME 11 /* "mt" and 8 hex digits: qstat shows ten characters of a name */

/* The request, from the command line. */
struct cluster_options {
    int on; /* 0 local; else schedulers[on - 1] */
    const char *partition, *account, *site, *time;
    int64_t cpus, max_running, retries, jobs;
    double memory_mb; /* 0: not asked for */
    bool dry_run, wait;
};

struct job_request {
    const char *name, *log; /* log may contain the scheduler's placeholders for job and element */
    const struct cluster_options *options;
    const struct site *site;
    int64_t time_s; /* 0: the scheduler's default */
    int64_t ranks;  /* MPI processes, each with options->cpus processors; 1: one process */
    bool warned;    /* before its time is up, so that it can save */
};

/* What the scheduler knows of the jobs of one name. */
struct job_counts {
    int64_t waiting, running, held; /* held: in an error state, will not start on their own */
    int64_t dependent;              /* of those waiting: for other jobs */
};

struct scheduler {
    const char *name, *title; /* "slurm", "SLURM" */
    const char *mark;         /* prefix of its lines in a script: "#SBATCH" */
    const char *log_signs;    /* of an array's log: "%A.%a" */
    const char *element;      /* shell: the element's number, from 1 */
    const char *log_shell;    /* shell: the same log name at run time */
    const char *requeue;      /* shell: requeues this job */
    /* Maximum elements in one array. Also checks that the scheduler is available. */
    bool (*max_array)(int64_t *out, struct err *err);
    void (*directives)(FILE *script, const struct job_request *job);
    /* Writes two shell functions: submit_array OFFSET COUNT, and submit_last, which waits for all.
     */
    void (*submit_functions)(FILE *script, const struct cluster_options *options, int64_t number);
    /* Submits one script as a job. */
    bool (*submit)(const char *script, struct err *err);
    /* Explains a rejected submission, in plain words with the remedy. Always false. */
    bool (*explain)(const char *said, const struct cluster_options *options, struct err *err);
    bool (*look)(const char *name, struct job_counts *out, struct err *err);
    bool (*cancel)(const char *name, struct err *err);
};

extern const struct scheduler *const schedulers[]; /* NULL-terminated */
extern const char *const scheduler_choices[];      /* "local", then their names; for --on */
const struct scheduler *scheduler_named(const char *name);

/* "90s", "30m", "2h", "1d", "HH:MM:SS" or "D-HH:MM:SS" -> seconds. */
bool time_parse(const char *text, int64_t *out, struct err *err);
/* HH:MM:SS; hours may be above 99. */
void time_print(int64_t seconds, char out[32]);
#endif
