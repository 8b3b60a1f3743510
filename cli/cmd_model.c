/* cmd_model.c: microtome model list | show | convert | run | bench | cut: networks and their
 * weights. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/names.h"
#include "base/console.h"
#include "cli/model.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"
#include "net/onnx/onnx.h"
#include "net/graph/transform.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"
#include "base/text.h"

static const char *const kernel_choices[] = { "auto",      "direct",    "winograd2",
                                              "winograd4", "winograd6", NULL };

struct model_source model_source_of(const struct model_args *given)
{
    return (struct model_source){ .file = given->model,
                                  .network = given->network,
                                  .weights = given->weights,
                                  .init_seed = (uint64_t)given->init_seed,
                                  .classes = given->classes,
                                  .features = given->features,
                                  .height = given->size,
                                  .width = given->size,
                                  .outputs = (enum model_outputs)given->scores,
                                  .head = (enum head_kind)given->head,
                                  .norm = (enum norm_rule)given->norm };
}

bool model_open_any(const struct model_args *given, struct model **out, struct err *err)
{
    struct model_source source = model_source_of(given);
    return model_has_ports(given) ? model_open_ports(given, out, err)
                                  : model_open(&source, out, err);
}

static bool run_list(struct app *app, const struct model_args *given, struct err *err)
{
    size_t n = 0;
    const struct zoo_network *networks = zoo_networks(&n);
    struct json_out json;
    if (given->json) {
        json_out_begin(&json, app->out);
        json_out_array(&json, NULL);
    } else {
        fprintf(app->out, "%-29s %11s %7s  %s\n", "network", "parameters", "input", "description");
    }
    for (size_t i = 0; i < n; i++) {
        struct graph *graph = NULL;
        if (!zoo_build(networks[i].name, NULL, &graph, err))
            return false;
        int64_t parameters = graph_parameter_count(graph);
        graph_free(graph);
        if (given->json) {
            json_out_object_line(&json, NULL);
            json_out_text(&json, "network", networks[i].name);
            json_out_int(&json, "parameters", parameters);
            json_out_int(&json, "input_px", networks[i].side);
            json_out_bool(&json, "dense_exact", networks[i].dense_exact);
            json_out_text(&json, "summary", networks[i].summary);
            json_out_close_object(&json);
        } else {
            fprintf(app->out, "%-29s %9.2f M %4lld %s  %s%s\n", networks[i].name,
                    (double)parameters / 1e6, (long long)networks[i].side,
                    networks[i].input == ZOO_TEXT    ? "tokens"
                    : networks[i].input == ZOO_AUDIO ? "frames"
                                                     : "px",
                    networks[i].summary, networks[i].dense_exact ? " (dense = window)" : "");
        }
    }
    if (given->json) {
        json_out_close_array(&json);
        json_out_end(&json);
    }
    return true;
}

static void print_field(struct app *app, const struct model *model, int64_t window)
{
    struct field field;
    struct err err = { 0 };
    if (!transform_field(model->graph, model->graph->outputs[0].value, window, &field, &err)) {
        fprintf(app->out, "dense: %s\n", err.text);
        return;
    }
    if (field.receptive_px > 0)
        fprintf(app->out, "receptive field %lld px, ", (long long)field.receptive_px);
    fprintf(app->out, "stride %lld px; dense = window of %lld px: %s%s\n",
            (long long)field.stride_px, (long long)window, field.exact ? "yes" : "no, ",
            field.reason);
}

static void print_layers_json(struct app *app, const struct graph *graph)
{
    struct json_out json;
    json_out_begin(&json, app->out);
    json_out_array(&json, NULL);
    for (int i = 0; i < graph->n_aliases; i++) {
        const struct value *value = &graph->values[graph->aliases[i].value];
        json_out_object_line(&json, NULL);
        json_out_text(&json, "layer", graph->aliases[i].name);
        json_out_array_line(&json, "shape");
        for (int k = 0; k < value->shape.rank; k++)
            json_out_int(&json, NULL, value->shape.dim[k]);
        json_out_close_array(&json);
        json_out_text(&json, "made_by", value->name);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_end(&json);
}

/* One layer: its shape and, if it is an image, what one of its elements sees. */
static bool print_layer(struct app *app, const struct model *model, const char *name,
                        int64_t window, struct err *err)
{
    value_id value = NO_VALUE;
    struct field field;
    char text[SHAPE_TEXT];
    if (!graph_layer(model->graph, name, &value, err))
        return err_prefix(err, model->name);
    const struct shape *shape = graph_shape(model->graph, value);
    fprintf(app->out, "%s %s, made by %s\n", name, shape_text(shape, text),
            model->graph->values[value].name);
    if (shape->rank == 4 && transform_field(model->graph, value, window, &field, NULL))
        fprintf(app->out, "receptive field %lld px, stride %lld px\n",
                (long long)field.receptive_px, (long long)field.stride_px);
    return true;
}

/* Scores or features, as the model gives them. */
static bool model_as_given(struct model *model, enum model_outputs outputs, struct err *err)
{
    return model_gives_features(model) ? model_as_extractor(model, outputs, err)
                                       : model_as_classifier(model, outputs, err);
}

/* How its outputs become scores, or why they do not. */
static void print_outputs(struct app *app, const struct model_args *given, struct model *model)
{
    struct err err = { 0 };
    bool usual = true;
    char text[MODEL_OUTPUTS_TEXT];
    if (model_as_given(model, (enum model_outputs)given->scores, &err))
        fprintf(app->out, "scores: %s\n", model_outputs_text(model, text, &usual));
    else
        fprintf(app->out, "scores: none: %s\n", err.text);
}

static bool run_show(struct app *app, const struct model_args *given, struct err *err)
{
    struct model *model = NULL;
    struct model_run ready = { 0 };
    struct model_drawn drawn;
    int64_t height = 0, width = 0;
    if (!model_open_any(given, &model, err))
        return false;
    bool ok = true;
    if (given->plan) {
        ok = model_make_ready(app, given, model, &drawn, true, &ready, err);
        for (int64_t i = 0; ok && i < given->repeats; i++)
            ok = model_run_once(given, &ready, err);
        if (ok)
            plan_print(ready.plan, app->out);
    } else if (given->layers && given->json) {
        print_layers_json(app, model->graph);
    } else if (given->layers) {
        graph_print_layers(model->graph, app->out);
    } else if (given->layer) {
        model_input_side(model, given, &height, &width);
        ok = print_layer(app, model, given->layer, width, err);
    } else if (model_has_ports(given)) {
        graph_print(model->graph, app->out);
    } else {
        model_input_side(model, given, &height, &width);
        graph_print(model->graph, app->out);
        print_field(app, model, width);
        print_outputs(app, given, model);
    }
    model_run_free(&ready);
    model_close(model);
    return ok;
}

/* Whether config.json, which names the network, makes a model of weights. */
static bool can_be_built(const struct model_config *config)
{
    return config->network || (config->architecture && zoo_find(config->architecture, NULL));
}

static bool write_weights(const struct model *model, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char *config = slash ? text_format("%.*sconfig.json", (int)(slash + 1 - path), path)
                         : strdup("config.json");
    bool ok =
        config ? weights_write(model->graph, path, NULL, 0, err) : err_memory(err, "the model");
    if (ok && can_be_built(&model->config) && model->config.patch_size_pixels > 0)
        ok = model_config_write(config, &model->config, err);
    free(config);
    return ok;
}

/* With the contents of its config.json, if there is one. */
static bool write_onnx(const struct model *model, const char *path, struct err *err)
{
    char *text = NULL;
    struct onnx_write_options options = { 0 };
    bool described = model->config.patch_size_pixels > 0;
    bool ok = !described || model_config_text(&model->config, &text, err);
    options.config = text;
    ok = ok && onnx_write(model->graph, path, &options, err);
    free(text);
    return ok;
}

/* A file of weights alone: no network is needed. */
static bool convert_weights(struct app *app, const char *from, const char *to, struct err *err)
{
    struct safetensors file = { 0 };
    if (!weights_open(from, &file, err))
        return false;
    bool ok = safetensors_copy(&file, to, err);
    if (ok)
        console_note(app->ctx.console, "wrote %s: %zu tensors", to, file.n_tensors);
    safetensors_close(&file);
    return ok;
}

static bool run_convert(struct app *app, const struct model_args *given, const char *weights,
                        struct err *err)
{
    if (!given->output)
        return err_set(err, ERR_USAGE, "convert: pass --output FILE.onnx or FILE.safetensors");
    const char *extension = file_extension(given->output);
    bool to_onnx = strcmp(extension, ".onnx") == 0;
    if (!to_onnx && strcmp(extension, ".safetensors") != 0)
        return err_set(err, ERR_USAGE, "--output: '%s' is neither .onnx nor .safetensors",
                       given->output);
    if (weights && to_onnx)
        return err_set(err, ERR_USAGE,
                       "convert: weights alone have no network; pass --model, or "
                       "--network and --weights, for ONNX");
    if (weights)
        return convert_weights(app, weights, given->output, err);
    struct model *model = NULL;
    struct model_source source = model_source_of(given);
    if (!model_open(&source, &model, err))
        return false;
    bool ok =
        to_onnx ? write_onnx(model, given->output, err) : write_weights(model, given->output, err);
    if (ok)
        console_note(app->ctx.console, "wrote %s", given->output);
    model_close(model);
    return ok;
}

static bool run_run(struct app *app, const struct model_args *given, char **paths, int n_paths,
                    struct err *err)
{
    if (n_paths == 0)
        return err_set(
            err, ERR_USAGE,
            "run: pass images (PNG or JPEG), folders or tar files of images, or patch stores");
    if (given->layer && given->memory != MODEL_MEMORY_STREAM)
        return err_set(err, ERR_USAGE, "run: --layer: only with --memory stream");
    struct model *model = NULL;
    struct model_source source = model_source_of(given);
    if (!model_open(&source, &model, err))
        return false;
    if (!given->layer && !model_as_given(model, source.outputs, err)) {
        model_close(model);
        return false;
    }
    bool usual = true;
    char text[MODEL_OUTPUTS_TEXT];
    if (!given->layer)
        model_outputs_text(model, text, &usual);
    if (!usual)
        console_note(app->ctx.console, "%s: %s", model->name, text);
    bool ok = given->memory == MODEL_MEMORY_STREAM
                  ? model_run_whole(app, given, model, paths, n_paths, err)
                  : model_run_patches(app, given, model, paths, n_paths, err);
    model_close(model);
    return ok;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    static const char *const actions[] = { "list",  "show", "convert",   "run",
                                           "bench", "cut",  "vocabulary" };
    const struct model_args *given = options;
    const char *action = operands->operands[0];
    bool convert = strcmp(action, "convert") == 0;
    int allowed = convert ? 2 : 1;
    if (strcmp(action, "vocabulary") == 0)
        return model_vocabulary(app, given, operands->operands + 1, operands->n_operands - 1, err);
    if (strcmp(action, "run") != 0 && operands->n_operands > allowed)
        return err_set(err, ERR_USAGE, "unexpected argument '%s'", operands->operands[allowed]);
    if (strcmp(action, "list") == 0)
        return run_list(app, given, err);
    if (strcmp(action, "show") == 0)
        return run_show(app, given, err);
    if (convert)
        return run_convert(app, given, operands->n_operands > 1 ? operands->operands[1] : NULL,
                           err);
    if (strcmp(action, "run") == 0)
        return run_run(app, given, operands->operands + 1, operands->n_operands - 1, err);
    if (strcmp(action, "bench") == 0)
        return model_bench(app, given, err);
    if (strcmp(action, "cut") == 0)
        return model_cut(app, given, err);
    return names_refuse(action, actions, sizeof actions / sizeof *actions, err);
}

#define AT(field) offsetof(struct model_args, field)
static const struct arg args[] = {
    { .name = "model",
      .letter = 'm',
      .type = ARG_TEXT,
      .offset = AT(model),
      .value = "FILE",
      .help = "an ONNX file, weights (safetensors or PyTorch's .pt, .pth, .bin) with a config.json "
              "beside them, or a folder of these" },
    TEXT_ARG("network", network, "NAME", NULL,
             "a network from the zoo instead; see 'microtome model list'"),
    TEXT_ARG(
        "weights", weights, "FILE", NULL,
        "safetensors or a file of PyTorch for --network; default: random weights from --init-seed"),
    INT_ARG("init-seed", init_seed, "N", "0", 0, 9e15, "seed of random weights"),
    INT_ARG("classes", classes, "N", NULL, 1, 100000,
            "number of classes of a network with random weights"),
    FLAG_ARG("features", features,
             "of --network: without the layer that classifies: its outputs are features; weights "
             "without that layer need no flag"),
    CHOICE_ARG("head", head, "KIND", "auto", head_names,
               "of --network: how its last map becomes classes, like network.head in a config"),
    CHOICE_ARG("norm", norm, "RULE", "batch", norm_names,
               "of --network: batch norm or what replaces it, like network.norm in a config"),
    INT_ARG("size", size, "PX", NULL, 1, 1000000,
            "height and width of the input, for networks of texts and recordings the number of "
            "tokens or frames; default: the network's own"),
    INT_ARG("batch", batch, "N", "1", 1, 65536,
            "for show --plan, bench and cut: images or texts per batch"),
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = AT(output),
      .value = "FILE",
      .help = "for convert: FILE.onnx or FILE.safetensors; for vocabulary: vocab.txt; for run: "
              "FILE.csv, a table of scores that 'evaluate roc' reads, or, for features and with "
              "--layer, FILE.npy" },
    FLAG_ARG("tta", tta,
             "for run: average the scores over the eight rotations and reflections of a patch"),
    FLAG_ARG(
        "any-stain", any_stain,
        "for run: use pixels as they are, whatever stain normalisation the model was trained with"),
    FLAG_ARG("overwrite", overwrite, "for run: replace FILE.csv"),
    SCORES_ARG,
    FLAG_ARG("layers", layers, "for show: list the layers that have names, with their shapes"),
    TEXT_ARG("layer", layer, "NAME", NULL,
             "for show: one layer only, e.g. layer4: its shape, receptive field and stride; for "
             "run --memory stream: its numbers instead of scores, to --output FILE.npy"),
    FLAG_ARG("plan", plan,
             "for show: print the kernels with their memory, time and rate instead of the graph"),
    CHOICE_ARG("kernels", kernels, "WHICH", "auto", kernel_choices,
               "for show --plan and bench: compute 3x3 convolutions directly, or by Winograd's "
               "method with tiles of 2x2, 4x4 or 6x6"),
    FLAG_ARG("fast", fast,
             "for show --plan and bench: let --kernels auto use 6x6 tiles, which are less exact"),
    CHOICE_ARG("memory", memory, "HOW", "plain", model_memory_choices,
               "how activations are kept in training, like train.memory in a config; stream also "
               "without --train and for run: the image goes through the network tile by tile"),
    INT_ARG(
        "memory-mb", memory_mb, "MB", NULL, 1, 1e9,
        "with --memory stream: what the program may take, in millions of bytes; the size of "
        "tiles follows from it; for cut: what a stage may keep in activations; without it, any"),
    INT_ARG("tile-px", tile_px, "PX", NULL, 1, 65536,
            "with --memory stream: the side of a tile; default: the largest that fits"),
    TEXT_ARG("spill", spill, "DIR", NULL,
             "with --memory stream: folder for what tiles keep of their neighbours, as far as it "
             "exceeds --memory-mb; default: it stays in memory"),
    FLAG_ARG("train", train,
             "for show --plan and bench: run forward and backward in training mode"),
    INT_ARG("repeats", repeats, "N", "10", 0, 1000000,
            "for show --plan and bench: number of runs; 0: only what it would take"),
    INT_ARG("stages", stages, "N", NULL, 1, 64,
            "for cut: number of stages, as parallel.stages in a config"),
    TEXT_ARG("at", at, "LAYERS", NULL,
             "for cut: the last layers of all stages but the last, separated by commas, as "
             "parallel.cut in a config; default: where stages take equally long"),
    FLAG_ARG("count", count,
             "for cut: count multiply-adds and bytes instead of measuring times: the same on every "
             "machine"),
    TEXT_ARG("text", text, "COLUMN", "text", "for vocabulary: the column with the texts"),
    INT_ARG("tokens", tokens, "N", "8000", 100, 1 << 20,
            "for vocabulary: most tokens, as data.vocabulary in a config"),
    FLAG_ARG("json", json, "print the result as JSON"),
    COMMON_ARGS,
};

const struct command cmd_model = {
    .spec = { .name = "model",
              .summary = "list, show, convert, run, time and cut networks",
              .operands =
                  "list | show | convert | run PATCHES... | bench | cut | vocabulary TABLES...",
              .min_operands = 1,
              .max_operands = 1000000,
              .description =
                  "Networks and their weights. 'list' lists the networks of the zoo; 'show' prints "
                  "the layers of a network and the stride of its dense heatmaps; 'convert' writes "
                  "ONNX or safetensors; 'run' classifies patches (PNG or JPEG images, folders or "
                  "tar files of images, patch stores), prepared as in the model's training, and "
                  "prints the score of every class; 'bench' times a network; 'cut' shows where a "
                  "network "
                  "is cut into stages, which train on different ranks; 'vocabulary' learns a "
                  "vocab.txt for networks of texts from tables. Without a "
                  "config.json, images are used as RGB / 255 at their own size. 'run --memory "
                  "stream' "
                  "takes whole slides and images of any size, such as 20,000 x 20,000 px, in "
                  "bounded "
                  "memory.",
              .example = "microtome model list\n"
                         "microtome model show --network resnet18\n"
                         "microtome model show --network resnet18 --layers\n"
                         "microtome model run patch.png --model model.onnx --json\n"
                         "microtome model run test.tar --model run -o scores.csv\n"
                         "microtome evaluate roc scores.csv --slide sample --score prob_tumor\n"
                         "microtome model run large.png --network resnet50 --weights w.safetensors "
                         "--memory "
                         "stream --memory-mb 2000 --layer layer4 -o features.npy\n"
                         "microtome model convert --network resnet18 --weights w.safetensors "
                         "-o resnet18.onnx\n"
                         "microtome model bench --network resnet50 --train --memory stream "
                         "--memory-mb 4000 --size 10000 --repeats 1\n"
                         "microtome model cut --network resnet110_v2 --size 1024 --stages 4\n"
                         "microtome model vocabulary train.csv --tokens 4000 -o vocab.txt",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct model_args),
    .run = run,
};
