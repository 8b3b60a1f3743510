/* explain_gradcam.c: Grad-CAM (Selvaraju et al. 2017): ReLU of the sum over channels of the
 * activation, weighted by the mean over the map of the gradient of the logit. */
#include "explain/layer_maps.h"

static void map_of(const struct probe_layer *layer, const float *activation, const float *gradient,
                   double *map)
{
    int64_t n = layer->height * layer->width;
    for (int64_t c = 0; c < layer->channels; c++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)gradient[c * n + i];
        layer_map_add(sum / (double)n, activation + c * n, n, map);
    }
    layer_map_rectify(map, n);
}

static bool explain_many(const struct explain_settings *settings, struct probe *probe, int layer,
                         const struct explain_view *views, int64_t n, const struct ctx *ctx,
                         struct attribution *out, struct err *err)
{
    const struct layer_maps_rule rule = { .map = map_of };
    return layer_maps(settings, probe, layer, views, n, ctx, &rule, out, err);
}

extern const struct explainer explainer_gradcam;
const struct explainer explainer_gradcam = {
    .name = "gradcam",
    .title = "Grad-CAM",
    .help = "channels of a layer, weighted by the mean gradient of the logit",
    .maps = MAPS_LAYER,
    .positive = true,
    .check = layer_maps_check,
    .explain_many = explain_many,
};
