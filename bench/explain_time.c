/* explain_time.c: how long a method of `explain map` takes for one image.
 *
 *     explain_time NETWORK WEIGHTS.safetensors IMAGE METHOD BATCH THREADS REPEATS [FILE]
 *
 * Prints the milliseconds of a forward pass for each image of a batch, the best of four ("forward",
 * "forward_cpu"), then the seconds of a map of class 0, at the size of the image and normalised,
 * the best of REPEATS ("seconds", "cpu"): on the clock, and of processor time. The network is ready
 * before. For a peer writes FILE.npy, the map, or FILE.png, the superpixels of LIME as a label
 * image.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/label_image.h"
#include "base/npy.h"
#include "base/pool.h"
#include "explain/explainer.h"
#include "explain/slic.h"
#include "net/model/classifier.h"

struct subject {
    struct explain_settings settings;
    struct model *model;
    struct image image;
    struct probe *probe;
    struct explain_view view;
    float *input;
    float *map; /* at the size of the image */
};

static int64_t number(const char *text)
{
    return strtoll(text, NULL, 10);
}

static bool open_subject(char **argv, const struct explainer *explainer, struct subject *s,
                         struct err *err)
{
    struct model_source source = { .network = argv[1], .weights = argv[2] };
    s->settings = explain_defaults();
    if (!image_read(argv[3], &s->image, err) || !model_open_classifier(&source, &s->model, err))
        return false;
    s->settings.model = s->model;
    s->settings.height = s->image.height, s->settings.width = s->image.width;
    s->settings.batch = number(argv[5]), s->settings.threads = (int)number(argv[6]);
    s->input = malloc(image_bytes(&s->image) * sizeof *s->input);
    s->map = malloc(image_bytes(&s->image) * sizeof *s->map);
    if (!s->input || !s->map)
        return err_memory(err, argv[3]);
    struct probe_options options = { .height = s->image.height,
                                     .width = s->image.width,
                                     .batch = s->settings.batch,
                                     .threads = s->settings.threads,
                                     .input_gradient = explainer->input_gradient,
                                     .forward_only = explainer->forward_only,
                                     .attention = explainer->attention };
    static const char *const last[] = { "" };
    if (explainer->maps == MAPS_LAYER)
        options.layers = last, options.n_layers = 1;
    model_normalize(&s->model->config, &s->image, s->input);
    s->view = (struct explain_view){ &s->image, s->input, 0, 0, 1 };
    return probe_new(s->model, &options, &s->probe, err);
}

/* The best of several runs, each by itself. */
struct best {
    double seconds, cpu, began, cpu_began;
};

static void run_begins(struct best *best)
{
    best->began = clock_monotonic_s();
    best->cpu_began = clock_cpu_s();
}

static void run_ends(struct best *best)
{
    best->seconds = fmin(best->seconds, clock_monotonic_s() - best->began);
    best->cpu = fmin(best->cpu, clock_cpu_s() - best->cpu_began);
}

static bool time_maps(struct subject *s, const struct explainer *explainer, int repeats,
                      const struct ctx *ctx, struct err *err)
{
    struct best best = { .seconds = INFINITY, .cpu = INFINITY };
    int layer = explainer->maps == MAPS_LAYER ? 0 : -1;
    for (int i = 0; i < repeats; i++) {
        struct attribution map;
        run_begins(&best);
        if (!explainer_run(explainer, &s->settings, s->probe, layer, &s->view, 1, ctx, &map, err))
            return false;
        attribution_resize(&map, s->image.height, s->image.width, s->map);
        attribution_normalize(s->map, s->image.height * s->image.width, explainer->positive);
        run_ends(&best);
        attribution_free(&map);
    }
    printf("seconds %.6f\ncpu %.6f\n", best.seconds, best.cpu);
    return true;
}

static bool time_forward(struct subject *s, struct err *err)
{
    int64_t n = s->settings.batch, floats = 3 * s->settings.height * s->settings.width;
    float *images = malloc((size_t)(n * floats) * sizeof *images);
    struct best best = { .seconds = INFINITY, .cpu = INFINITY };
    if (!images)
        return err_memory(err, "a batch");
    for (int64_t i = 0; i < n * floats; i++)
        images[i] = s->input[i % floats];
    bool ok = probe_forward(s->probe, images, n, err); /* makes plans and kernels */
    for (int i = 0; ok && i < 4; i++) {
        run_begins(&best);
        ok = probe_forward(s->probe, images, n, err);
        run_ends(&best);
    }
    free(images);
    double ms = 1e3 / (double)n;
    printf("forward %.4f\nforward_cpu %.4f\n", ms * best.seconds, ms * best.cpu);
    return ok;
}

static bool write_superpixels(const struct image *image, const char *path, struct err *err)
{
    struct slic_options options = slic_defaults();
    struct label_image labels = { NULL, image->width, image->height };
    int64_t n;
    labels.px = malloc((size_t)(image->width * image->height) * sizeof *labels.px);
    bool ok = (labels.px || err_memory(err, "superpixels")) &&
              slic(image, &options, labels.px, &n, err) &&
              label_image_write_png(path, &labels, err);
    label_image_free(&labels);
    return ok;
}

static bool write_file(const struct subject *s, const char *path, struct err *err)
{
    if (strcmp(file_extension(path), ".npy") == 0)
        return npy_write(path, s->map, s->image.height, s->image.width, err);
    return write_superpixels(&s->image, path, err);
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    struct subject subject = { 0 };
    struct ctx ctx = { 0 };
    if (argc < 8) {
        fputs("usage: explain_time NETWORK WEIGHTS IMAGE METHOD BATCH THREADS REPEATS [FILE]\n",
              stderr);
        return 2;
    }
    const struct explainer *explainer = explainer_find(argv[4], &err);
    bool ok = explainer && open_subject(argv, explainer, &subject, &err);
    ctx.pool = pool_new((int)number(argv[6]));
    ok = ok && time_forward(&subject, &err) &&
         time_maps(&subject, explainer, (int)number(argv[7]), &ctx, &err) &&
         (argc < 9 || write_file(&subject, argv[8], &err));
    if (!ok)
        fprintf(stderr, "explain_time: %s\n", err.text);
    probe_free(subject.probe);
    model_close(subject.model);
    image_free(&subject.image);
    free(subject.input), free(subject.map);
    pool_free(ctx.pool);
    return !ok;
}
