/* explainers.c: the table of methods. */
#include <stdio.h>
#include <string.h>
#include "explain/explainer.h"

extern const struct explainer explainer_cam, explainer_gradcam, explainer_gradcampp,
    explainer_hirescam, explainer_scorecam, explainer_ig, explainer_smoothgrad, explainer_occlusion,
    explainer_lime, explainer_rollout;

const struct explainer *const explainers[] = {
    &explainer_cam,
    &explainer_gradcam,
    &explainer_gradcampp,
    &explainer_hirescam,
    &explainer_scorecam,
    &explainer_ig,
    &explainer_smoothgrad,
    &explainer_occlusion,
    &explainer_lime,
    &explainer_rollout,
    NULL,
};

struct explain_settings explain_defaults(void)
{
    return (struct explain_settings){
        .batch = 64,
        .threads = 1,
        .lime_samples = 1000,
        .lime_segments = 50,
        .smooth_samples = 25,
        .ig_steps = 50,
        .smooth_noise = 0.15,
    };
}

const struct explainer *explainer_find(const char *name, struct err *err)
{
    char names[256] = "";
    for (int i = 0; explainers[i]; i++) {
        size_t used = strlen(names);
        if (strcmp(explainers[i]->name, name) == 0)
            return explainers[i];
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", explainers[i]->name);
    }
    err_set(err, ERR_USAGE, "no method '%s'; there are %s", name, names);
    return NULL;
}

bool explainer_run(const struct explainer *explainer, const struct explain_settings *settings,
                   struct probe *probe, int layer, const struct explain_view *views, int64_t n,
                   const struct ctx *ctx, struct attribution *out, struct err *err)
{
    bool ok = true;
    int64_t done = 0, many = explainer->explain_many ? settings->batch : 1;
    for (int64_t i = 0; i < n; i++)
        out[i] = (struct attribution){ 0 };
    while (ok && done < n) {
        int64_t now = n - done < many ? n - done : many;
        ok = !ctx_stopped(ctx) || err_stopped(err);
        if (ok && explainer->explain_many)
            ok = explainer->explain_many(settings, probe, layer, views + done, now, ctx, out + done,
                                         err);
        else if (ok)
            ok = explainer->explain(settings, probe, layer, views + done, ctx, out + done, err);
        done += now;
    }
    for (int64_t i = 0; !ok && i < n; i++)
        attribution_free(&out[i]);
    return ok;
}
