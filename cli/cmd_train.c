/* cmd_train.c: microtome train: patches and a config -> weights, metrics, checkpoints. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/claim.h"
#include "base/file.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/pool.h"
#include "base/console.h"
#include "cli/cluster.h"
#include "dist/launch.h"
#include "train/distill.h"
#include "train/mine.h"
#include "train/train.h"
#include "base/text.h"

struct train_args {
    struct common_options common;
    const char *output, *teacher, *miner;
    struct arg_texts settings;
    int64_t ranks;
    bool template, resume, overwrite, json;
    struct cluster_options cluster;
};

extern const struct command cmd_train;

static void print_result(struct app *app, const struct train_args *given,
                         const struct train_result *result)
{
    struct json_out json;
    char tested[80] = "";
    if (result->tested)
        snprintf(tested, sizeof tested, "; test: accuracy %.4f, AUC %.4f", result->test.accuracy,
                 result->test.auc);
    if (!given->json) {
        fprintf(
            app->out,
            "best epoch %lld of %lld: accuracy %.4f, AUC %.4f%s; %.1f patches/s, waiting for data "
            "%.0f %%; %s/model.safetensors\n",
            (long long)result->best_epoch + 1, (long long)result->epochs, result->val.accuracy,
            result->val.auc, tested, result->images_per_s, 100 * result->waiting, given->output);
        return;
    }
    json_out_begin(&json, app->out);
    json_out_object(&json, NULL);
    json_out_int(&json, "epochs", result->epochs);
    json_out_int(&json, "steps", result->steps);
    json_out_int(&json, "best_epoch", result->best_epoch + 1);
    json_out_real(&json, "val_loss", result->val_loss);
    json_out_real(&json, "accuracy", result->val.accuracy);
    json_out_real(&json, "balanced_accuracy", result->val.balanced_accuracy);
    json_out_real(&json, "auc", result->val.auc);
    if (result->tested) {
        json_out_object_line(&json, "test");
        json_out_int(&json, "patches", result->test.n);
        json_out_real(&json, "loss", result->test_loss);
        json_out_real(&json, "accuracy", result->test.accuracy);
        json_out_real(&json, "balanced_accuracy", result->test.balanced_accuracy);
        json_out_real(&json, "auc", result->test.auc);
        json_out_close_object(&json);
    }
    json_out_real(&json, "seconds", result->seconds);
    json_out_real(&json, "patches_per_s", result->images_per_s);
    json_out_real(&json, "waiting", result->waiting);
    json_out_close_object(&json);
    json_out_end(&json);
}

static bool use_teacher(struct train_config *config, const char *teacher, struct err *err)
{
    if (teacher) {
        free(config->distill.teacher);
        config->distill.teacher = strdup(teacher);
        if (!config->distill.teacher)
            return err_memory(err, "the config");
    }
    return distill_adopt(config, err);
}

/* Mines hard negatives (on the first rank) and adds the list to the config. --resume keeps an
 * existing list. */
static bool mine(const struct train_args *given, const struct ranks *ranks, const struct ctx *ctx,
                 struct train_config *config, struct err *err)
{
    struct mine_result result;
    char *path = text_format("%s/" MINE_FILE, given->output);
    bool exists = path && file_exists(path);
    free(config->data.hard_negatives);
    config->data.hard_negatives = path;
    if (!path)
        return err_memory(err, "the config");
    if (ranks->rank > 0 || (exists && given->resume))
        return true;
    if (exists && !given->overwrite)
        return err_set(err, ERR_USAGE,
                       "%s: already exists; pass --resume to use it, --overwrite to mine again, or "
                       "use another folder",
                       path);
    if (!file_make_folder(given->output, err) ||
        !mine_run(config, given->miner, path, ctx, &result, err))
        return false;
    console_note(ctx->console,
                 "%lld of %lld patches of normal tissue are false positives; %lld written to %s",
                 (long long)result.found, (long long)result.scored, (long long)result.kept, path);
    return true;
}

/* The same command line for each rank: without --ranks, and with a number of threads. */
static bool start_ranks(const struct app *app, const struct train_args *given, struct err *err)
{
    static char threads_option[] = "--threads", number[16];
    char **line = calloc((size_t)app->argc + 3, sizeof *line);
    int n = 0, threads = pool_workers(app->ctx.pool) / (int)given->ranks;
    if (!line)
        return err_memory(err, "arguments");
    for (int i = 1; i < app->argc; i++) {
        if (strcmp(app->argv[i], "--ranks") == 0)
            i++;
        else if (strncmp(app->argv[i], "--ranks=", 8) != 0)
            line[n++] = app->argv[i];
    }
    if (given->common.threads == 0) {
        snprintf(number, sizeof number, "%d", threads > 0 ? threads : 1);
        line[n++] = threads_option;
        line[n] = number;
    }
    static char trial[] = APP_TRY_RANKS;
    struct launch launch = {
        .ranks = (int)given->ranks, .arguments = line, .trial = trial, .stop = app->ctx.stop
    };
    bool ok = launch_ranks(&launch, err);
    free(line);
    return ok;
}

/* The folder belongs to this run until `claim` is released. With several ranks the first one holds
 * the claim: it lives as long as any of them. */
static bool claim_folder(const struct app *app, const char *folder, bool *made,
                         struct claim **claim, struct err *err)
{
    *made = !file_exists(folder);
    if (!file_make_folder(folder, err))
        return false;
    if (getenv("MICROTOME_SUBMISSION")) /* in a job: it may have been lost with a node, and started
                                           again */
        return claim_wait(folder, app->ctx.stop, claim, err);
    return claim_take(folder, claim, err);
}

/* Collective. Without --threads, processors are divided among the ranks of a machine; all ranks but
 * the first are silent. */
static bool train(struct app *app, const struct train_args *given, const char *path,
                  struct ranks *ranks, struct err *err)
{
    struct train_config config = { 0 };
    struct train_result result;
    struct ctx ctx = app->ctx;
    struct pool *own = NULL;
    struct claim *claim = NULL;
    bool made = false;
    bool ok = config_read(path, given->settings.items, given->settings.n, &config, err);
    ok = ok && use_teacher(&config, given->teacher, err);
    if (ok && ranks->size > 1 && given->common.threads == 0) {
        int threads = ranks->processors / ranks->local_size;
        ctx.pool = own = pool_new(threads > 0 ? threads : 1);
        ok = own || err_memory(err, "threads");
    }
    if (ranks->rank > 0)
        ctx.console = NULL;
    else
        ok = ok && claim_folder(app, given->output, &made, &claim, err);
    ok = ok && (!given->miner || mine(given, ranks, &ctx, &config, err));
    struct train_request request = { .config = &config,
                                     .folder = given->output,
                                     .resume = given->resume,
                                     .overwrite = given->overwrite,
                                     .ranks = ranks,
                                     .argc = app->argc,
                                     .argv = app->argv };
    ok = ranks_agree(ranks, ok, NULL, err) && train_run(&request, &ctx, &result, err);
    if (ok && ranks->rank == 0)
        print_result(app, given, &result);
    claim_release(claim);
    if (made && !ok)
        rmdir(given->output); /* if nothing is in it */
    pool_free(own);
    config_free(&config);
    return ok;
}

/* In this process, or in ranks that it starts. */
static bool train_here(struct app *app, const struct train_args *given, const char *path,
                       struct err *err)
{
    struct ranks ranks;
    if (given->ranks > 1 && ranks_started() > 1)
        return err_set(err, ERR_USAGE, "--ranks: already running as one of %d ranks",
                       ranks_started());
    if (given->ranks > 1)
        return start_ranks(app, given, err);
    if (!ranks_begin(&ranks, err))
        return false;
    bool ok = train(app, given, path, &ranks, err);
    if (!ok && ranks.size > 1 && ranks.failed) { /* said before any rank ends, for then mpirun ends
                                                  * the others at once */
        if (ranks.rank == 0)
            app_complain("train", err);
        err->text[0] = 0;
    }
    ranks_end(&ranks, ok);
    return ok;
}

/* --- on a cluster: one task, which is one job of all ranks --- */

struct train_work {
    char **line; /* of the list, for the ranks: it resumes if there is a checkpoint */
    int n_line;
    char threads[16];
};

static void tasks_close(void *state)
{
    free(((struct train_work *)state)->line);
}

static bool tasks_open(const struct task_given *given, const struct ctx *ctx, struct err *err)
{
    static char resume[] = "--resume", threads[] = "--threads";
    struct train_work *work = given->state;
    const struct train_args *args_given = given->options;
    work->line = calloc((size_t)given->list->argc + 4, sizeof *work->line);
    if (!work->line)
        return err_memory(err, "the task");
    snprintf(work->threads, sizeof work->threads, "%d", pool_workers(ctx->pool));
    for (int i = 0; i < given->list->argc; i++)
        work->line[work->n_line++] = given->list->argv[i];
    if (!args_given->resume)
        work->line[work->n_line++] = resume;
    if (args_given->common.threads == 0) {
        work->line[work->n_line++] = threads;
        work->line[work->n_line++] = work->threads;
    }
    return true;
}

static bool tasks_train(const struct task_given *given, const struct task *task, const char *path,
                        const struct ctx *ctx, struct err *err)
{
    (void)task;
    struct train_work *work = given->state;
    struct train_args args_given = *(const struct train_args *)given->options;
    FILE *plain = plain_stream(stdout);
    if (!plain)
        return err_memory(err, "standard output");
    struct app app = { .ctx = *ctx, .out = plain, .argc = work->n_line, .argv = work->line };
    struct file_out out;
    const char *config = given->operands->n_operands ? given->operands->operands[0] : NULL;
    args_given.common.threads = pool_workers(ctx->pool);
    args_given.resume = true;
    bool ok = train_here(&app, &args_given, config, err);
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

const struct task_kind train_tasks = {
    .command = &cmd_train.spec,
    .options_size = sizeof(struct train_args),
    .state_size = sizeof(struct train_work),
    .saves = true,
    .list = tasks_list,
    .open = tasks_open,
    .run = tasks_train,
    .finish = tasks_end,
    .close = tasks_close,
};

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct train_args *given = options;
    bool is_rank = ranks_started() > 1; /* its options are those of the job it belongs to */
    if (given->template) {
        config_print_template(app->out);
        return true;
    }
    if (operands->n_operands == 0 && given->settings.n == 0)
        return err_set(err, ERR_USAGE, "needs CONFIG.yaml; --template prints one");
    if (!given->output)
        return err_set(err, ERR_USAGE, "--output DIR is required");
    if (!is_rank && !cluster_check(&given->cluster, err))
        return false;
    if (!is_rank && given->cluster.on > 0 && given->overwrite)
        return err_set(err, ERR_USAGE,
                       "--overwrite: a job that is requeued must continue, not start over; remove "
                       "the folder instead");
    struct task_request tasks = { .kind = &train_tasks,
                                  .folder = given->output,
                                  .argc = app->argc,
                                  .argv = app->argv,
                                  .request = given,
                                  .options = &given->cluster,
                                  .ranks = given->ranks };
    if (!is_rank && given->cluster.on > 0)
        return cluster_submit(&tasks, &app->ctx, app->out, err);
    if (!is_rank && !cluster_check_idle(given->output, err))
        return false;
    return train_here(app, given, operands->n_operands ? operands->operands[0] : NULL, err);
}

#define AT(field) offsetof(struct train_args, field)
static const struct arg args[] = {
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = AT(output),
      .value = "DIR",
      .help = "folder for weights, metrics and checkpoints (required, except with --template)" },
    TEXTS_ARG("set", settings, "KEY=VALUE",
              "set a config key, e.g. train.epochs=20; may be repeated"),
    TEXT_ARG("distill-dense", teacher, "MODEL", NULL,
             "fit MODEL's network, run densely, to its own window scores; needs patches larger "
             "than its window, but no labels"),
    INT_ARG("ranks", ranks, "N", "1", 1, 1 << 20,
            "train on N processes, started by mpirun; --threads is then for each"),
    TEXT_ARG("mine", miner, "MODEL", NULL,
             "first score the stores in mine.stores with MODEL and add the false positives "
             "(DIR/hard_negatives.csv) to training"),
    FLAG_ARG("resume", resume, "continue from the last checkpoint in DIR, if there is one"),
    FLAG_ARG("overwrite", overwrite, "start over even if DIR already contains a training run"),
    FLAG_ARG("template", template, "print a commented config with all defaults and exit"),
    FLAG_ARG("json", json, "print the result as JSON"),
    CLUSTER_ARGS,
    CLUSTER_MEMORY_ARG,
    COMMON_ARGS,
};

const struct command cmd_train = {
    .spec = { .name = "train",
              .summary = "train a patch classifier",
              .operands = "CONFIG.yaml",
              .min_operands = 0,
              .max_operands = 1,
              .description =
                  "Trains a network from the zoo on patch stores, folders of images or tar files, "
                  "configured by a YAML file; no patient is in more than one of training, "
                  "validation and test. DIR gets the best weights (safetensors with config.json, "
                  "and ONNX), metrics, curves, the confusion matrix and checkpoints. SIGTERM or "
                  "Ctrl-C saves and exits with code 75; the same command with --resume continues "
                  "as if nothing had happened. See docs/training.md.",
              .example =
                  "microtome train --template > run.yaml\n"
                  "microtome train run.yaml -o run\n"
                  "microtome train run.yaml --set schedule.learning_rate=0.01 -o run2\n"
                  "microtome train run.yaml -o run --resume\n"
                  "microtome train run.yaml -o run --ranks 4\n"
                  "microtome train run.yaml -o run --on slurm --ranks 16 --cpus 8 --time 12h\n"
                  "mpirun -n 64 microtome train run.yaml -o run --threads 8\n"
                  "microtome train run.yaml --mine run -o run-hard\n"
                  "microtome train dense.yaml --distill-dense run -o run-dense",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct train_args),
    .run = run,
};
