/* network.c: see network.h. */
#include "train/network.h"

#include <stdio.h>
#include <string.h>
#include "net/model/variant.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"

/* Weights do not fit: perhaps because of what replaces batch norm. */
static bool name_norm(const struct train_config *config, struct err *err)
{
    enum norm_rule norm = (enum norm_rule)config->network.norm;
    if (err && (norm == NORM_WS || norm == NORM_FIXUP)) {
        size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n,
                 ". network.norm: %s has other parameters than batch norm: it starts from weights "
                 "that were trained with it, or from none",
                 norm_names[norm]);
    }
    return false;
}

bool network_start(const struct train_config *config, struct graph *graph, struct console *console,
                   struct err *err)
{
    if (!graph_initialize(graph, (uint64_t)config->seed, err))
        return false;
    if (!config->network.weights[0])
        return true;
    struct weights_options options = { .fresh = (const char *const *)config->network.fresh.items,
                                       .n_fresh = config->network.fresh.n,
                                       .any_unexpected = true };
    struct weights_report report = { 0 };
    bool ok = weights_read(graph, config->network.weights, &options, &report, err) ||
              name_norm(config, err);
    if (ok)
        console_note(console, "%s: %zu parameters loaded, %zu start from scratch",
                     config->network.weights, report.n_loaded, report.fresh.n);
    weights_report_free(&report);
    return ok;
}

static bool name_a_size(const struct train_config *config, const struct zoo_options *options,
                        struct err *err)
{
    int64_t px = zoo_larger_px(config->network.name, options);
    char setting[80] = "network.input_px";
    if (px > 0 && err)
        err->kind = ERR_USAGE; /* the network is right, the setting is not */
    if (px > 0)
        snprintf(setting, sizeof setting, "network.input_px: %lld does not fit (%lld does)",
                 (long long)config->network.input_px, (long long)px);
    return err_prefix(err, setting);
}

/* The network as the zoo has it. */
static bool build_plain(const struct train_config *config, int64_t outputs, struct graph **out,
                        struct err *err)
{
    struct zoo_options options = { .batch = config_whole(config) ? 1 : config_micro_batch(config),
                                   .height = config->network.input_px,
                                   .width = config->network.input_px,
                                   .classes = outputs };
    if (!zoo_find(config->network.name, err))
        return err_prefix(err, "network.name");
    return zoo_build(config->network.name, &options, out, err) ||
           name_a_size(config, &options, err);
}

/* *graph, which is used up, with head, norm and padding as configured. */
static bool vary(const struct train_config *config, struct graph *graph, struct graph **out,
                 struct err *err)
{
    struct network_variant variant = { (enum head_kind)config->network.head,
                                       (enum norm_rule)config->network.norm,
                                       (enum padding)config->network.padding };
    if (variant_apply(&graph, &variant, err)) {
        *out = graph;
        return true;
    }
    graph_free(graph);
    return false;
}

static bool refuse(struct graph *graph, const struct train_config *config, const char *what,
                   struct err *err)
{
    graph_free(graph);
    return err_set(err, ERR_USAGE, "network.name: %s is not %s", config->network.name, what);
}

static bool takes_images(const struct train_config *config)
{
    return zoo_find(config->network.name, NULL)->input == ZOO_IMAGE;
}

bool network_build(const struct train_config *config, int64_t outputs, const char *what,
                   struct graph **out, struct err *err)
{
    struct graph *graph = NULL;
    if (!build_plain(config, outputs, &graph, err))
        return false;
    const struct shape *logits = graph_shape(graph, graph->outputs[0].value);
    if (!takes_images(config) || logits->rank != 2 || logits->dim[1] != outputs)
        return refuse(graph, config, what, err);
    return vary(config, graph, out, err);
}

bool network_build_pixels(const struct train_config *config, int64_t outputs, struct graph **out,
                          struct err *err)
{
    struct graph *graph = NULL;
    int64_t side = config->network.input_px;
    if (!build_plain(config, outputs, &graph, err))
        return false;
    const struct shape wanted = SHAPE(config_micro_batch(config), outputs, side, side);
    if (!takes_images(config) || !shape_equal(graph_shape(graph, graph->outputs[0].value), &wanted))
        return refuse(graph, config,
                      "a network that gives a class for every pixel; use segment_unet", err);
    if (config->network.padding == PADDING_VALID) {
        graph_free(graph);
        return err_set(err, ERR_USAGE,
                       "network.padding: without any, the output would be smaller than the image; "
                       "use zero, reflect or replicate");
    }
    return vary(config, graph, out, err);
}

bool network_build_denoiser(const struct train_config *config, int64_t channels, int64_t side,
                            int64_t conditions, struct graph **out, struct err *err)
{
    struct zoo_options options = { .batch = config_micro_batch(config),
                                   .channels = channels,
                                   .height = side,
                                   .width = side,
                                   .conditions = conditions };
    const struct zoo_network *network = zoo_find(config->network.name, err);
    if (!network)
        return err_prefix(err, "network.name");
    if (network->input != ZOO_IMAGE_AND_TIME)
        return err_set(
            err, ERR_USAGE,
            "network.name: %s does not turn noise into images; use unet_tiny, unet_small, unet or "
            "unet_large",
            network->name);
    return zoo_build(network->name, &options, out, err) || name_a_size(config, &options, err);
}

bool network_build_autoencoder(const struct train_config *config, int64_t side, struct graph **out,
                               struct err *err)
{
    struct zoo_options options = { .batch = config_micro_batch(config),
                                   .height = side,
                                   .width = side };
    struct graph *graph = NULL;
    if (!zoo_find(config->network.name, err))
        return err_prefix(err, "network.name");
    if (!zoo_build(config->network.name, &options, &graph, err))
        return name_a_size(config, &options, err);
    if (strcmp(graph->outputs[0].name, "image") != 0)
        return refuse(graph, config, "an autoencoder; use autoencoder_4 or autoencoder_8", err);
    *out = graph;
    return true;
}

static bool build_text(const struct train_config *config, const struct zoo_options *how,
                       int64_t vocabulary, struct graph **out, struct err *err)
{
    struct zoo_options options = *how;
    const struct zoo_network *network = zoo_find(config->network.name, err);
    options.batch = config_micro_batch(config);
    options.channels = vocabulary;
    options.height = config->data.max_tokens;
    if (!network)
        return err_prefix(err, "network.name");
    if (network->input != ZOO_TEXT)
        return err_set(err, ERR_USAGE,
                       "network.name: %s does not take texts; use bert_tiny, prenorm_tiny, t5_mini "
                       "or another of 'microtome model list'",
                       network->name);
    return zoo_build(network->name, &options, out, err);
}

bool network_build_audio(const struct train_config *config, int64_t outputs, int64_t frames,
                         int64_t bands, struct graph **out, struct err *err)
{
    struct zoo_options options = {
        .batch = config_micro_batch(config), .channels = bands, .height = frames, .classes = outputs
    };
    const struct zoo_network *network = zoo_find(config->network.name, err);
    if (!network)
        return err_prefix(err, "network.name");
    if (network->input != ZOO_AUDIO)
        return err_set(err, ERR_USAGE,
                       "network.name: %s does not take recordings; use audio_encoder_tiny or "
                       "audio_encoder_small",
                       network->name);
    return zoo_build(network->name, &options, out, err);
}

bool network_build_text(const struct train_config *config, int64_t outputs, int64_t vocabulary,
                        struct graph **out, struct err *err)
{
    struct zoo_options options = { .classes = outputs };
    return build_text(config, &options, vocabulary, out, err);
}

bool network_build_mask(const struct train_config *config, int64_t places, int64_t vocabulary,
                        struct graph **out, struct err *err)
{
    struct zoo_options options = { .masked = places };
    struct graph *graph = NULL;
    if (!build_text(config, &options, vocabulary, &graph, err))
        return false;
    if (strcmp(graph->outputs[0].name, "tokens") != 0)
        return refuse(graph, config,
                      "a network that recovers masked tokens; use one of bert_* and prenorm_*",
                      err);
    *out = graph;
    return true;
}

bool network_is_undivided(const struct train_config *config, const char *objective, struct err *err)
{
    if (!config_staged(config) && !config_divided(config) && !config_whole(config) &&
        config->parallel[GRID_HEADS] == 1)
        return true;
    return err_set(err, ERR_USAGE,
                   "objective %s trains on patches with whole networks: omit parallel.stages, "
                   "parallel.space, parallel.heads and data.slides",
                   objective);
}

void network_usual_pixels(struct train_config *config)
{
    static const double usual[3] = { 0.485, 0.456, 0.406 };
    if (memcmp(config->data.mean, usual, sizeof usual) != 0)
        return;
    for (int i = 0; i < 3; i++)
        config->data.mean[i] = config->data.std[i] = 0.5;
}
