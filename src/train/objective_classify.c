/* objective_classify.c: one of several classes for a patch, learnt from labels (objective.h). */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "net/model/model.h"
#include "train/loss.h"
#include "train/network.h"
#include "train/objective_classify.h"

struct classify {
    float *weights; /* [classes]; NULL: all 1 */
    float *targets; /* [batch, classes], for the sigmoid loss */
};

static bool independent(const struct learning *learning)
{
    return learning->config->network.activation == ACTIVATION_SIGMOID;
}

void classify_free(struct learning *learning)
{
    struct classify *own = learning->own;
    if (own) {
        free(own->weights);
        free(own->targets);
    }
    free(own);
    learning->own = NULL;
}

/* Rare classes weigh more: n / (classes * n of the class); the mean over the data is 1. */
static bool weigh_classes(const struct learning *learning, struct classify *own, struct err *err)
{
    int64_t classes = learning->dataset->n_classes;
    if (learning->config->data.balance != BALANCE_WEIGHTS)
        return true;
    int64_t *count = calloc((size_t)classes, sizeof *count);
    own->weights = calloc((size_t)classes, sizeof *own->weights);
    if (!count || !own->weights) {
        free(count);
        return err_memory(err, "class weights");
    }
    double n = (double)dataset_count(learning->dataset, DATA_TRAIN, count);
    for (int64_t c = 0; c < classes; c++)
        own->weights[c] = (float)(n / (double)classes / (double)count[c]);
    free(count);
    return true;
}

bool classify_settle(struct train_config *config, struct err *err)
{
    bool sigmoid = config->network.activation == ACTIVATION_SIGMOID;
    if (sigmoid && config->train.smoothing > 0)
        return err_set(err, ERR_USAGE, "train.smoothing: only the softmax loss takes it; omit it");
    if (sigmoid && config->train.mixup > 0)
        return err_set(err, ERR_USAGE, "train.mixup: only the softmax loss takes it; omit it");
    return config_adopt_classes(config, err);
}

bool classify_inputs(struct learning *learning, struct err *err)
{
    struct classify *own = learning->own = calloc(1, sizeof *own);
    size_t targets = (size_t)(config_micro_batch(learning->config) * learning->dataset->n_classes);
    if (own && independent(learning))
        own->targets = calloc(targets, sizeof *own->targets);
    return own && (own->targets || !independent(learning)) ? weigh_classes(learning, own, err)
                                                           : err_memory(err, "the objective");
}

static bool classify_build(struct learning *learning, struct graph **out, struct err *err)
{
    learning->outputs = learning->dataset->n_classes;
    return network_build(learning->config, learning->outputs, "an image classifier", out, err) &&
           network_start(learning->config, *out, learning->ctx->console, err);
}

static void one_hot(const int32_t *labels, int64_t count, int64_t classes, float *targets)
{
    for (int64_t i = 0; i < count * classes; i++) {
        int32_t label = labels[i / classes];
        targets[i] = label == LOSS_IGNORE ? NAN : label == i % classes ? 1.0f : 0.0f;
    }
}

bool classify_loss(struct learning *learning, const struct comparison *c, double *loss,
                   struct err *err)
{
    const struct train_config *config = learning->config;
    const struct classify *own = learning->own;
    const int32_t *labels = batch_int32(c->batch, "label");
    struct loss_classes spec = { .count = batch_rows(c->batch),
                                 .classes = learning->outputs,
                                 .places = 1,
                                 .divisor = c->divisor };
    if (c->gradient) {
        spec.weights = own->weights;
        spec.smoothing = (float)config->train.smoothing;
        spec.shares = batch_floats(c->batch, "share");
        spec.others = batch_int32(c->batch, "other_label");
    }
    if (!independent(learning))
        return loss_softmax(&spec, c->outputs, labels, loss, c->gradient, err);
    one_hot(labels, spec.count, spec.classes, own->targets);
    loss_sigmoid(&spec, c->outputs, own->targets, loss, c->gradient);
    return true;
}

void classify_scores(const float *outputs, int64_t n, bool each, double *scores)
{
    if (!each)
        model_scores(outputs, n, scores);
    for (int64_t i = 0; each && i < n; i++)
        model_scores(outputs + i, 1, scores + i);
}

void classify_outputs(const double *scores, int64_t n, bool each, float *outputs)
{
    for (int64_t i = 0; i < n; i++) {
        double p = fmax(scores[i], DBL_MIN), rest = fmax(1 - scores[i], DBL_MIN);
        outputs[i] = (float)(each ? log(p) - log(rest) : log(p));
    }
}

void classify_predict(const struct learning *learning, const float *outputs, double *values)
{
    classify_scores(outputs, learning->outputs, independent(learning), values);
}

void classify_restore(const struct learning *learning, const double *values, float *outputs)
{
    classify_outputs(values, learning->outputs, independent(learning), outputs);
}

bool classify_keep(struct learning *learning, const struct comparison *c, double loss_sum,
                   struct predictions *to, struct err *err)
{
    const int32_t *labels = batch_int32(c->batch, "label");
    const int64_t *samples = batch_int64(c->batch, "sample");
    int64_t n = c->batch->n, classes = learning->outputs;
    double *scores = calloc((size_t)classes, sizeof *scores);
    bool ok = (scores || err_memory(err, "predictions")) && predictions_grow(to, n, err);
    for (int64_t i = 0; ok && i < n; i++) {
        classify_predict(learning, c->outputs + i * classes, scores);
        for (int64_t k = 0; k < classes; k++)
            to->values[(to->n + i) * classes + k] = (float)scores[k];
        to->truths[to->n + i] = (float)labels[i];
        to->samples[to->n + i] = samples[i];
    }
    free(scores);
    to->n += ok ? n : 0;
    to->loss_sum += ok ? loss_sum : 0;
    return ok;
}

void classify_describe(const struct learning *learning, struct model_config *card)
{
    classes_describe(learning, card);
    card->independent = independent(learning);
}

static const struct objective_feed classify_feeds[] = { { "image", "input", false }, { 0 } };
const struct objective_loss classify_losses[] = { { "softmax", "softmax" },
                                                  { "sigmoid", "sigmoid" },
                                                  { 0 } };

const struct objective objective_classify = {
    OBJECTIVE_OF_CLASSES,
    .name = "classify",
    .takes = "patches with labels: patch stores (.h5), folders of images, tar files",
    .feeds = classify_feeds,
    .build = classify_build,
    .describe = classify_describe,
};
