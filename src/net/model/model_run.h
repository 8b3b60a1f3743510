/* model_run.h: a model prepared for inference at one size: folded, fused and planned. */
#ifndef NET_MODEL_MODEL_RUN_H
#define NET_MODEL_MODEL_RUN_H
#include "net/model/model.h"
#include "net/plan/plan.h"

struct model_run {
    struct graph *graph; /* the model's, for inference at this size */
    struct plan *plan;
    int64_t batch, height, width;
    double plan_s; /* the part of model_run_new's time spent in plan_new */
};

/* *out is the caller's; free with model_run_free. The model must outlive it. profile: every step is
 * timed (plan_print shows it). Folds, fuses and plans: 0.2 s for ResNet-50, so make one for each
 * size and keep it. */
bool model_run_new(const struct model *model, int64_t batch, int64_t height, int64_t width,
                   int threads, bool profile, struct model_run *out, struct err *err);
/* The same with all options of the plan but its mode, which is PLAN_INFER. */
bool model_run_with(const struct model *model, int64_t batch, int64_t height, int64_t width,
                    const struct plan_options *options, struct model_run *out, struct err *err);
/* The halves of it: the memory that is left for the plan is known in between. A failure frees. */
bool model_run_graph(const struct model *model, int64_t batch, int64_t height, int64_t width,
                     struct model_run *out, struct err *err);
bool model_run_plan(struct model_run *run, const struct plan_options *options, struct err *err);
void model_run_free(struct model_run *run); /* also fine on a zeroed struct */

/* Scores of one image, [classes], of a model of model_open_classifier. The run is created again if
 * the image needs another size; start with a zeroed one. */
bool model_classify(const struct model *model, struct model_run *run, int threads,
                    const struct image *image, double *scores, struct err *err);
#endif
