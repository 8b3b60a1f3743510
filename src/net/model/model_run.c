/* model_run.c: see model_run.h. */
#include "net/model/model_run.h"

#include "net/model/classifier.h"
#include "net/graph/transform.h"
#include "base/clock.h"

void model_run_free(struct model_run *run)
{
    plan_free(run->plan);
    graph_free(run->graph);
    *run = (struct model_run){ 0 };
}

bool model_run_graph(const struct model *model, int64_t batch, int64_t height, int64_t width,
                     struct model_run *out, struct err *err)
{
    *out = (struct model_run){ .batch = batch, .height = height, .width = width };
    struct graph *resized = NULL;
    bool ok = transform_resize(model->graph, batch, height, width, &resized, err) &&
              transform_for_inference(resized, NULL, 0, &out->graph, err);
    graph_free(resized);
    if (!ok)
        model_run_free(out);
    return ok;
}

bool model_run_plan(struct model_run *run, const struct plan_options *options, struct err *err)
{
    struct plan_options infer = *options;
    infer.mode = PLAN_INFER;
    infer.by_image = true;
    double began_s = clock_monotonic_s();
    bool ok = plan_new(run->graph, &infer, &run->plan, err);
    run->plan_s = clock_monotonic_s() - began_s;
    if (!ok)
        model_run_free(run);
    return ok;
}

bool model_run_with(const struct model *model, int64_t batch, int64_t height, int64_t width,
                    const struct plan_options *options, struct model_run *out, struct err *err)
{
    return model_run_graph(model, batch, height, width, out, err) &&
           model_run_plan(out, options, err);
}

bool model_run_new(const struct model *model, int64_t batch, int64_t height, int64_t width,
                   int threads, bool profile, struct model_run *out, struct err *err)
{
    struct plan_options options = { .threads = threads, .profile = profile };
    return model_run_with(model, batch, height, width, &options, out, err);
}

bool model_classify(const struct model *model, struct model_run *run, int threads,
                    const struct image *image, double *scores, struct err *err)
{
    int64_t width = 0, height = 0;
    if (!model_input_size(&model->config, image->width, image->height, &width, &height, err))
        return false;
    if (!run->plan || run->width != width || run->height != height) {
        model_run_free(run);
        if (!model_run_new(model, 1, height, width, threads, false, run, err))
            return false;
        if (!model_check_classifies(model, run->graph, err)) {
            model_run_free(run);
            return false;
        }
    }
    if (!model_prepare(&model->config, image, plan_input(run->plan, 0), err) ||
        !plan_forward(run->plan, err))
        return false;
    const float *outputs = plan_output(run->plan, 0);
    if (model_seems_scored(model, outputs))
        return model_refuse_scored(model, err);
    return model_score(model, outputs, scores, err);
}
