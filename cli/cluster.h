/* cluster.h: the options of commands that also run on a cluster, and the table of their tasks. */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H
#include "cli/app.h"
#include "cluster/submit.h"
#include "slide/slide_list.h"

/* NULL-terminated. */
extern const struct task_kind *const task_kinds[];

/* argv of the list parsed anew as the command's options: *options is the caller's (free), operands
 * point into *argv, which is the caller's too. */
bool cluster_parse(const struct task_list *list, const struct command *command, void **options,
                   struct args_result *operands, char ***argv, struct err *err);

/* Checks what only makes sense with a scheduler, and that there is one, before any work is done. */
bool cluster_check(const struct cluster_options *options, struct err *err);
/* A run on this computer: refuses while jobs of a submission work in the folder. */
bool cluster_check_idle(const char *folder, struct err *err);

/* Claims the folder, sees to it that no jobs work in it, and keeps the slides for the tasks. */
bool cluster_begin(const struct task_list *list, const struct slide_list *slides,
                   struct claim **claim, struct err *err);

/* DIR/tasks/slides.csv, the caller's; NULL if no memory. */
char *cluster_slides_path(const char *folder);

#define CLUSTER_ARG(options_type, field) .offset = offsetof(options_type, cluster.field)

#define CLUSTER_ARGS(options_type)                                                                 \
    { .name = "on",                                                                                \
      .type = ARG_CHOICE,                                                                          \
      CLUSTER_ARG(options_type, on),                                                               \
      .value = "WHERE",                                                                            \
      .initial = "local",                                                                          \
      .choices = scheduler_choices,                                                                \
      .help = "where it runs: this computer, or jobs of a cluster's scheduler; see "               \
              "docs/cluster.md" },                                                                 \
        { .name = "partition",                                                                     \
          .type = ARG_TEXT,                                                                        \
          CLUSTER_ARG(options_type, partition),                                                    \
          .value = "NAME",                                                                         \
          .help = "of the jobs (SLURM)" },                                                         \
        { .name = "queue",                                                                         \
          .type = ARG_TEXT,                                                                        \
          CLUSTER_ARG(options_type, partition),                                                    \
          .value = "NAME",                                                                         \
          .help = "of the jobs (Grid Engine)" },                                                   \
        { .name = "account",                                                                       \
          .type = ARG_TEXT,                                                                        \
          CLUSTER_ARG(options_type, account),                                                      \
          .value = "NAME",                                                                         \
          .help = "account or project that the jobs are charged to" },                             \
        { .name = "cpus",                                                                          \
          .type = ARG_INT,                                                                         \
          CLUSTER_ARG(options_type, cpus),                                                         \
          .value = "N",                                                                            \
          .initial = "1",                                                                          \
          .min = 1,                                                                                \
          .max = 1024,                                                                             \
          .help = "processors, and threads, of a job (of a rank, where there are several)" },      \
        { .name = "time",                                                                          \
          .type = ARG_TEXT,                                                                        \
          CLUSTER_ARG(options_type, time),                                                         \
          .value = "TIME",                                                                         \
          .help = "longest time of a job: 90s, 30m, 2h, 1d or HH:MM:SS" },                         \
        { .name = "site",                                                                          \
          .type = ARG_TEXT,                                                                        \
          CLUSTER_ARG(options_type, site),                                                         \
          .value = "FILE",                                                                         \
          .help = "YAML of what the cluster needs: modules, flags, container" },                   \
        { .name = "dry-run",                                                                       \
          .type = ARG_FLAG,                                                                        \
          CLUSTER_ARG(options_type, dry_run),                                                      \
          .help = "write and print the jobs' scripts; submit nothing" },                           \
    {                                                                                              \
        .name = "wait", .type = ARG_FLAG, CLUSTER_ARG(options_type, wait),                         \
        .help = "return when the jobs have ended, instead of when they are submitted"              \
    }

/* For commands whose tasks are many. */
#define CLUSTER_ARRAY_ARGS(options_type)                                                           \
    { .name = "max-running",                                                                       \
      .type = ARG_INT,                                                                             \
      CLUSTER_ARG(options_type, max_running),                                                      \
      .value = "N",                                                                                \
      .min = 1,                                                                                    \
      .max = 1e6,                                                                                  \
      .help = "never more jobs than this at once" },                                               \
        { .name = "retries",                                                                       \
          .type = ARG_INT,                                                                         \
          CLUSTER_ARG(options_type, retries),                                                      \
          .value = "N",                                                                            \
          .initial = "1",                                                                          \
          .max = 100,                                                                              \
          .help = "how often a job tries a failed task again" },                                   \
    {                                                                                              \
        .name = "jobs", .type = ARG_INT, CLUSTER_ARG(options_type, jobs), .value = "N", .min = 1,  \
        .max = 1e8,                                                                                \
        .help = "share the tasks among so many jobs, by cost; a job for each task if not given"    \
    }

#define CLUSTER_MEMORY_ARG(options_type)                                                           \
    {                                                                                              \
        .name = "memory", .type = ARG_REAL, CLUSTER_ARG(options_type, memory_mb), .value = "MB",   \
        .min = 10, .max = 1e8, .help = "memory of a job"                                           \
    }
#endif
