/* cmd_synthesize_sample.c: microtome synthesize sample: patches from a trained model. */
#include <stdlib.h>
#include "base/console.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/app.h"
#include "dist/launch.h"
#include "synth/make.h"

struct sample_args {
    struct common_options common;
    const char *output, *model, *class_name, *centre;
    int64_t n, first, steps, seed, ranks;
    int sampler, format;
    double guidance;
    bool overwrite;
};

static const char *const sampler_choices[] = { "heun", "euler", "ddim", NULL };
static const char *const format_choices[] = { "store", "png", NULL };

extern const struct command cmd_synthesize_sample;

static bool make_request(const struct sample_args *given, const struct generator *generator,
                         int threads, struct make_request *out, struct err *err)
{
    *out = (struct make_request){
        .folder = given->output,
        .version = "microtome " MICROTOME_VERSION,
        .class_number = -1,
        .centre = -1,
        .first = given->first,
        .n = given->n,
        .format = given->format == 0 ? MAKE_STORE : MAKE_PNG,
        .sampler = { .rule = given->sampler == 0 ? SAMPLER_HEUN : SAMPLER_EULER,
                     .steps = given->steps,
                     .guidance = given->guidance,
                     .seed = (uint64_t)given->seed,
                     .threads = threads },
    };
    if (given->sampler == 2 && generator->process < PROCESS_EPSILON)
        return err_set(err, ERR_USAGE,
                       "--sampler ddim: is for models of the processes epsilon and v; of this one "
                       "(%s) it is euler",
                       process_names[generator->process]);
    return (!given->class_name ||
            generator_class(generator, given->class_name, &out->class_number, err)) &&
           (!given->centre || generator_centre(generator, given->centre, &out->centre, err));
}

static bool check_output(const struct sample_args *given, struct err *err)
{
    char *path = text_format("%s/samples.json", given->output);
    bool there = path && file_exists(path);
    free(path);
    return given->overwrite || !there ||
           err_set(err, ERR_USAGE, "%s: already has samples; pass --overwrite or another folder",
                   given->output);
}

static bool sample_here(struct app *app, const struct sample_args *given, struct ranks *ranks,
                        struct err *err)
{
    struct generator generator = { 0 };
    struct make_request request;
    int threads = pool_workers(app->ctx.pool);
    bool ok = check_output(given, err) &&
              generator_open(given->model, SAMPLER_BATCH, threads, &generator, err) &&
              make_request(given, &generator, threads, &request, err);
    ok = ranks_agree(ranks, ok, NULL, err) &&
         make_samples(&generator, &request, ranks, &app->ctx, err);
    if (ok && ranks->rank == 0)
        fprintf(app->out, "%lld synthetic patches of %lld px: %s/%s, %s/grid.png\n",
                (long long)given->n, (long long)generator.side_px, given->output,
                given->format == 0 ? "patches.h5" : "*.png", given->output);
    generator_close(&generator);
    return ok;
}

static bool start_ranks(const struct app *app, const struct sample_args *given,
                        const struct args_result *operands, struct err *err)
{
    static char trial[] = APP_TRY_RANKS;
    struct sample_args rank = *given;
    rank.ranks = 1;
    if (given->common.threads == 0)
        rank.common.threads = launch_threads(pool_workers(app->ctx.pool), (int)given->ranks);
    char **line = args_line(&cmd_synthesize_sample.spec, &rank, operands);
    struct launch launch = {
        .ranks = (int)given->ranks, .arguments = line, .trial = trial, .stop = app->ctx.stop
    };
    bool ok = line ? launch_ranks(&launch, err) : err_memory(err, "arguments");
    args_line_free(line);
    return ok;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct sample_args *given = options;
    struct ranks ranks;
    if (given->ranks > 1 && ranks_started() > 1)
        return err_set(err, ERR_USAGE, "--ranks: already running as one of %d ranks",
                       ranks_started());
    if (given->ranks > 1)
        return start_ranks(app, given, operands, err);
    if (!ranks_begin(&ranks, err))
        return false;
    bool ok = sample_here(app, given, &ranks, err);
    ranks_end(&ranks, ok);
    return ok;
}

#define AT(field) offsetof(struct sample_args, field)
static const struct arg args[] = {
    { .name = "model",
      .letter = 'm',
      .type = ARG_TEXT,
      .offset = AT(model),
      .value = "DIR",
      .required = true,
      .help = "folder of 'synthesize train'" },
    OUTPUT_ARG("folder for the patches"),
    INT_ARG("n", n, "N", "64", 1, 1e8, "number of patches"),
    TEXT_ARG("class", class_name, "NAME", NULL,
             "their class, by name or number from 0; default: all in turn"),
    TEXT_ARG("centre", centre, "NAME", NULL,
             "their centre, if the model was told centres; default: all in turn"),
    INT_ARG("seed", seed, "S", "0", 0, 9e15, "same seed, same patches"),
    INT_ARG("first", first, "I", "0", 0, 9e15,
            "number of the first patch: parts made with the same seed go together"),
    CHOICE_ARG("sampler", sampler, "NAME", "heun", sampler_choices,
               "heun: two runs of the network a step; euler: one; ddim: euler's name for models "
               "of the processes epsilon and v"),
    INT_ARG("steps", steps, "N", "24", 1, 10000, "steps from noise to image"),
    REAL_ARG("guidance", guidance, "G", "1", 0, 100,
             "above 1: more typical of the class and less varied; takes twice the time"),
    CHOICE_ARG("format", format, "WHAT", "store", format_choices,
               "a patch store (patches.h5), or PNGs"),
    INT_ARG("ranks", ranks, "N", "1", 1, 1 << 20,
            "make them on N processes, started by mpirun: the same patches"),
    FLAG_ARG("overwrite", overwrite, "replace the samples in DIR"),
    COMMON_ARGS,
};

const struct command cmd_synthesize_sample = {
    .spec = { .name = "synthesize sample",
              .summary = "make patches with a trained model",
              .operands = "",
              .min_operands = 0,
              .max_operands = 0,
              .description =
                  "Makes patches with a model of 'synthesize train': a patch store that 'train' "
                  "and "
                  "others read, or PNGs, and a picture of the first of them, grid.png. Every file "
                  "says in its metadata that it is synthetic, and from which model and seed. The "
                  "same seed gives the same patches on any number of ranks and threads. See "
                  "docs/synthesize.md.",
              .example =
                  "microtome synthesize sample --model gen --class 1 --n 256 --seed 1 -o samples\n"
                  "microtome synthesize sample --model gen --n 1000 --guidance 1.5 --steps 40 "
                  "--format png -o pngs",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct sample_args),
    .run = run,
};
