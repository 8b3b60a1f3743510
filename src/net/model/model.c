/* model.c: see model.h. */
#include "net/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "net/onnx/onnx.h"
#include "net/model/model_name.h"
#include "net/model/positions.h"
#include "net/model/variant.h"
#include "net/model/weights.h"
#include "net/model/weights_names.h"
#include "net/zoo/zoo.h"
#include "base/text.h"

void model_close(struct model *model)
{
    if (!model)
        return;
    graph_free(model->graph);
    model_config_free(&model->config);
    free(model->name);
    free(model);
}

/* The weight that makes the network's first output; NO_VALUE: there is none. */
static value_id head_weight(const struct graph *graph)
{
    const struct value *output = &graph->values[graph->outputs[0].value];
    while (output->node >= 0 && graph->nodes[output->node].n_inputs < 2) /* pooled, flattened */
        output = &graph->values[graph->nodes[output->node].inputs[0]];
    return output->node < 0 ? NO_VALUE : graph->nodes[output->node].inputs[1];
}

/* How many classes a safetensors file was trained for: the first extent of that weight. 0 if the
 * file does not have it. */
static int64_t classes_in(const struct graph *graph, const struct safetensors *file)
{
    value_id weight = head_weight(graph);
    const struct safetensors_tensor *tensor =
        weight == NO_VALUE ? NULL : safetensors_find(file, graph->values[weight].name);
    return tensor && tensor->shape.rank > 0 ? tensor->shape.dim[0] : 0;
}

/* "fc" of "fc.weight"; "" if there is none. */
static void name_head(const struct graph *graph, char name[64])
{
    value_id weight = head_weight(graph);
    const char *full = weight == NO_VALUE ? "" : graph->values[weight].name;
    const char *dot = strrchr(full, '.');
    snprintf(name, 64, "%.*s", dot ? (int)(dot - full) : 0, full);
}

/* As it was trained, or as the user asks for it. */
static bool build(struct model *model, const char *network, const struct zoo_options *options,
                  struct err *err)
{
    const struct model_config *config = &model->config;
    struct network_variant variant = { config->head, config->norm, config->padding };
    graph_free(model->graph);
    model->graph = NULL;
    return zoo_build(network, options, &model->graph, err) &&
           variant_apply(&model->graph, &variant, err);
}

/* The outputs are features if the config or the user says so, or if nobody speaks of classes and
 * the file has none. */
static bool gives_features(const struct model *model, const struct model_source *source,
                           const struct zoo_options *found)
{
    return source->features || model_config_features(&model->config) ||
           (found->classes == 0 && !source->file && source->head == HEAD_AUTO);
}

static bool open_weights(struct model *model, const char *network, const char *path,
                         const struct model_source *source, struct err *err)
{
    struct safetensors file = { 0 };
    struct zoo_options options = { .height = source->height, .width = source->width };
    struct weights_options any = { .any_unexpected = true }; /* heads that only training needs */
    char head[64] = "";
    if (!weights_open(path, &file, err))
        return false;
    weights_settings(&file, network, &options);
    bool ok = weights_rename(&file, network, err) && build(model, network, &options, err);
    options.classes = ok ? classes_in(model->graph, &file) : 0;
    if (ok)
        name_head(model->graph, head);
    options.features = ok && gives_features(model, source, &options);
    ok = ok && build(model, network, &options, err) && graph_allocate(model->graph, err) &&
         positions_fit(model->graph, &file, err) &&
         weights_load(model->graph, &file, &any, NULL, err) &&
         weights_check_extra(model->graph, &file, head, err);
    safetensors_close(&file);
    return ok;
}

static bool open_network(struct model *model, const struct model_source *source, struct err *err)
{
    struct zoo_options options = { .classes = source->classes,
                                   .features = source->features,
                                   .height = source->height,
                                   .width = source->width };
    model->name = strdup(source->network);
    model->config.head = source->head, model->config.norm = source->norm;
    if (!model->name)
        return err_memory(err, "the model");
    if (source->weights)
        return open_weights(model, source->network, source->weights, source, err);
    return build(model, source->network, &options, err) &&
           graph_initialize(model->graph, source->init_seed, err);
}

/* The file that `path` means: itself, or the weights in a folder. The caller's. */
static char *weights_in(const char *path)
{
    static const char *const names[] = { "model.safetensors", "model.onnx", "torchscript_model.pt",
                                         "pytorch_model.bin" };
    if (!file_is_folder(path))
        return strdup(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *candidate = text_format("%s/%s", path, names[i]);
        if (!candidate || file_exists(candidate))
            return candidate;
        free(candidate);
    }
    return text_format("%s/%s", path, names[0]);
}

/* Our name of the network, or timm's, which WSInfer's config.json has; NULL: neither. */
static const char *network_of(const struct model_config *config)
{
    return config->network ? config->network : config->architecture;
}

/* Of a file, or of the weights `path` in a folder, that cannot be opened as a model. */
static bool say_what_is_missing(const char *file, const char *path, struct err *err)
{
    if (!file_exists(file))
        return err_set(err, ERR_MISSING, "%s: no such file or folder", file);
    if (!file_exists(path))
        return err_set(err, ERR_MISSING,
                       "%s: contains none of model.safetensors, model.onnx, "
                       "torchscript_model.pt and pytorch_model.bin",
                       file);
    return err_set(err, ERR_MISSING,
                   "%s: no config.json beside it names the network; pass --network and --weights",
                   path);
}

/* A config.json beside the file comes before the one in its metadata. */
static bool open_onnx(struct model *model, const char *path, bool described,
                      const struct model_source *source, struct err *err)
{
    char *text = NULL;
    struct onnx_options options = { .height = source->height,
                                    .width = source->width,
                                    .config = described ? NULL : &text };
    bool ok = onnx_read(path, &options, &model->graph, err);
    if (ok && text) {
        model_config_free(&model->config);
        ok = model_config_parse(text, strlen(text), path, &model->config, err);
    }
    free(text);
    return ok;
}

static bool open_file(struct model *model, const struct model_source *source, struct err *err)
{
    char *path = weights_in(source->file);
    char *config = path ? file_beside(path, "config.json") : NULL;
    bool ok = (path && config) || err_memory(err, "the model");
    bool described = ok && file_exists(config);
    if (described) {
        model_config_free(&model->config);
        ok = model_config_read(config, &model->config, err);
    }
    if (ok && !model_config_images(&model->config)) {
        const char *what = model->config.text.tokenizer ? "texts" : "recordings";
        ok = err_set(err, ERR_USAGE,
                     "%s: a model of %s, not of images; 'microtome predict table.csv --model %s -o "
                     "scores' scores %s",
                     source->file, what, source->file, what);
    }
    model->name = ok ? model_full_name(source, model) : NULL;
    ok = ok && (model->name || err_memory(err, "the model"));
    struct model_source sized = *source;
    int64_t side = model->config.patch_size_pixels;
    if (ok && source->height == 0 && side > 0)
        ok = model_sized(&model->config, model->config.n_sizings, side, side, &sized.width,
                         &sized.height, err) ||
             err_prefix(err, config);
    if (ok && strcmp(file_extension(path), ".onnx") == 0)
        ok = open_onnx(model, path, described, &sized, err);
    else if (ok && network_of(&model->config) && file_exists(path))
        ok = open_weights(model, network_of(&model->config), path, &sized, err) &&
             variant_settle(&model->graph, err);
    else if (ok)
        ok = say_what_is_missing(source->file, path, err);
    free(path);
    free(config);
    return ok;
}

/* One image in, logits out. */
static bool check_ports(const struct model *model, struct err *err)
{
    const struct graph *graph = model->graph;
    if (graph->n_inputs != 1 || graph_shape(graph, graph->inputs[0].value)->rank != 4)
        return err_set(err, ERR_FORMAT, "%s: its input is not a single image [N, C, H, W]",
                       model->name);
    return true;
}

/* Of several outputs, the one that the config names. */
static bool choose_output(struct model *model, struct err *err)
{
    const struct model_config *config = &model->config;
    const struct graph *graph = model->graph;
    struct graph *one = NULL;
    if (graph->n_outputs == 1 || config->n_outputs == 0)
        return true;
    for (int i = 0; i < graph->n_outputs; i++)
        if (strcmp(graph->outputs[i].name, config->outputs[0].name) == 0) {
            if (!transform_prefix(graph, graph->outputs[i].value, &one, err))
                return false;
            graph_free(model->graph);
            model->graph = one;
            return true;
        }
    return err_set(err, ERR_FORMAT, "%s: has no output '%s', which its config.json names",
                   model->name, config->outputs[0].name);
}

/* Whether the outputs are features: the config says so, or, without one, their name. */
static bool has_features(const struct model *model)
{
    const struct model_config *config = &model->config;
    return model_config_features(config) ||
           (config->patch_size_pixels == 0 && config->n_outputs == 0 &&
            strcmp(model->graph->outputs[0].name, "embedding") == 0);
}

/* What the config does not say: of features, and of a network of the zoo. */
static void describe_output(struct model *model, bool zoo)
{
    struct model_config *config = &model->config;
    struct model_output *output = &config->outputs[0];
    const char *name = model->graph->outputs[0].name;
    bool features = model->rule == SCORE_FEATURES;
    if (config->n_outputs > 0 || !(features || (zoo && strcmp(name, "logits") == 0)))
        return;
    snprintf(output->name, sizeof output->name, "%s", name);
    output->meaning = features                      ? MEANING_FEATURES
                      : model->rule == SCORE_NUMBER ? MEANING_NUMBER
                                                    : MEANING_LOGITS;
    config->n_outputs = 1;
}

static bool name_classes(struct model *model, struct err *err)
{
    struct model_config *config = &model->config;
    const struct shape *logits = graph_shape(model->graph, model->graph->outputs[0].value);
    int64_t classes = logits->rank >= 2 ? logits->dim[1] : 1;
    model->n_scores = classes;
    if (has_features(model)) {
        config->num_classes = 0;
        model->rule = SCORE_FEATURES;
        return true;
    }
    if (config->num_classes > 0 && config->num_classes != classes)
        return err_set(err, ERR_FORMAT, "%s: has %lld classes, but its config.json says %lld",
                       model->name, (long long)classes, (long long)config->num_classes);
    config->num_classes = classes;
    if (config->objective == OBJECTIVE_REGRESS)
        model->rule = SCORE_NUMBER;
    else
        model->rule = classes == 1 || config->independent ? SCORE_SIGMOID : SCORE_SOFTMAX;
    if (config->class_names)
        return true;
    config->class_names = calloc((size_t)classes, sizeof *config->class_names);
    for (int64_t i = 0; config->class_names && i < classes; i++)
        if (!(config->class_names[i] = text_format("class%lld", (long long)i)))
            return err_memory(err, "class names");
    return config->class_names ? true : err_memory(err, "class names");
}

bool model_open(const struct model_source *source, struct model **out, struct err *err)
{
    if (!source->file == !source->network)
        return err_set(err, ERR_USAGE, "pass --model FILE, or --network NAME");
    if (source->file && source->features)
        return err_set(
            err, ERR_USAGE,
            "--features is for --network; the config.json of a model says what it gives: "
            "num_classes 0");
    if (source->file && (source->head != HEAD_AUTO || source->norm != NORM_BATCH))
        return err_set(err, ERR_USAGE, "--head and --norm are for --network; a model has its own");
    struct model *model = calloc(1, sizeof *model);
    if (!model)
        return err_memory(err, "the model");
    model_config_init(&model->config);
    bool ok = source->file ? open_file(model, source, err) : open_network(model, source, err);
    ok = ok && check_ports(model, err) && choose_output(model, err) && name_classes(model, err);
    if (!ok) {
        model_close(model);
        return false;
    }
    describe_output(model, source->network || model->config.network);
    *out = model;
    return true;
}

void model_scores(const float *logits, int64_t classes, double *scores)
{
    if (classes == 1) {
        scores[0] = 1 / (1 + exp(-(double)logits[0]));
        return;
    }
    double highest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < classes; i++)
        highest = fmax(highest, logits[i]);
    for (int64_t i = 0; i < classes; i++)
        sum += scores[i] = exp((double)logits[i] - highest);
    for (int64_t i = 0; i < classes; i++)
        scores[i] /= sum;
}
