/* cmd_train.c: microtome train: patches and a config -> weights, metrics, checkpoints. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/report.h"
#include "cli/app.h"
#include "dist/launch.h"
#include "train/distill.h"
#include "train/mine.h"
#include "train/train.h"

struct train_args {
    struct common_options common;
    const char *output, *teacher, *miner;
    struct arg_texts settings;
    int64_t ranks;
    bool template, resume, overwrite, json;
};

static void print_result(struct app *app, const struct train_args *given,
                         const struct train_result *result)
{
    struct json_out json;
    if (!given->json) {
        fprintf(
            app->out,
            "best epoch %lld of %lld: accuracy %.4f, AUC %.4f; %.1f patches/s, waiting for data "
            "%.0f %%; %s/model.safetensors\n",
            (long long)result->best_epoch + 1, (long long)result->epochs, result->val.accuracy,
            result->val.auc, result->images_per_s, 100 * result->waiting, given->output);
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

/* Mines hard negatives (the first rank does) and adds the list to the config. A list that is there
 * is kept by --resume. */
static bool mine(const struct train_args *given, const struct ranks *ranks, const struct ctx *ctx,
                 struct train_config *config, struct err *err)
{
    struct mine_result result;
    char *path = file_format("%s/" MINE_FILE, given->output);
    bool exists = path && file_exists(path);
    free(config->data.hard_negatives);
    config->data.hard_negatives = path;
    if (!path)
        return err_memory(err, "the config");
    if (ranks->rank > 0 || (exists && given->resume))
        return true;
    if (exists && !given->overwrite)
        return err_set(
            err, ERR_USAGE,
            "%s: is there already; pass --resume to use it, --overwrite to mine anew, or "
            "another folder",
            path);
    if (!file_make_folder(given->output, err) ||
        !mine_run(config, given->miner, path, ctx, &result, err))
        return false;
    report_note(ctx->report,
                "%lld of %lld patches of normal tissue are false positives, %lld in %s",
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
    struct launch launch = { .ranks = (int)given->ranks, .arguments = line, .stop = app->ctx.stop };
    bool ok = launch_ranks(&launch, err);
    free(line);
    return ok;
}

/* Collective. Threads that were not asked for are shared out among the ranks of a machine; all
 * ranks but the first are silent. */
static bool train(struct app *app, const struct train_args *given, const char *path,
                  struct ranks *ranks, struct err *err)
{
    struct train_config config = { 0 };
    struct train_result result;
    struct ctx ctx = app->ctx;
    struct pool *own = NULL;
    bool ok = config_read(path, given->settings.items, given->settings.n, &config, err);
    ok = ok && use_teacher(&config, given->teacher, err);
    if (ok && ranks->size > 1 && given->common.threads == 0) {
        int threads = ranks->processors / ranks->local_size;
        ctx.pool = own = pool_new(threads > 0 ? threads : 1);
        ok = own || err_memory(err, "threads");
    }
    if (ranks->rank > 0)
        ctx.report = NULL;
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
    pool_free(own);
    config_free(&config);
    return ok;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct train_args *given = options;
    struct ranks ranks;
    if (given->template) {
        config_print_template(app->out);
        return true;
    }
    if (operands->n_operands == 0 && given->settings.n == 0)
        return err_set(err, ERR_USAGE, "needs CONFIG.yaml; --template prints one");
    if (!given->output)
        return err_set(err, ERR_USAGE, "needs --output DIR");
    if (given->ranks > 1 && ranks_started() > 1)
        return err_set(err, ERR_USAGE, "--ranks: started as one of %d ranks already",
                       ranks_started());
    if (given->ranks > 1)
        return start_ranks(app, given, err);
    if (!ranks_begin(&ranks, err))
        return false;
    bool ok = train(app, given, operands->n_operands ? operands->operands[0] : NULL, &ranks, err);
    ranks_end(&ranks, ok);
    if (!ok && ranks.failed && ranks.rank > 0)
        err->text[0] = 0; /* the first rank says it */
    return ok;
}

#define AT(field) offsetof(struct train_args, field)
static const struct arg args[] = {
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = AT(output),
      .value = "DIR",
      .help = "where weights, metrics and checkpoints go" },
    { .name = "set",
      .type = ARG_TEXTS,
      .offset = AT(settings),
      .value = "KEY=VALUE",
      .help = "a key of the config, e.g. train.epochs=20; may be given many times" },
    { .name = "distill-dense",
      .type = ARG_TEXT,
      .offset = AT(teacher),
      .value = "MODEL",
      .help = "fit MODEL's network, run densely, to its own window scores; needs no labels, but "
              "patches larger than its window" },
    { .name = "ranks",
      .type = ARG_INT,
      .offset = AT(ranks),
      .value = "N",
      .initial = "1",
      .min = 1,
      .max = 1 << 20,
      .help = "train on so many processes, started by mpirun; --threads is then for each" },
    { .name = "mine",
      .type = ARG_TEXT,
      .offset = AT(miner),
      .value = "MODEL",
      .help = "first score the stores of mine.stores with MODEL and add the false positives "
              "(DIR/hard_negatives.csv) to training" },
    { .name = "resume",
      .type = ARG_FLAG,
      .offset = AT(resume),
      .help = "go on from the last checkpoint in DIR, if there is one" },
    { .name = "overwrite",
      .type = ARG_FLAG,
      .offset = AT(overwrite),
      .help = "begin anew although DIR holds a training" },
    { .name = "template",
      .type = ARG_FLAG,
      .offset = AT(template),
      .help = "print a commented config with all defaults and end" },
    { .name = "json", .type = ARG_FLAG, .offset = AT(json), .help = "print the result as JSON" },
    COMMON_ARGS(struct train_args),
};

const struct command cmd_train = {
    .spec = { .name = "train",
              .summary = "train a patch classifier",
              .operands = "CONFIG.yaml",
              .min_operands = 0,
              .max_operands = 1,
              .description =
                  "Trains a network of the zoo on patch stores, folders of images or tar files, as "
                  "a YAML config says; patients are never in both training and validation. DIR "
                  "gets "
                  "the best weights (safetensors with config.json, and ONNX), metrics, curves, the "
                  "confusion matrix and checkpoints. SIGTERM or Ctrl-C saves and ends with exit "
                  "code 75; the same command with --resume goes on as if nothing had happened. "
                  "docs/training.md tells more.",
              .example = "microtome train --template > run.yaml\n"
                         "microtome train run.yaml -o run\n"
                         "microtome train run.yaml --set schedule.learning_rate=0.01 -o run2\n"
                         "microtome train run.yaml -o run --resume\n"
                         "microtome train run.yaml -o run --ranks 4\n"
                         "mpirun -n 64 microtome train run.yaml -o run --threads 8\n"
                         "microtome train run.yaml --mine run -o run-hard\n"
                         "microtome train dense.yaml --distill-dense run -o run-dense",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct train_args),
    .run = run,
};
