/* model_bench.c: `microtome model bench`: the time and memory of a network, forward or forward and
 * backward. Also makes the plans of `model show --plan`. */
#include <math.h>
#include "base/clock.h"
#include "base/console.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/room.h"
#include "cli/model.h"
#include "net/graph/transform.h"
#include "net/stream/budget.h"

const char *const model_memory_choices[] = { "plain", "recompute", "half", "stream", NULL };

static const int winograd_tiles[] = { 0, 0, 2, 4, 6 };

void model_input_side(const struct model *model, const struct model_args *given, int64_t *height,
                      int64_t *width)
{
    const struct shape *input = graph_shape(model->graph, model->graph->inputs[0].value);
    *height = given->size ? given->size : input->dim[2];
    *width = given->size ? given->size : input->dim[3];
}

bool model_check_memory(const struct model_args *given, struct err *err)
{
    if (given->memory == MODEL_MEMORY_STREAM && given->batch != 1)
        return err_set(err, ERR_USAGE, "--memory stream: one image at a time, not --batch %lld",
                       (long long)given->batch);
    if (given->memory == MODEL_MEMORY_STREAM)
        return true;
    const char *option = given->memory_mb ? "memory-mb"
                         : given->tile_px ? "tile-px"
                         : given->spill   ? "spill"
                                          : NULL;
    return !option || err_set(err, ERR_USAGE, "--%s: only with --memory stream", option);
}

/* For training: batch norm as in training, or frozen where the image is streamed. */
static bool ready_to_train(struct app *app, const struct model_args *given,
                           const struct model *model, struct plan_options *options,
                           struct plan_stream *stream, struct model_run *out, struct err *err)
{
    bool frozen = given->norm == NORM_FROZEN;
    options->mode = options->stream || frozen ? PLAN_TUNE : PLAN_TRAIN;
    if (options->stream && !frozen && given->norm == NORM_BATCH)
        console_note(app->ctx.console, "--memory stream: batch norm is frozen");
    struct graph *sized = NULL;
    bool ok = transform_resize(model->graph, given->batch, out->height, out->width, &sized, err) &&
              transform_rows(sized, NULL, 0, &out->graph, err);
    graph_free(sized);
    budget_of_process(given->memory_mb, 0, stream);
    double began_s = clock_monotonic_s();
    ok = ok && plan_new(out->graph, options, &out->plan, err);
    out->plan_s = clock_monotonic_s() - began_s;
    return ok;
}

bool model_make_ready(struct app *app, const struct model_args *given, const struct model *model,
                      struct model_drawn *drawn, bool profile, struct model_run *out,
                      struct err *err)
{
    int64_t height = 0, width = 0;
    struct plan_options options = { .threads = pool_workers(app->ctx.pool),
                                    .profile = profile,
                                    .direct = given->kernels == 1,
                                    .fast = given->fast,
                                    .winograd_tile = winograd_tiles[given->kernels] };
    *out = (struct model_run){ 0 };
    if (model_has_ports(given))
        return model_ports_ready(app, given, model, profile, out, err);
    if (!model_check_memory(given, err))
        return false;
    model_input_side(model, given, &height, &width);
    if (given->memory == MODEL_MEMORY_STREAM) {
        const struct shape *input = graph_shape(model->graph, model->graph->inputs[0].value);
        drawn->image = (struct drawn_image){ .seed = 1, .channels = input->dim[1] };
        drawn->source = drawn_image_source(&drawn->image);
        drawn->stream = (struct plan_stream){ .tile_px = given->tile_px,
                                              .spill = given->spill,
                                              .source = &drawn->source };
        options.stream = &drawn->stream;
    } else {
        options.saving = (enum plan_saving)given->memory;
    }
    if (!given->train) {
        bool ok = model_run_graph(model, given->batch, height, width, out, err);
        budget_of_process(given->memory_mb, 0, &drawn->stream);
        return ok && model_run_plan(out, &options, err);
    }
    *out = (struct model_run){ .batch = given->batch, .height = height, .width = width };
    return ready_to_train(app, given, model, &options, &drawn->stream, out, err);
}

/* Where the gradient of the outputs is 0, a streamed plan would have nothing to do. */
static void set_output_gradients(const struct model_run *run)
{
    for (int i = 0; i < run->graph->n_outputs; i++) {
        int64_t count = shape_count(graph_shape(run->graph, run->graph->outputs[i].value));
        float *gradient = plan_output_gradient(run->plan, i);
        for (int64_t k = 0; gradient && k < count; k++)
            gradient[k] = 1;
    }
}

bool model_run_once(const struct model_args *given, const struct model_run *run, struct err *err)
{
    bool stream = given->memory == MODEL_MEMORY_STREAM;
    if (given->train && stream)
        plan_zero_gradients(run->plan);
    if (!plan_forward(run->plan, err))
        return false;
    if (given->train && stream)
        set_output_gradients(run);
    return !given->train || plan_backward(run->plan, err);
}

/* What a streamed plan did; nothing for others. besides: bytes that the process had taken. */
static void put_streamed(struct json_out *json, const struct model_run *run, size_t besides,
                         double best_s)
{
    struct plan_streamed did;
    if (!plan_streamed(run->plan, &did))
        return;
    json_out_text(json, "memory", "stream");
    json_out_text(json, "batch_norm", "frozen");
    json_out_int(json, "height_px", run->height);
    json_out_int(json, "width_px", run->width);
    if (isfinite(best_s)) {
        json_out_real(json, "seconds", best_s);
        json_out_real(json, "mpx_per_s", 1e-6 * (double)(run->height * run->width) / best_s);
    }
    json_out_int(json, "tile_px", did.tile_px);
    json_out_int(json, "tiles_down", did.tiles_down);
    json_out_int(json, "tiles_across", did.tiles_across);
    json_out_int(json, "tiles_skipped", did.tiles_still);
    json_out_real(json, "strips_mb", (double)did.strip_bytes / 1e6);
    json_out_real(json, "strips_spilled_mb", (double)did.strips_spilled / 1e6);
    json_out_real(json, "strip_io_s", did.strip_io_s);
    json_out_real(json, "waited_for_strips_s", did.waited_strips_s);
    json_out_real(json, "waited_for_pixels_s", did.waited_source_s);
    json_out_real(json, "predicted_mb", (double)(besides + did.predicted_bytes) / 1e6);
}

static void put_result(struct app *app, const struct model_args *given, const struct model_run *run,
                       size_t besides, double ready_s, double best_s)
{
    struct plan_memory memory = plan_memory(run->plan);
    struct json_out json;
    json_out_begin(&json, app->out);
    json_out_object(&json, NULL);
    json_out_text(&json, "mode", given->train ? "train" : "infer");
    json_out_int(&json, "batch", given->batch);
    json_out_int(&json, "threads", pool_workers(app->ctx.pool));
    json_out_real(&json, "plan_ms", 1e3 * run->plan_s); /* plan_new */
    json_out_real(&json, "ready_ms", 1e3 * ready_s);    /* with resizing, folding and fusing */
    if (given->repeats > 0) {
        json_out_real(&json, "best_ms", 1e3 * best_s);
        json_out_real(&json, model_has_ports(given) ? "samples_per_s" : "images_per_s",
                      (double)given->batch / best_s);
    }
    json_out_real(&json, "arena_mb", (double)memory.arena / 1e6);
    json_out_real(&json, "weights_mb", (double)memory.weights / 1e6);
    json_out_real(&json, "peak_rss_mb", (double)room_peak() / 1e6);
    put_streamed(&json, run, besides, best_s);
    json_out_close_object(&json);
    json_out_end(&json);
}

/* The first run touches all memory; a streamed image takes minutes and is not run in vain. */
static bool time_runs(const struct model_args *given, const struct model_run *run, double *best_s,
                      struct err *err)
{
    bool warm = given->repeats > 0 && given->memory != MODEL_MEMORY_STREAM;
    bool ok = !warm || model_run_once(given, run, err);
    *best_s = INFINITY;
    for (int64_t i = 0; ok && i < given->repeats; i++) {
        double began_s = clock_monotonic_s();
        ok = model_run_once(given, run, err);
        *best_s = fmin(*best_s, clock_monotonic_s() - began_s);
    }
    return ok;
}

bool model_bench(struct app *app, const struct model_args *given, struct err *err)
{
    struct model *model = NULL;
    struct model_run run = { 0 };
    struct model_drawn drawn = { 0 };
    double best_s = 0;
    if (!model_open_any(given, &model, err))
        return false;
    double began_s = clock_monotonic_s();
    bool ok = model_make_ready(app, given, model, &drawn, false, &run, err);
    double ready_s = clock_monotonic_s() - began_s;
    ok = ok && time_runs(given, &run, &best_s, err);
    if (ok)
        put_result(app, given, &run, drawn.stream.besides, ready_s, best_s);
    model_run_free(&run);
    model_close(model);
    return ok;
}
