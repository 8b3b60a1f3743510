/* explain_scorecam.c: Score-CAM (Wang et al. 2020): each channel of the layer, widened to the input
 * and scaled to 0..1, masks the input; channels are added up with the softmax of the logits that
 * are left, and what is negative is dropped. No gradients. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "explain/layer_maps.h"
#include "explain/perturb.h"

struct channels {
    const float *input; /* [3, height, width] */
    int64_t height, width;
    struct probe_layer layer;
    float *activation; /* [channels, h, w] */
    int64_t *varied;   /* channels that are not constant, [n]: a constant one masks nothing */
    int64_t n;
};

/* To 0..1; not constant. */
static void scale_to_one(float *values, int64_t n)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    for (int64_t i = 0; i < n; i++)
        values[i] = (values[i] - least) / (most - least);
}

static void write_masked(const void *arg, int64_t i, float *out)
{
    const struct channels *s = arg;
    const int64_t plane = s->height * s->width, extent = s->layer.height * s->layer.width;
    struct attribution channel = { s->layer.height, s->layer.width,
                                   s->activation + s->varied[i] * extent };
    float *mask = out + 2 * plane; /* overwritten last */
    attribution_resize(&channel, s->height, s->width, mask);
    scale_to_one(mask, plane);
    for (int64_t c = 0; c < 3; c++)
        for (int64_t k = 0; k < plane; k++)
            out[c * plane + k] = s->input[c * plane + k] * mask[k];
}

static bool is_varied(const float *values, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (values[i] != values[0])
            return true;
    return false;
}

static bool channels_new(const struct explain_settings *settings, struct probe *probe, int layer,
                         const struct explain_view *view, struct channels *s, struct err *err)
{
    *s = (struct channels){
        view->input, settings->height, settings->width, *probe_layer(probe, layer), NULL, NULL, 0
    };
    const int64_t extent = s->layer.height * s->layer.width;
    size_t bytes = (size_t)(s->layer.channels * extent) * sizeof *s->activation;
    s->activation = malloc(bytes);
    s->varied = malloc((size_t)s->layer.channels * sizeof *s->varied);
    if (!s->activation || !s->varied)
        return err_memory(err, "the channels of a layer");
    if (!probe_forward(probe, view->input, 1, err))
        return false;
    memcpy(s->activation, probe_activation(probe, layer, err), bytes);
    for (int64_t c = 0; c < s->layer.channels; c++)
        if (is_varied(s->activation + c * extent, extent))
            s->varied[s->n++] = c;
    return true;
}

/* In place. */
static void softmax(double *values, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, values[i]);
    for (int64_t i = 0; i < n; i++)
        sum += values[i] = exp(values[i] - most);
    for (int64_t i = 0; i < n; i++)
        values[i] /= sum;
}

static void add_up(const struct channels *s, const double *weights, float *values)
{
    const int64_t extent = s->layer.height * s->layer.width;
    for (int64_t k = 0; k < extent; k++) {
        double sum = 0;
        for (int64_t i = 0; i < s->n; i++)
            sum += weights[i] * (double)s->activation[s->varied[i] * extent + k];
        values[k] = (float)fmax(sum, 0);
    }
}

static bool explain(const struct explain_settings *settings, struct probe *probe, int layer,
                    const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                    struct err *err)
{
    struct channels s;
    double *weights = NULL;
    *out = (struct attribution){ 0 };
    if (!probe_need_spatial(probe, layer, err))
        return false;
    bool ok = channels_new(settings, probe, layer, view, &s, err);
    if (ok) {
        weights = malloc((size_t)s.n * sizeof *weights + 1);
        ok = (weights || err_memory(err, "a map")) &&
             attribution_new(s.layer.height, s.layer.width, out, err);
    }
    struct perturbation copies = { .n = s.n, .write = write_masked, .arg = &s, .logits = true };
    ok = ok && (s.n == 0 || perturb(settings, probe, view, &copies, ctx, weights, err));
    if (ok && s.n) {
        softmax(weights, s.n);
        add_up(&s, weights, out->values);
    }
    if (!ok)
        attribution_free(out);
    free(weights);
    free(s.activation);
    free(s.varied);
    return ok;
}

extern const struct explainer explainer_scorecam;
const struct explainer explainer_scorecam = {
    .name = "scorecam",
    .title = "Score-CAM",
    .help = "channels of the layer, weighted by the logit when each alone masks the image",
    .maps = MAPS_LAYER,
    .positive = true,
    .forward_only = true,
    .check = layer_maps_check,
    .explain = explain,
};
