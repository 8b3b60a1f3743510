/* latent.c: see latent.h. */
#include "diffusion/latent.h"

#include <string.h>
#include "net/model/weights.h"

void latent_close(struct latent *latent)
{
    plan_free(latent->plan);
    graph_free(latent->graph);
    *latent = (struct latent){ 0 };
}

bool latent_open(const struct latent_request *request, struct latent *out, struct err *err)
{
    struct zoo_options options = { .batch = request->batch,
                                   .height = request->side_px,
                                   .width = request->side_px,
                                   .part = request->part };
    struct weights_options half = { .any_unexpected = true };
    struct plan_options how = { .mode = PLAN_INFER, .threads = request->threads };
    *out = (struct latent){ .batch = request->batch };
    if (!zoo_build(request->network, &options, &out->graph, err) ||
        !graph_allocate(out->graph, err) ||
        !weights_read(out->graph, request->weights, &half, NULL, err) ||
        !plan_new(out->graph, &how, &out->plan, err))
        return false;
    const struct graph *graph = out->graph;
    const struct shape *in = graph_shape(graph, graph->inputs[0].value),
                       *to = graph_shape(graph, graph->outputs[0].value);
    const struct shape *map = request->part == ZOO_ENCODER ? to : in,
                       *image = request->part == ZOO_ENCODER ? in : to;
    out->channels = map->dim[1];
    out->side = map->dim[2];
    out->map_floats = shape_count(map) / request->batch;
    out->image_floats = shape_count(image) / request->batch;
    return true;
}

const float *latent_run(struct latent *latent, int64_t rows, const float *in, struct err *err)
{
    const struct shape *shape = graph_shape(latent->graph, latent->graph->inputs[0].value);
    int64_t floats = shape_count(shape) / latent->batch;
    float *input = plan_input(latent->plan, 0);
    memcpy(input, in, (size_t)(rows * floats) * sizeof *in);
    memset(input + rows * floats, 0, (size_t)((latent->batch - rows) * floats) * sizeof *in);
    return plan_forward(latent->plan, err) ? plan_output(latent->plan, 0) : NULL;
}
