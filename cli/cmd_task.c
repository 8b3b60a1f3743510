/* cmd_task.c: microtome task: run by a cluster's jobs: tasks of a list, or finishing it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cluster.h"

extern const struct task_kind extract_tasks, predict_tasks, train_tasks, nuclei_tasks,
    explain_tasks;

static const struct task_kind *const kinds[] = { &extract_tasks, &predict_tasks, &train_tasks,
                                                 &nuclei_tasks, &explain_tasks };

struct task_args {
    struct common_options common;
    bool finish;
};

#define AT(field) offsetof(struct task_args, field)

static const struct arg args[] = {
    FLAG_ARG("finish", finish, "merge the tasks' results and report what is missing"),
    COMMON_ARGS,
};

static bool parse_range(const char *text, int64_t *first, int64_t *last, struct err *err)
{
    char *end = NULL;
    errno = 0;
    *first = *last = strtoll(text, &end, 10);
    if (end != text && *end == '-')
        *last = strtoll(end + 1, &end, 10);
    if (end == text || *end || errno || *first < 1 || *last < *first)
        return err_set(err, ERR_USAGE, "'%s' is not a task number or a range like 3-7", text);
    return true;
}

/* operands after the folder: 3 5-9 ... tasks_run rejects numbers outside the list. */
static bool parse_ids(const struct args_result *operands, int64_t n_tasks, int64_t **out,
                      int64_t *n, struct err *err)
{
    int64_t first, last, room = 0;
    *n = 0;
    for (int i = 1; i < operands->n_operands; i++) {
        if (!parse_range(operands->operands[i], &first, &last, err))
            return false;
        if (last > n_tasks)
            return err_set(err, ERR_USAGE, "no task %lld; the list has tasks 1 to %lld",
                           (long long)last, (long long)n_tasks);
        room += last - first + 1;
    }
    *out = calloc((size_t)room + 1, sizeof **out);
    if (!*out)
        return err_memory(err, "the task list");
    for (int i = 1; i < operands->n_operands; i++) {
        parse_range(operands->operands[i], &first, &last, err);
        for (int64_t id = first; id <= last; id++)
            (*out)[(*n)++] = id;
    }
    return true;
}

static const struct task_kind *find_kind(const struct task_list *list, struct err *err)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->command->name, list->kind) == 0)
            return kinds[i];
    err_set(err, ERR_FORMAT, "%s: has tasks of '%s', which this version does not support",
            list->folder, list->kind);
    return NULL;
}

static struct task_job job_around(void)
{
    const char *began = getenv("MICROTOME_JOB_BEGAN"), *limit = getenv("MICROTOME_TIME_LIMIT");
    const char *log = getenv("MICROTOME_LOG"), *submission = getenv("MICROTOME_SUBMISSION");
    return (struct task_job){ .began = began ? strtod(began, NULL) : 0,
                              .limit_s = limit ? strtoll(limit, NULL, 10) : 0,
                              .log = log ? log : "",
                              .submission = submission ? submission : "" };
}

/* By hand it is the end of the last submission. */
static bool finish(const struct task_list *list, const struct task_kind *kind,
                   const char *submission, struct app *app, struct err *err)
{
    struct submission last;
    if (!submission[0] && submission_read(list, &last))
        submission = last.name;
    return tasks_finish(list, kind, submission, &app->ctx, app->out, err);
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct task_args *given = options;
    struct task_list list = { 0 };
    int64_t n = 0, *ids = NULL;
    struct task_job job = job_around();
    if (given->finish != (operands->n_operands == 1))
        return err_set(err, ERR_USAGE, "needs task numbers, or --finish without any");
    bool ok = list_read(operands->operands[0], &list, err);
    const struct task_kind *kind = ok ? find_kind(&list, err) : NULL;
    ok = kind && parse_ids(operands, list.n, &ids, &n, err);
    if (ok && chdir(list.cwd) != 0) /* where the command was typed: names in it are relative */
        ok = err_errno(err, list.cwd, "change to the folder in which the command was typed");
    if (ok && given->finish)
        ok = finish(&list, kind, job.submission, app, err);
    else if (ok)
        ok = tasks_run(&list, kind, ids, n, &job, &app->ctx, err);
    free(ids);
    list_free(&list);
    return ok;
}

const struct command cmd_task = {
    .spec = { .name = "task",
              .summary = "run tasks of a list, as a cluster's jobs do",
              .operands = "DIR [N...]",
              .min_operands = 1,
              .max_operands = 10000000,
              .description =
                  "Runs the tasks with these numbers, or ranges of numbers, of the list that a "
                  "command with --on slurm or --on sge wrote to DIR. A task makes one file; if it "
                  "exists, the task is skipped. --finish merges the results. A cluster's jobs do "
                  "both; run by hand, they help to examine a task that failed.",
              .example = "microtome task results 17\nmicrotome task results 3 8-11\n"
                         "microtome task results --finish",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct task_args),
    .run = run,
};
