/* model_patches.c: see model_patches.h. */
#include "train/model_patches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "net/model/classifier.h"

#define MPP_TOLERANCE 0.2 /* as in predict */

/* What a data set must know: the classes by name. */
static bool configure(struct model_patches *patches, const struct model *of, struct err *err)
{
    bool unlabeled = model_predicts_number(of) || model_gives_features(of);
    const struct model_config *model = &of->config;
    struct texts *classes = &patches->config.classes;
    if (!config_read(NULL, NULL, 0, &patches->config, err))
        return false;
    for (size_t i = 0; i < classes->n; i++)
        free(classes->items[i]);
    free(classes->items);
    *classes = (struct texts){ calloc((size_t)model->num_classes + 1, sizeof *classes->items), 0 };
    bool ok = classes->items != NULL;
    for (; ok && (int64_t)classes->n < model->num_classes; classes->n += ok)
        ok = (classes->items[classes->n] = strdup(model->class_names[classes->n])) != NULL;
    patches->config.truth =
        unlabeled ? TRUTH_NONE : TRUTH_LABELS; /* labels are not those of a number */
    patches->config.network.input_px = 1;      /* sizes are the model's business */
    patches->config.data.spacing_um_px = model->spacing_um_px > 0 ? model->spacing_um_px : 1;
    return ok || err_memory(err, "the classes");
}

/* Of a data set with stores: the path of the first. */
static const char *first_store(const struct dataset *dataset)
{
    int64_t i = 0;
    while (i < dataset->n_samples - 1 && !dataset_in_group(dataset, i))
        i++;
    return dataset_origin_path(dataset, i);
}

/* Are these the patches that the model was trained for? */
static bool check_data(struct model_patches *patches, const struct model *model, bool any_stain,
                       const struct ctx *ctx, struct err *err)
{
    double mpp = patches->dataset.mpp, made_for = model->config.spacing_um_px;
    if (mpp > 0 && made_for > 0 && fabs(mpp / made_for - 1) > MPP_TOLERANCE)
        console_warn(ctx->console, "the patches have %g um/px, but the model expects %g", mpp,
                     made_for);
    if (!stain_need_of(&model->config, &patches->stain, err))
        return err_prefix(err, model->name);
    if (any_stain || !patches->stain.known) {
        patches->stain.per_patch = patches->stain.per_patch && !any_stain;
        return true;
    }
    if (patches->dataset.has_images && !patches->stain.per_patch &&
        patches->stain.target.method != STAIN_NONE)
        return err_set(err, ERR_USAGE,
                       "%s was trained on patches whose stains were normalised by %s, fitted to "
                       "the slide, but images do not record whether theirs were; pass --any-stain "
                       "if they were, or give stores from 'microtome extract --stain %s'",
                       model->name, stain_method_names[patches->stain.target.method],
                       stain_method_names[patches->stain.target.method]);
    return !patches->dataset.has_stores ||
           stain_need_check(&patches->stain, &patches->dataset.stain, model->name,
                            first_store(&patches->dataset),
                            "extract it like the training data, or pass --any-stain", err);
}

/* The config's patient; its own memory. */
static bool set_patient(struct train_config *config, const char *patient, struct err *err)
{
    if (!patient)
        return true;
    free(config->data.patient);
    config->data.patient = strdup(patient);
    return config->data.patient || err_memory(err, "the patients");
}

bool model_patches_open(const struct model *model, char *const *paths, size_t n_paths,
                        bool any_stain, const struct ctx *ctx, struct model_patches *out,
                        struct err *err)
{
    return model_patches_open_by(model, paths, n_paths, any_stain, NULL, ctx, out, err);
}

bool model_patches_open_by(const struct model *model, char *const *paths, size_t n_paths,
                           bool any_stain, const char *patient, const struct ctx *ctx,
                           struct model_patches *out, struct err *err)
{
    *out = (struct model_patches){ 0 };
    return configure(out, model, err) && set_patient(&out->config, patient, err) &&
           dataset_open_any(&out->config, paths, n_paths, &out->dataset, err) &&
           check_data(out, model, any_stain, ctx, err);
}

void model_patches_free(struct model_patches *patches)
{
    dataset_free(&patches->dataset);
    config_free(&patches->config);
}
