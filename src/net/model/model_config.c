/* model_config.c: reads config.json. */
#include "net/model/model_config.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "net/model/model_config_audio.h"

#define SIZE_LIMIT ((size_t)1 << 20)
#define CLASSES_LIMIT 100000
#define PIXELS_LIMIT 1000000

static const char *const objectives[] = { "classify", "distill", "encode",        "generate",
                                          "regress",  "segment", "classify_text", "classify_audio",
                                          "mask",     NULL };

const char *const model_text_rules[] = { "truncate", "head_tail", "refuse", "windows", NULL };
const char *const model_process_names[] = { "flow", "edm", "epsilon", "v", NULL };
const char *const model_colour_names[] = { "rgb", "apart", "graded", NULL };

const char *const model_meaning_names[] = { "unknown",  "logits", "probabilities",
                                            "features", "number", NULL };

const char *const segment_class_names[SEGMENT_CLASSES] = { "background", "inside", "boundary" };

const char *model_config_objective(enum model_objective objective)
{
    return objectives[objective];
}

const char *model_config_padding(enum padding padding)
{
    static const char *const names[] = { "zero", "reflect", "replicate", "valid" };
    return names[padding];
}

bool model_config_features(const struct model_config *config)
{
    return config->n_outputs > 0 && config->outputs[0].meaning == MEANING_FEATURES;
}

void model_config_init(struct model_config *config)
{
    *config = (struct model_config){ .std = { 1, 1, 1 } };
}

void model_config_free(struct model_config *config)
{
    for (int64_t i = 0; config->class_names && i < config->num_classes; i++)
        free(config->class_names[i]);
    free(config->class_names);
    free(config->architecture);
    free(config->network);
    free(config->licence);
    free(config->citation);
    free(config->target.name);
    free(config->target.unit);
    for (int64_t i = 0; i < config->generator.n_centres; i++)
        free(config->generator.centres[i]);
    free(config->generator.centres);
    free(config->generator.latent);
    free(config->text.tokenizer);
    free(config->text.text);
    free(config->text.label);
    free(config->text.id);
    model_audio_free(&config->audio);
    *config = (struct model_config){ 0 };
}

/* What the reading functions share. */
struct reader {
    const char *path;
    struct model_config *config;
    struct err *err;
};

static bool wrong(const struct reader *r, const char *key, const char *must)
{
    return err_set(r->err, ERR_FORMAT, "%s: '%s' must be %s", r->path, key, must);
}

static bool read_whole(const struct reader *r, const json_t *json, const char *key, int64_t max,
                       int64_t *out)
{
    if (!json)
        return err_set(r->err, ERR_MISSING, "%s: the key '%s' is missing", r->path, key);
    if (!json_is_integer(json) || json_integer_value(json) < 1 || json_integer_value(json) > max)
        return err_set(r->err, ERR_FORMAT, "%s: '%s' must be a whole number between 1 and %lld",
                       r->path, key, (long long)max);
    *out = json_integer_value(json);
    return true;
}

/* Absent leaves *out NULL. */
static bool read_text(const struct reader *r, const json_t *json, const char *key, char **out)
{
    if (!json || json_is_null(json))
        return true;
    if (!json_is_string(json))
        return wrong(r, key, "text");
    *out = strdup(json_string_value(json));
    return *out || err_memory(r->err, r->path);
}

static bool read_class_names(const struct reader *r, const json_t *json)
{
    struct model_config *config = r->config;
    if (!json && config->num_classes == 0)
        return true;
    if (!json)
        return err_set(r->err, ERR_MISSING, "%s: the key 'class_names' is missing", r->path);
    if (!json_is_array(json) || (int64_t)json_array_size(json) != config->num_classes)
        return err_set(r->err, ERR_FORMAT,
                       "%s: 'class_names' must be a list of %lld names, as 'num_classes' says",
                       r->path, (long long)config->num_classes);
    config->class_names = calloc((size_t)config->num_classes + 1, sizeof *config->class_names);
    if (!config->class_names)
        return err_memory(r->err, r->path);
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *name = json_array_get(json, i);
        if (!json_is_string(name))
            return wrong(r, "class_names", "a list of names");
        if (!read_text(r, name, "class_names", &config->class_names[i]))
            return false;
    }
    return true;
}

/* {"size": 224} or {"size": [224, 224]}. One number is a square for CenterCrop. */
static bool read_sizing(const struct reader *r, enum model_sizing_kind kind, const char *key,
                        const json_t *arguments)
{
    const json_t *size = json_object_get(arguments, "size");
    struct model_config *config = r->config;
    size_t n = json_is_array(size) ? json_array_size(size) : 0;
    if (n > 2 || (json_is_array(size) && n == 0))
        return wrong(r, key, "one number or two");
    if (config->n_sizings == MODEL_MAX_SIZINGS)
        return wrong(r, "transform", "a list of at most 8 steps that change the size");
    struct model_sizing *sizing = &config->sizings[config->n_sizings++];
    int64_t sides[2];
    for (int i = 0; i < 2; i++) {
        const json_t *side = n ? json_array_get(size, n == 2 ? (size_t)i : 0) : size;
        if (!read_whole(r, side, key, PIXELS_LIMIT, &sides[i]))
            return false;
    }
    *sizing = (struct model_sizing){ kind, sides[0], sides[1] };
    if (kind == MODEL_RESIZE && n < 2)
        sizing->kind = MODEL_RESIZE_SHORTER;
    return true;
}

/* Three numbers, or one for a network of one channel. */
static bool read_channels(const struct reader *r, const json_t *json, const char *key, double low,
                          double out[3])
{
    size_t n = json_array_size(json);
    bool ok = json_is_array(json) && (n == 3 || n == 1);
    for (size_t i = 0; ok && i < 3; i++) {
        const json_t *number = json_array_get(json, n == 1 ? 0 : i);
        out[i] = json_number_value(number);
        ok = json_is_number(number) && isfinite(out[i]) && out[i] > low;
    }
    return ok || wrong(r, key, low < 0 ? "three numbers" : "three numbers above 0");
}

/* *floats: a ToTensor or Normalize came before, so that a Resize would not work on bytes. */
static bool read_item(const struct reader *r, const json_t *item, bool *floats)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const json_t *arguments = json_object_get(item, "arguments");
    if (!name)
        return wrong(r, "transform", "a list of objects with a 'name'");
    if (strcmp(name, "Resize") == 0)
        return *floats ? wrong(r, "transform: Resize", "before ToTensor")
                       : read_sizing(r, MODEL_RESIZE, "transform: Resize: size", arguments);
    if (strcmp(name, "CenterCrop") == 0) /* the same on bytes and on floats */
        return read_sizing(r, MODEL_CENTER_CROP, "transform: CenterCrop: size", arguments);
    *floats = true;
    if (strcmp(name, "ToTensor") == 0)
        return true;
    if (strcmp(name, "Normalize") == 0)
        return read_channels(r, json_object_get(arguments, "mean"), "transform: Normalize: mean",
                             -INFINITY, r->config->mean) &&
               read_channels(r, json_object_get(arguments, "std"), "transform: Normalize: std", 0,
                             r->config->std);
    return err_set(r->err, ERR_FORMAT,
                   "%s: 'transform': '%.80s' is not one of Resize, CenterCrop, ToTensor, Normalize",
                   r->path, name);
}

static bool read_transform(const struct reader *r, const json_t *json)
{
    bool floats = false;
    if (!json)
        return err_set(r->err, ERR_MISSING, "%s: the key 'transform' is missing", r->path);
    if (!json_is_array(json))
        return wrong(r, "transform", "a list");
    for (size_t i = 0; i < json_array_size(json); i++)
        if (!read_item(r, json_array_get(json, i), &floats))
            return false;
    return true;
}

static bool read_numbers(const struct reader *r, const json_t *json, const char *key, size_t n,
                         double *out)
{
    bool ok = json_is_array(json) && json_array_size(json) == n;
    for (size_t i = 0; ok && i < n; i++) {
        out[i] = json_number_value(json_array_get(json, i));
        ok = json_is_number(json_array_get(json, i)) && isfinite(out[i]);
    }
    return ok || wrong(r, key, "a list of numbers, as 'microtome train' writes it");
}

/* The numbers that come together are all there, or none of them is. */
static bool read_target(const struct reader *r, const json_t *json)
{
    struct model_stain *stain = &r->config->stain;
    const json_t *matrix = json_object_get(json, "matrix"),
                 *mean = json_object_get(json, "lab_mean");
    bool ok = true;
    if (matrix)
        ok = read_numbers(r, matrix, "microtome: stain: matrix", 6, stain->matrix) &&
             read_numbers(r, json_object_get(json, "concentration_p99"),
                          "microtome: stain: concentration_p99", 2, stain->concentration_p99);
    if (ok && mean)
        ok = read_numbers(r, mean, "microtome: stain: lab_mean", 3, stain->lab_mean) &&
             read_numbers(r, json_object_get(json, "lab_std"), "microtome: stain: lab_std", 3,
                          stain->lab_std);
    if (ok && !matrix && !mean)
        return wrong(r, "microtome: stain",
                     "an object that describes what stains are normalised to");
    return ok;
}

static bool read_stain(const struct reader *r, const json_t *json)
{
    struct model_stain *stain = &r->config->stain;
    const char *method = json_string_value(json_object_get(json, "method"));
    const char *fitted_on = json_string_value(json_object_get(json, "fitted_on"));
    if (!json)
        return true;
    if (!method || !method[0] || strlen(method) >= sizeof stain->method)
        return wrong(r, "microtome: stain: method", "the name of a method, or none");
    memcpy(stain->method, method, strlen(method) + 1);
    if (strcmp(method, "none") == 0)
        return true;
    if (!fitted_on || (strcmp(fitted_on, "slide") != 0 && strcmp(fitted_on, "patch") != 0))
        return wrong(r, "microtome: stain: fitted_on", "slide or patch");
    stain->per_patch = fitted_on[0] == 'p';
    return read_target(r, json);
}

/* Our trainings have always cropped patches to what the network sees; early ones did not say so. */
static bool add_known_crop(struct model_config *config)
{
    int64_t side = config->patch_size_pixels;
    if (config->network && config->n_sizings == 0 && !config->whole.set)
        config->sizings[config->n_sizings++] =
            (struct model_sizing){ MODEL_CENTER_CROP, side, side };
    return true;
}

/* Without it: softmax, or sigmoid for one class. */
static bool read_activation(const struct reader *r, const json_t *json)
{
    const char *text = json_is_string(json) ? json_string_value(json) : "";
    if (!json)
        return true;
    r->config->independent = strcmp(text, "sigmoid") == 0;
    return r->config->independent || strcmp(text, "softmax") == 0 ||
           wrong(r, "microtome: activation", "softmax or sigmoid");
}

static bool read_real(const struct reader *r, const json_t *object, const char *key, double *out)
{
    const json_t *json = json_object_get(object, key);
    *out = json_number_value(json);
    return json_is_number(json) && isfinite(*out)
               ? true
               : err_set(r->err, ERR_FORMAT, "%s: 'microtome: target: %s' must be a number",
                         r->path, key);
}

static bool read_predicted(const struct reader *r, const json_t *json)
{
    struct model_target *target = &r->config->target;
    if (!json_is_object(json) || r->config->num_classes != 1)
        return wrong(r, "microtome: target",
                     "an object, with num_classes 1, if a model predicts a "
                     "number");
    if (!read_text(r, json_object_get(json, "name"), "microtome: target: name", &target->name) ||
        !read_text(r, json_object_get(json, "unit"), "microtome: target: unit", &target->unit) ||
        !read_real(r, json, "mean", &target->mean) || !read_real(r, json, "std", &target->std) ||
        !read_real(r, json, "min", &target->min) || !read_real(r, json, "max", &target->max))
        return false;
    if (!target->name || !target->name[0] || !target->unit)
        return wrong(r, "microtome: target",
                     "an object with a name and a unit, which may be empty");
    return (target->std > 0 && target->min < target->max) ||
           wrong(r, "microtome: target", "an object with std above 0 and min below max");
}

/* The index of a text among names; without the key *out stays. */
static bool read_choice(const struct reader *r, const json_t *own, const char *key,
                        const char *const *names, int *out)
{
    const json_t *json = json_object_get(own, key);
    const char *text = json_is_string(json) ? json_string_value(json) : "";
    char what[64];
    for (int i = 0; json && names[i]; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return true;
        }
    snprintf(what, sizeof what, "microtome: %s", key);
    return !json || wrong(r, what, "one that this version knows");
}

static bool read_centres(const struct reader *r, const json_t *json)
{
    struct model_generator *generator = &r->config->generator;
    size_t n = json_array_size(json);
    if (!json)
        return true;
    if (!json_is_array(json) || n > CLASSES_LIMIT)
        return wrong(r, "microtome: generator: centres", "a list of names");
    generator->centres = calloc(n + 1, sizeof *generator->centres);
    if (!generator->centres)
        return err_memory(r->err, r->path);
    for (size_t i = 0; i < n; i++) {
        char **name = &generator->centres[generator->n_centres];
        if (!json_is_string(json_array_get(json, i)))
            return wrong(r, "microtome: generator: centres", "a list of names");
        if (!read_text(r, json_array_get(json, i), "microtome: generator: centres", name))
            return false;
        generator->n_centres++;
    }
    return true;
}

static bool read_generator(const struct reader *r, const json_t *json)
{
    const json_t *by_class = json_object_get(json, "by_class");
    if (!json_is_object(json) || !json_object_get(json, "process") || !json_is_boolean(by_class))
        return wrong(r, "microtome: generator",
                     "an object with process and by_class, if a model makes patches");
    r->config->generator.by_class = json_is_true(by_class);
    return read_choice(r, json, "process", model_process_names, &r->config->generator.process) &&
           (!json_object_get(json, "colour") ||
            read_choice(r, json, "colour", model_colour_names, &r->config->generator.colour)) &&
           read_text(r, json_object_get(json, "latent"), "microtome: generator: latent",
                     &r->config->generator.latent) &&
           read_centres(r, json_object_get(json, "centres"));
}

/* Of windows; absent: none. */
static bool read_overlap(const struct reader *r, const json_t *json)
{
    const json_t *overlap = json_object_get(json, "window_overlap");
    double value = json_number_value(overlap);
    r->config->text.overlap = value;
    return !overlap || (json_is_number(overlap) && value >= 0 && value < 1) ||
           wrong(r, "microtome: text: window_overlap", "a number from 0 to below 1");
}

static bool read_texts(const struct reader *r, const json_t *json)
{
    struct model_text *text = &r->config->text;
    if (!json_is_object(json) || !json_is_boolean(json_object_get(json, "keep_case")))
        return wrong(r, "microtome: text", "an object that says how texts become tokens");
    text->keep_case = json_is_true(json_object_get(json, "keep_case"));
    return read_whole(r, json_object_get(json, "max_tokens"), "microtome: text: max_tokens",
                      PIXELS_LIMIT, &text->max_tokens) &&
           read_choice(r, json, "long", model_text_rules, &text->rule) && read_overlap(r, json) &&
           read_text(r, json_object_get(json, "tokenizer"), "microtome: text: tokenizer",
                     &text->tokenizer) &&
           read_text(r, json_object_get(json, "column"), "microtome: text: column", &text->text) &&
           read_text(r, json_object_get(json, "label"), "microtome: text: label", &text->label) &&
           read_text(r, json_object_get(json, "id"), "microtome: text: id", &text->id) &&
           ((text->tokenizer && text->text && !strchr(text->tokenizer, '/')) ||
            wrong(r, "microtome: text", "an object with tokenizer, a file beside it, and column"));
}

/* Without it: classify. */
static bool read_objective(const struct reader *r, const json_t *own)
{
    const json_t *json = json_object_get(own, "objective");
    const char *text = json_is_string(json) ? json_string_value(json) : "";
    int i = 0;
    if (!json)
        return true;
    while (objectives[i] && strcmp(objectives[i], text) != 0)
        i++;
    if (!objectives[i])
        return err_set(r->err, ERR_FORMAT,
                       "%s: the model was trained with objective '%.60s'; this version knows "
                       "classify, classify_audio, classify_text, distill, encode, generate, mask, "
                       "regress and segment",
                       r->path, text);
    r->config->objective = (enum model_objective)i;
    if (i == OBJECTIVE_SEGMENT && r->config->num_classes != SEGMENT_CLASSES)
        return wrong(r, "num_classes",
                     "3 in a model that segments: background, inside and boundary");
    if (i == OBJECTIVE_CLASSIFY_TEXT || i == OBJECTIVE_MASK)
        return read_texts(r, json_object_get(own, "text"));
    if (i == OBJECTIVE_CLASSIFY_AUDIO)
        return model_audio_read(json_object_get(own, "audio"), r->path, &r->config->audio, r->err);
    if (i == OBJECTIVE_GENERATE)
        return read_generator(r, json_object_get(own, "generator"));
    return i != OBJECTIVE_REGRESS || read_predicted(r, json_object_get(own, "target"));
}

static bool read_slides(const struct reader *r, const json_t *json)
{
    struct model_whole *whole = &r->config->whole;
    const json_t *mpp = json_object_get(json, "mpp"), *margin = json_object_get(json, "margin_um");
    const json_t *side = json_object_get(json, "long_side_px");
    const char *tissue = json_string_value(json_object_get(json, "tissue"));
    const char *background = json_string_value(json_object_get(json, "background"));
    if (!json)
        return true;
    whole->mpp = json_number_value(mpp);
    whole->margin_um = json_number_value(margin);
    if (!(whole->mpp > 0 && isfinite(whole->mpp)) == !side)
        return wrong(r, "microtome: whole", "an object with either mpp or long_side_px");
    if (side &&
        !read_whole(r, side, "microtome: whole: long_side_px", PIXELS_LIMIT, &whole->long_side_px))
        return false;
    if (!json_is_number(margin) || !(whole->margin_um >= 0 && isfinite(whole->margin_um)))
        return wrong(r, "microtome: whole: margin_um", "a number from 0");
    if (!tissue || !tissue[0] || strlen(tissue) >= sizeof whole->tissue)
        return wrong(r, "microtome: whole: tissue", "the name of a method");
    memcpy(whole->tissue, tissue, strlen(tissue) + 1);
    whole->background = background && strcmp(background, "kept") == 0;
    if (!background || (!whole->background && strcmp(background, "white") != 0))
        return wrong(r, "microtome: whole: background", "white or kept");
    whole->set = true;
    return true;
}

/* A word of at most 15 letters. */
static bool read_word(const json_t *json, char out[16])
{
    const char *text = json_string_value(json);
    if (!text || !text[0] || strlen(text) >= 16)
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static bool read_privacy(const struct reader *r, const json_t *json)
{
    struct model_privacy *privacy = &r->config->privacy;
    if (!json)
        return true;
    privacy->epsilon = json_number_value(json_object_get(json, "epsilon")); /* null: infinite */
    privacy->delta = json_number_value(json_object_get(json, "delta"));
    privacy->sigma = json_number_value(json_object_get(json, "sigma"));
    privacy->clip = json_number_value(json_object_get(json, "clip"));
    privacy->rate = json_number_value(json_object_get(json, "rate"));
    privacy->steps = (int64_t)json_integer_value(json_object_get(json, "steps"));
    if (!(privacy->epsilon >= 0) || !(privacy->delta > 0 && privacy->delta < 1) ||
        !(privacy->rate > 0 && privacy->rate <= 1) || !(privacy->sigma >= 0) ||
        privacy->steps < 0 || !read_word(json_object_get(json, "unit"), privacy->unit) ||
        !read_word(json_object_get(json, "accountant"), privacy->accountant))
        return wrong(r, "microtome: privacy", "what a private training gave away");
    privacy->set = true;
    return true;
}

static bool read_output(const struct reader *r, const json_t *json, struct model_output *out)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *meaning = json_string_value(json_object_get(json, "meaning"));
    int found = MEANING_LOGITS;
    while (meaning && model_meaning_names[found] &&
           strcmp(model_meaning_names[found], meaning) != 0)
        found++;
    if (!name || !name[0] || strlen(name) >= sizeof out->name || !meaning ||
        !model_meaning_names[found])
        return wrong(r, "microtome: outputs",
                     "a list of objects with a name and a meaning: logits, probabilities, features "
                     "or number");
    memcpy(out->name, name, strlen(name) + 1);
    out->meaning = (enum model_meaning)found;
    return true;
}

/* Without them num_classes 0 says that the one output is features. */
static bool read_outputs(const struct reader *r, const json_t *json)
{
    struct model_config *config = r->config;
    size_t n = json_array_size(json);
    if (json && (!json_is_array(json) || n == 0 || n > MODEL_MAX_OUTPUTS))
        return wrong(r, "microtome: outputs", "a list of 1 to 8 objects");
    for (size_t i = 0; i < n; i++, config->n_outputs++)
        if (!read_output(r, json_array_get(json, i), &config->outputs[i]))
            return false;
    if (!json && config->num_classes == 0)
        config->outputs[config->n_outputs++] =
            (struct model_output){ "embedding", MEANING_FEATURES };
    bool number = config->n_outputs > 0 && config->outputs[0].meaning == MEANING_NUMBER;
    if (number && config->objective != OBJECTIVE_REGRESS)
        return wrong(r, "microtome: outputs", "a number only if the objective is regress");
    return model_config_features(config) == (config->num_classes == 0) ||
           wrong(r, "num_classes", "0 if the first output is features, and only then");
}

static bool read_own(const struct reader *r, const json_t *json)
{
    if (!json)
        return true;
    if (!json_is_object(json))
        return wrong(r, "microtome", "an object");
    const json_t *padding = json_object_get(json, "padding");
    const json_t *stride = json_object_get(json, "stride_px");
    if (padding) {
        const char *text = json_is_string(padding) ? json_string_value(padding) : "";
        int found = -1;
        for (int i = PADDING_ZERO; i <= PADDING_VALID; i++)
            if (strcmp(text, model_config_padding((enum padding)i)) == 0)
                found = i;
        if (found < 0)
            return wrong(r, "microtome: padding", "zero, reflect, replicate or valid");
        r->config->padding = (enum padding)found;
    }
    int head = HEAD_AUTO, norm = NORM_BATCH;
    if (!read_choice(r, json, "head", head_names, &head) ||
        !read_choice(r, json, "norm", norm_names, &norm))
        return false;
    r->config->head = (enum head_kind)head, r->config->norm = (enum norm_rule)norm;
    if (stride &&
        !read_whole(r, stride, "microtome: stride_px", PIXELS_LIMIT, &r->config->stride_px))
        return false;
    const json_t *icc = json_object_get(json, "icc");
    if (icc && !json_is_boolean(icc))
        return wrong(r, "microtome: icc", "true or false");
    r->config->icc = json_is_true(icc);
    return read_stain(r, json_object_get(json, "stain")) &&
           read_slides(r, json_object_get(json, "whole")) &&
           read_privacy(r, json_object_get(json, "privacy")) &&
           read_activation(r, json_object_get(json, "activation")) && read_objective(r, json) &&
           read_text(r, json_object_get(json, "licence"), "microtome: licence",
                     &r->config->licence) &&
           read_text(r, json_object_get(json, "citation"), "microtome: citation",
                     &r->config->citation) &&
           read_text(r, json_object_get(json, "network"), "microtome: network",
                     &r->config->network) &&
           add_known_crop(r->config);
}

/* Slides that are scaled to a long side have no um/px in common. */
static bool read_spacing(const struct reader *r, const json_t *root)
{
    const json_t *spacing = json_object_get(root, "spacing_um_px");
    const json_t *whole = json_object_get(json_object_get(root, "microtome"), "whole");
    r->config->spacing_um_px = json_number_value(spacing);
    if (!spacing && json_object_get(whole, "long_side_px"))
        return true;
    if (!spacing)
        return err_set(r->err, ERR_MISSING, "%s: the key 'spacing_um_px' is missing", r->path);
    return (json_is_number(spacing) && r->config->spacing_um_px > 0) ||
           wrong(r, "spacing_um_px", "a number above 0");
}

/* What a patch is, and how it is prepared; a model of texts or recordings takes none. */
static bool read_patch(const struct reader *r, const json_t *root)
{
    const json_t *own = json_object_get(json_object_get(root, "microtome"), "objective");
    const char *objective = json_is_string(own) ? json_string_value(own) : "";
    if (strcmp(objective, objectives[OBJECTIVE_CLASSIFY_TEXT]) == 0 ||
        strcmp(objective, objectives[OBJECTIVE_CLASSIFY_AUDIO]) == 0 ||
        strcmp(objective, objectives[OBJECTIVE_MASK]) == 0)
        return true;
    return read_spacing(r, root) &&
           read_whole(r, json_object_get(root, "patch_size_pixels"), "patch_size_pixels",
                      PIXELS_LIMIT, &r->config->patch_size_pixels) &&
           read_transform(r, json_object_get(root, "transform"));
}

static bool read_all(const struct reader *r, const json_t *root)
{
    struct model_config *config = r->config;
    if (!json_is_object(root))
        return err_set(r->err, ERR_FORMAT,
                       "%s: not a model configuration: it contains no JSON object", r->path);
    int64_t n_classes = 0;
    const json_t *classes = json_object_get(root, "num_classes");
    if (!(json_is_integer(classes) && json_integer_value(classes) == 0) && /* 0: features */
        !read_whole(r, classes, "num_classes", CLASSES_LIMIT, &n_classes))
        return false;
    config->num_classes = n_classes;
    return read_patch(r, root) && read_class_names(r, json_object_get(root, "class_names")) &&
           read_text(r, json_object_get(root, "architecture"), "architecture",
                     &config->architecture) &&
           read_own(r, json_object_get(root, "microtome")) &&
           read_outputs(r, json_object_get(json_object_get(root, "microtome"), "outputs"));
}

bool model_config_parse(const char *text, size_t size, const char *path, struct model_config *out,
                        struct err *err)
{
    json_error_t why;
    model_config_init(out);
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return err_set(err, ERR_FORMAT, "%s:%d: not JSON: %s", path, why.line, why.text);
    struct reader reader = { path, out, err };
    bool ok = read_all(&reader, root);
    json_decref(root);
    if (!ok)
        model_config_free(out);
    return ok;
}

bool model_config_read(const char *path, struct model_config *out, struct err *err)
{
    char *text;
    size_t size;
    if (!file_read(path, SIZE_LIMIT, &text, &size, err))
        return false;
    bool ok = model_config_parse(text, size, path, out, err);
    free(text);
    return ok;
}
