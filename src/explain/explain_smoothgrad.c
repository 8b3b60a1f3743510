/* explain_smoothgrad.c: SmoothGrad (Smilkov et al. 2017): the gradient of the logit with respect to
 * the input, averaged over copies of the image with normal noise, whose standard deviation is a
 * fraction of the range of the input; then the sum over the colours of its size. The noise of copy
 * i is keyed by (view->key, "smoothgrad", i). */
#include <math.h>
#include <stdlib.h>
#include "base/rng.h"
#include "explain/explainer.h"

struct smooth {
    const struct explain_view *view;
    int64_t floats;
    double deviation;
    double *sums;     /* [floats] */
    float *inputs;    /* [batch][floats] */
    int64_t *classes; /* [batch] */
};

static double range_of(const float *x, int64_t n)
{
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        least = fmin(least, (double)x[i]), most = fmax(most, (double)x[i]);
    return most - least;
}

static bool add_copies(struct smooth *s, struct probe *probe, int64_t first, int64_t n,
                       struct err *err)
{
    for (int64_t i = 0; i < n; i++) {
        struct rng rng = rng_new(s->view->key, rng_hash("smoothgrad"), (uint64_t)(first + i));
        s->classes[i] = s->view->class_index;
        for (int64_t k = 0; k < s->floats; k++)
            s->inputs[i * s->floats + k] =
                (float)((double)s->view->input[k] + s->deviation * rng_normal(&rng));
    }
    const float *gradient = probe_differentiate(probe, s->inputs, n, s->classes, err)
                                ? probe_input_gradient(probe, err)
                                : NULL;
    for (int64_t i = 0; gradient && i < n; i++)
        for (int64_t k = 0; k < s->floats; k++)
            s->sums[k] += (double)gradient[i * s->floats + k];
    return gradient != NULL;
}

static bool average(struct smooth *s, const struct explain_settings *settings, struct probe *probe,
                    const struct ctx *ctx, struct err *err)
{
    for (int64_t done = 0; done < settings->smooth_samples; done += settings->batch) {
        int64_t left = settings->smooth_samples - done;
        if (ctx_stopped(ctx))
            return err_stopped(err);
        if (!add_copies(s, probe, done, left < settings->batch ? left : settings->batch, err))
            return false;
    }
    return true;
}

static bool explain(const struct explain_settings *settings, struct probe *probe, int layer,
                    const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                    struct err *err)
{
    (void)layer;
    int64_t pixels = settings->height * settings->width, samples = settings->smooth_samples;
    int64_t at_once = settings->batch < samples ? settings->batch : samples;
    struct smooth s = { .view = view, .floats = 3 * pixels };
    s.deviation = settings->smooth_noise * range_of(view->input, s.floats);
    s.sums = calloc((size_t)s.floats, sizeof *s.sums);
    s.inputs = malloc((size_t)(at_once * s.floats) * sizeof *s.inputs);
    s.classes = malloc((size_t)at_once * sizeof *s.classes);
    bool ok = (s.sums && s.inputs && s.classes) || err_memory(err, "SmoothGrad");
    ok = ok && average(&s, settings, probe, ctx, err) &&
         attribution_new(settings->height, settings->width, out, err);
    for (int64_t k = 0; ok && k < pixels; k++) {
        double sum = 0;
        for (int64_t c = 0; c < 3; c++)
            sum += fabs(s.sums[c * pixels + k]) / (double)samples;
        out->values[k] = (float)sum;
    }
    free(s.sums), free(s.inputs), free(s.classes);
    return ok;
}

extern const struct explainer explainer_smoothgrad;
const struct explainer explainer_smoothgrad = {
    .name = "smoothgrad",
    .title = "SmoothGrad",
    .help = "the gradient of the logit at each pixel, averaged over noisy copies",
    .maps = MAPS_INPUT,
    .positive = true,
    .pixelwise = true,
    .input_gradient = true,
    .explain = explain,
};
