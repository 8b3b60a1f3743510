/* gradients.c: the gradient of a network of the zoo on a drawn image, streamed or not, for
 * exact.py: KEY=VALUE arguments, see `keys`. Writes the floats of plan_gradients to `out` and what
 * they belong to, "name count" a line, to out.txt; prints the outputs and what the plan did. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/graph/transform.h"
#include "net/model/drawn_image.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"

#define CLASSES 3
static const float output_gradient[CLASSES] = { 1, -0.5F, 0.25F };

enum key { NETWORK, HEAD, HEIGHT, WIDTH, TILE, THREADS, SPILL, BUDGET, WEIGHTS, IMAGE, OUT, KEYS };
static const char *const keys[KEYS] = {
    "network",                  /* of the zoo */
    "head",                     /* as network.head in a config */
    "height",  "width", "tile", /* px; 0: plain, not streamed */
    "threads", "spill",         /* folder for strips */
    "budget",                   /* MB */
    "weights", /* safetensors to read; absent: only `image`, and initial weights to `out` */
    "image",   /* where the image is written, floats [3, height, width] */
    "out",
};

struct given {
    const char *values[KEYS];
};

static int64_t number(const struct given *given, enum key key)
{
    return given->values[key] ? strtoll(given->values[key], NULL, 10) : 0;
}

static bool write_floats(const char *path, const float *values, int64_t count, struct err *err)
{
    FILE *stream = fopen(path, "wb");
    bool ok = stream && fwrite(values, sizeof *values, (size_t)count, stream) == (size_t)count;
    ok = (!stream || fclose(stream) == 0) && ok;
    return ok || err_errno(err, path, "write");
}

static bool write_image(const struct given *given, const struct drawn_image *image, struct err *err)
{
    int64_t h = number(given, HEIGHT), w = number(given, WIDTH);
    float *pixels = malloc((size_t)(3 * h * w) * sizeof *pixels);
    if (!pixels)
        return err_memory(err, "the image");
    drawn_image_read(image, 0, 0, h, w, pixels);
    bool ok = write_floats(given->values[IMAGE], pixels, 3 * h * w, err);
    free(pixels);
    return ok;
}

static enum head_kind head_of(const struct given *given)
{
    int head = HEAD_AUTO;
    for (int i = 0; given->values[HEAD] && head_names[i]; i++)
        if (strcmp(head_names[i], given->values[HEAD]) == 0)
            head = i;
    return (enum head_kind)head;
}

static bool build(const struct given *given, struct graph **out, struct err *err)
{
    struct graph *graph = NULL;
    struct zoo_options options = { .classes = CLASSES,
                                   .height = number(given, HEIGHT),
                                   .width = number(given, WIDTH) };
    bool ok = zoo_build(given->values[NETWORK], &options, &graph, err) &&
              transform_head(graph, head_of(given), out, err);
    graph_free(graph);
    if (!ok)
        return false;
    if (!given->values[WEIGHTS])
        return graph_initialize(*out, 1, err) &&
               weights_write(*out, given->values[OUT], NULL, 0, err);
    return graph_allocate(*out, err) && weights_read(*out, given->values[WEIGHTS], NULL, NULL, err);
}

static bool write_gradients(const struct given *given, const struct graph *graph, struct plan *plan,
                            struct err *err)
{
    int64_t count = 0;
    char path[4096];
    const float *gradients = plan_gradients(plan, &count);
    snprintf(path, sizeof path, "%s.txt", given->values[OUT]);
    FILE *stream = fopen(path, "w");
    if (!stream)
        return err_errno(err, path, "write");
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_PARAMETER)
            fprintf(stream, "%s %lld\n", graph->values[i].name,
                    (long long)shape_count(&graph->values[i].shape));
    return fclose(stream) == 0 ? write_floats(given->values[OUT], gradients, count, err)
                               : err_errno(err, path, "write");
}

static bool pass(const struct given *given, const struct graph *graph,
                 const struct drawn_image *image, struct plan *plan, struct err *err)
{
    if (number(given, TILE) == 0)
        drawn_image_read(image, 0, 0, number(given, HEIGHT), number(given, WIDTH),
                         plan_input(plan, 0));
    plan_zero_gradients(plan);
    if (!plan_forward(plan, err))
        return false;
    memcpy(plan_output_gradient(plan, 0), output_gradient, sizeof output_gradient);
    struct plan_streamed did = { 0 };
    bool ok = plan_backward(plan, err) && write_gradients(given, graph, plan, err);
    plan_streamed(plan, &did);
    const float *y = plan_output(plan, 0);
    printf("{\"outputs\": [%.9g, %.9g, %.9g], \"tile_px\": %lld, \"tiles_down\": %lld, "
           "\"tiles_across\": %lld, \"tiles_skipped\": %lld, \"spilled\": %zu}\n",
           (double)y[0], (double)y[1], (double)y[2], (long long)did.tile_px,
           (long long)did.tiles_down, (long long)did.tiles_across, (long long)did.tiles_still,
           did.strips_spilled);
    return ok;
}

static bool run(const struct given *given, struct err *err)
{
    struct drawn_image image = { .seed = 1, .channels = 3 };
    struct plan_source source = drawn_image_source(&image);
    struct plan_stream stream = { .source = &source,
                                  .tile_px = number(given, TILE),
                                  .budget = (size_t)number(given, BUDGET) * 1000000,
                                  .spill = given->values[SPILL] };
    struct plan_options options = { .mode = PLAN_TUNE,
                                    .threads = (int)number(given, THREADS),
                                    .stream = stream.tile_px ? &stream : NULL };
    struct graph *graph = NULL;
    struct plan *plan = NULL;
    bool ok =
        (!given->values[IMAGE] || write_image(given, &image, err)) && build(given, &graph, err);
    if (ok && given->values[WEIGHTS])
        ok = plan_new(graph, &options, &plan, err) && pass(given, graph, &image, plan, err);
    plan_free(plan);
    graph_free(graph);
    return ok;
}

int main(int argc, char **argv)
{
    struct given given = { 0 };
    struct err err = { 0 };
    for (int i = 1; i < argc; i++)
        for (int k = 0; k < KEYS; k++) {
            size_t n = strlen(keys[k]);
            if (strncmp(argv[i], keys[k], n) == 0 && argv[i][n] == '=')
                given.values[k] = argv[i] + n + 1;
        }
    if (run(&given, &err))
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}
