/* objective_segment.c: a class for every pixel of an image, learnt from label images: outside of
 * nuclei, inside of one, or at its boundary (objective.h, pixel_classes.h). The loss is the
 * cross-entropy, a mean over pixels, plus soft Dice if asked for. What is kept of a sample is how
 * many pixels of each class were taken for which, so that measures over all samples are exact. */
#include <math.h>
#include <stdlib.h>
#include "base/file.h"
#include "base/text.h"
#include "train/loss.h"
#include "train/network.h"
#include "train/objective.h"
#include "train/pixel_classes.h"

enum { COUNTS = SEGMENT_CLASSES * SEGMENT_CLASSES }; /* [truth, taken for] */

struct segment {
    float weights[SEGMENT_CLASSES];
    bool weighted;
    char *names[SEGMENT_CLASSES]; /* of the classes, for the card */
};

enum { DICE, IOU, DICE_NUCLEI, DICE_BOUNDARY, N_MEASURES };
static const struct measure segment_measures[N_MEASURES] = {
    [DICE] = { "dice", "Dice", true },
    [IOU] = { "iou", "IoU", false },
    [DICE_NUCLEI] = { "dice_nuclei", "Dice of whole nuclei", false },
    [DICE_BOUNDARY] = { "dice_boundary", "Dice of boundaries", false },
};
static const char *const segment_plots[] = { "dice", NULL };

static bool segment_settle(struct train_config *config, struct err *err)
{
    const char *key = config->train.smoothing > 0                ? "train.smoothing"
                      : config->train.mixup > 0                  ? "train.mixup"
                      : config->train.tta                        ? "train.tta"
                      : config->data.balance == BALANCE_SAMPLING ? "data.balance: sampling"
                      : config->data.hard_negatives[0]           ? "data.hard_negatives (--mine)"
                      : config->data.resize_px > 0               ? "data.resize_px"
                      : !config_default_classes(config)          ? "classes"
                                                                 : NULL;
    return !key || err_set(err, ERR_USAGE, "%s: does not apply to objective segment; omit it", key);
}

static void segment_free(struct learning *learning)
{
    struct segment *own = learning->own;
    for (int c = 0; own && c < SEGMENT_CLASSES; c++)
        free(own->names[c]);
    free(own);
    learning->own = NULL;
}

static bool count_pixels(const struct learning *learning, int64_t sample, double *counts,
                         struct err *err)
{
    struct label_image labels = { 0 };
    struct image classes = { 0 };
    if (!dataset_read_labels(learning->dataset, sample, &labels, err))
        return false;
    struct image size = { NULL, labels.width, labels.height, 3 }; /* of the labels themselves */
    bool ok = pixel_classes(&labels, &size, learning->config->data.spacing_um_px, &classes, err);
    for (int64_t i = 0; ok && i < classes.width * classes.height; i++)
        counts[classes.px[3 * i]]++;
    label_image_free(&labels);
    image_free(&classes);
    return ok;
}

/* Rare classes weigh more: n / (classes * n of the class) pixels; the mean over the data is 1. */
static bool weigh_classes(const struct learning *learning, struct segment *own, struct err *err)
{
    double counts[SEGMENT_CLASSES] = { 0 }, n = 0;
    for (int64_t first = 0; first < learning->dataset->n_samples;) {
        struct sample_range range = dataset_range(learning->dataset, first);
        for (int64_t i = first; range.side == DATA_TRAIN && i < range.end; i++)
            if (!count_pixels(learning, i, counts, err))
                return false;
        first = range.end;
    }
    for (int c = 0; c < SEGMENT_CLASSES; c++)
        n += counts[c];
    for (int c = 0; c < SEGMENT_CLASSES; c++) {
        if (counts[c] == 0)
            return err_set(err, ERR_FORMAT,
                           "data.balance: no pixel of the training data is %s, so classes cannot "
                           "be weighed; add images, or omit it",
                           segment_class_names[c]);
        own->weights[c] = (float)(n / SEGMENT_CLASSES / counts[c]);
    }
    own->weighted = true;
    return true;
}

static bool segment_inputs(struct learning *learning, struct err *err)
{
    struct segment *own = learning->own = calloc(1, sizeof *own);
    bool ok = own != NULL;
    for (int c = 0; ok && c < SEGMENT_CLASSES; c++)
        ok = (own->names[c] = text_format("%s", segment_class_names[c])) != NULL;
    if (!ok)
        return err_memory(err, "the objective");
    return learning->config->data.balance != BALANCE_WEIGHTS || weigh_classes(learning, own, err);
}

static bool segment_build(struct learning *learning, struct graph **out, struct err *err)
{
    learning->outputs = COUNTS;
    return network_build_pixels(learning->config, SEGMENT_CLASSES, out, err) &&
           network_start(learning->config, *out, learning->ctx->console, err);
}

static bool segment_loss(struct learning *learning, const struct comparison *c, double *loss,
                         struct err *err)
{
    const struct segment *own = learning->own;
    const struct batch_item *item = batch_find(c->batch, "labels");
    const int32_t *labels = batch_int32(c->batch, "labels");
    struct loss_classes spec = { .count = item->shape.dim[0],
                                 .classes = SEGMENT_CLASSES,
                                 .places = item->shape.dim[1] * item->shape.dim[2] };
    double dice = 0;
    spec.divisor = c->divisor * (double)spec.places;
    if (c->gradient && own->weighted)
        spec.weights = own->weights;
    if (!loss_softmax(&spec, c->outputs, labels, loss, c->gradient, err))
        return false;
    spec.divisor = c->divisor;
    if (learning->config->train.loss == LOSS_DICE)
        loss_dice(&spec, c->outputs, labels, &dice, c->gradient);
    *loss += dice;
    return true;
}

/* counts [COUNTS] of one sample; s [classes, places]: the class with the highest score. */
static void count_sample(const float *s, const int32_t *labels, int64_t places, float *counts)
{
    int64_t found[COUNTS] = { 0 };
    for (int64_t i = 0; i < places; i++) {
        int best = 0;
        for (int c = 1; c < SEGMENT_CLASSES; c++)
            if (s[c * places + i] > s[best * places + i])
                best = c;
        found[labels[i] * SEGMENT_CLASSES + best]++;
    }
    for (int k = 0; k < COUNTS; k++)
        counts[k] = (float)found[k];
}

static bool segment_keep(struct learning *learning, const struct comparison *c, double loss_sum,
                         struct predictions *to, struct err *err)
{
    const struct batch_item *item = batch_find(c->batch, "labels");
    const int32_t *labels = batch_int32(c->batch, "labels");
    const int64_t *samples = batch_int64(c->batch, "sample");
    int64_t places = item->shape.dim[1] * item->shape.dim[2];
    (void)learning;
    if (!predictions_grow(to, c->batch->n, err))
        return false;
    for (int64_t i = 0; i < c->batch->n; i++, to->n++) {
        count_sample(c->outputs + i * SEGMENT_CLASSES * places, labels + i * places, places,
                     to->values + to->n * COUNTS);
        to->truths[to->n] = 0;
        to->samples[to->n] = samples[i];
    }
    to->loss_sum += loss_sum;
    return true;
}

/* Of the classes in `set` (bits) against all others; NaN if there are none, found or true. */
static void overlap(const double *counts, unsigned set, double *dice, double *iou)
{
    double both = 0, either = 0;
    for (int k = 0; k < COUNTS; k++) {
        bool truth = set >> (k / SEGMENT_CLASSES) & 1, found = set >> (k % SEGMENT_CLASSES) & 1;
        both += truth && found ? counts[k] : 0;
        either += truth || found ? counts[k] : 0;
    }
    *iou = either > 0 ? both / either : NAN;
    *dice = either > 0 ? 2 * both / (either + both) : NAN;
}

static void measure_counts(const double *counts, double *values)
{
    double unused;
    overlap(counts, 1 << SEGMENT_INSIDE, &values[DICE], &values[IOU]);
    overlap(counts, 1 << SEGMENT_INSIDE | 1 << SEGMENT_BOUNDARY, &values[DICE_NUCLEI], &unused);
    overlap(counts, 1 << SEGMENT_BOUNDARY, &values[DICE_BOUNDARY], &unused);
}

static bool segment_judge(const struct learning *learning, const struct predictions *predictions,
                          double *values, struct err *err)
{
    double counts[COUNTS] = { 0 };
    (void)learning, (void)err;
    for (int64_t i = 0; i < predictions->n * COUNTS; i++)
        counts[i % COUNTS] += (double)predictions->values[i];
    measure_counts(counts, values);
    return true;
}

static void put_measures(FILE *stream, const float *kept)
{
    double counts[COUNTS], values[N_MEASURES];
    for (int k = 0; k < COUNTS; k++)
        counts[k] = (double)kept[k];
    measure_counts(counts, values);
    for (int m = 0; m < N_MEASURES; m++)
        if (isnan(values[m]))
            fputc(',', stream);
        else
            fprintf(stream, ",%.9g", values[m]);
}

static bool segment_write(const struct learning *learning, const char *prefix,
                          const struct predictions *found, struct err *err)
{
    struct file_out out;
    char *path = text_format("%sscores.csv", prefix);
    bool ok = path ? file_out_open(&out, path, err) : err_memory(err, "the scores");
    free(path);
    if (!ok)
        return false;
    fputs("sample,patient", out.stream);
    for (int m = 0; m < N_MEASURES; m++)
        fprintf(out.stream, ",%s", segment_measures[m].name);
    for (int k = 0; k < COUNTS; k++)
        fprintf(out.stream, ",%s_as_%s", segment_class_names[k / SEGMENT_CLASSES],
                segment_class_names[k % SEGMENT_CLASSES]);
    fputc('\n', out.stream);
    for (int64_t i = 0; i < found->n; i++) {
        dataset_put_sample(learning->dataset, found->samples[i], out.stream);
        put_measures(out.stream, found->values + i * COUNTS);
        for (int k = 0; k < COUNTS; k++)
            fprintf(out.stream, ",%.0f", (double)found->values[i * COUNTS + k]);
        fputc('\n', out.stream);
    }
    return file_out_commit(&out, err);
}

static void segment_describe(const struct learning *learning, struct model_config *card)
{
    struct segment *own = learning->own;
    card->num_classes = SEGMENT_CLASSES;
    card->class_names = own->names;
    card->objective = OBJECTIVE_SEGMENT;
}

static const struct objective_feed segment_feeds[] = { { "image", "input", false }, { 0 } };
static const struct objective_loss segment_losses[] = { { "softmax", "softmax" },
                                                        { "dice", "softmax" },
                                                        { 0 } };

const struct objective objective_segment = {
    .name = "segment",
    .takes = "folders of images NAME.png with label images NAME_labels.png beside them",
    .truth = TRUTH_LABEL_IMAGES,
    .feeds = segment_feeds,
    .output = "logits",
    .losses = segment_losses,
    .measures = segment_measures,
    .n_measures = N_MEASURES,
    .plots = segment_plots,
    .monitor = "dice",
    .mode = PLAN_TRAIN,
    .test = true,
    .settle = segment_settle,
    .inputs = segment_inputs,
    .build = segment_build,
    .loss = segment_loss,
    .keep = segment_keep,
    .judge = segment_judge,
    .write = segment_write,
    .describe = segment_describe,
    .free = segment_free,
};
