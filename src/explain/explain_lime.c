/* explain_lime.c: LIME: superpixels of the image are replaced by their mean colour, about half of
 * them at a time; the map is, at every pixel, the coefficient of its superpixel in a linear model
 * of the scores. */
#include <stdlib.h>
#include <string.h>
#include "explain/lime.h"
#include "explain/perturb.h"
#include "explain/slic.h"

/* Pixels one after another that belong to one area. */
struct run {
    int32_t segment, start, length;
};

/* The input with every area on, the same with every one off, and where they are. */
struct copies {
    const struct lime_samples *samples;
    int64_t plane;
    const float *on_input; /* [3][plane] */
    float *off_input;
    struct run *runs;
    int64_t n_runs;
};

static void write_sample(const void *arg, int64_t i, float *out)
{
    const struct copies *s = arg;
    const uint8_t *on = s->samples->on + i * s->samples->segments;
    for (int64_t c = 0; c < 3; c++)
        for (int64_t k = 0; k < s->n_runs; k++) {
            const struct run *run = s->runs + k;
            const float *from = on[run->segment] ? s->on_input : s->off_input;
            int64_t at = c * s->plane + run->start;
            memcpy(out + at, from + at, (size_t)run->length * sizeof *out);
        }
}

/* Normalisation is linear, so the mean of normalised values is the mean colour, normalised. sum, n
 * [segments] are scratch. */
static void fill_off(struct copies *s, double *sum, int64_t *n)
{
    const int32_t *labels = s->samples->labels;
    for (int64_t i = 0; i < s->plane; i++)
        n[labels[i]]++;
    for (int64_t c = 0; c < 3; c++) {
        const float *on = s->on_input + c * s->plane;
        memset(sum, 0, (size_t)s->samples->segments * sizeof *sum);
        for (int64_t i = 0; i < s->plane; i++)
            sum[labels[i]] += (double)on[i];
        for (int64_t i = 0; i < s->plane; i++)
            s->off_input[c * s->plane + i] = (float)(sum[labels[i]] / (double)n[labels[i]]);
    }
}

static void fill_runs(struct copies *s)
{
    const int32_t *labels = s->samples->labels;
    for (int64_t i = 0; i < s->plane; i++)
        if (s->n_runs && s->runs[s->n_runs - 1].segment == labels[i])
            s->runs[s->n_runs - 1].length++;
        else
            s->runs[s->n_runs++] = (struct run){ labels[i], (int32_t)i, 1 };
}

static bool copies_new(struct copies *s, struct err *err)
{
    size_t segments = (size_t)s->samples->segments;
    double *sum = calloc(segments, sizeof *sum);
    int64_t *n = calloc(segments, sizeof *n);
    s->off_input = malloc((size_t)(3 * s->plane) * sizeof *s->off_input);
    s->runs = malloc((size_t)s->plane * sizeof *s->runs);
    bool ok = sum && n && s->off_input && s->runs;
    if (ok) {
        fill_off(s, sum, n);
        fill_runs(s);
    }
    free(sum);
    free(n);
    return ok || err_memory(err, "superpixels");
}

bool lime_explain(const struct explain_settings *settings, struct probe *probe,
                  const struct explain_view *view, const struct lime_samples *samples,
                  const struct ctx *ctx, double *coef, double *intercept, struct err *err)
{
    struct copies s = { samples, settings->height * settings->width, view->input, NULL, NULL, 0 };
    struct perturbation all = { .n = samples->n, .write = write_sample, .arg = &s };
    double *scores = malloc((size_t)samples->n * sizeof *scores);
    bool ok = (scores || err_memory(err, "scores of LIME")) && copies_new(&s, err) &&
              perturb(settings, probe, view, &all, ctx, scores, err) &&
              lime_fit(samples->on, scores, samples->n, samples->segments, coef, intercept, err);
    free(scores);
    free(s.off_input);
    free(s.runs);
    return ok;
}

static bool check(const struct explain_settings *settings, const struct probe *probe, int layer,
                  struct err *err)
{
    (void)probe, (void)layer;
    if (settings->lime_samples < 2 || settings->lime_segments < 1)
        return err_set(err, ERR_USAGE,
                       "LIME of %lld samples and %lld superpixels: it needs at least 2 samples and "
                       "1 superpixel",
                       (long long)settings->lime_samples, (long long)settings->lime_segments);
    return true;
}

/* The map of superpixels; labels [height, width] are scratch. */
static bool explain_superpixels(const struct explain_settings *settings, struct probe *probe,
                                const struct explain_view *view, const struct ctx *ctx,
                                int32_t *labels, float *values, struct err *err)
{
    struct slic_options options = slic_defaults();
    int64_t segments, n = settings->lime_samples;
    double intercept;
    options.segments = settings->lime_segments;
    if (!slic(view->image, &options, labels, &segments, err))
        return false;
    uint8_t *on = malloc((size_t)(n * segments));
    double *coef = malloc((size_t)segments * sizeof *coef);
    struct lime_samples samples = { labels, segments, on, n };
    bool ok = (on && coef) || err_memory(err, "samples of LIME");
    if (ok) {
        lime_draw(view->key, n, segments, on);
        ok = lime_explain(settings, probe, view, &samples, ctx, coef, &intercept, err);
    }
    for (int64_t i = 0; ok && i < settings->height * settings->width; i++)
        values[i] = (float)coef[labels[i]];
    free(on);
    free(coef);
    return ok;
}

static bool explain(const struct explain_settings *settings, struct probe *probe, int layer,
                    const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                    struct err *err)
{
    (void)layer;
    int32_t *labels = malloc((size_t)(settings->height * settings->width) * sizeof *labels);
    bool ok = (labels || err_memory(err, "superpixels")) &&
              attribution_new(settings->height, settings->width, out, err);
    if (ok && !explain_superpixels(settings, probe, view, ctx, labels, out->values, err)) {
        attribution_free(out);
        ok = false;
    }
    free(labels);
    return ok;
}

extern const struct explainer explainer_lime;
const struct explainer explainer_lime = {
    .name = "lime",
    .title = "LIME",
    .help = "superpixels, by a linear model of scores with about half of them hidden",
    .maps = MAPS_INPUT,
    .positive = false,
    .forward_only = true,
    .check = check,
    .explain = explain,
};
