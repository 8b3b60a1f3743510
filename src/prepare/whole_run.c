/* whole_run.c: see whole_run.h. */
#include "prepare/whole_run.h"

#include <stdlib.h>
#include <string.h>
#include "base/npy.h"
#include "base/pool.h"
#include "net/graph/transform.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"
#include "net/stream/budget.h"
#include "prepare/slide_image.h"

/* Takes the map of a layer, part by part. */
struct map_file {
    struct npy_out out;
    int64_t width, channels; /* of the whole map */
    float *row;              /* [width, channels] */
    int64_t cells;           /* that were put so far */
};

/* [channels, h, w] -> h rows of cells. */
static bool put_part(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w,
                     const float *map, struct err *err)
{
    (void)output;
    struct map_file *file = arg;
    int64_t channels = file->channels;
    file->cells += h * w;
    for (int64_t i = 0; i < h; i++) {
        for (int64_t c = 0; c < channels; c++)
            for (int64_t k = 0; k < w; k++)
                file->row[k * channels + c] = map[(c * h + i) * w + k];
        if (!npy_out_put(&file->out, ((y + i) * file->width + x) * channels, file->row,
                         w * channels, err))
            return false;
    }
    return true;
}

static bool open_map(const struct whole_request *request, const struct shape *shape,
                     struct map_file *file, struct err *err)
{
    const int64_t map[] = { shape->dim[2], shape->dim[3], shape->dim[1] };
    const int64_t vector[] = { 1, shape_count(shape) };
    bool is_map = shape->rank == 4;
    file->width = is_map ? map[1] : 1;
    file->channels = is_map ? map[2] : vector[1];
    file->row = malloc((size_t)(file->width * file->channels) * sizeof *file->row);
    return (file->row || err_memory(err, request->npy)) &&
           npy_out_open(&file->out, request->npy, is_map ? map : vector, is_map ? 3 : 2, err);
}

/* The model as far as the layer. */
static bool until_layer(const struct whole_request *request, struct graph **out, struct err *err)
{
    value_id value = NO_VALUE;
    *out = NULL;
    if (!request->layer)
        return true;
    if (!graph_layer(request->model->graph, request->layer, &value, err))
        return err_prefix(err, request->model->name);
    return transform_prefix(request->model->graph, value, out, err);
}

static bool take_outputs(const struct whole_request *request, const struct model_run *run,
                         struct map_file *file, double *scores, struct err *err)
{
    const struct model *model = request->model;
    if (!request->layer)
        return model_seems_scored(model, plan_output(run->plan, 0))
                   ? model_refuse_scored(model, err)
                   : model_score(model, plan_output(run->plan, 0), scores, err);
    return (file->cells > 0 || /* what is not a map does not come in parts */
            npy_out_put(&file->out, 0, plan_output(run->plan, 0), file->channels, err)) &&
           npy_out_commit(&file->out, err);
}

/* From the image's source to what is wanted of it. */
static bool run_source(const struct whole_request *request, const struct plan_source *source,
                       size_t source_bytes, int threads, double *scores,
                       struct whole_result *result, struct err *err)
{
    struct graph *part = NULL;
    struct model_run run = { 0 };
    struct map_file file = { 0 };
    struct plan_sink sink = { .arg = &file, .write = put_part };
    struct plan_stream stream = { .source = source,
                                  .tile_px = request->tile_px,
                                  .sink = request->layer ? &sink : NULL };
    struct plan_options options = { .threads = threads, .stream = &stream };
    struct model model = *request->model;
    bool ok = until_layer(request, &part, err);
    if (part)
        model.graph = part;
    ok = ok && model_run_graph(&model, 1, result->height, result->width, &run, err);
    budget_of_process(request->memory_mb, source_bytes, &stream);
    ok = ok && model_run_plan(&run, &options, err);
    if (ok) {
        result->shape = *graph_shape(run.graph, run.graph->outputs[0].value);
        ok = request->layer ? open_map(request, &result->shape, &file, err)
                            : model_check_classifies(request->model, run.graph, err);
    }
    ok = ok && plan_forward(run.plan, err) && take_outputs(request, &run, &file, scores, err);
    if (ok)
        plan_streamed(run.plan, &result->streamed);
    npy_out_discard(&file.out);
    free(file.row);
    model_run_free(&run);
    graph_free(part);
    return ok;
}

static bool image_options(const struct model_config *config, struct slide_image_options *out,
                          struct err *err)
{
    if (config->whole.set)
        return slide_image_of_model(config, out, err);
    if (config->n_sizings > 0)
        return err_set(
            err, ERR_USAGE,
            "the model changes the size of its patches, so that it cannot run on a whole "
            "image; pass its weights with --network and --weights, or an ONNX file "
            "without config.json");
    *out = slide_image_defaults();
    out->method = TISSUE_NONE;
    memcpy(out->mean, config->mean, sizeof out->mean);
    memcpy(out->std, config->std, sizeof out->std);
    return true;
}

bool whole_run(const struct whole_request *request, const char *path, const struct ctx *ctx,
               double *scores, struct whole_result *result, struct err *err)
{
    struct slide_image_options options;
    struct slide_image *image = NULL;
    struct slide_list list = { 0 };
    struct slide_access access = { 0 };
    *result = (struct whole_result){ 0 };
    bool ok = (image_options(&request->model->config, &options, err) ||
               err_prefix(err, request->model->name)) &&
              slide_list_read((char *const[]){ (char *)(uintptr_t)path }, 1, &list, err);
    if (ok && list.n != 1)
        ok = err_set(err, ERR_USAGE, "%s: has %zu slides; pass one at a time", path, list.n);
    ok = ok && slide_image_open(&list.entries[0], &access, &options, ctx, &image, err);
    if (ok) {
        struct plan_source source = slide_image_source(image);
        slide_image_size(image, &result->height, &result->width);
        ok = run_source(request, &source, slide_image_bytes(image), pool_workers(ctx->pool), scores,
                        result, err);
    }
    slide_image_close(image);
    slide_list_free(&list);
    return ok;
}
