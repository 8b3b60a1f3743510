/* list.h: a task list: work divided into tasks, each a pure function that makes one file. It is
 * written once to DIR/tasks with everything a task needs:
 *
 *   command.json   the command line, its working folder and version
 *   list.csv       one row per task: number, slide, part of the slide, cost, file (relative to
 *                  DIR), the file into which the slide's tasks are merged, if any, and the
 *                  files it is made from (base/identity.h)
 *   record/N.json  the outcome of task N (record.h)
 *   log/           the output of the jobs
 *
 * A task is complete if its file exists, or the one it was merged into, whoever made it. */
#ifndef CLUSTER_LIST_H
#define CLUSTER_LIST_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct task {
    int64_t id; /* from 1 */
    char *slide;
    int64_t part; /* of the slide, from 0 */
    double cost;  /* in any unit; only compared */
    char *file;   /* relative to the results folder */
    char
        *whole; /* likewise; the file that finishing makes from it, "" if the file stays as it is */
    char *inputs; /* line of the files it is made from when the list was made; "" if not known */
};

/* items[i].id is i + 1. A list on disk never changes: another one replaces it and its records. */
struct task_list {
    char *folder; /* of the results; absolute */
    char *kind;   /* which command: "extract" */
    char *cwd;    /* where it was typed: names in argv are relative to this */
    char **argv;  /* as typed: argv[0] the program, argv[1] the command */
    int argc;
    struct task *items; /* [n] */
    int64_t n;
};

/* An empty list for this folder, which is created if necessary. *out is the caller's; free with
 * list_free, also after a failure. */
bool list_new(const char *folder, const char *kind, int argc, char *const *argv,
              struct task_list *out, struct err *err);
/* The texts are copied. */
bool list_add(struct task_list *list, const char *slide, int64_t part, double cost,
              const char *file, const char *whole, const char *inputs, struct err *err);
void list_free(struct task_list *list);

/* Writes the list. An existing one with the same tasks is kept; a different one is replaced and its
 * records are removed. */
bool list_write(const struct task_list *list, struct err *err);
/* Whether a results folder has one. */
bool list_exists(const char *folder);
/* Reads the list of a results folder. */
bool list_read(const char *folder, struct task_list *out, struct err *err);

/* DIR/<file of the task>, the caller's; NULL if no memory. */
char *task_path(const struct task_list *list, const struct task *task);
bool task_complete(const struct task_list *list, const struct task *task);
#endif
