/* slide_image_model.c: how slides are read as images, as a model's config.json says it
 * (slide_image.h). */
#include <stdio.h>
#include <string.h>
#include "prepare/slide_image.h"

bool slide_image_of_model(const struct model_config *config, struct slide_image_options *out,
                          struct err *err)
{
    const struct model_whole *whole = &config->whole;
    int method = 0;
    *out = slide_image_defaults();
    while (tissue_method_names[method] && strcmp(tissue_method_names[method], whole->tissue) != 0)
        method++;
    if (!tissue_method_names[method])
        return err_set(err, ERR_FORMAT,
                       "the model was trained with tissue found by '%s', which this version does "
                       "not know",
                       whole->tissue);
    out->mpp = whole->mpp;
    out->long_side_px = whole->long_side_px;
    out->method = (enum tissue_method)method;
    out->margin_um = whole->margin_um;
    out->background = whole->background;
    memcpy(out->mean, config->mean, sizeof out->mean);
    memcpy(out->std, config->std, sizeof out->std);
    return true;
}

void slide_image_put(const struct slide_image_options *options, struct model_config *config)
{
    struct model_whole *whole = &config->whole;
    *whole = (struct model_whole){ .set = true,
                                   .mpp = options->mpp,
                                   .long_side_px = options->mpp > 0 ? 0 : options->long_side_px,
                                   .margin_um = options->margin_um,
                                   .background = options->background };
    snprintf(whole->tissue, sizeof whole->tissue, "%s", tissue_method_names[options->method]);
    config->spacing_um_px = options->mpp;
    memcpy(config->mean, options->mean, sizeof config->mean);
    memcpy(config->std, options->std, sizeof config->std);
}
