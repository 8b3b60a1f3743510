/* list.h: a task list: work cut into tasks, each a pure function to one file. It is written once to
 * DIR/tasks with all that a task needs:
 *
 *   command.json   the command line, its folder and version
 *   list.csv       a row a task: number, slide, part of the slide, cost, file (relative to
 *                  DIR), the file that the slide's tasks are put together to, or nothing, and
 *                  the files that it is made from (base/identity.h)
 *   record/N.json  what became of task N (record.h)
 *   log/           what the jobs said
 *
 * A task is complete if its file exists, or the one that it has gone into, whoever made it. */
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
    char *whole;  /* likewise; what finishing makes of it, "" if the file stays as it is */
    char *inputs; /* line of the files it is made from when the list was made; "" if not known */
};

struct task_list {
    char *folder; /* of the results; absolute */
    char *kind;   /* which command: "extract" */
    char *cwd;    /* where it was typed: relative names in argv begin here */
    char **argv;  /* as typed: argv[0] the program, argv[1] the command */
    int argc;
    struct task *items; /* [n] */
    int64_t n;
};

/* An empty list for this folder, which is made if it is not there. *out is the caller's; free with
 * list_free, also after a failure. */
bool list_new(const char *folder, const char *kind, int argc, char *const *argv,
              struct task_list *out, struct err *err);
/* The texts are copied. */
bool list_add(struct task_list *list, const char *slide, int64_t part, double cost,
              const char *file, const char *whole, const char *inputs, struct err *err);
void list_free(struct task_list *list);

/* Writes the list. One that is there already and has the same tasks stays; another one is replaced
 * and its records are removed. */
bool list_write(const struct task_list *list, struct err *err);
/* Is there one in a results folder? */
bool list_exists(const char *folder);
/* Reads the list of a results folder. */
bool list_read(const char *folder, struct task_list *out, struct err *err);

/* DIR/<file of the task>, the caller's; NULL if no memory. */
char *task_path(const struct task_list *list, const struct task *task);
bool task_complete(const struct task_list *list, const struct task *task);
#endif
