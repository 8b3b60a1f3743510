/* model_config_write.c: writes config.json. Separate from reading because jansson and base/json.h
 * use the same names. */
#include <math.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "net/model/model_config_audio.h"

static void write_numbers(struct json_out *json, const char *key, const double *values, int n)
{
    json_out_array_line(json, key);
    for (int i = 0; i < n; i++)
        json_out_real(json, NULL, values[i]);
    json_out_close_array(json);
}

static void write_sizing(struct json_out *json, const struct model_sizing *sizing)
{
    bool crop = sizing->kind == MODEL_CENTER_CROP;
    json_out_object(json, NULL);
    json_out_text(json, "name", crop ? "CenterCrop" : "Resize");
    json_out_object_line(json, "arguments");
    if (sizing->kind == MODEL_RESIZE_SHORTER || (crop && sizing->height == sizing->width)) {
        json_out_int(json, "size", sizing->height);
    } else {
        json_out_array_line(json, "size");
        json_out_int(json, NULL, sizing->height);
        json_out_int(json, NULL, sizing->width);
        json_out_close_array(json);
    }
    json_out_close_object(json);
    json_out_close_object(json);
}

static void write_transform(struct json_out *json, const struct model_config *config)
{
    bool normalized = false;
    for (int i = 0; i < 3; i++)
        normalized = normalized || config->mean[i] != 0 || config->std[i] != 1;
    json_out_array(json, "transform");
    for (int i = 0; i < config->n_sizings; i++)
        write_sizing(json, &config->sizings[i]);
    json_out_object_line(json, NULL);
    json_out_text(json, "name", "ToTensor");
    json_out_close_object(json);
    if (normalized) {
        json_out_object(json, NULL);
        json_out_text(json, "name", "Normalize");
        json_out_object(json, "arguments");
        write_numbers(json, "mean", config->mean, 3);
        write_numbers(json, "std", config->std, 3);
        json_out_close_object(json);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

/* A method has either stain vectors or means and deviations. */
static void write_stain(struct json_out *json, const struct model_stain *stain)
{
    bool vectors = stain->concentration_p99[0] > 0;
    if (!stain->method[0])
        return;
    json_out_object(json, "stain");
    json_out_text(json, "method", stain->method);
    if (strcmp(stain->method, "none") != 0) {
        json_out_text(json, "fitted_on", stain->per_patch ? "patch" : "slide");
        if (vectors) {
            write_numbers(json, "matrix", stain->matrix, 6);
            write_numbers(json, "concentration_p99", stain->concentration_p99, 2);
        } else {
            write_numbers(json, "lab_mean", stain->lab_mean, 3);
            write_numbers(json, "lab_std", stain->lab_std, 3);
        }
    }
    json_out_close_object(json);
}

static void write_target(struct json_out *json, const struct model_target *target)
{
    json_out_object(json, "target");
    json_out_text(json, "name", target->name);
    json_out_text(json, "unit", target->unit);
    json_out_real(json, "mean", target->mean);
    json_out_real(json, "std", target->std);
    json_out_real(json, "min", target->min);
    json_out_real(json, "max", target->max);
    json_out_close_object(json);
}

static void write_whole(struct json_out *json, const struct model_whole *whole)
{
    json_out_object(json, "whole");
    if (whole->mpp > 0)
        json_out_real(json, "mpp", whole->mpp);
    else
        json_out_int(json, "long_side_px", whole->long_side_px);
    json_out_text(json, "tissue", whole->tissue);
    json_out_real(json, "margin_um", whole->margin_um);
    json_out_text(json, "background", whole->background ? "kept" : "white");
    json_out_close_object(json);
}

static void write_generator(struct json_out *json, const struct model_generator *generator)
{
    json_out_object(json, "generator");
    json_out_text(json, "process", model_process_names[generator->process]);
    if (generator->colour != 0) /* not red, green and blue */
        json_out_text(json, "colour", model_colour_names[generator->colour]);
    json_out_bool(json, "by_class", generator->by_class);
    if (generator->latent)
        json_out_text(json, "latent", generator->latent);
    if (generator->n_centres > 0) {
        json_out_array_line(json, "centres");
        for (int64_t i = 0; i < generator->n_centres; i++)
            json_out_text(json, NULL, generator->centres[i]);
        json_out_close_array(json);
    }
    json_out_close_object(json);
}

static void write_privacy(struct json_out *json, const struct model_privacy *privacy)
{
    json_out_object(json, "privacy");
    json_out_real(json, "epsilon", privacy->epsilon > 0 ? privacy->epsilon : INFINITY);
    json_out_real(json, "delta", privacy->delta);
    json_out_text(json, "unit", privacy->unit);
    json_out_real(json, "sigma", privacy->sigma);
    json_out_real(json, "clip", privacy->clip);
    json_out_real(json, "rate", privacy->rate);
    json_out_int(json, "steps", privacy->steps);
    json_out_text(json, "accountant", privacy->accountant);
    json_out_close_object(json);
}

static void write_text(struct json_out *json, const struct model_text *text)
{
    json_out_object(json, "text");
    json_out_text(json, "tokenizer", text->tokenizer);
    json_out_bool(json, "keep_case", text->keep_case);
    json_out_int(json, "max_tokens", text->max_tokens);
    json_out_text(json, "long", model_text_rules[text->rule]);
    if (text->overlap > 0)
        json_out_real(json, "window_overlap", text->overlap);
    json_out_text(json, "column", text->text);
    if (text->label)
        json_out_text(json, "label", text->label);
    if (text->id && text->id[0])
        json_out_text(json, "id", text->id);
    json_out_close_object(json);
}

static void write_outputs(struct json_out *json, const struct model_config *config)
{
    json_out_array(json, "outputs");
    for (int i = 0; i < config->n_outputs; i++) {
        json_out_object_line(json, NULL);
        json_out_text(json, "name", config->outputs[i].name);
        json_out_text(json, "meaning", model_meaning_names[config->outputs[i].meaning]);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void write_own(struct json_out *json, const struct model_config *config)
{
    json_out_object(json, "microtome");
    if (config->network)
        json_out_text(json, "network", config->network);
    json_out_text(json, "padding", model_config_padding(config->padding));
    if (config->head != HEAD_AUTO)
        json_out_text(json, "head", head_names[config->head]);
    if (config->norm != NORM_BATCH)
        json_out_text(json, "norm", norm_names[config->norm]);
    if (config->stride_px)
        json_out_int(json, "stride_px", config->stride_px);
    json_out_text(json, "objective", model_config_objective(config->objective));
    if (config->objective == OBJECTIVE_REGRESS)
        write_target(json, &config->target);
    if (config->objective == OBJECTIVE_GENERATE)
        write_generator(json, &config->generator);
    if (config->text.tokenizer)
        write_text(json, &config->text);
    if (config->audio.column)
        model_audio_write(json, &config->audio);
    if (config->independent)
        json_out_text(json, "activation", "sigmoid");
    if (config->n_outputs > 0)
        write_outputs(json, config);
    write_stain(json, &config->stain);
    if (config->whole.set)
        write_whole(json, &config->whole);
    if (config->icc)
        json_out_bool(json, "icc", true);
    if (config->privacy.set)
        write_privacy(json, &config->privacy);
    if (config->licence)
        json_out_text(json, "licence", config->licence);
    if (config->citation)
        json_out_text(json, "citation", config->citation);
    json_out_close_object(json);
}

static void write_all(FILE *stream, const struct model_config *config)
{
    struct json_out json;
    const char *architecture = config->architecture ? config->architecture : config->network;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "spec_version", "1.0");
    json_out_text(&json, "architecture", architecture ? architecture : "unknown");
    json_out_int(&json, "num_classes", config->num_classes);
    if (model_config_images(config))
        json_out_int(&json, "patch_size_pixels", config->patch_size_pixels);
    if (config->spacing_um_px > 0)
        json_out_real(&json, "spacing_um_px", config->spacing_um_px);
    json_out_array_line(&json, "class_names");
    for (int64_t i = 0; i < config->num_classes; i++)
        json_out_text(&json, NULL, config->class_names[i]);
    json_out_close_array(&json);
    if (model_config_images(config))
        write_transform(&json, config);
    write_own(&json, config);
    json_out_close_object(&json);
    json_out_end(&json);
}

static bool is_complete(const struct model_config *config, const char *path, struct err *err)
{
    if (!model_config_images(config) &&
        ((config->num_classes > 0 && config->class_names) || config->objective == OBJECTIVE_MASK))
        return true;
    bool named =
        config->num_classes > 0 ? config->class_names != NULL : model_config_features(config);
    if (named && config->patch_size_pixels > 0 &&
        (config->spacing_um_px > 0 || config->whole.long_side_px > 0))
        return true;
    return err_set(err, ERR_USAGE, "%s: the classes, the patch size and the spacing must be known",
                   path);
}

bool model_config_text(const struct model_config *config, char **out, struct err *err)
{
    size_t size = 0;
    *out = NULL;
    if (!is_complete(config, "config.json", err))
        return false;
    FILE *memory = open_memstream(out, &size);
    if (!memory)
        return err_memory(err, "config.json");
    write_all(memory, config);
    return fclose(memory) == 0 || err_memory(err, "config.json");
}

bool model_config_write(const char *path, const struct model_config *config, struct err *err)
{
    struct file_out out;
    if (!is_complete(config, path, err) || !file_out_open(&out, path, err))
        return false;
    write_all(out.stream, config);
    return file_out_commit(&out, err);
}
