/* generator.c: see generator.h. */
#include "synth/generator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/identity.h"
#include "base/names.h"
#include "diffusion/colour.h"
#include "net/model/model_prepare.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"

void generator_close(struct generator *generator)
{
    graph_free(generator->graph);
    latent_close(&generator->decoder);
    latent_close(&generator->encoder);
    free(generator->latent_weights);
    model_config_free(&generator->config);
    *generator = (struct generator){ 0 };
}

/* What config.json says of the images that it makes. */
static bool take_config(struct generator *generator, const char *path, struct err *err)
{
    const struct model_config *config = &generator->config;
    int64_t patch = config->patch_size_pixels, width = 0, height = 0;
    if (config->objective != OBJECTIVE_GENERATE || !config->network)
        return err_set(err, ERR_USAGE,
                       "%s: the model makes no patches (objective %s); train one with 'microtome "
                       "synthesize train'",
                       path, model_config_objective(config->objective));
    if (!model_sized(config, config->n_sizings, patch, patch, &width, &height, err))
        return err_prefix(err, path);
    double scale = 1; /* pixels as cut for one that is made */
    for (int i = 0; i < config->n_sizings; i++)
        if (config->sizings[i].kind == MODEL_RESIZE)
            scale = (double)patch / (double)config->sizings[i].width;
    generator->process = (enum process)config->generator.process;
    generator->side_px = width;
    generator->mpp = config->spacing_um_px * scale;
    generator->conditions =
        (config->generator.by_class ? config->num_classes : 0) + config->generator.n_centres;
    return true;
}

/* One half of the autoencoder. */
static bool open_half(struct generator *generator, enum zoo_part part, struct latent *out,
                      struct err *err)
{
    struct latent_request request = { .network = generator->config.generator.latent,
                                      .weights = generator->latent_weights,
                                      .part = part,
                                      .batch = generator->batch,
                                      .side_px = generator->side_px,
                                      .threads = generator->threads };
    return latent_open(&request, out, err);
}

/* The decoder, if the model makes maps. */
static bool load_decoder(struct generator *generator, struct err *err)
{
    generator->floats = 3 * generator->side_px * generator->side_px;
    if (!generator->config.generator.latent)
        return true;
    if (!open_half(generator, ZOO_DECODER, &generator->decoder, err))
        return false;
    generator->floats = generator->decoder.map_floats;
    return true;
}

static bool load(struct generator *generator, const char *weights, struct err *err)
{
    const struct latent *decoder = &generator->decoder;
    struct zoo_options options = { .batch = generator->batch,
                                   .channels = decoder->plan ? decoder->channels : 3,
                                   .height = decoder->plan ? decoder->side : generator->side_px,
                                   .width = decoder->plan ? decoder->side : generator->side_px,
                                   .conditions = generator->conditions };
    struct identity identity;
    if (!zoo_build(generator->config.network, &options, &generator->graph, err) ||
        !graph_allocate(generator->graph, err) ||
        !weights_read(generator->graph, weights, NULL, NULL, err) ||
        !identity_of_file(weights, &identity, err))
        return false;
    snprintf(generator->hash, sizeof generator->hash, "%016llx", (unsigned long long)identity.hash);
    return true;
}

bool generator_open(const char *path, int64_t batch, int threads, struct generator *out,
                    struct err *err)
{
    *out = (struct generator){ .batch = batch, .threads = threads };
    model_config_init(&out->config);
    if (!file_exists(path))
        return err_set(err, ERR_MISSING, "%s: no such file or folder", path);
    char *weights = file_is_folder(path) ? file_beside(path, "model.safetensors") : strdup(path);
    char *config = file_beside(path, "config.json");
    out->latent_weights = file_beside(path, MODEL_LATENT_FILE);
    bool ok = (weights && config && out->latent_weights) || err_memory(err, "the model");
    if (ok && !file_exists(config))
        ok = err_set(err, ERR_MISSING,
                     "%s: there is no config.json, so this is not a finished training", path);
    ok = ok && model_config_read(config, &out->config, err) && take_config(out, config, err) &&
         load_decoder(out, err) && load(out, weights, err);
    free(weights);
    free(config);
    return ok;
}

/* Index of a word among names, or the number that it is. */
static bool choose(const char *what, char *const *names, int64_t n, const char *word, int32_t *out,
                   struct err *err)
{
    char list[300];
    char *end = NULL;
    long number = strtol(word, &end, 10);
    for (int64_t i = 0; i < n; i++)
        if (strcmp(names[i], word) == 0) {
            *out = (int32_t)i;
            return true;
        }
    if (end != word && !*end && number >= 0 && number < n) {
        *out = (int32_t)number;
        return true;
    }
    if (n == 0)
        return err_set(err, ERR_USAGE, "--%s: the model was not told any in its training", what);
    return err_set(err, ERR_USAGE, "--%s: '%.100s' is none of %s", what, word,
                   names_join((const char *const *)names, (size_t)n, list, sizeof list));
}

bool generator_class(const struct generator *generator, const char *word, int32_t *out,
                     struct err *err)
{
    const struct model_config *config = &generator->config;
    return choose("class", config->class_names,
                  config->generator.by_class ? config->num_classes : 0, word, out, err);
}

bool generator_centre(const struct generator *generator, const char *word, int32_t *out,
                      struct err *err)
{
    const struct model_generator *own = &generator->config.generator;
    return choose("centre", own->centres, own->n_centres, word, out, err);
}

void generator_condition(const struct generator *generator, int32_t class_number, int32_t centre,
                         float *out)
{
    const struct model_config *config = &generator->config;
    int64_t classes = config->generator.by_class ? config->num_classes : 0;
    memset(out, 0, (size_t)generator->conditions * sizeof *out);
    if (classes > 0 && class_number >= 0)
        out[class_number] = 1;
    if (config->generator.n_centres > 0 && centre >= 0)
        out[classes + centre] = 1;
}

bool generator_learnt(struct generator *generator, int64_t n, const float *images, float *out,
                      struct err *err)
{
    int64_t floats = generator->floats;
    if (!generator->decoder.plan) {
        for (int64_t i = 0; i < n; i++)
            colour_to_learnt((enum colour)generator->config.generator.colour, floats / 3,
                             images + i * floats, out + i * floats);
        return true;
    }
    if (!generator->encoder.plan && !open_half(generator, ZOO_ENCODER, &generator->encoder, err))
        return false;
    images = latent_run(&generator->encoder, n, images, err);
    if (images)
        memcpy(out, images, (size_t)(n * floats) * sizeof *out);
    return images != NULL;
}

/* Normalised planes in the model's colours [3, side, side] -> RGB [side, side, 3] */
static void to_bytes(const struct generator *generator, const float *planes, uint8_t *rgb)
{
    int64_t count = generator->side_px * generator->side_px;
    const struct model_config *config = &generator->config;
    for (int64_t i = 0; i < count; i++) {
        float pixel[3] = { planes[i], planes[count + i], planes[2 * count + i] };
        colour_to_rgb((enum colour)config->generator.colour, 1, pixel, pixel);
        for (int c = 0; c < 3; c++) {
            double value = 255 * ((double)pixel[c] * config->std[c] + config->mean[c]);
            rgb[3 * i + c] = (uint8_t)lrint(fmin(fmax(value, 0), 255));
        }
    }
}

bool generator_pixels(struct generator *generator, int64_t n, const float *made, uint8_t *rgb,
                      struct err *err)
{
    int64_t floats = 3 * generator->side_px * generator->side_px;
    if (generator->decoder.plan && !(made = latent_run(&generator->decoder, n, made, err)))
        return false;
    for (int64_t i = 0; i < n; i++)
        to_bytes(generator, made + i * floats, rgb + i * floats);
    return true;
}
