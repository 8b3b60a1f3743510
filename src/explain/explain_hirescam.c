/* explain_hirescam.c: HiResCAM (Draelos and Carin 2020): the sum over channels of activation times
 * gradient of the logit, pixel by pixel. Signed; what is below 0 speaks against the class. */
#include "explain/layer_maps.h"

static void map_of(const struct probe_layer *layer, const float *activation, const float *gradient,
                   double *map)
{
    int64_t n = layer->height * layer->width;
    for (int64_t c = 0; c < layer->channels; c++)
        for (int64_t i = 0; i < n; i++)
            map[i] += (double)activation[c * n + i] * (double)gradient[c * n + i];
}

static bool explain_many(const struct explain_settings *settings, struct probe *probe, int layer,
                         const struct explain_view *views, int64_t n, const struct ctx *ctx,
                         struct attribution *out, struct err *err)
{
    const struct layer_maps_rule rule = { .map = map_of };
    return layer_maps(settings, probe, layer, views, n, ctx, &rule, out, err);
}

extern const struct explainer explainer_hirescam;
const struct explainer explainer_hirescam = {
    .name = "hirescam",
    .title = "HiResCAM",
    .help = "activation times gradient of the logit, pixel by pixel",
    .maps = MAPS_LAYER,
    .positive = true,
    .check = layer_maps_check,
    .explain_many = explain_many,
};
