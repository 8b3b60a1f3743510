/* explain_ig.c: integrated gradients (Sundararajan et al. 2017): the gradient of the logit,
 * integrated along the straight line from the baseline to the image by Gauss-Legendre quadrature,
 * times the difference of the two; summed over the colours. The baseline is 0 of the network's
 * input: the mean colour that the network was trained with or, if it has none, black. The sum of
 * the map is the logit of the image less that of the baseline. */
#include <stdlib.h>
#include <string.h>
#include "explain/explainer.h"
#include "explain/quadrature.h"

struct integral {
    const struct explain_view *view;
    int64_t floats, steps;
    double *nodes, *weights; /* [steps] */
    double *sums;            /* [floats] */
    float *inputs;           /* [batch][floats] */
    int64_t *classes;        /* [batch] */
};

static bool add_steps(struct integral *t, struct probe *probe, int64_t first, int64_t n,
                      struct err *err)
{
    for (int64_t i = 0; i < n; i++) {
        float share = (float)t->nodes[first + i];
        t->classes[i] = t->view->class_index;
        for (int64_t k = 0; k < t->floats; k++)
            t->inputs[i * t->floats + k] = share * t->view->input[k];
    }
    const float *gradient = probe_differentiate(probe, t->inputs, n, t->classes, err)
                                ? probe_input_gradient(probe, err)
                                : NULL;
    for (int64_t i = 0; gradient && i < n; i++)
        for (int64_t k = 0; k < t->floats; k++)
            t->sums[k] += t->weights[first + i] * (double)gradient[i * t->floats + k];
    return gradient != NULL;
}

static bool integrate(struct integral *t, const struct explain_settings *settings,
                      struct probe *probe, const struct ctx *ctx, struct err *err)
{
    quadrature(t->steps, t->nodes, t->weights);
    for (int64_t done = 0; done < t->steps; done += settings->batch) {
        int64_t left = t->steps - done, n = left < settings->batch ? left : settings->batch;
        if (ctx_stopped(ctx))
            return err_stopped(err);
        if (!add_steps(t, probe, done, n, err))
            return false;
    }
    return true;
}

static bool explain(const struct explain_settings *settings, struct probe *probe, int layer,
                    const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                    struct err *err)
{
    (void)layer;
    int64_t pixels = settings->height * settings->width, steps = settings->ig_steps;
    int64_t at_once = settings->batch < steps ? settings->batch : steps;
    struct integral t = { .view = view, .floats = 3 * pixels, .steps = steps };
    t.nodes = malloc((size_t)(2 * steps + t.floats) * sizeof *t.nodes);
    t.inputs = malloc((size_t)(at_once * t.floats) * sizeof *t.inputs);
    t.classes = malloc((size_t)at_once * sizeof *t.classes);
    bool ok = (t.nodes && t.inputs && t.classes) || err_memory(err, "integrated gradients");
    if (ok) {
        t.weights = t.nodes + steps, t.sums = t.weights + steps;
        memset(t.sums, 0, (size_t)t.floats * sizeof *t.sums);
    }
    ok = ok && integrate(&t, settings, probe, ctx, err) &&
         attribution_new(settings->height, settings->width, out, err);
    for (int64_t k = 0; ok && k < pixels; k++) {
        double sum = 0;
        for (int64_t c = 0; c < 3; c++)
            sum += t.sums[c * pixels + k] * (double)view->input[c * pixels + k];
        out->values[k] = (float)sum;
    }
    free(t.nodes), free(t.inputs), free(t.classes);
    return ok;
}

extern const struct explainer explainer_ig;
const struct explainer explainer_ig = {
    .name = "ig",
    .title = "Integrated gradients",
    .help = "the gradient of the logit, integrated from a blank image to this one",
    .maps = MAPS_INPUT,
    .pixelwise = true,
    .input_gradient = true,
    .explain = explain,
};
