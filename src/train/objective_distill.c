/* objective_distill.c: a network that is run densely is fitted to its own window scores, without
 * labels (distill.h, objective.h). The truth of a window is the class that the teacher finds. */
#include <math.h>
#include "base/console.h"
#include "train/distill.h"
#include "train/objective_classes.h"

static bool check_keys(const struct train_config *config, struct err *err)
{
    if (config->train.tta)
        return err_set(err, ERR_USAGE, "train.tta does not apply to distillation; omit it");
    if (config->data.test.n > 0)
        return err_set(err, ERR_USAGE,
                       "data.test: distillation is evaluated on the validation data; omit it");
    if (config->data.stain != STAIN_NONE)
        return err_set(err, ERR_USAGE,
                       "data.stain: the teacher decides how stains are normalised; omit it");
    if (config->train.mixup > 0)
        return err_set(err, ERR_USAGE, "train.mixup: distillation uses no labels to mix; omit it");
    return true;
}

static bool distill_settle(struct train_config *config, struct err *err)
{
    return check_keys(config, err) && distill_adopt(config, err);
}

/* Crops are larger than the window. */
static bool distill_inputs(struct learning *learning, struct err *err)
{
    const struct train_config *config = learning->config;
    int64_t patch = config->data.resize_px > 0 ? config->data.resize_px : learning->patch_px;
    double mpp = learning->dataset->mpp, wanted = config->data.spacing_um_px;
    if (mpp > 0 && wanted > 0 && fabs(mpp / wanted - 1) > 0.05)
        return err_set(
            err, ERR_USAGE,
            "the stores have %g um/px, but the teacher expects %g; extract with --mpp %g", mpp,
            wanted, wanted);
    learning->crop_px = config->distill.crop_px > 0 ? config->distill.crop_px : patch;
    return true;
}

static bool distill_build(struct learning *learning, struct graph **out, struct err *err)
{
    struct distill *distill = NULL;
    learning->outputs = learning->dataset->n_classes;
    bool ok =
        distill_new(learning->config, learning->crop_px, learning->threads, &distill, out, err);
    learning->own = distill;
    return ok && distill_check_data(distill, learning->dataset, learning->patch_px, err);
}

static const struct graph *distilled(const struct learning *learning)
{
    return distill_model(learning->own);
}

static bool distill_loss(struct learning *learning, const struct comparison *c, double *loss,
                         struct err *err)
{
    double sums[2];
    bool ok = distill_compare(learning->own, c->batch, c->epoch, c->outputs, c->divisor, loss,
                              c->gradient, err);
    if (c->gradient) /* differences are those of evaluations */
        distill_difference(learning->own, &sums[0], &sums[1]);
    return ok;
}

/* All windows compared. */
static bool distill_keep(struct learning *learning, const struct comparison *c, double loss_sum,
                         struct predictions *to, struct err *err)
{
    const struct distill *distill = learning->own;
    int64_t windows = distill_windows(distill), n = c->batch->n * windows;
    if (!predictions_grow(to, n, err) ||
        !distill_scores(distill, n, to->values + to->n * to->outputs, err))
        return false;
    for (int64_t i = 0; i < n; i++) {
        to->truths[to->n + i] = (float)distill_labels(distill)[i];
        to->samples[to->n + i] = distill_samples(distill)[i];
    }
    to->n += n;
    to->loss_sum += loss_sum * (double)windows;
    return true;
}

/* How far dense and window scores differ. */
static bool distill_remark(struct learning *learning, const struct predictions *val,
                           struct err *err)
{
    double sums[2], values[CLASSES_N_MEASURES];
    distill_difference(learning->own, &sums[0], &sums[1]);
    if (!ranks_sum_reals(learning->ranks, sums, 2, err))
        return false;
    if (val->n == 0)
        return true;
    if (!classes_judge(learning, val, values, err))
        return false;
    console_note(learning->ctx->console,
                 "dense and window scores: mean |dp| %.4f, %.2f %% of decisions differ",
                 sums[0] / sums[1], 100 * (1 - values[0]));
    return true;
}

/* Patches are prepared as the teacher says. */
static void distill_describe(const struct learning *learning, struct model_config *card)
{
    *card = *distill_described(learning->own);
    classes_describe(learning, card);
    card->objective = OBJECTIVE_DISTILL;
}

static void distill_end(struct learning *learning)
{
    distill_free(learning->own);
    learning->own = NULL;
}

static const struct objective_feed distill_feeds[] = { { "image", "input", false }, { 0 } };

const struct objective objective_distill = {
    .name = "distill",
    .takes = "patches, which need no labels: patch stores (.h5), folders of images, tar files",
    .truth = TRUTH_NONE,
    .feeds = distill_feeds,
    .output = "logits",
    .measures = classes_measures,
    .n_measures = CLASSES_N_MEASURES,
    .plots = classes_plots,
    .monitor = "loss",
    .mode = PLAN_TUNE,
    .settle = distill_settle,
    .inputs = distill_inputs,
    .build = distill_build,
    .model = distilled,
    .loss = distill_loss,
    .keep = distill_keep,
    .judge = classes_judge,
    .remark = distill_remark,
    .write = classes_write,
    .describe = distill_describe,
    .free = distill_end,
};
