/* cmd_synthesize_evaluate.c: microtome synthesize evaluate: how alike synthetic and real patches
 * are. */
#include <stddef.h>
#include <stdlib.h>
#include "cli/app.h"
#include "likeness/evaluate.h"
#include "net/model/classifier.h"
#include "net/model/model_name.h"

struct evaluate_args {
    struct common_options common;
    struct arg_texts against, train;
    const char *model, *layer, *classes, *output;
    int64_t resize_px, most, seed;
    double mpp;
    bool json, as_is;
};

#define AT(field) offsetof(struct evaluate_args, field)

static const struct arg args[] = {
    TEXTS_ARG("against", against, "PATH",
              "real patches that the synthetic ones are compared with, best of patients that the "
              "generator has not seen; may be given several times"),
    TEXTS_ARG("train", train, "PATH",
              "real patches that the generator was trained on, for comparison; may be given "
              "several times"),
    { .name = "model",
      .letter = 'm',
      .type = ARG_TEXT,
      .offset = AT(model),
      .value = "FILE",
      .help = "features are the activations of this network: safetensors with a config.json beside "
              "it, an ONNX file, or a folder with one of these; default: 57 hand-made features" },
    TEXT_ARG("layer", layer, "NAME", NULL,
             "layer of the network, as in 'microtome model show --layers'; default: the last one "
             "with an extent"),
    TEXT_ARG("classes", classes, "NAMES", NULL,
             "class names, separated by commas, as in the config of a training; default: those of "
             "the stores, or normal and tumor"),
    INT_ARG("resize-px", resize_px, "PX", "0", 0, 4096,
            "resize all patches to this side first; 0: only real ones that are larger than the "
            "synthetic ones, to their size"),
    REAL_ARG("mpp", mpp, "UM", NULL, 0.01, 100,
             "um per pixel of images, for nuclei; stores say it themselves"),
    INT_ARG("most-patches", most, "N", "10000", 20, 1e7,
            "patches of each set at most, drawn at random"),
    INT_ARG("seed", seed, "S", "0", 0, 9e15, "same seed, same random choices"),
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = AT(output),
      .value = "DIR",
      .help = "folder for evaluate.json, evaluate.html and a picture of patches" },
    FLAG_ARG("as-is", as_is,
             "compare all synthetic patches with all real ones; default: of the synthetic ones as "
             "many of every class that classes are as frequent as in the real ones"),
    FLAG_ARG("json", json, "print the result as JSON"),
    COMMON_ARGS,
};

static bool open_model(const struct evaluate_args *given, struct evaluate_request *request,
                       struct model **model, char **name, struct err *err)
{
    if (!given->model)
        return !given->layer || err_set(err, ERR_USAGE, "--layer needs --model");
    struct model_source source = { .file = given->model };
    if (!model_open_classifier(&source, model, err))
        return false;
    *name = model_full_name(&source, *model);
    request->options.model = *model;
    request->model_name = *name;
    return *name || err_memory(err, "the model");
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct evaluate_args *given = options;
    struct evaluate_request request = {
        .options = { .layer = given->layer,
                     .resize_px = given->resize_px,
                     .most = given->most,
                     .seed = (uint64_t)given->seed,
                     .mpp = given->mpp },
        .classes = given->classes,
        .as_is = given->as_is,
        .paths = { operands->operands, (char *const *)given->against.items,
                   (char *const *)given->train.items },
        .n_paths = { (size_t)operands->n_operands, given->against.n, given->train.n },
    };
    if (given->against.n == 0)
        return err_set(err, ERR_USAGE, "pass --against PATH: real patches to compare with");
    struct model *model = NULL;
    char *name = NULL;
    struct evaluation evaluation = { 0 };
    bool ok = open_model(given, &request, &model, &name, err) &&
              evaluate_run(&request, &app->ctx, &evaluation, err) &&
              (!given->output || evaluate_write(&request, &evaluation, given->output, err));
    if (ok && given->json)
        evaluate_put_json(&request, &evaluation, app->out);
    else if (ok)
        evaluate_put_text(&request, &evaluation, app->out);
    evaluation_free(&evaluation);
    model_close(model);
    free(name);
    return ok;
}

const struct command cmd_synthesize_evaluate = {
    .spec = { .name = "synthesize evaluate",
              .summary = "how alike synthetic and real patches are",
              .operands = "PATH...",
              .min_operands = 1,
              .max_operands = 1 << 20,
              .description =
                  "Compares synthetic patches with real ones: Frechet and kernel distance, "
                  "precision, recall, density and coverage, and whether a classifier can tell them "
                  "apart, all on features of the patches and beside the same numbers for real "
                  "patches among each other; nuclei of both; and what a classifier trained on the "
                  "synthetic patches alone is worth on real ones. PATHs are patch stores, folders "
                  "of them, folders or tar files of images. See docs/likeness.md.",
              .example =
                  "microtome synthesize evaluate samples --against val.tar --train train.tar "
                  "-o evaluation",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct evaluate_args),
    .run = run,
};
