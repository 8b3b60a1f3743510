/* train_tasks.c: microtome train on a cluster: one task, which is one job of all ranks; with
 * --sweep one such task for each combination. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/plain.h"
#include "base/pool.h"
#include "base/text.h"
#include "cli/train.h"

/* --- one training --- */

static bool list_training(const struct train_args *given, struct task_list *list, struct err *err)
{
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
static bool run_training(struct app *app, const struct train_args *given,
                         const struct args_result *operands, const char *path, struct err *err)
{
    struct train_args options = *given;
    struct file_out out;
    FILE *plain = plain_stream(stdout);
    if (!plain)
        return err_memory(err, "standard output");
    app->out = plain;
    options.resume = true;
    bool ok = train_here(app, &options, operands, err);
    fclose(plain);
    if (!ok || !file_out_open(&out, path, err))
        return false;
    fputs("training is complete\n", out.stream);
    return file_out_commit(&out, err);
}

/* --- a sweep --- */

static bool list_sweep(const struct train_job *job, const struct ctx *ctx, struct task_list *list,
                       struct err *err)
{
    struct sweep sweep;
    const struct arg_texts *texts = &job->given->sweeps;
    struct train_start start = train_args_start(job->given, job->operands);
    bool ok = sweep_new(texts->items, texts->n, list->folder, &sweep, err) &&
              sweep_check(&sweep, &start, ctx, err) && sweep_read(&sweep, err) &&
              sweep_write(&sweep, err);
    for (size_t i = 0; ok && i < sweep.n; i++) {
        char *file = text_format("%s/" SWEEP_RESULT, sweep.items[i].name);
        ok = file ? list_add(list, sweep.items[i].name, 0, 1, file, "", "", err)
                  : err_memory(err, "the task list");
        free(file);
    }
    sweep_free(&sweep);
    return ok;
}

/* path: of its result.json. */
static bool run_combination(const struct app *app, const struct train_args *given,
                            const struct args_result *operands, struct sweep *sweep, size_t i,
                            const char *path, struct err *err)
{
    char *folder = sweep_folder(sweep, i);
    bool ok = (folder || err_memory(err, "the sweep")) &&
              train_combination(app, given, operands, sweep, i, err) &&
              sweep_record(folder, path, err);
    if (ok && sweep_read(sweep, NULL)) /* others may write the table at the same time: the last job
                                          writes it once more */
        sweep_write(sweep, NULL);
    free(folder);
    return ok;
}

static bool end_sweep(const struct task_given *given, struct sweep *sweep,
                      const struct task_end *ends, FILE *out, struct err *err)
{
    const struct train_args *options = given->options;
    for (size_t i = 0; i < sweep->n; i++) {
        if (ends[i].complete)
            continue;
        sweep->items[i].state = COMBINATION_FAILED;
        sweep->items[i].error = text_format("%s", ends[i].error);
    }
    bool ok = sweep_read(sweep, err) && sweep_write(sweep, err);
    train_sweep_print(out, sweep, options->json);
    return ok;
}

/* --- both; the state is a struct sweep, empty for one training --- */

static bool tasks_list(const void *request, const struct ctx *ctx, struct task_list *list,
                       struct err *err)
{
    const struct train_job *job = request;
    return job->given->sweeps.n > 0 ? list_sweep(job, ctx, list, err)
                                    : list_training(job->given, list, err);
}

static bool tasks_open(const struct task_given *given, const struct ctx *ctx, struct err *err)
{
    (void)ctx;
    struct sweep *sweep = given->state;
    const struct train_args *options = given->options;
    struct train_start start = train_args_start(options, given->operands);
    if (options->sweeps.n == 0)
        return true;
    if (!sweep_new(options->sweeps.items, options->sweeps.n, given->list->folder, sweep, err) ||
        !sweep_choose_measure(sweep, &start, err))
        return false;
    return (int64_t)sweep->n == given->list->n ||
           err_set(err, ERR_FORMAT, "%s/tasks: does not match the sweep; submit again",
                   given->list->folder);
}

static bool tasks_train(const struct task_given *given, const struct task *task, const char *path,
                        const struct ctx *ctx, struct err *err)
{
    struct sweep *sweep = given->state;
    struct train_args options = *(const struct train_args *)given->options;
    struct app app = { .ctx = *ctx, .argc = given->list->argc, .argv = given->list->argv };
    if (options.common.threads == 0)
        options.common.threads = pool_workers(ctx->pool);
    return sweep->n > 0 ? run_combination(&app, &options, given->operands, sweep,
                                          (size_t)task->id - 1, path, err)
                        : run_training(&app, &options, given->operands, path, err);
}

static bool tasks_end(const struct task_given *given, const struct task_end *ends,
                      const struct ctx *ctx, FILE *out, struct err *err)
{
    (void)ctx;
    struct sweep *sweep = given->state;
    if (sweep->n > 0)
        return end_sweep(given, sweep, ends, out, err);
    if (ends[0].complete)
        fprintf(out, "%s/model.safetensors\n", given->list->folder);
    return true;
}

static void tasks_close(void *state)
{
    sweep_free(state);
}

const struct task_kind train_tasks = {
    .command = &cmd_train.spec,
    .options_size = sizeof(struct train_args),
    .state_size = sizeof(struct sweep),
    .saves = true,
    .in_place = true,
    .list = tasks_list,
    .open = tasks_open,
    .run = tasks_train,
    .finish = tasks_end,
    .close = tasks_close,
};
