/* cmd_train.c: microtome train: patches or slides and a config -> weights, metrics, checkpoints. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/json.h"
#include "base/pool.h"
#include "cli/train.h"
#include "dist/launch.h"
#include "train/objectives.h"
#include "train/outline.h"

/* ": accuracy 0.9000, AUC 0.9500" */
static void print_main(FILE *out, const struct objective *objective, const double *values)
{
    const char *before = ": ";
    for (int i = 0; i < objective->n_measures; i++)
        if (objective->measures[i].main) {
            fprintf(out, "%s%s %.4f", before, objective->measures[i].title, values[i]);
            before = ", ";
        }
}

static void put_measures(struct json_out *json, const struct objective *objective,
                         const double *values)
{
    for (int i = 0; i < objective->n_measures; i++)
        json_out_real(json, objective->measures[i].name, values[i]);
}

static void print_json(FILE *out, const struct train_result *result)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_int(&json, "epochs", result->epochs);
    json_out_int(&json, "steps", result->steps);
    json_out_int(&json, "best_epoch", result->best_epoch + 1);
    json_out_real(&json, "val_loss", result->val.loss);
    put_measures(&json, result->objective, result->val.values);
    if (result->tested) {
        json_out_object_line(&json, "test");
        json_out_int(&json, "patches", result->test.n);
        json_out_real(&json, "loss", result->test.loss);
        put_measures(&json, result->objective, result->test.values);
        json_out_close_object(&json);
    }
    json_out_real(&json, "seconds", result->seconds);
    json_out_real(&json, "patches_per_s", result->images_per_s);
    json_out_real(&json, "waiting", result->waiting);
    json_out_close_object(&json);
    json_out_end(&json);
}

static void print_result(struct app *app, const struct train_args *given,
                         const struct train_result *result)
{
    if (given->json) {
        print_json(app->out, result);
        return;
    }
    fprintf(app->out, "best epoch %lld of %lld", (long long)result->best_epoch + 1,
            (long long)result->epochs);
    if (result->private)
        fprintf(app->out, ": epsilon %.4g", result->epsilon);
    if (!result->private || result->val.n > 0)
        print_main(app->out, result->objective, result->val.values);
    if (result->tested) {
        fputs("; test", app->out);
        print_main(app->out, result->objective, result->test.values);
    }
    fprintf(app->out, "; %.*f %s/s, waiting for data %.0f %%; %s/model.safetensors\n",
            result->images_per_s < 1 ? 3 : 1, result->images_per_s, result->samples,
            100 * result->waiting, given->output);
}

bool train_start_ranks(const struct app *app, const struct train_args *rank,
                       const struct args_result *operands, int n, struct err *err)
{
    static char trial[] = APP_TRY_RANKS;
    char **line = args_line(&cmd_train.spec, rank, operands);
    struct launch launch = {
        .ranks = n, .arguments = line, .trial = trial, .stop = app->ctx.stop, .no_output = !app->out
    };
    bool ok = line ? launch_ranks(&launch, err) : err_memory(err, "arguments");
    args_line_free(line);
    return ok;
}

/* Ranks that get the same options: without --ranks, and with a number of threads. */
static bool start_ranks(const struct app *app, const struct train_args *given,
                        const struct args_result *operands, struct err *err)
{
    struct train_args rank = *given;
    rank.ranks = 1;
    if (given->common.threads == 0)
        rank.common.threads = launch_threads(pool_workers(app->ctx.pool), (int)given->ranks);
    return train_start_ranks(app, &rank, operands, (int)given->ranks, err);
}

/* In the thread that watches ranks: MPI cannot be ended any more. */
static void lost(void *arg, const char *text)
{
    struct err err = { 0 };
    (void)arg;
    err_set(&err, ERR_IO, "%s", text);
    app_complain("train", &err);
    _exit(WATCH_EXIT_CODE);
}

struct train_start train_args_start(const struct train_args *given,
                                    const struct args_result *operands)
{
    return (struct train_start){ .config = operands->n_operands ? operands->operands[0] : NULL,
                                 .settings = given->settings.items,
                                 .n_settings = given->settings.n,
                                 .teacher = given->teacher,
                                 .miner = given->miner,
                                 .folder = given->output,
                                 .lost = lost,
                                 .resume = given->resume,
                                 .overwrite = given->overwrite,
                                 .any_threads = given->common.threads == 0,
                                 .in_job = getenv("MICROTOME_SUBMISSION") != NULL };
}

bool train_here(struct app *app, const struct train_args *given, const struct args_result *operands,
                struct err *err)
{
    struct ranks ranks;
    struct train_result result;
    struct train_start start = train_args_start(given, operands);
    start.argc = app->argc;
    start.argv = app->argv;
    if (given->ranks > 1 && ranks_started() > 1)
        return err_set(err, ERR_USAGE, "--ranks: already running as one of %d ranks",
                       ranks_started());
    if (given->ranks > 1)
        return start_ranks(app, given, operands, err);
    if (!ranks_begin(&ranks, err))
        return false;
    bool ok = train_start(&start, &ranks, &app->ctx, &result, err);
    if (ok && ranks.rank == 0 && app->out)
        print_result(app, given, &result);
    if (!ok && ranks.size > 1 && ranks.failed) { /* said before any rank ends, for then mpirun ends
                                                  * the others at once */
        if (ranks.rank == 0)
            app_complain("train", err);
        err->text[0] = 0;
    }
    ranks_end(&ranks, ok);
    return ok;
}

/* --dry-run without --on: what the ranks of this machine would get. */
static bool outline(const struct app *app, const struct train_args *given,
                    const struct args_result *operands, struct err *err)
{
    struct train_start start = train_args_start(given, operands);
    struct cluster_options others = given->cluster;
    int threads = pool_workers(app->ctx.pool), ranks = (int)given->ranks;
    others.dry_run = false;
    if (given->common.threads == 0)
        threads = launch_threads(threads, ranks);
    return cluster_check(&others, err) && train_outline(&start, ranks, threads, app->out, err);
}

/* Options that only --plan-parallel takes. */
static bool check_unplanned(const struct train_args *given, struct err *err)
{
    const char *option = given->latency_us > 0      ? "latency-us"
                         : given->bandwidth_gb > 0  ? "bandwidth-gb"
                         : given->machine_ranks > 0 ? "machine-ranks"
                         : given->memory_mb > 0     ? "memory-mb"
                                                    : NULL;
    return !option || err_set(err, ERR_USAGE, "--%s: only for --plan-parallel", option);
}

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
    if (given->plan)
        return train_plan(app, given, operands, err);
    if (!check_unplanned(given, err))
        return false;
    if (given->cluster.dry_run && given->cluster.on == 0 && !is_rank && given->sweeps.n == 0)
        return outline(app, given, operands, err);
    if (!given->output)
        return err_set(err, ERR_USAGE, "--output DIR is required");
    if (!is_rank && !cluster_check(&given->cluster, err))
        return false;
    if (!is_rank && given->cluster.on > 0 && given->overwrite)
        return err_set(err, ERR_USAGE,
                       "--overwrite: a job that is requeued must continue, not start over; remove "
                       "the folder instead");
    if (is_rank && given->sweeps.n > 0)
        return err_set(err, ERR_USAGE,
                       "--sweep: start it without mpirun; --ranks N gives every combination N "
                       "ranks");
    if (given->cluster.on > 0 && given->sweeps.n == 0 &&
        (given->cluster.jobs > 0 || given->cluster.max_running > 0))
        return err_set(err, ERR_USAGE, "--jobs, --max-running: only for --sweep");
    struct train_job job = { given, operands };
    struct task_request tasks = { .kind = &train_tasks,
                                  .folder = given->output,
                                  .argc = app->argc,
                                  .argv = app->argv,
                                  .request = &job,
                                  .options = &given->cluster,
                                  .ranks = given->ranks };
    if (!is_rank && given->cluster.on > 0)
        return cluster_submit(&tasks, &app->ctx, app->out, err);
    if (!is_rank && !cluster_check_idle(given->output, err))
        return false;
    return given->sweeps.n > 0 ? train_sweep(app, given, operands, err)
                               : train_here(app, given, operands, err);
}

/* As if 'microtome train ..' had been typed, which is what tasks of a cluster do. */
static bool run_as_train(const struct app *app, const void *options,
                         const struct args_result *operands, struct err *err)
{
    static char name[] = "train";
    struct app plain = *app;
    int words = app->argc > 2 && strcmp(app->argv[2], name) == 0 ? 2 : 1; /* of its own name */
    plain.argv = calloc((size_t)app->argc + 1, sizeof *plain.argv);
    if (!plain.argv)
        return err_memory(err, "arguments");
    plain.argv[0] = app->argv[0];
    plain.argv[1] = name;
    for (int i = words + 1; i < app->argc; i++)
        plain.argv[i - words + 1] = app->argv[i];
    plain.argc = app->argc - words + 1;
    bool ok = run(&plain, options, operands, err);
    free(plain.argv);
    return ok;
}

/* The same, of models that make images. */
static bool run_synthesize(struct app *app, const void *options, const struct args_result *operands,
                           struct err *err)
{
    const struct train_args *given = options;
    struct train_start start = train_args_start(given, operands);
    struct train_config config;
    if (!given->template && (start.config || start.n_settings > 0)) {
        if (!train_start_config(&start, &config, err))
            return false;
        bool generates = objective_of(&config)->generates;
        const char *name = objective_of(&config)->name;
        config_free(&config);
        if (!generates)
            return err_set(err, ERR_USAGE,
                           "objective %s makes no images; use 'microtome train', or set objective: "
                           "generate",
                           name);
    }
    return run_as_train(app, options, operands, err);
}

#define AT(field) offsetof(struct train_args, field)
static const struct arg args[] = {
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = AT(output),
      .value = "DIR",
      .help = "folder for weights, metrics and checkpoints (required, except with --template, "
              "--plan-parallel or a local --dry-run)" },
    TEXTS_ARG("set", settings, "KEY=VALUE",
              "set a config key, e.g. train.epochs=20; may be repeated"),
    TEXTS_ARG("sweep", sweeps, "KEY=VALUES",
              "train with each of these values, separated by commas, of a config key, e.g. "
              "lr=0.01,0.03; given several times: all combinations, each in a folder below DIR, "
              "with a table of all and the best by validation; run again, it continues"),
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
    FLAG_ARG(
        "plan-parallel", plan,
        "train nothing: measure the layers and simulate every grid and schedule for --ranks N, "
        "which need not be there; DIR, if given, gets parallel.json and a chart"),
    REAL_ARG("latency-us", latency_us, "US", NULL, 0.01, 1e6,
             "for --plan-parallel: latency of a message; else measured on this machine for as many "
             "ranks as it has processors, or between ranks of mpirun, or assumed (10)"),
    REAL_ARG("bandwidth-gb", bandwidth_gb, "GB/S", NULL, 1e-3, 1e4,
             "for --plan-parallel: the same of the bandwidth (assumed: 1)"),
    INT_ARG("machine-ranks", machine_ranks, "N", NULL, 1, 1 << 20,
            "for --plan-parallel: ranks on each machine, which is like this one; otherwise all, or "
            "one if they are more than its processors"),
    INT_ARG("memory-mb", memory_mb, "MB", NULL, 1, 1e9,
            "for --plan-parallel: memory that a rank may take; otherwise train.memory_mb, or its "
            "share of this machine's"),
    CLUSTER_ARGS,
    CLUSTER_ARRAY_ARGS,
    CLUSTER_MEMORY_ARG,
    COMMON_ARGS,
};

const struct command cmd_train = {
    .spec = { .name = "train",
              .summary = "train a network on patches or whole slides",
              .operands = "CONFIG.yaml",
              .min_operands = 0,
              .max_operands = 1,
              .description =
                  "Trains a network from the zoo on patch stores, folders of images or tar files, "
                  "or on whole slides with one label each (data.slides), configured by a YAML "
                  "file; no patient is in more than one of training, "
                  "validation and test. It learns classes, a number (objective: regress) or nuclei "
                  "(objective: segment). DIR "
                  "gets the best weights (safetensors with config.json, and ONNX), metrics, "
                  "curves, the scores of validation and checkpoints. SIGTERM or "
                  "Ctrl-C saves and exits with code 75; the same command with --resume continues "
                  "as if nothing had happened. --dry-run shows what each rank would get (its part "
                  "of "
                  "the grid, NUMA node, threads); with --on, the job scripts. --plan-parallel "
                  "finds the grid of ranks and the schedule that train fastest "
                  "(docs/model-parallel.md). See "
                  "docs/training.md.",
              .example =
                  "microtome train --template > run.yaml\n"
                  "microtome train run.yaml -o run\n"
                  "microtome train run.yaml --set schedule.learning_rate=0.01 -o run2\n"
                  "microtome train run.yaml -o run --resume\n"
                  "microtome train run.yaml -o sweep --sweep lr=0.01,0.03 "
                  "--sweep network.name=resnet50,inception_v3\n"
                  "microtome train run.yaml -o run --ranks 4\n"
                  "microtome train run.yaml --ranks 4 --dry-run\n"
                  "microtome train run.yaml --plan-parallel --ranks 128 --machine-ranks 4 -o plan\n"
                  "microtome train run.yaml -o run --on slurm --ranks 16 --cpus 8 --time 12h\n"
                  "mpirun -n 64 microtome train run.yaml -o run --threads 8\n"
                  "microtome train run.yaml --mine run -o run-hard\n"
                  "microtome train dense.yaml --distill-dense run -o run-dense",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct train_args),
    .run = run,
};

const struct command cmd_synthesize_train = {
    .spec = { .name = "synthesize train",
              .summary = "train a network that makes patches",
              .operands = "CONFIG.yaml",
              .min_operands = 0,
              .max_operands = 1,
              .description =
                  "Trains a diffusion model on patches (objective: generate), as 'microtome train' "
                  "trains a classifier: the same data, ranks, checkpoints, clusters and --resume. "
                  "DIR gets the weights with config.json, which 'synthesize sample' reads, metrics "
                  "and checkpoints. See docs/synthesize.md.",
              .example = "microtome synthesize train examples/idc-diffusion.yaml "
                         "--set data.train=train.tar -o gen\n"
                         "microtome synthesize train gen.yaml -o gen --ranks 2\n"
                         "microtome synthesize train gen.yaml -o gen --resume",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct train_args),
    .run = run_synthesize,
};
