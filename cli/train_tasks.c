/* train_tasks.c: microtome train on a cluster: one task, which is one job of all ranks. */
#include <stdlib.h>
#include "base/file.h"
#include "base/plain.h"
#include "base/pool.h"
#include "base/text.h"
#include "cli/train.h"

static bool tasks_list(const void *request, const struct ctx *ctx, struct task_list *list,
                       struct err *err)
{
    (void)ctx;
    const struct train_args *given = request;
    bool ok = true;
    char *checkpoints = text_format("%s/checkpoints", list->folder);
    char *tasks = text_format("%s/tasks/list.csv", list->folder);
    if (checkpoints && tasks && file_exists(checkpoints) && !file_exists(tasks) && !given->resume)
        ok = err_set(err, ERR_USAGE,
                     "%s: already contains a training run; pass --resume to continue it",
                     given->output);
    free(checkpoints);
    free(tasks);
    return ok && list_add(list, "training", 0, 1, "tasks/trained.txt", "", "", err);
}

/* The job may have been requeued: it always resumes. */
static bool tasks_train(const struct task_given *given, const struct task *task, const char *path,
                        const struct ctx *ctx, struct err *err)
{
    (void)task;
    struct train_args options = *(const struct train_args *)given->options;
    struct file_out out;
    FILE *plain = plain_stream(stdout);
    if (!plain)
        return err_memory(err, "standard output");
    struct app app = {
        .ctx = *ctx, .out = plain, .argc = given->list->argc, .argv = given->list->argv
    };
    if (options.common.threads == 0)
        options.common.threads = pool_workers(ctx->pool);
    options.resume = true;
    bool ok = train_here(&app, &options, given->operands, err);
    fclose(plain);
    if (!ok || !file_out_open(&out, path, err))
        return false;
    fputs("training is complete\n", out.stream);
    return file_out_commit(&out, err);
}

static bool tasks_end(const struct task_given *given, const struct task_end *ends,
                      const struct ctx *ctx, FILE *out, struct err *err)
{
    (void)ctx, (void)err;
    if (ends[0].complete)
        fprintf(out, "%s/model.safetensors\n", given->list->folder);
    return true;
}

const struct task_kind train_tasks = {
    .command = &cmd_train.spec,
    .options_size = sizeof(struct train_args),
    .saves = true,
    .list = tasks_list,
    .run = tasks_train,
    .finish = tasks_end,
};
