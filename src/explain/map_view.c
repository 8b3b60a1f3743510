/* map_view.c: a subject -> the network's input, as predict and `model run` prepare it, and its
 * score; the probes of a worker (map_work.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "explain/map_work.h"
#include "net/model/classifier.h"

/* --- probes --- */

/* Methods that only need scores use the probe for scores. */
static int probe_index(const struct explainer *explainer)
{
    if (!explainer || (explainer->maps == MAPS_INPUT && explainer->forward_only &&
                       !explainer->input_gradient && !explainer->attention))
        return 0;
    return 1 + (explainer->maps == MAPS_INPUT) + 2 * explainer->forward_only +
           4 * explainer->input_gradient + 8 * explainer->attention;
}

struct probe *map_probe(const struct map_run *run, struct map_worker *worker,
                        const struct explainer *explainer, struct err *err)
{
    const struct explain_settings *settings = &worker->settings;
    struct probe **probe = &worker->probes[probe_index(explainer)];
    struct probe_options options = { .height = settings->height,
                                     .width = settings->width,
                                     .batch = settings->batch,
                                     .threads = settings->threads,
                                     .forward_only = true,
                                     .shared = run->shared };
    if (explainer) {
        options.forward_only = explainer->forward_only;
        options.input_gradient = explainer->input_gradient;
        options.attention = explainer->attention;
    }
    if (explainer && explainer->maps == MAPS_LAYER) {
        options.layers = (const char *const *)run->layers;
        options.n_layers = run->n_layers;
    }
    if (!*probe && !probe_new(run->request->model, &options, probe, err))
        return NULL;
    return *probe;
}

/* All from `first` on, except one; -1: none. */
static void drop_probes(struct map_worker *worker, int first, int except)
{
    for (int i = first; i < MAP_PROBES; i++)
        if (i != except) {
            probe_free(worker->probes[i]);
            worker->probes[i] = NULL;
        }
}

void map_make_room(const struct map_run *run, struct map_worker *worker, int column)
{
    drop_probes(worker, 1, probe_index(run->columns[column].explainer));
}

bool map_forget(struct map_run *run, struct err *err)
{
    for (int i = 0; i < run->n_workers; i++)
        drop_probes(&run->workers[i], 0, -1);
    probe_shared_free(run->shared);
    run->shared = probe_shared_new();
    return run->shared || err_memory(err, "the network");
}

/* Probes are made for one size. */
static void set_size(struct map_worker *worker, int64_t width, int64_t height)
{
    struct explain_settings *settings = &worker->settings;
    if (settings->width == width && settings->height == height)
        return;
    drop_probes(worker, 0, -1);
    settings->width = width;
    settings->height = height;
}

bool map_explain(const struct map_run *run, struct map_worker *worker, int column,
                 const struct explain_view *view, const struct ctx *ctx, struct attribution *out,
                 struct err *err)
{
    const struct map_column *c = &run->columns[column];
    struct probe *probe = map_probe(run, worker, c->explainer, err);
    *out = (struct attribution){ 0 };
    return probe &&
           explainer_run(c->explainer, &worker->settings, probe, c->layer, view, 1, ctx, out, err);
}

/* --- the input --- */

/* What is left of the image after each sizing. */
static struct map_frame frame_of(const struct model_config *config, int64_t width, int64_t height)
{
    double left = 0, top = 0, w = (double)width, h = (double)height;
    for (int i = 0; i < config->n_sizings; i++) {
        int64_t next_width, next_height;
        const struct model_config one = { .sizings = { config->sizings[i] }, .n_sizings = 1 };
        if (!model_sized(&one, 1, width, height, &next_width, &next_height, NULL))
            break; /* model_resize says why */
        if (config->sizings[i].kind == MODEL_CENTER_CROP) {
            left += (double)model_crop_start(width, next_width) * w / (double)width;
            top += (double)model_crop_start(height, next_height) * h / (double)height;
            w *= (double)next_width / (double)width;
            h *= (double)next_height / (double)height;
        }
        width = next_width;
        height = next_height;
    }
    return (struct map_frame){ llround(left), llround(top), llround(left + w) - llround(left),
                               llround(top + h) - llround(top) };
}

static bool copy_image(const struct image *from, struct image *to, struct err *err)
{
    if (!image_new(to, from->width, from->height, from->channels, err))
        return false;
    memcpy(to->px, from->px, image_bytes(from));
    return true;
}

/* The sizings of the model; windows that it takes as they are need none. */
static bool make_input(const struct map_run *run, struct map_view *view, struct err *err)
{
    const struct model_config *config = &run->request->model->config;
    const struct image *image = &view->image;
    bool as_is = run->subjects->kind->windows && run->window.side == run->window.window;
    int64_t width = image->width, height = image->height;
    view->frame = (struct map_frame){ 0, 0, width, height };
    if (!as_is && !model_input_size(config, image->width, image->height, &width, &height, err))
        return false;
    if (!copy_image(image, &view->sized, err))
        return false;
    if (!as_is) {
        view->frame = frame_of(config, image->width, image->height);
        if (!model_resize(config, config->n_sizings, &view->sized, err))
            return false;
    }
    view->input = malloc((size_t)(3 * width * height) * sizeof *view->input);
    if (!view->input)
        return err_memory(err, "an image");
    model_normalize(config, &view->sized, view->input);
    return true;
}

static bool is_constant(const struct image *image)
{
    for (int64_t i = 1; i < image->width * image->height; i++)
        if (memcmp(image->px + 3 * i, image->px, 3) != 0)
            return false;
    return true;
}

static bool score(const struct map_run *run, struct map_worker *worker, struct map_view *view,
                  struct err *err)
{
    const struct model *model = run->request->model;
    struct probe *probe = map_probe(run, worker, NULL, err);
    if (!probe || !probe_forward(probe, view->input, 1, err))
        return false;
    const float *logits = probe_logits(probe);
    if (model_seems_scored(model, logits))
        return model_refuse_scored(model, err);
    if (!model_score(model, logits, view->scores, err))
        return false;
    view->view.score = view->scores[run->subjects->class_index];
    return !isnan(view->view.score) ||
           err_set(err, ERR_FORMAT, "the model returned a score that is not a number");
}

bool map_view_of(const struct map_run *run, struct map_worker *worker, struct image *image,
                 const char *name, struct map_view *out, struct err *err)
{
    const struct model *model = run->request->model;
    uint64_t seed = run->request->seed;
    *out = (struct map_view){ .image = *image };
    *image = (struct image){ 0 };
    out->scores = calloc((size_t)model->config.num_classes, sizeof *out->scores);
    if (!out->scores)
        return err_memory(err, "an image");
    if (is_constant(&out->image))
        return err_set(err, ERR_MISSING,
                       "all its pixels have the same colour, so there is nothing to explain; "
                       "omit it");
    if (!make_input(run, out, err))
        return false;
    set_size(worker, out->sized.width, out->sized.height);
    uint64_t key = identity_hash(IDENTITY_HASH_BEGIN, &seed, sizeof seed);
    out->view = (struct explain_view){ .image = &out->sized,
                                       .input = out->input,
                                       .class_index = run->subjects->class_index,
                                       .key = identity_hash(key, name, strlen(name)) };
    return score(run, worker, out, err);
}

bool map_view_make(const struct map_run *run, struct map_worker *worker,
                   const struct subject *subject, struct map_view *out, struct err *err)
{
    struct image image = { 0 };
    *out = (struct map_view){ 0 };
    return subjects_read(run->subjects, subject, &image, err) &&
           map_view_of(run, worker, &image, subject->name, out, err);
}

void map_view_free(struct map_view *view)
{
    image_free(&view->image);
    image_free(&view->sized);
    free(view->input);
    free(view->scores);
    *view = (struct map_view){ 0 };
}

/* --- for viewing --- */

float *map_for_viewing(const struct attribution *raw, const struct explainer *explainer,
                       const struct map_frame *frame, int64_t width, int64_t height)
{
    float *inner = malloc((size_t)(frame->width * frame->height) * sizeof *inner);
    float *out = malloc((size_t)(width * height) * sizeof *out);
    if (inner && out) {
        attribution_resize(raw, frame->height, frame->width, inner);
        attribution_normalize(inner, frame->height * frame->width, explainer->positive);
        for (int64_t i = 0; i < width * height; i++)
            out[i] = NAN;
        for (int64_t y = 0; y < frame->height; y++)
            memcpy(out + (frame->top + y) * width + frame->left, inner + y * frame->width,
                   (size_t)frame->width * sizeof *out);
    } else {
        free(out);
        out = NULL;
    }
    free(inner);
    return out;
}
