/* explain_gradcampp.c: Grad-CAM++ (Chattopadhay et al. 2018): ReLU of the sum over channels of the
 * activation A, weighted by the sum over the map of alpha ReLU(g), alpha = g^2 / (2 g^2 + g^3 sum
 * of A), where g is the gradient of the logit; 0 where the denominator is 0. The fraction is
 * computed as 1 / (2 + g sum of A), so that small gradients lose no digits. */
#include "explain/layer_maps.h"

static void map_of(const struct probe_layer *layer, const float *activation, const float *gradient,
                   double *map)
{
    int64_t n = layer->height * layer->width;
    for (int64_t c = 0; c < layer->channels; c++) {
        double total = 0, weight = 0;
        for (int64_t i = 0; i < n; i++)
            total += (double)activation[c * n + i];
        for (int64_t i = 0; i < n; i++) {
            double g = (double)gradient[c * n + i], below = 2 + g * total;
            if (g > 0 && below != 0)
                weight += g / below;
        }
        layer_map_add(weight, activation + c * n, n, map);
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

extern const struct explainer explainer_gradcampp;
const struct explainer explainer_gradcampp = {
    .name = "gradcam++",
    .title = "Grad-CAM++",
    .help = "as Grad-CAM, with weights that favour small areas",
    .maps = MAPS_LAYER,
    .positive = true,
    .check = layer_maps_check,
    .explain_many = explain_many,
};
