/* whole.c: see whole.h. */
#include "heatmap/whole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const whole_map_names[] = { "auto", "cam", "gradcam", NULL };

struct whole_net {
    const struct model *model;
    struct graph *graph; /* for inference, with the map as its last output */
    struct map_ending about;
    enum whole_map map;
};

/* Are the logits of a slide the mean of those of its cells, or made from them? */
static bool has_cam(const struct map_ending *about)
{
    return about->classified ||
           (about->pooling != OP_GLOBAL_MAX_POOL && about->pooling != OP_GLOBAL_LSE_POOL &&
            about->pooling != OP_ATTENTION_POOL);
}

static bool choose_map(struct whole_net *net, enum whole_map map, struct err *err)
{
    bool cam = has_cam(&net->about);
    net->map = map != WHOLE_AUTO ? map : cam ? WHOLE_CAM : WHOLE_GRADCAM;
    if (net->map == WHOLE_CAM && !cam)
        return err_set(err, ERR_USAGE,
                       "--map cam: %s pools its map with %s, and the logits of its cells do not "
                       "make up those of the slide; use --map gradcam",
                       net->model->name, op_get(net->about.pooling)->name);
    if (net->map == WHOLE_GRADCAM && model_predicts_number(net->model))
        return err_set(err, ERR_USAGE,
                       "--map gradcam: %s predicts a number (%s), not the score of a class; use "
                       "--map cam",
                       net->model->name, net->model->config.target.name);
    return true;
}

bool whole_open(const struct model *model, enum whole_map map, struct whole_net **out,
                struct err *err)
{
    struct whole_net *net = calloc(1, sizeof *net);
    struct graph *mapped = NULL;
    if (!net)
        return err_memory(err, model->name);
    net->model = model;
    bool ok = transform_class_map(model->graph, &mapped, &net->about, err) &&
              choose_map(net, map, err) &&
              transform_for_inference(mapped, NULL, 0, &net->graph, err);
    graph_free(mapped);
    if (ok)
        *out = net;
    else
        whole_close(net);
    return ok;
}

void whole_close(struct whole_net *net)
{
    if (!net)
        return;
    graph_free(net->graph);
    free(net);
}

enum whole_map whole_map_of(const struct whole_net *net)
{
    return net->map;
}

void whole_output_free(struct whole_output *result)
{
    free(result->logits);
    free(result->map);
    *result = (struct whole_output){ 0 };
}

/* Follows the first inputs from the map to the image: the px that cell 0 is centred on, and the px
 * from cell to cell. False: an op whose cells lie otherwise. */
static bool follow(const struct graph *graph, value_id value, int axis, double *first, double *step)
{
    if (graph->values[value].kind != VALUE_NODE) {
        *first = 0.5;
        *step = 1;
        return true;
    }
    const struct node *node = &graph->nodes[graph->values[value].node];
    const struct conv_attr *conv = &node->attr.conv;
    const struct pool_attr *pool = &node->attr.pool;
    double shift = 0, stride = 1;
    if (!follow(graph, node->inputs[0], axis, first, step))
        return false;
    switch ((int)node->op->kind) {
    case OP_CONV:
        shift =
            (double)((conv->kernel[axis] - 1) * conv->dilation[axis]) / 2 - (double)conv->pad[axis];
        stride = (double)conv->stride[axis];
        break;
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL:
        shift =
            (double)((pool->kernel[axis] - 1) * pool->dilation[axis]) / 2 - (double)pool->pad[axis];
        stride = (double)pool->stride[axis];
        break;
    case OP_PAD:
        shift = -(double)node->attr.pad.pad[axis];
        break;
    case OP_UPSAMPLE:
    case OP_CONV_TRANSPOSE:
    case OP_SLICE:
        return false;
    default:
        break;
    }
    *first += shift * *step;
    *step *= stride;
    return true;
}

static void place_cells(const struct graph *graph, value_id map, int64_t height, int64_t width,
                        struct whole_output *out)
{
    for (int axis = 0; axis < 2; axis++) {
        double image = (double)(axis ? width : height);
        double cells = (double)(axis ? out->width : out->height);
        if (follow(graph, map, axis, &out->first[axis], &out->step[axis]))
            continue;
        out->step[axis] = image / cells;
        out->first[axis] = out->step[axis] / 2;
    }
}

struct pass {
    struct plan_source pixels;
    const struct ctx *ctx;
    struct whole_output *result;
    int64_t classes;
};

static bool read_pixels(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                        struct err *err)
{
    struct pass *pass = arg;
    return ctx_stopped(pass->ctx) ? err_stopped(err)
                                  : pass->pixels.read(pass->pixels.arg, y, x, h, w, out, err);
}

static bool take_map(void *arg, int output, int64_t y, int64_t x, int64_t h, int64_t w,
                     const float *map, struct err *err)
{
    struct pass *pass = arg;
    struct whole_output *to = pass->result;
    (void)output, (void)err;
    for (int64_t line = 0; line < pass->classes * h; line++)
        memcpy(to->map + ((line / h) * to->height + y + line % h) * to->width + x, map + line * w,
               (size_t)w * sizeof *map);
    return true;
}

static bool run_plan(const struct graph *graph, const struct whole_settings *settings,
                     struct pass *pass, struct err *err)
{
    struct whole_output *out = pass->result;
    struct plan_source source = { pass, read_pixels };
    struct plan_sink sink = { pass, take_map };
    struct plan_stream stream = { .source = &source,
                                  .sink = &sink,
                                  .tile_px = settings->tile_px,
                                  .spill = settings->spill,
                                  .budget = (size_t)settings->memory_bytes,
                                  .besides = (size_t)settings->other_bytes };
    struct plan_options options = { .mode = PLAN_INFER,
                                    .threads = settings->threads,
                                    .direct = settings->direct,
                                    .fast = settings->fast,
                                    .stream = &stream };
    struct plan *plan = NULL;
    bool ok = plan_new(graph, &options, &plan, err) && plan_forward(plan, err);
    if (ok) {
        memcpy(out->logits, plan_output(plan, 0), (size_t)pass->classes * sizeof *out->logits);
        plan_streamed(plan, &out->streamed);
    }
    plan_free(plan);
    return ok;
}

bool whole_pass(const struct whole_net *net, struct slide_image *image,
                const struct whole_settings *settings, const struct ctx *ctx,
                struct whole_output *out, struct err *err)
{
    int64_t height = 0, width = 0, classes = net->model->config.num_classes;
    struct graph *sized = NULL;
    slide_image_size(image, &height, &width);
    *out = (struct whole_output){ 0 };
    if (!transform_resize(net->graph, 1, height, width, &sized, err))
        return false;
    value_id map = sized->outputs[sized->n_outputs - 1].value;
    const struct shape *shape = graph_shape(sized, map);
    bool ok =
        (shape->rank == 4 && shape->dim[1] == classes) ||
        err_set(err, ERR_USAGE, "%s: its map does not have one channel for each of %lld classes",
                net->model->name, (long long)classes);
    if (ok) {
        out->height = shape->dim[2];
        out->width = shape->dim[3];
        out->logits = calloc((size_t)classes, sizeof *out->logits);
        out->map = calloc((size_t)(classes * out->height * out->width), sizeof *out->map);
        ok = (out->logits && out->map) || err_memory(err, "the map of a slide");
        place_cells(sized, map, height, width, out);
    }
    struct pass pass = {
        .pixels = slide_image_source(image), .ctx = ctx, .result = out, .classes = classes
    };
    ok = ok && run_plan(sized, settings, &pass, err);
    graph_free(sized);
    if (!ok)
        whole_output_free(out);
    return ok;
}

/* Which two cells, and the share of the second. */
static int64_t between(double px, double first, double step, int64_t n, double *share)
{
    double at = (px - first) / step;
    at = at < 0 ? 0 : at > (double)(n - 1) ? (double)(n - 1) : at;
    int64_t cell = (int64_t)at < n - 1 ? (int64_t)at : n > 1 ? n - 2 : 0;
    *share = n > 1 ? at - (double)cell : 0;
    return cell;
}

bool whole_at(const struct whole_net *net, const struct whole_output *result, double x, double y,
              float *logits, double *scores, struct err *err)
{
    const int64_t classes = net->model->config.num_classes, w = result->width;
    double u = 0, v = 0;
    int64_t row = between(y, result->first[0], result->step[0], result->height, &v);
    int64_t column = between(x, result->first[1], result->step[1], w, &u);
    int64_t right = w > 1, below = result->height > 1 ? w : 0;
    for (int64_t c = 0; c < classes; c++) {
        const float *at = result->map + (c * result->height + row) * w + column;
        double top = (1 - u) * (double)at[0] + u * (double)at[right];
        double low = (1 - u) * (double)at[below] + u * (double)at[below + right];
        logits[c] = (float)((1 - v) * top + v * low);
    }
    if (net->map == WHOLE_CAM)
        return model_score(net->model, logits, scores, err);
    for (int64_t c = 0; c < classes; c++) {
        double evidence = (double)logits[c] - (net->about.bias ? (double)net->about.bias[c] : 0);
        scores[c] = tanh(fmax(evidence, 0) / 2);
    }
    return true;
}
