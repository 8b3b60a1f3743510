/* layer_maps.h: what CAM, Grad-CAM and their relatives have in common: a map of a layer from its
 * activations and either the gradient of the class's logit with respect to them or the weights of
 * the class. Internal. */
#ifndef EXPLAIN_LAYER_MAPS_H
#define EXPLAIN_LAYER_MAPS_H
#include "explain/explainer.h"

/* The map of one image. It adds to map [height x width], which is zero. */
struct layer_maps_rule {
    /* activation, gradient [channels, height x width] */
    void (*map)(const struct probe_layer *layer, const float *activation, const float *gradient,
                double *map);
    const float *weights; /* [classes, channels]: the row of the class is passed instead of a
                           * gradient, and there is no backward pass; NULL: gradients */
};

/* Functions of struct explainer, with the rule that differs. */
bool layer_maps(const struct explain_settings *settings, struct probe *probe, int layer,
                const struct explain_view *views, int64_t n, const struct ctx *ctx,
                const struct layer_maps_rule *rule, struct attribution *out, struct err *err);
bool layer_maps_check(const struct explain_settings *settings, const struct probe *probe, int layer,
                      struct err *err);

/* map += weight x channel, over n pixels. */
void layer_map_add(double weight, const float *channel, int64_t n, double *map);
/* What is below 0 becomes 0. */
void layer_map_rectify(double *map, int64_t n);
#endif
