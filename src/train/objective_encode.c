/* objective_encode.c: an autoencoder: images to small maps and back (objective.h), learnt from the
 * images alone by the mean squared error of pixels. 'generate.latent' then learns to make such maps
 * instead of images. A prediction is the sample's error; PSNR is that of pixels between 0 and 1. */
#include <math.h>
#include <string.h>
#include "train/loss.h"
#include "train/network.h"
#include "train/objective.h"

enum { PSNR, N_MEASURES };
static const struct measure encode_measures[N_MEASURES] = { [PSNR] = { "psnr", "PSNR", true } };
static const char *const encode_plots[] = { "psnr", NULL };

static bool encode_settle(struct train_config *config, struct err *err)
{
    if (config->train.mixup > 0 || config->train.smoothing > 0 || config->train.tta ||
        config->data.hard_negatives[0] || config->data.balance != BALANCE_NONE)
        return err_set(err, ERR_USAGE,
                       "objective encode learns from images alone: omit train.mixup, "
                       "train.smoothing, train.tta, data.balance and data.hard_negatives");
    if (!network_is_undivided(config, "encode", err))
        return false;
    network_usual_pixels(config);
    return true;
}

static bool encode_build(struct learning *learning, struct graph **out, struct err *err)
{
    learning->outputs = 1; /* the error of a sample */
    return network_build_autoencoder(learning->config, learning->crop_px, out, err) &&
           network_start(learning->config, *out, learning->ctx->console, err);
}

static int64_t image_floats(const struct comparison *c)
{
    const struct batch_item *image = batch_find(c->batch, "image");
    return shape_count(&image->shape) / image->shape.dim[0];
}

static bool encode_loss(struct learning *learning, const struct comparison *c, double *loss,
                        struct err *err)
{
    int64_t floats = image_floats(c), rows = batch_rows(c->batch);
    const float *images = batch_floats(c->batch, "image");
    (void)learning, (void)err;
    *loss = 0;
    if (c->gradient)
        memset(c->gradient, 0, (size_t)(rows * floats) * sizeof *c->gradient);
    for (int64_t i = 0; i < c->batch->n; i++)
        *loss += loss_row_mse(floats, 1 / c->divisor, c->outputs + i * floats, images + i * floats,
                              c->gradient ? c->gradient + i * floats : NULL) /
                 c->divisor;
    return true;
}

static bool encode_keep(struct learning *learning, const struct comparison *c, double loss_sum,
                        struct predictions *to, struct err *err)
{
    int64_t floats = image_floats(c);
    const float *images = batch_floats(c->batch, "image");
    const int64_t *samples = batch_int64(c->batch, "sample");
    (void)learning;
    if (!predictions_grow(to, c->batch->n, err))
        return false;
    for (int64_t i = 0; i < c->batch->n; i++, to->n++) {
        to->values[to->n] =
            (float)loss_row_mse(floats, 0, c->outputs + i * floats, images + i * floats, NULL);
        to->truths[to->n] = 0;
        to->samples[to->n] = samples[i];
    }
    to->loss_sum += loss_sum;
    return true;
}

static bool encode_judge(const struct learning *learning, const struct predictions *found,
                         double *values, struct err *err)
{
    double sum = 0, unit = learning->config->data.std[0]; /* of a pixel, 0 to 1 */
    (void)err;
    for (int64_t i = 0; i < found->n; i++)
        sum += (double)found->values[i];
    values[PSNR] = -10 * log10(sum / (double)found->n * unit * unit);
    return true;
}

static bool encode_write(const struct learning *learning, const char *prefix,
                         const struct predictions *found, struct err *err)
{
    (void)learning, (void)prefix, (void)found, (void)err;
    return true;
}

static void encode_describe(const struct learning *learning, struct model_config *card)
{
    card->objective = OBJECTIVE_ENCODE;
    card->num_classes = (int64_t)learning->config->classes.n;
    card->class_names = learning->config->classes.items;
}

static const struct objective_feed encode_feeds[] = { { "image", "input", false }, { 0 } };

const struct objective objective_encode = {
    .name = "encode",
    .takes = "patches: patch stores (.h5), folders of images, tar files",
    .truth = TRUTH_NONE,
    .feeds = encode_feeds,
    .output = "image",
    .measures = encode_measures,
    .n_measures = N_MEASURES,
    .plots = encode_plots,
    .monitor = "loss",
    .mode = PLAN_TRAIN,
    .test = true,
    .generates = true,
    .settle = encode_settle,
    .build = encode_build,
    .loss = encode_loss,
    .keep = encode_keep,
    .judge = encode_judge,
    .write = encode_write,
    .describe = encode_describe,
};
