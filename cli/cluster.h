/* cluster.h: the options of commands that also run on a cluster; their kinds of tasks are listed in
 * cmd_task.c. */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H
#include "cli/app.h"
#include "cluster/submit.h"

#define CLUSTER_ARGS                                                                               \
    CHOICE_ARG("on", cluster.on, "WHERE", "local", scheduler_choices,                              \
               "where to run: this computer, or as jobs of a cluster's scheduler; see "            \
               "docs/cluster.md"),                                                                 \
        TEXT_ARG("partition", cluster.partition, "NAME", NULL, "partition for the jobs (SLURM)"),  \
        TEXT_ARG("queue", cluster.partition, "NAME", NULL, "queue for the jobs (Grid Engine)"),    \
        TEXT_ARG("account", cluster.account, "NAME", NULL,                                         \
                 "account or project that the jobs are charged to"),                               \
        INT_ARG("cpus", cluster.cpus, "N", "1", 1, 1024,                                           \
                "processors and threads per job (per rank, if there are several)"),                \
        TEXT_ARG("time", cluster.time, "TIME", NULL,                                               \
                 "time limit of a job: 90s, 30m, 2h, 1d or HH:MM:SS"),                             \
        TEXT_ARG("site", cluster.site, "FILE", NULL,                                               \
                 "YAML file with the cluster's settings: modules, flags, container"),              \
        FLAG_ARG("dry-run", cluster.dry_run, "write and print the job scripts; submit nothing"),   \
        FLAG_ARG("wait", cluster.wait,                                                             \
                 "return when the jobs have ended, instead of when they are submitted")

/* For commands whose tasks are many. */
#define CLUSTER_ARRAY_ARGS                                                                         \
    INT_ARG("max-running", cluster.max_running, "N", NULL, 1, 1e6,                                 \
            "maximum number of jobs running at once"),                                             \
        INT_ARG("retries", cluster.retries, "N", "1", 0, 100,                                      \
                "how often a job retries a failed task"),                                          \
        INT_ARG("jobs", cluster.jobs, "N", NULL, 1, 1e8,                                           \
                "divide the tasks among N jobs by cost; default: one job per task")

#define CLUSTER_MEMORY_ARG                                                                         \
    REAL_ARG("memory", cluster.memory_mb, "MB", NULL, 10, 1e8, "memory per job")
#endif
