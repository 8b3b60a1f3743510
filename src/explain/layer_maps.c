/* layer_maps.c: see layer_maps.h. */
#include "explain/layer_maps.h"
#include <stdlib.h>
#include <string.h>

void layer_map_add(double weight, const float *channel, int64_t n, double *map)
{
    for (int64_t i = 0; i < n; i++)
        map[i] += weight * (double)channel[i];
}

void layer_map_rectify(double *map, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        map[i] = map[i] > 0 ? map[i] : 0;
}

bool layer_maps_check(const struct explain_settings *settings, const struct probe *probe, int layer,
                      struct err *err)
{
    (void)settings;
    return probe_need_spatial(probe, layer, err);
}

/* Runs the views one by one: the map of one must not depend on how many there are. Their inputs in
 * a row, for the probe. */
static bool run(const struct explain_settings *settings, struct probe *probe,
                const struct explain_view *views, int64_t n, bool backward, struct err *err)
{
    int64_t floats = 3 * settings->height * settings->width;
    int64_t *classes = malloc((size_t)n * sizeof *classes);
    float *inputs = n > 1 ? malloc((size_t)(n * floats) * sizeof *inputs) : NULL;
    bool ok = (classes && (n == 1 || inputs)) || err_memory(err, "patches");
    for (int64_t i = 0; ok && i < n; i++) {
        classes[i] = views[i].class_index;
        if (n > 1)
            memcpy(inputs + i * floats, views[i].input, (size_t)floats * sizeof *inputs);
    }
    const float *input = n > 1 ? inputs : views->input;
    probe_alone(probe, true);
    ok = ok && (backward ? probe_differentiate(probe, input, n, classes, err)
                         : probe_forward(probe, input, n, err));
    probe_alone(probe, false);
    free(classes), free(inputs);
    return ok;
}

bool layer_maps(const struct explain_settings *settings, struct probe *probe, int layer,
                const struct explain_view *views, int64_t n, const struct ctx *ctx,
                const struct layer_maps_rule *rule, struct attribution *out, struct err *err)
{
    (void)ctx;
    const struct probe_layer *at = probe_layer(probe, layer);
    int64_t pixels = at->height * at->width, floats = at->channels * pixels;
    if (!probe_need_spatial(probe, layer, err) ||
        !run(settings, probe, views, n, !rule->weights, err))
        return false;
    const float *activation = probe_activation(probe, layer, err);
    const float *gradient = rule->weights ? NULL : probe_gradient(probe, layer, err);
    double *sums = malloc((size_t)pixels * sizeof *sums);
    bool ok = activation && (gradient || rule->weights) && (sums || err_memory(err, "map"));
    for (int64_t i = 0; ok && i < n; i++) {
        ok = attribution_new(at->height, at->width, &out[i], err);
        memset(sums, 0, (size_t)pixels * sizeof *sums);
        if (ok)
            rule->map(at, activation + i * floats,
                      rule->weights ? rule->weights + views[i].class_index * at->channels
                                    : gradient + i * floats,
                      sums);
        for (int64_t k = 0; ok && k < pixels; k++)
            out[i].values[k] = (float)sums[k];
    }
    free(sums);
    return ok;
}
