/* predict_stain.c: how the stains of slides are normalised: as the models or the options say
 * (predict_state.h). */
#include <string.h>
#include "base/console.h"
#include "heatmap/predict_state.h"

/* What the models expect together; unknown where none says it. */
static bool needs_of(const struct ensemble *e, struct stain_need *out, struct err *err)
{
    const char *first = NULL;
    *out = (struct stain_need){ 0 };
    for (int i = 0; i < e->n; i++) {
        const struct model *model = e->models[i].model;
        struct stain_need need;
        if (!stain_need_of(&model->config, &need, err))
            return err_prefix(err, model->name);
        if (!need.known)
            continue;
        if (first &&
            (need.per_patch != out->per_patch || !stain_same_target(&need.target, &out->target)))
            return err_set(err, ERR_USAGE,
                           "%s and %s were trained with different stain normalisation (%s and %s); "
                           "averaged models must expect the same stains",
                           first, model->name, stain_method_names[out->target.method],
                           stain_method_names[need.target.method]);
        first = model->name;
        *out = need;
    }
    return true;
}

/* Where the models were trained on patches that were fitted one by one, a slide's fit is another.
 */
static bool accept_patch_fit(const struct predict *predict, const struct ctx *ctx, struct err *err)
{
    const char *method = stain_method_names[predict->need.target.method];
    if (predict->options->stain != PREDICT_STAIN_OF_MODEL) {
        console_warn(ctx->console,
                     "%s was validated on patches whose stains were fitted patch by patch; here "
                     "they are fitted to the slide, so scores differ from those in validation",
                     predict->model_names);
        return true;
    }
    return err_set(err, ERR_USAGE,
                   "%s was validated on patches whose stains were fitted patch by patch, which is "
                   "not possible in a heatmap; pass --stain %s to fit the slide instead, or train "
                   "on stores made with 'microtome extract --stain %s'",
                   predict->model_names, method, method);
}

static bool check_choice(const struct predict *predict, const struct ctx *ctx, struct err *err)
{
    const struct stain_need *need = &predict->need;
    const char *trained = stain_method_names[need->target.method];
    if (!need->known || predict->options->any_stain)
        return true;
    if (!stain_same_target(&predict->target, &need->target))
        return err_set(err, ERR_USAGE,
                       "--stain %s: %s was trained with %s%s; omit --stain and --template, or pass "
                       "--any-stain",
                       stain_method_names[predict->target.method], predict->model_names, trained,
                       predict->target.method == need->target.method ? " to another template" : "");
    return !need->per_patch || accept_patch_fit(predict, ctx, err);
}

/* A model's colours are those of its training; other models do not say. */
static void warn_of_icc(const struct predict *predict, const struct ctx *ctx)
{
    bool slides = false, wanted = predict->ensemble.models[0].model->config.icc;
    for (size_t i = 0; i < predict->slides->n; i++)
        slides = slides || !specimen_is_store(predict->slides->entries[i].path);
    if (slides && wanted && !predict->options->icc)
        console_warn(ctx->console,
                     "%s was trained on colours converted by ICC profiles; pass --icc",
                     predict->model_names);
    if (slides && !wanted && predict->need.known && predict->options->icc)
        console_warn(ctx->console, "%s was trained on colours as they are in the files; omit --icc",
                     predict->model_names);
}

bool predict_choose_stain(struct predict *predict, const struct ctx *ctx, struct err *err)
{
    const struct predict_options *options = predict->options;
    if (!needs_of(&predict->ensemble, &predict->need, err))
        return false;
    const struct stain_need *need = &predict->need;
    enum stain_method method = options->stain == PREDICT_STAIN_OF_MODEL
                                   ? need->target.method
                                   : (enum stain_method)options->stain;
    bool of_model = need->known && method == need->target.method && !options->stain_template;
    predict->target = need->target;
    predict->template_name = options->stain_template ? "given" : of_model ? "model" : "built-in";
    if (!of_model && !stain_need_target(method, options->stain_template, &predict->target, err))
        return false;
    predict->target.method = method;
    if (of_model && method != STAIN_NONE)
        console_note(ctx->console, "normalising stains with %s, as in the model's training",
                     stain_method_names[method]);
    warn_of_icc(predict, ctx);
    return check_choice(predict, ctx, err);
}

bool predict_check_store(const struct predict *predict, const char *path,
                         const struct stain_fit *stored, struct err *err)
{
    const struct predict_options *options = predict->options;
    if (options->stain != PREDICT_STAIN_OF_MODEL && options->stain != STAIN_NONE)
        return err_set(err, ERR_USAGE,
                       "%s: stains of a patch store are normalised at extraction; omit --stain, or "
                       "extract it with 'microtome extract --stain %s'",
                       path, stain_method_names[options->stain]);
    return options->any_stain ||
           stain_need_check(&predict->need, stored, predict->model_names, path,
                            "extract it like the training data, or pass --any-stain", err);
}
