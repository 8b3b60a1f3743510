/* model_window.c: see model_window.h. */
#include "heatmap/model_window.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/identity.h"
#include "net/model/classifier.h"

bool model_window_of(const struct model *model, struct model_window *out, struct err *err)
{
    const struct model_config *config = &model->config;
    const struct shape *input = graph_shape(model->graph, model->graph->inputs[0].value);
    int64_t side = input->dim[2], height = 0;
    *out = (struct model_window){ 0 };
    if (input->dim[2] != input->dim[3])
        return err_set(err, ERR_USAGE,
                       "%s: does not expect a square image, so it cannot score windows",
                       model->name);
    out->window = config->patch_size_pixels > 0 ? config->patch_size_pixels : side;
    if (model_crop_only(config, out->window) > 0)
        out->window = model_crop_only(config, out->window); /* nothing else is looked at */
    if (!model_sized(config, config->n_sizings, out->window, out->window, &out->side, &height, err))
        return err_prefix(err, model->name);
    if (out->side != height)
        return err_set(err, ERR_USAGE, "%s: its config.json does not give square images",
                       model->name);
    for (int c = 0; c < 3; c++) {
        float mean = (float)config->mean[c], std = (float)config->std[c];
        for (int v = 0; v < 256; v++)
            out->normal[c][v] = ((float)v / 255.0f - mean) / std;
    }
    return true;
}

uint64_t model_window_hash(uint64_t hash, const struct model *model,
                           const struct model_window *window)
{
    const struct model_config *config = &model->config;
    hash = graph_hash(model->graph, hash, true);
    for (int64_t c = 0; c < config->num_classes; c++)
        hash = identity_hash(hash, config->class_names[c], strlen(config->class_names[c]) + 1);
    if (model_predicts_number(model)) {
        double numbers[] = { config->target.mean, config->target.std };
        hash = identity_hash(hash, numbers, sizeof numbers);
    }
    const char *outputs = model_outputs_word(model);
    if (strcmp(outputs, "logits") != 0)
        hash = identity_hash(hash, outputs, strlen(outputs) + 1);
    int64_t sizes[] = { window->window, window->side, (int64_t)config->padding };
    hash = identity_hash(hash, sizes, sizeof sizes);
    for (int i = 0; window->side != window->window && i < config->n_sizings; i++) {
        const struct model_sizing *step = &config->sizings[i];
        int64_t numbers[] = { (int64_t)step->kind, step->height, step->width };
        hash = identity_hash(hash, numbers, sizeof numbers);
    }
    const struct model_stain *stain = &config->stain;
    if (stain->method[0] && strcmp(stain->method, "none") != 0) {
        hash = identity_hash(hash, stain->method, strlen(stain->method) + 1);
        hash = identity_hash(hash, stain->matrix, sizeof stain->matrix);
        hash = identity_hash(hash, stain->concentration_p99, sizeof stain->concentration_p99);
        hash = identity_hash(hash, stain->lab_mean, sizeof stain->lab_mean);
        hash = identity_hash(hash, stain->lab_std, sizeof stain->lab_std);
    }
    return identity_hash(hash, window->normal, sizeof window->normal);
}

bool model_hash_text(const struct model *model, char out[MODEL_HASH_TEXT], struct err *err)
{
    struct model_window window;
    if (!model_window_of(model, &window, err))
        return false;
    snprintf(out, MODEL_HASH_TEXT, "%016" PRIx64,
             model_window_hash(IDENTITY_HASH_BEGIN, model, &window));
    return true;
}
