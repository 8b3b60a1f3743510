/* objective_regress.c: one number for a patch, learnt from the targets of stores (objective.h). The
 * network learns (target - mean) / standard deviation of the training data, which the model card
 * keeps; predictions are in the target's unit again. The loss is that of what the network learns,
 * so it does not depend on the unit. */
#include <math.h>
#include <stdlib.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "plot/scatter.h"
#include "train/loss.h"
#include "train/network.h"
#include "train/objective.h"
#include "train/regression.h"

struct regress {
    struct model_target target;
    float *wanted; /* [batch]: what the network should give */
};

enum { MAE, RMSE, R2, PEARSON, SPEARMAN, N_MEASURES };
static const struct measure regress_measures[N_MEASURES] = {
    [MAE] = { "mae", "MAE", true },
    [RMSE] = { "rmse", "RMSE", false },
    [R2] = { "r2", "R2", true },
    [PEARSON] = { "pearson", "Pearson's r", false },
    [SPEARMAN] = { "spearman", "Spearman's rho", false },
};
static const char *const regress_plots[] = { "r2", "mae", NULL };

static bool regress_settle(struct train_config *config, struct err *err)
{
    const char *key = config->train.smoothing > 0            ? "train.smoothing"
                      : config->train.mixup > 0              ? "train.mixup"
                      : config->data.balance != BALANCE_NONE ? "data.balance"
                      : config->data.hard_negatives[0]       ? "data.hard_negatives (--mine)"
                      : !config_default_classes(config)      ? "classes"
                                                             : NULL;
    return !key ||
           err_set(err, ERR_USAGE,
                   "%s: is for classes, but objective regress learns a number; omit it", key);
}

static void regress_free(struct learning *learning)
{
    struct regress *own = learning->own;
    if (own)
        free(own->wanted);
    free(own);
    learning->own = NULL;
}

/* Mean, standard deviation and range of the training data's targets. */
static void measure_targets(const struct dataset *dataset, struct model_target *out)
{
    double squares = 0, n = 0;
    *out = (struct model_target){ .min = INFINITY, .max = -INFINITY };
    for (int64_t first = 0; first < dataset->n_samples;) {
        struct sample_range range = dataset_range(dataset, first);
        for (int64_t i = first; range.side == DATA_TRAIN && i < range.end; i++) {
            double value = (double)dataset->targets[i], apart = value - out->mean;
            out->mean += apart / ++n;
            squares += apart * (value - out->mean);
            out->min = fmin(out->min, value);
            out->max = fmax(out->max, value);
        }
        first = range.end;
    }
    out->std = n > 0 ? sqrt(squares / n) : NAN;
}

/* A target is that of a whole patch: a part of it has another. */
static bool check_crop(const struct learning *learning, struct err *err)
{
    int64_t resized = learning->config->data.resize_px;
    int64_t side = resized > 0 ? resized : learning->patch_px;
    return side == learning->crop_px ||
           err_set(err, ERR_USAGE,
                   "network.input_px: patches of %lld px would be cropped to %lld, but their "
                   "targets are those of whole patches; set network.input_px or data.resize_px so "
                   "that both are the same, and extract without a margin",
                   (long long)side, (long long)learning->crop_px);
}

static bool regress_inputs(struct learning *learning, struct err *err)
{
    const struct dataset *dataset = learning->dataset;
    struct regress *own = learning->own = calloc(1, sizeof *own);
    if (own)
        own->wanted = calloc((size_t)config_micro_batch(learning->config), sizeof *own->wanted);
    if (!own || !own->wanted)
        return err_memory(err, "the objective");
    if (!check_crop(learning, err))
        return false;
    measure_targets(dataset, &own->target);
    own->target.name = dataset->target_name;
    own->target.unit = dataset->target_unit;
    return own->target.std > 0 ||
           err_set(err, ERR_FORMAT,
                   "%s: is %g in all training patches, so there is nothing to learn; add patches "
                   "with other values",
                   dataset->target_name, own->target.mean);
}

static bool regress_build(struct learning *learning, struct graph **out, struct err *err)
{
    learning->outputs = 1;
    return network_build(learning->config, 1, "an image network with one output", out, err) &&
           network_start(learning->config, *out, learning->ctx->console, err);
}

static bool regress_loss(struct learning *learning, const struct comparison *c, double *loss,
                         struct err *err)
{
    const struct regress *own = learning->own;
    const struct train_config *config = learning->config;
    const float *targets = batch_floats(c->batch, "target");
    int64_t n = batch_rows(c->batch);
    (void)err;
    for (int64_t i = 0; i < n; i++)
        own->wanted[i] = (float)(((double)targets[i] - own->target.mean) / own->target.std);
    if (config->train.loss == LOSS_HUBER)
        loss_huber(n, c->divisor, (float)config->train.huber_delta, c->outputs, own->wanted, loss,
                   c->gradient);
    else
        loss_mse(n, c->divisor, c->outputs, own->wanted, loss, c->gradient);
    return true;
}

static void regress_predict(const struct learning *learning, const float *outputs, double *values)
{
    const struct regress *own = learning->own;
    values[0] = (double)outputs[0] * own->target.std + own->target.mean;
}

static void regress_restore(const struct learning *learning, const double *values, float *outputs)
{
    const struct regress *own = learning->own;
    outputs[0] = (float)((values[0] - own->target.mean) / own->target.std);
}

static bool regress_keep(struct learning *learning, const struct comparison *c, double loss_sum,
                         struct predictions *to, struct err *err)
{
    const float *targets = batch_floats(c->batch, "target");
    const int64_t *samples = batch_int64(c->batch, "sample");
    if (!predictions_grow(to, c->batch->n, err))
        return false;
    for (int64_t i = 0; i < c->batch->n; i++, to->n++) {
        double value;
        regress_predict(learning, c->outputs + i, &value);
        to->values[to->n] = (float)value;
        to->truths[to->n] = targets[i];
        to->samples[to->n] = samples[i];
    }
    to->loss_sum += loss_sum;
    return true;
}

static bool regress_judge(const struct learning *learning, const struct predictions *predictions,
                          double *values, struct err *err)
{
    struct regression found;
    (void)learning;
    if (!regression_compute(predictions->values, predictions->truths, predictions->n, &found, err))
        return false;
    values[MAE] = found.mae;
    values[RMSE] = found.rmse;
    values[R2] = found.r2;
    values[PEARSON] = found.pearson;
    values[SPEARMAN] = found.spearman;
    return true;
}

static bool write_scores(const struct learning *learning, const char *path,
                         const struct predictions *found, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("sample,patient,target,prediction\n", out.stream);
    for (int64_t i = 0; i < found->n; i++) {
        dataset_put_sample(learning->dataset, found->samples[i], out.stream);
        fprintf(out.stream, ",%.9g,%.9g\n", (double)found->truths[i], (double)found->values[i]);
    }
    return file_out_commit(&out, err);
}

static bool regress_write(const struct learning *learning, const char *prefix,
                          const struct predictions *found, struct err *err)
{
    const struct regress *own = learning->own;
    const char *unit = own->target.unit;
    char *scores = text_format("%sscores.csv", prefix), *svg = text_format("%sscatter.svg", prefix);
    char *png = text_format("%sscatter.png", prefix);
    char *truth = text_format("target%s%s", unit[0] ? ", " : "", unit);
    bool ok = (scores && svg && png && truth) || err_memory(err, "the scores");
    ok = ok && write_scores(learning, scores, found, err) &&
         scatter_write(svg, png, own->target.name, truth, "prediction", found->truths,
                       found->values, found->n, err);
    free(scores);
    free(svg);
    free(png);
    free(truth);
    return ok;
}

static void regress_describe(const struct learning *learning, struct model_config *card)
{
    struct regress *own = learning->own;
    card->num_classes = 1;
    card->class_names = &own->target.name;
    card->objective = OBJECTIVE_REGRESS;
    card->target = own->target;
}

static const struct objective_feed regress_feeds[] = { { "image", "input", false }, { 0 } };
static const struct objective_loss regress_losses[] = { { "mse", "none" },
                                                        { "huber", "none" },
                                                        { 0 } };

const struct objective objective_regress = {
    .name = "regress",
    .takes = "patches with targets: patch stores (.h5) from 'extract --target'",
    .truth = TRUTH_TARGETS,
    .feeds = regress_feeds,
    .output = "logits",
    .losses = regress_losses,
    .measures = regress_measures,
    .n_measures = N_MEASURES,
    .plots = regress_plots,
    .monitor = "r2",
    .mode = PLAN_TRAIN,
    .test = true,
    .settle = regress_settle,
    .inputs = regress_inputs,
    .build = regress_build,
    .loss = regress_loss,
    .keep = regress_keep,
    .predict = regress_predict,
    .restore = regress_restore,
    .judge = regress_judge,
    .write = regress_write,
    .describe = regress_describe,
    .free = regress_free,
};
